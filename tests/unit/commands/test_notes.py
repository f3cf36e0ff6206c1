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

from nsys_tui.commands.printing import say

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

LONG = "/home/somebody/with-a-rather-long-name/report\x1b[31m.sqlite"


def test_notes_for_a_program_are_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"nsys-tui: cannot read {LONG}\nbecause " + "of this " * 30)
    first, second = capsys.readouterr().err.splitlines()
    assert "\x1b" not in first
    assert len(second) > 200


def test_notes_on_a_terminal_are_broken_at_spaces_and_paths_stay_whole(tmp_path: Path) -> None:
    main, terminal = pty.openpty()
    ioctl(terminal, TIOCSWINSZ, pack("HHHH", 24, 40, 0, 0))
    missing = tmp_path / ("long-" * 20 + ".sqlite")
    words = [sys.executable, "-m", "nsys_tui", "overview", str(missing)]
    done = subprocess.run(words, stdin=terminal, stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(terminal)
    shown = os.read(main, 10_000).decode()
    os.close(main)
    assert done.returncode == 65
    assert f"\r\n  {missing}\r\n" in shown
    assert all(len(line) <= 40 for line in shown.splitlines() if str(missing) not in line)
