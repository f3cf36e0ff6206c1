"""Notes beside the data: on a terminal they fit, and names in them are harmless."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from fcntl import ioctl
from struct import pack
from termios import TIOCSWINSZ
from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui.cli import main
from nsys_tui.commands.printing import say

if TYPE_CHECKING:
    from pathlib import Path

LONG = "/home/somebody/with-a-rather-long-name/report\x1b[31m.sqlite"


def test_notes_for_a_program_are_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"nsys-tui: cannot read {LONG}\nbecause " + "of this " * 30)
    first, second = capsys.readouterr().err.splitlines()
    assert "\x1b" not in first
    assert len(second) > 200


def test_notes_on_a_terminal_are_broken_at_spaces_and_paths_stay_whole(tmp_path: Path) -> None:
    ours, terminal = pty.openpty()
    ioctl(terminal, TIOCSWINSZ, pack("HHHH", 24, 40, 0, 0))
    missing = tmp_path / ("long-" * 20 + ".sqlite")
    words = [sys.executable, "-m", "nsys_tui", "overview", str(missing)]
    done = subprocess.run(words, stdin=terminal, stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(terminal)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert done.returncode == 65
    assert f"\r\n  {missing}\r\n" in shown
    assert all(len(line) <= 40 for line in shown.splitlines() if str(missing) not in line)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(
    ("verb", "told"),
    [
        (("stalls", "--format", "csv"), True),
        (("sql", "select cause from stalls"), True),
        (("sql", "select idle_ns from stalls"), False),
        (("export", "--perfetto", "-"), True),
        (("stacks", "--source", "on"), True),
        (("stacks", "--source", "gpu"), False),
    ],
)
def test_what_needs_os_calls_to_be_told_says_where_there_are_none(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    verb: tuple[str, ...],
    told: bool,
    recorded: bool,
) -> None:
    made = Synth(tmp_path / "r.sqlite").nvtx("step", 0, 900_000)
    made.launch("k", (10, 20), (30, 60)).launch("k", (400_000, 400_010), (400_100, 400_200))
    made.sched(0, switched_in=True).sched(500_000, switched_in=False)
    if recorded:
        made.osrt("read", 100_000, 300_000)
    name, *options = verb
    assert main([name, str(made.write()), *options, "--no-cache"]) == 0
    assert ("no OS runtime calls" in capsys.readouterr().err) == (told and not recorded)
