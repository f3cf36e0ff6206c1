"""The app as its user feels it: times, bytes, memory and stalls of the real program, in a table.

    python tests/benchmarks/bench_app.py REPORT [SMALL_REPORT]

The program runs in a pseudo-terminal on a cache folder of its own: first empty (cold), then again
(second opening). Wall times stand beside the CPU time of the program, and a stall of its event loop
beside the lateness of a process that only sleeps: the machine's share. Targets are printed, nothing
is asserted. SMALL_REPORT (about 2 MB) is timed until everything is on its first screen, then key by
key; with ``-`` for REPORT it alone is. The program is compiled first, as one that pip installed is.
``demo/make_report.py --kernels 5000000 -o REPORT.sqlite`` writes a report of the size to reach.
"""

from __future__ import annotations

import compileall
import fcntl
import os
import pty
import re
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import nsys_tui

if TYPE_CHECKING:
    from collections.abc import Callable

QUIET = 0.15
"""Seconds without a byte after which a repaint counts as done."""
SETTLED = 1.5
"""Seconds without a byte after which all background work counts as done."""
REPEATS = 3
OPENINGS = 5
"""Of a small report, each with an empty cache first; the clock of one is off by half."""
SLOWEST = 15
"""Key presses listed."""
KEYS = {"right": b"\x1b[C", "down": b"j", "up": b"k", "pan": b"d", "back": b"a", "next": b"."}
MOVES = {
    "down": b"\x1b[B",
    "up": b"\x1b[A",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "end": b"\x1b[6~",
}
EVERYWHERE = {
    **MOVES,
    "tab": b"\t",
    "names": b"D",
    "times": b"T",
    "help": b"?",
    "leave help": b"\x1b",
    "palette": b"\x10",
    "leave palette": b"\x1b",
    "maximise": b"\x1b[21~",
    "restore": b"\x1b[21~",
}
TIMELINE = {"zoom": b"w", "pan": b"d", "back": b"a", "next": b".", "previous": b",", "out": b"s"}
SEQUENCE = re.compile(
    r"\x1b\[([\d;]*)([HGBCX])|\x1b\[[\x20-\x3f]*[\x40-\x7e]|\x1b[P\]].*?(?:\x1b\\|\x07)"
    r"|\x1b.|[\n\r\b]|[^\x1b\r\n\b]+"
)
TICKER = """
import asyncio, time
from nsys_tui.ui.app import NsysTuiApp
mount = NsysTuiApp.on_mount
async def tick(path):
    last = time.perf_counter()
    while True:
        await asyncio.sleep(0.005)
        now = time.perf_counter()
        if now - last > 0.055:
            with open(path, "a") as file:
                print(last + 0.005, now, file=file)
        last = now
def mounted(app):
    app._ticker = asyncio.ensure_future(tick({path!r}))
    mount(app)
NsysTuiApp.on_mount = mounted
from nsys_tui.cli import main
raise SystemExit(main({arguments!r}))
"""

HEARTBEAT = """
import time
last = time.perf_counter()
while True:
    time.sleep(0.005)
    now = time.perf_counter()
    if now - last > 0.015:
        print(last + 0.005, now, flush=True)
    last = now
"""


class Screen:
    """The characters on a terminal, as far as the program's own frames need it."""

    def __init__(self, columns: int, rows: int) -> None:
        self.cells = [[" "] * columns for _ in range(rows)]
        self._row = self._column = 0

    def feed(self, text: str) -> None:
        for found in SEQUENCE.finditer(text):
            token = found[0]
            if found[2]:
                self._edit(found[2], *(int(number or 1) for number in found[1].split(";")))
            elif token == "\n":
                self._row += 1
            elif token == "\r":
                self._column = 0
            elif token == "\b":
                self._column -= 1
            elif not token.startswith("\x1b"):
                self._put(token)

    def _edit(self, what: str, count: int, column: int = 1) -> None:
        """The cursor moves, or cells are erased (X)."""
        if what == "H":
            self._row, self._column = count - 1, column - 1
        elif what == "G":
            self._column = count - 1
        elif what == "B":
            self._row += count
        elif what == "C":
            self._column += count
        elif 0 <= self._row < len(self.cells):
            line = self.cells[self._row]
            line[self._column : self._column + count] = " " * count

    def _put(self, text: str) -> None:
        if 0 <= self._row < len(self.cells):
            line = self.cells[self._row]
            line[self._column : self._column + len(text)] = text[: len(line) - self._column]
        self._column += len(text)

    @property
    def lines(self) -> list[str]:
        return ["".join(line) for line in self.cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Spell(NamedTuple):
    """A time in which something did not run, by the clock that all processes share."""

    begin: float
    end: float

    @property
    def length(self) -> float:
        """Milliseconds."""
        return (self.end - self.begin) * 1e3

    def within(self, other: Spell) -> float:
        """Milliseconds of this spell in another one."""
        return max(0.0, min(self.end, other.end) - max(self.begin, other.begin)) * 1e3


def spells(file: Path) -> list[Spell]:
    lines = file.read_text().splitlines() if file.exists() else []
    return [Spell(*map(float, line.split())) for line in lines]


class Press(NamedTuple):
    """What a key led to: milliseconds to the last byte, and bytes."""

    last: float
    size: int


class Program:
    """nsys-tui in a pseudo-terminal, timed from the command on."""

    def __init__(
        self, arguments: list[str], cache: Path, size: tuple[int, int], stalls: Path | None = None
    ) -> None:
        self.screen = Screen(*size)
        command = [sys.executable, "-m", "nsys_tui", *arguments]
        if stalls is not None:
            program = TICKER.format(path=str(stalls), arguments=arguments)
            command = [sys.executable, "-c", program]
        self.used = 0.0
        """CPU seconds up to the last byte."""
        self.began = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if not self.pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
            os.environ["NSYS_TUI_CACHE"] = str(cache)
            os.execvp(command[0], command)

    def read(self, patience: float) -> int:
        """Bytes that came within some seconds; 0 when nothing did."""
        if not select.select([self.fd], [], [], patience)[0]:
            return 0
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:
            return 0
        self.screen.feed(data.decode("utf-8", "replace").replace("\xa0", " "))
        return len(data)

    def until(self, wanted: Callable[[str], bool], limit: float = 90) -> float:
        """Seconds from the command until the screen shows what is wanted; NaN if never."""
        end = time.perf_counter() + limit
        while time.perf_counter() < end:
            if wanted(self.screen.text):
                return time.perf_counter() - self.began
            self.read(0.05)
        return float("nan")

    def settle(self, quiet: float = SETTLED, limit: float = 90) -> float:
        """Reads until nothing comes for a while; seconds from the command to the last byte."""
        last, end = time.perf_counter(), time.perf_counter() + limit
        self.used = self.cpu
        while time.perf_counter() < end and self.read(quiet):
            last, self.used = time.perf_counter(), self.cpu
        return last - self.began

    def press(self, key: bytes) -> Press:
        os.write(self.fd, key)
        began = last = time.perf_counter()
        size = 0
        while got := self.read(QUIET):
            size, last = size + got, time.perf_counter()
        return Press((last - began) * 1e3, size)

    @property
    def cpu(self) -> float:
        """CPU seconds that the program has used."""
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def anonymous(self) -> float:
        """Anonymous memory in MB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"RssAnon:\s+(\d+) kB", status)
        return int(found[1]) * 1024 / 1e6 if found else float("nan")

    def leave(self) -> None:
        os.write(self.fd, b"q")
        self.settle(0.5, 5)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def row(what: str, figure: float, target: str, note: str = "") -> None:
    print(f"{what:46} {figure:9.2f}   {target:12} {note}", flush=True)


def sampled(text: str) -> bool:
    return "Timeline ≈" in text and " lane " in text


def exact(text: str) -> bool:
    return "Timeline" in text and "Timeline ≈" not in text and " lane " in text


def opening(report: str, cache: Path, folder: Path, *, cold: bool) -> None:
    """From the command to the exact timeline, and until nothing is computed any more."""
    name, stalls = ("cold" if cold else "second"), folder / f"stalls-{cold}"
    machine = folder / f"machine-{cold}"
    with machine.open("w") as file:
        heartbeat = subprocess.Popen([sys.executable, "-c", HEARTBEAT], stdout=file)
    app = Program([report], cache, (200, 50), stalls)
    row(f"{name}: first frame, s", app.until(lambda text: "2 Timeline" in text), "<= 1.0")
    os.write(app.fd, b"2")
    if cold:
        row(f"{name}: sampled timeline, s", app.until(sampled), "<= 1.5")
    moment = app.until(exact)
    row(f"{name}: exact kernel timeline, s", moment, "<= 5" if cold else "<= 1.5", cpu_of(app))
    row(f"{name}: all background work done, s", app.settle(), "", cpu_of(app))
    row(f"{name}: anonymous memory, MB", app.anonymous, "<= 700")
    if not cold:
        browse(app, folder)
    app.leave()
    heartbeat.kill()
    heartbeat.wait()
    late = spells(stalls)
    longest = max(late, key=lambda spell: spell.length, default=Spell(0, 0))
    machines = sum(spell.within(longest) for spell in spells(machine))
    note = f"{len(late)} over 50 ms; the machine late for {machines:.0f} ms of it"
    row(f"{name}: longest stall of the event loop, ms", longest.length, "<= 100", note)


def cpu_of(app: Program) -> str:
    return f"CPU {app.cpu:.2f} s"


def browse(app: Program, folder: Path) -> None:
    """Keys on the timeline at several zooms, then every screen."""
    everything: list[Press] = []
    for zoom in range(0, 21, 4):
        presses = [app.press(key) for key in KEYS.values() for _ in range(REPEATS)]
        everything += presses
        spread(f"key at zoom 2^{zoom}, ms", presses)
        for _ in range(4):
            app.press(b"w")
    spread("key at all zooms, ms", everything)
    row("browsing: anonymous memory, MB", app.anonymous, "<= 700")
    for number in range(3, 8):
        app.press(str(number).encode())
        began, used = time.perf_counter(), app.cpu
        app.settle(3.0, 60)
        spent, used = time.perf_counter() - began - 3.0, app.cpu - used
        row(f"screen {number}: until it is still, s", spent, "", f"CPU {used:.2f} s")
        row(f"screen {number}: anonymous memory, MB", app.anonymous, "<= 700")


def spread(what: str, presses: list[Press]) -> None:
    times = sorted(press.last for press in presses)
    late = times[min(len(times) - 1, int(len(times) * 0.95))]
    note = f"95th {late:.1f} <= 100, most {times[-1]:.1f}"
    row(what, statistics.median(times), "<= 50", note)


def key_bytes(report: str, cache: Path) -> None:
    app = Program([report], cache, (160, 45))
    app.until(lambda text: "2 Timeline" in text)
    os.write(app.fd, b"2")
    app.settle()
    presses = [app.press(key) for key in KEYS.values() for _ in range(REPEATS)]
    presses += [app.press(key) for _ in range(4) for key in (b"w", *KEYS.values())]
    most = max(press.size for press in presses) / 1e3
    row("a key at 160x45, kB", statistics.median(p.size for p in presses) / 1e3, "<= 12")
    row("the most of a key at 160x45, kB", most, "<= 12")
    app.leave()


class Opening(NamedTuple):
    """Seconds from the command on."""

    first: float
    """Until the first frame."""
    complete: float
    """Until the last byte."""
    cpu: float


def small(report: str, folder: Path) -> None:
    """A small report until its first screen is complete, cold and again, then key by key."""
    caches = [folder / f"small-{number}" for number in range(OPENINGS)]
    for name in ("cold", "second"):
        openings = [opened(report, cache) for cache in caches]
        first, complete, cpu = (statistics.median(times) for times in zip(*openings, strict=True))
        row(f"small report, {name}: first frame, s", first, "<= 1.0")
        note = f"CPU {cpu:.2f} s, medians of {OPENINGS}"
        row(f"small report, {name}: complete, s", complete, "<= 1.0", note)
    app = Program([report], caches[0], (160, 45))
    app.settle()
    small_keys(app)
    app.leave()


def opened(report: str, cache: Path) -> Opening:
    """Opens a small report and leaves it when nothing more comes."""
    app = Program([report], cache, (160, 45))
    first = app.until(lambda text: "2 Timeline" in text)
    found = Opening(first, app.settle(0.6), app.used)
    app.leave()
    return found


def small_keys(app: Program) -> None:
    """Every screen for the first and the second time, and the keys that a user presses there."""
    everything: list[tuple[str, Press]] = []
    for number in "2345671":
        everything.append((f"{number} first", app.press(number.encode())))
        app.settle(0.6)
        app.press(b"1" if number != "1" else b"2")
        everything.append((f"{number} again", app.press(number.encode())))
        keys = {**EVERYWHERE, **(TIMELINE if number == "2" else {})}
        for name, key in keys.items():
            everything += [(f"{number} {name}", app.press(key)) for _ in range(REPEATS)]
    drawn = [press for _, press in everything if press.size]
    times = sorted(press.last for press in drawn)
    note = f"95th {times[int(len(times) * 0.95)]:.1f} <= 80, of {len(times)}"
    row("  a key to its last byte, ms", statistics.median(times), "<= 40", note)
    sizes = sorted(press.size / 1e3 for press in drawn)
    note = f"95th {sizes[int(len(sizes) * 0.95)]:.1f}, most {sizes[-1]:.1f}"
    row("  a key, kB", statistics.median(sizes), "<= 12", note)
    for name, press in sorted(everything, key=lambda pair: -pair[1].last)[:SLOWEST]:
        print(f"    {name:20} {press.last:6.0f} ms {press.size / 1e3:6.1f} kB")


def main(report: str, small_report: str | None = None) -> None:
    compileall.compile_dir(Path(nsys_tui.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{'':46} {'measured':>9}   target")
        if small_report:
            small(small_report, folder)
        if report != "-":
            opening(report, folder / "cache", folder, cold=True)
            opening(report, folder / "cache", folder, cold=False)
            key_bytes(report, folder / "cache")


if __name__ == "__main__":
    main(*sys.argv[1:])
