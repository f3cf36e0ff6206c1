"""Tables in colour on a terminal, and byte for byte plain everywhere else."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from fcntl import ioctl
from struct import pack
from termios import TIOCSWINSZ
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from demo_making import make

from nsys_tui.render.colour import contrast
from nsys_tui.text.paint import painted
from nsys_tui.text.sections import bars_of

if TYPE_CHECKING:
    from pathlib import Path

CODES = re.compile(r"\x1b\[[\d;]*m")
XTERM = (
    *("#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5"),
    *("#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff"),
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("paint"), steps=3).path


def on_terminal(words: list[str], cells: int, **env: str) -> str:
    """What a verb sends to a terminal of so many cells."""
    near, far = pty.openpty()
    ioctl(far, TIOCSWINSZ, pack("HHHH", 40, cells, 0, 0))
    known = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **env}
    base = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    parts: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(near, 65536):
                parts.append(part)
        except OSError:  # the terminal was closed
            return

    reader = Thread(target=read)
    reader.start()
    command = [sys.executable, "-m", "nsys_tui", *words]
    done = subprocess.run(command, stdin=far, stdout=far, env={**base, **known}, timeout=60)
    os.close(far)
    reader.join()
    os.close(near)
    assert done.returncode == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_colours_can_be_read_on_light_and_on_dark() -> None:
    """By the sixteen colours of xterm."""
    lines = [
        " Name  Verdict",
        " ----  -------",
        " H k  worse: slower  better: faster",
        " M k  ████",
    ]
    sent = "".join(painted(["\n".join(lines)]))
    codes = {int(code) for found in CODES.findall(sent) for code in found[2:-1].split(";")}
    colours = {code - 30: XTERM[code - 30] for code in codes if 30 <= code < 38}
    colours |= {code - 82: XTERM[code - 82] for code in codes if 90 <= code < 98}
    assert len(colours) >= 3
    for ground in ("#000000", "#ffffff"):
        assert {n for n, colour in colours.items() if contrast(colour, ground) < 3} == set()


def test_on_a_terminal_there_are_colours_and_bars(demo: Path) -> None:
    shown = on_terminal(["stalls", str(demo), "--group-by", "cause"], 160)
    assert CODES.search(shown)
    bare = CODES.sub("", shown)
    rows = [line for line in bare.splitlines() if "%" in line]
    shares = [float(row.split("%")[0]) for row in rows]
    wanted = [8 * share / max(shares) for share in shares]
    assert len(rows) > 3
    assert [row.count("█") for row in rows] == pytest.approx(wanted, abs=1)
    assert "\x1b[1mIdle time by cause\x1b[0m\n" in shown


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colours_a_terminal_gets_what_a_pipe_gets(demo: Path, env: dict[str, str]) -> None:
    words = ["stalls", str(demo), "--group-by", "cause"]
    piped = subprocess.run(
        [sys.executable, "-m", "nsys_tui", *words], capture_output=True, text=True, timeout=60
    )
    assert "\x1b" not in piped.stdout
    assert "█" not in piped.stdout
    assert on_terminal(words, 160, **env) == piped.stdout


def test_names_cannot_send_colours() -> None:
    text = "".join(painted(["Names\n H  \x1b[31mred\n", "  worse: slower\n"]))
    assert text.count("\x1b[31mred") == 0
    assert "\\x1b[31mred" in text
    assert CODES.sub("", text).endswith("  worse: slower\n")
    assert "\x1b[1;31mworse: slower\x1b[0m" in text


def test_bars_are_as_long_as_their_figures() -> None:
    assert bars_of([100.0, 50.0, 6.25, 0.0, None]) == [
        "████████", "████    ", "▌       ", "        ", "        ",
    ]  # fmt: skip
    assert bars_of([50.0, 25.0], 100.0) == ["████    ", "██      "]
