"""Logs that grow, and communicators whose size no line tells."""

from __future__ import annotations

import functools
import io
import sys
from typing import TYPE_CHECKING

from loglines import body, info, logs_json, read

from nsys_tui.cli import main
from nsys_tui.commands import following
from nsys_tui.commands.following import follow
from nsys_tui.errors import USAGE, NoDataError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


def waiting(*steps: Callable[[], object]) -> Callable[[float], None]:
    """Stands in for the waits: does one thing in each, then Ctrl-C."""
    left = list(steps)

    def wait(_: float) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    return wait


def test_a_log_is_read_again_when_it_has_grown_and_only_then(tmp_path: Path) -> None:
    log = tmp_path / "nccl.log"
    read_sizes: list[int] = []

    def once() -> int:
        read_sizes.append(log.stat().st_size)
        return len(read_sizes)

    steps = (
        lambda: log.write_text("a\n"),
        lambda: None,
        lambda: log.write_text("a\nb\n"),
        lambda: None,
    )
    assert follow([str(log)], once, waiting(*steps)) == 2
    assert read_sizes == [2, 4]


def test_a_log_that_says_nothing_yet_is_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "nccl.log"
    log.write_text("")

    def once() -> int:
        raise NoDataError("no line of NCCL")

    assert follow([str(log)], once, waiting()) == 0
    assert "no line of NCCL, so far" in capsys.readouterr().err


def test_the_verb_follows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "nccl.log"
    log.write_text(info(body()) + "\n")

    def grow() -> None:
        with log.open("a") as file:
            file.write(info(body("Broadcast", 6)) + "\n")

    monkeypatch.setattr(
        following, "follow", functools.partial(following.follow, wait=waiting(grow))
    )
    assert main(["logs", str(log), "--follow", "--section", "per-op"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("AllReduce") == 2
    assert shown.count("Broadcast") == 1


class Terminal(io.StringIO):
    """What a terminal is sent."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_cleared_before_each_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, terminal = tmp_path / "nccl.log", Terminal()
    log.write_text(info(body()) + "\n")
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(following, "follow", functools.partial(following.follow, wait=waiting()))
    assert main(["logs", str(log), "--follow", "--section", "per-op"]) == 0
    assert terminal.getvalue().startswith("\x1b[2J\x1b[H")


def test_only_tables_of_files_are_followed() -> None:
    assert main(["logs", "-", "--follow"]) == USAGE
    assert main(["logs", "x.log", "--follow", "--format", "json"]) == USAGE


def test_a_size_that_no_line_tells_is_unknown_until_it_is_given(tmp_path: Path) -> None:
    line = info(body("AllGather", 3)).replace("[nranks=8] ", "")
    unknown = read(tmp_path, [line])
    (row,) = logs_json(unknown)["traffic"]
    assert (row["nranks"], row["buffer_bytes"], row["wire_bytes"]) == (None, None, None)
    given = read(tmp_path, [line], ranks=4)
    (row,) = logs_json(given)["traffic"]
    assert (row["nranks"], row["buffer_bytes"], row["wire_bytes"]) == (4, 16384, 12288)
    told = read(tmp_path, [info(body("AllGather", 3))], ranks=4)
    assert logs_json(told)["traffic"][0]["nranks"] == 8
