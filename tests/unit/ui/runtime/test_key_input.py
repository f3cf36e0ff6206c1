from __future__ import annotations

import inspect
import os
import selectors
import time

import pytest
from textual import constants, events
from textual.drivers import linux_driver

from nsys_tui.ui.runtime.key_input import WAIT, KeyParser, KeySelector, prepare_input


def test_after_input_the_selector_comes_back_for_a_lone_escape() -> None:
    near, far = os.pipe()
    keys = KeySelector()
    keys.register(near, selectors.EVENT_READ)
    os.write(far, b"\x1b")
    assert len(keys.select(60)) == 1
    os.read(near, 9)
    began = time.monotonic()
    assert keys.select(60) == []
    assert time.monotonic() - began < 30
    began = time.monotonic()
    assert keys.select(0.2) == []  # nothing came since: as seldom as asked
    assert time.monotonic() - began >= 0.15
    keys.close()
    os.close(near)
    os.close(far)


def test_a_selector_of_nothing_comes_back_at_once() -> None:
    keys = KeySelector()
    began = time.monotonic()
    assert keys.select(60) == []
    assert time.monotonic() - began < 30
    keys.close()


def test_the_driver_waits_with_that_selector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ESCDELAY", raising=False)
    monkeypatch.setitem(vars(constants), "ESCAPE_DELAY", 0.1)
    monkeypatch.setitem(vars(linux_driver), "selectors", selectors)
    prepare_input(linux_driver.LinuxDriver)
    assert vars(linux_driver)["selectors"].SelectSelector is KeySelector
    assert constants.ESCAPE_DELAY == WAIT
    used = inspect.getsource(linux_driver.LinuxDriver.run_input_thread)
    assert "selectors.SelectSelector()" in used
    assert 'getincrementaldecoder("utf-8")()' in used


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("\x1b3", ["escape", "3"]),
        ("w\x1bWw\x1b/", ["w", "escape", "W", "w", "escape", "slash"]),
        ("\x1b[1;3C", ["alt+right"]),
        ("\x1b[A", ["up"]),
    ],
)
def test_escape_and_a_character_of_one_packet_are_two_keys(sent: str, keys: list[str]) -> None:
    parser = KeyParser()
    told = list(parser.feed(sent))
    assert [event.key for event in told if isinstance(event, events.Key)] == keys


def test_bytes_that_are_not_utf8_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(linux_driver), "selectors", selectors)
    monkeypatch.setitem(vars(linux_driver), "getincrementaldecoder", None)
    prepare_input(linux_driver.LinuxDriver)
    decode = vars(linux_driver)["getincrementaldecoder"]("utf-8")().decode
    assert decode(b"caf\xe9 \xc3") == "caf\ufffd "
    assert decode(b"\xa9") == "\u00e9"
    with pytest.raises(EOFError):
        decode(b"")
    assert decode(b"", final=True) == ""


def test_the_users_own_delay_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESCDELAY", "250")
    monkeypatch.setitem(vars(constants), "ESCAPE_DELAY", 0.25)
    monkeypatch.setitem(vars(linux_driver), "selectors", selectors)
    prepare_input(linux_driver.LinuxDriver)
    assert constants.ESCAPE_DELAY == 0.25
