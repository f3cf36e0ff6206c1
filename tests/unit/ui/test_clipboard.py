from __future__ import annotations

import base64
import stat
from typing import TYPE_CHECKING

import pyperclip

from nsys_tui.paths import state_folder
from nsys_tui.ui import clipboard

if TYPE_CHECKING:
    import pytest

SSH = {"SSH_CONNECTION": "1 2 3 4", "DISPLAY": ":0"}


def copied(text: str, environ: dict[str, str]) -> tuple[clipboard.Copied, list[str]]:
    sent: list[str] = []
    return clipboard.copy(text, sent.append, environ=environ), sent


def test_over_ssh_the_terminal_gets_the_text() -> None:
    found, sent = copied("gemm\t1.2 ms", SSH)
    assert sent == ["\x1b]52;c;" + base64.b64encode(b"gemm\t1.2 ms").decode() + "\x07"]
    assert "OSC 52" in found.sentence
    assert str(state_folder() / "copied.txt") in found.sentence


def test_in_tmux_the_sequence_goes_bare_and_wrapped_and_the_toast_says_what_it_needs() -> None:
    found, sent = copied("x", SSH | {"TMUX": "/tmp/t"})
    bare, wrapped = sent
    assert wrapped == "\x1bPtmux;" + bare.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    assert "set-clipboard" in found.sentence


def test_a_display_without_ssh_uses_the_system_clipboard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    got: list[str] = []
    monkeypatch.setattr(pyperclip, "copy", got.append)
    found, sent = copied("x", {"DISPLAY": ":0"})
    assert (got, sent) == (["x"], [])
    assert found.routes == ("clipboard",)


def test_without_a_clipboard_tool_the_terminal_is_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(text: str) -> None:
        raise pyperclip.PyperclipException("no tool")

    monkeypatch.setattr(pyperclip, "copy", fail)
    _, sent = copied("x", {"DISPLAY": ":0"})
    assert len(sent) == 1


def test_a_text_too_long_for_terminals_goes_to_the_file_only() -> None:
    long = "x" * 60_000
    found, sent = copied(long, SSH)
    assert sent == []
    assert found.sentence.startswith("in ")
    assert (state_folder() / "copied.txt").read_text() == long


def test_control_and_escape_characters_are_removed() -> None:
    copied("a\x1b]52;c;x\x07b\x00\x9b31m\tc\nd", SSH)
    assert (state_folder() / "copied.txt").read_text() == "a]52;c;xb31m\tc\nd"


def test_the_file_is_private_and_older_copies_are_kept() -> None:
    for n in range(25):
        copied(f"copy {n}", SSH)
    files = sorted(state_folder().glob("copied*.txt"))
    assert len(files) == clipboard.KEPT
    assert (state_folder() / "copied.txt").read_text() == "copy 24"
    assert (state_folder() / "copied-1.txt").read_text() == "copy 23"
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)


def test_a_state_folder_that_cannot_be_written_is_no_error() -> None:
    state_folder().parent.mkdir(parents=True, exist_ok=True)
    state_folder().touch()
    found, _ = copied("x", SSH)
    assert found.path is None
    assert "also in" not in found.sentence
