"""What the home screen offers: reports opened before, reports here, captures, and first steps."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsys_tui.capture.record import Store
from nsys_tui.names import cell_len, fit, visible
from nsys_tui.paths import told_apart
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.recent import nearby, opened_before
from nsys_tui.ui.screens.capture.past import past_line, result_word
from nsys_tui.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME_CELLS: Final = 34
_AGES: Final = ((365 * 86_400, "y"), (7 * 86_400, "w"), (86_400, "d"), (3_600, "h"), (60, "min"))


@dataclass(frozen=True)
class Choice:
    """What to do next."""

    paths: tuple[Path, ...] = ()
    """Reports to open; empty for what needs none."""
    screen: str = "overview"
    """The first screen."""
    name: str = ""
    """A report as it was typed: a path, or a name on another machine."""
    demo: bool = False
    """Whether the demo report is to be written first."""
    told: str = ""
    """What is known of it, in full."""


def home_entries(folder: Path) -> list[Entry]:
    """Everything that can be opened without typing a path, most likely first.

    Args:
        folder: where to look for reports, too.
    """
    known = opened_before()
    paths = {entry.path: entry.present_verdict for entry in known}
    here = {path.absolute(): paths.get(path.absolute(), "") for path in nearby(folder)}
    rest = {path: verdict for path, verdict in paths.items() if path not in here}
    return [
        *_reports("here", here),
        *_reports("recent", rest),
        *_captures(),
        Entry("profile a program: what to record, and where", "new", Choice(screen="capture")),
        Entry("the demo: a training run with planted problems", "demo", Choice(demo=True)),
    ]


def _reports(kind: str, verdicts: dict[Path, str]) -> Iterator[Entry]:
    """Reports with size, age and what was concluded of them."""
    now = time.time()
    names = dict(zip(verdicts, map(visible, told_apart([*verdicts])), strict=True))
    widest = min(NAME_CELLS, max(map(cell_len, names.values()), default=0))
    for path, verdict in verdicts.items():
        try:
            status = path.stat()
        except OSError:
            continue
        shown = fit(names[path], widest)
        shown += " " * (widest - cell_len(shown))
        size, age = format_bytes(status.st_size), since(now - status.st_mtime)
        told = "\n".join((visible(str(path)), verdict or "not looked at yet: no verdict"))
        yield Entry(f"{shown}  {size:>8}  {age:>6}  {verdict}", kind, Choice((path,), told=told))


def _captures() -> Iterator[Entry]:
    """Captures that run, or whose reports are here and were not looked at."""
    for record in Store().all():
        reports = tuple(record.at_home)
        line = past_line(record)
        if not record.state.over:
            told = f"{line}\nit was left running: A on the Capture screen attaches"
            yield Entry(line, str(record.state), Choice(screen="capture", told=told))
        elif reports and not record.opened:
            screen = "fleet" if len(reports) > 1 else "overview"
            yield Entry(line, result_word(record), Choice(reports, screen, told=line))


def since(seconds: float) -> str:
    """How long ago something was, in its largest unit: ``3 h``."""
    for unit, name in _AGES:
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return "now"
