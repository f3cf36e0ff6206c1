"""Key to repaint on the timeline: drives the real app in a pseudo-terminal, prints a table.

    python tests/benchmarks/bench_timeline.py REPORT [COLUMNS] [ROWS]

For each zoom the same keys are pressed one by one. Two times are taken: to the end of the first
burst of bytes, which are the lanes, and to the last byte, since facts of an event come from a
worker. Asserts nothing. A floor stands below: the time from a key to the echo of a bare ``cat``.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import statistics
import struct
import sys
import termios
import time
from typing import NamedTuple

QUIET = 0.12
"""Seconds without a byte after which a repaint counts as done."""
BURST = 0.012
"""Seconds of silence that end the first burst."""
KEYS = {
    "cursor right": b"\x1b[C",
    "lane down": b"j",
    "lane up": b"k",
    "pan right": b"d",
    "pan left": b"a",
    "next event": b".",
    "snap": b"\t",
}
REPEATS = 4
ZOOMS = 24


class Press(NamedTuple):
    """What a key led to."""

    repaint: float
    """Milliseconds to the last byte of the first burst: the lanes."""
    last: float
    """Milliseconds to the last byte of all: facts may follow."""
    size: int
    """Bytes."""


class Terminal:
    """A program in a pseudo-terminal."""

    def __init__(self, command: list[str], columns: int, rows: int) -> None:
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
            os.execvp(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def drain(self, quiet: float = QUIET, limit: float = 20.0) -> list[tuple[float, int]]:
        """Reads until nothing comes for a while: moment and size of each piece."""
        began = time.perf_counter()
        pieces: list[tuple[float, int]] = []
        while time.perf_counter() - began < limit:
            ready, _, _ = select.select([self.fd], [], [], quiet)
            if not ready:
                break
            try:
                size = len(os.read(self.fd, 1 << 16))
            except OSError:
                break
            pieces.append((time.perf_counter() - began, size))
        return pieces

    def press(self, key: bytes) -> Press:
        """Presses a key and reads what it draws."""
        os.write(self.fd, key)
        pieces = self.drain()
        if not pieces:
            return Press(0.0, 0.0, 0)
        repaint = pieces[0][0]
        for moment, _ in pieces[1:]:
            if moment - repaint > BURST:
                break
            repaint = moment
        return Press(repaint * 1e3, pieces[-1][0] * 1e3, sum(size for _, size in pieces))


def main(report: str, columns: int = 200, rows: int = 50) -> None:
    """Prints the table."""
    app = Terminal([sys.executable, "-m", "nsys_tui", report], columns, rows)
    app.drain(3.0, 60)
    app.press(b"2")
    app.drain(4.0, 60)
    print(f"{report}: {columns}x{rows}, {REPEATS} presses of {len(KEYS)} keys a zoom")
    print("   zoom   repaint ms (median 95th most)   last byte ms   bytes (median 95th most)")
    everything: list[Press] = []
    for zoom in range(0, ZOOMS, 3):
        presses = [app.press(key) for key in KEYS.values() for _ in range(REPEATS)]
        everything += presses
        show(f"2^{zoom}", presses)
        everything += [app.press(b"w") for _ in range(3)]
    show("all", everything)
    os.write(app.fd, b"q")
    app.drain(0.5)
    os.waitpid(app.pid, 0)
    floor = Terminal(["cat"], columns, rows)
    echoes = [floor.press(b"x").repaint for _ in range(9)]
    print(f"floor, the echo of cat: {statistics.median(echoes):.1f} ms")
    os.close(floor.fd)


def show(label: str, presses: list[Press]) -> None:
    """Prints one line."""

    def spread(values: list[float]) -> str:
        ordered = sorted(values)
        late = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
        return f"{statistics.median(ordered):8.1f} {late:8.1f} {ordered[-1]:8.1f}"

    repaint, last, size = (list(map(float, column)) for column in zip(*presses, strict=True))
    print(f"{label:>7}  {spread(repaint)}  {spread(last)}  {spread(size)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
