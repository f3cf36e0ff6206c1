"""What tables and trees cost: run as a script, prints a table, asserts nothing.

    python tests/benchmarks/bench_tables.py [REPORT.sqlite]

Widgets are driven in the app without a terminal; the longest stall of the event loop is taken by a
task that wants to wake up every 5 ms. Without a report only made-up columns are measured.
``demo/make_report.py --kernels 5000000 -o REPORT.sqlite`` writes a report of the size to reach.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from textual.app import App

sys.path.insert(0, str(Path(__file__).parent.parent))

from nsys_tui.model.tree import TrieBuilder
from nsys_tui.reader import open_report
from nsys_tui.render.palette import load_theme, theme_files
from nsys_tui.state import ViewState
from nsys_tui.ui.app import NsysTuiApp
from nsys_tui.ui.theming import StyleTable
from nsys_tui.ui.widgets.table.columns import numbers, strings, texts
from nsys_tui.ui.widgets.table.table import VirtualTable
from nsys_tui.ui.widgets.tree.tree import VirtualTree
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from textual.pilot import Pilot
    from textual.widget import Widget

    from nsys_tui.ui.widgets.table.grid import Grid

ROWS = 5_000_000
NODES = 100_000
SIZE = (160, 45)


class Heart:
    """Longest time that the event loop did not come round."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def beat(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            self.worst = max(self.worst, time.perf_counter() - before - 0.005)


class Alone(App[None]):
    """One widget, with what it needs of the real app."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.inks = StyleTable(load_theme(theme_files()["dark"]))
        self.state = ViewState()
        self.ascii = False
        self.error = None
        self._widget = widget

    def compose(self) -> Any:
        yield self._widget


def say(what: str, seconds: float, note: str = "") -> None:
    print(f"{what:<52}{1000 * seconds:>9.1f} ms  {note}")


async def until(pilot: Pilot[Any], done: Callable[[], bool], most: float = 120) -> float:
    """Waits for something to be true; returns the time it took."""
    start = time.perf_counter()
    while not done():
        await asyncio.sleep(0.002)
        if time.perf_counter() - start > most:
            raise TimeoutError
    await pilot.pause()
    return time.perf_counter() - start


def drawn(grid: Grid, action: Callable[[], object], repeats: int = 5) -> float:
    """Median time of an action with every line of the widget made anew."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        for line in range(grid.size.height):
            grid.render_line(line)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


async def made_up_table() -> None:
    rng = np.random.default_rng(1)
    columns = (
        numbers("start", 12, np.cumsum(rng.integers(1, 900, ROWS)), str),
        numbers("duration", 10, rng.lognormal(9, 2, ROWS).astype(np.int64), format_duration),
        texts("name", 20, rng.integers(0, 40, ROWS), [f"kernel_{n}" for n in range(40)], grow=True),
    )
    table = VirtualTable("Bench", id="bench")
    async with Alone(table).run_test(size=SIZE) as pilot:
        heart = Heart()
        beating = asyncio.create_task(heart.beat())
        start = time.perf_counter()
        table.show_rows(columns, ROWS)
        await pilot.pause()
        say(f"mount {ROWS:,} rows", time.perf_counter() - start, "goal 250 ms")
        for what, action in (
            ("down", lambda: table.action_move(1)),
            ("page down", lambda: table.action_page(1)),
            ("to the end", lambda: table.put_cursor(ROWS)),
            ("to the top", lambda: table.put_cursor(0)),
        ):
            say(f"  {what}, all lines drawn", drawn(table, action), "goal 50 ms")
        heart.worst = 0.0
        for what in ("duration, descending", "duration, ascending"):
            table.sort_by(1)
            took = await until(pilot, lambda: not table.busy)
            say(f"sort by {what}", took, "goal 1000 ms")
        table.seek("kernel_7$")
        took = await until(pilot, lambda: not table.busy)
        say("search", took, f"{len(table.matches()[0]):,} matches")
        table.filter_by("kernel_7$")
        say("filter", await until(pilot, lambda: not table.busy), f"{table.shown:,} rows")
        say("longest stall of the event loop", heart.worst, "goal 100 ms")
        beating.cancel()


def open_all(tree: VirtualTree) -> None:
    tree._expanded[:] = True
    tree.rebuild()


async def made_up_tree() -> None:
    rng = np.random.default_rng(2)
    builder = TrieBuilder()
    for node in range(NODES):
        parent = int(rng.integers(0, node + 1))
        builder.child(parent, builder.label(f"range {node % 3000} of {node}"))
    trie = builder.trie()
    labels = [trie.labels[code] for code in trie.label.tolist()]
    values = rng.integers(1, 10**9, len(trie))
    columns = (strings("range", 30, labels, grow=True), numbers("total", 9, values, str))
    tree = VirtualTree("Bench", id="bench")
    async with Alone(tree).run_test(size=SIZE) as pilot:
        start = time.perf_counter()
        tree.prefer("total")
        tree.show_tree(trie, labels, columns, weight=values)
        for line in range(tree.size.height):
            tree.render_line(line)
        say(f"mount {NODES:,} nodes, all lines drawn", time.perf_counter() - start, "goal 50 ms")
        await pilot.pause()
        widest = int(np.argmax(np.bincount(trie.parent[1:], minlength=len(trie))[1:])) + 1
        for what, action in (
            ("open everything", lambda: open_all(tree)),
            ("down", lambda: tree.action_move(1)),
            ("page down", lambda: tree.action_page(1)),
            ("close the widest line", lambda: tree.reveal(widest)),
            ("sort", lambda: tree.sort_by(1)),
        ):
            took = drawn(tree, action)
            say(f"  {what}, all lines drawn", took, f"{tree.shown:,} lines; goal 50 ms")


async def real_screens(path: Path) -> None:
    app = NsysTuiApp([path], lambda p, progress: open_report(p, progress=progress))
    async with app.run_test(size=SIZE) as pilot:
        heart = Heart()
        beating = asyncio.create_task(heart.beat())
        await asyncio.sleep(2)
        say("longest pause while idle: the machine's own", heart.worst)
        say("load", await until(pilot, lambda: app.session.finished), path.name)
        say("  and the overview", await until(pilot, lambda: not app.workers._workers))
        async for what, screen in visits(app):
            heart.worst = 0.0
            took = await until(pilot, lambda s=screen: s.found is not None)  # type: ignore[misc]
            say(what, took, f"stall {1000 * heart.worst:.0f} ms")
            heart.worst = 0.0
            took = await until(pilot, lambda: not app.workers._workers)
            say("  and what belongs to the first row", took, f"stall {1000 * heart.worst:.0f} ms")
            heart.worst = 0.0
            for _ in range(12):
                await pilot.press("down")
            took = await until(pilot, lambda: not app.workers._workers)
            say("  after twelve lines down", took, f"stall {1000 * heart.worst:.0f} ms")
        print("anonymous memory", anonymous())
        beating.cancel()


async def visits(app: NsysTuiApp) -> AsyncIterator[tuple[str, Any]]:
    for name in ("kernels", "nvtx", "events"):
        app.show(name)
        await asyncio.sleep(0)
        yield name, app.front


def anonymous() -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("RssAnon")), "?")


def main() -> None:
    asyncio.run(made_up_table())
    asyncio.run(made_up_tree())
    if len(sys.argv) > 1:
        asyncio.run(real_screens(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
