"""The home screen, which stands before the app: what it offers, and what is to be opened."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, cast

from textual.app import ComposeResult

from nsys_tui import __version__
from nsys_tui.analysis.identity import from_name
from nsys_tui.capture.record import Store
from nsys_tui.config import Config, TargetConfig
from nsys_tui.names import cell_len, fit, pad, visible, visible_lines
from nsys_tui.paths import is_there, told_apart
from nsys_tui.render.cells import MUTED
from nsys_tui.ui.dialogs.picker import DialogBox, Picker
from nsys_tui.ui.matching import Entry
from nsys_tui.ui.pane_text import wrapped
from nsys_tui.ui.recent import LOGS, distinct, logs_in, nearby, opened_before
from nsys_tui.ui.resume import last_session
from nsys_tui.ui.runtime.line_input import LineInput
from nsys_tui.ui.screens.capture.past import past_line, result_word
from nsys_tui.ui.terminal import Terminal
from nsys_tui.ui.themed_app import ThemedApp
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.units import format_bytes

NAME_CELLS: Final = 34
VERDICT_CELLS: Final = 60
"""Room in which verdicts are not cut."""
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
    logs: tuple[Path, ...] = ()
    """Logs to read."""
    demo: bool = False
    """Whether the demo report is to be written first."""
    target: str = ""
    """Where a capture is to run; empty for the usual target."""
    resume: bool = False
    """Whether the reports are shown as they were left."""
    told: str = ""
    """What is known of it, in full."""


def home_entries(folder: Path, targets: Mapping[str, TargetConfig]) -> list[Entry]:
    """Everything that can be opened without typing a path, most likely first.

    Args:
        folder: where to look for reports, too.
        targets: where captures can run, by name.
    """
    known = opened_before()
    verdicts = {entry.path.resolve(): entry.present_verdict for entry in reversed(known)}
    here = distinct(nearby(folder))
    rest = distinct([*here, *(entry.path for entry in known)])[len(here) :]
    names = _names([*here, *rest])
    ranks = [path for path in here if from_name(path.stem).rank is not None]
    return [
        *_together(ranks),
        *_reports("here", here, names, verdicts),
        *_logs(folder),
        *_as_left(),
        *_reports("recent", rest, names, verdicts),
        *_captures(),
        *_targets(targets),
        Entry("profile a program: what to record, and where", "new", Choice(screen="capture")),
        Entry("the demo: a training run with planted problems", "demo", Choice(demo=True)),
    ]


def _together(ranks: Sequence[Path]) -> Iterator[Entry]:
    """The reports of a folder that are named after ranks, as one run."""
    if len(ranks) > 1:
        told = f"{ranks[0].parent}: {len(ranks)} reports named after ranks"
        text = f"all {len(ranks)} ranks: who holds the others up, and when"
        yield Entry(text, "fleet", Choice(tuple(sorted(ranks)), "fleet", told=visible(told)))


def _logs(folder: Path) -> Iterator[Entry]:
    """The logs of a folder, as those of one run."""
    if logs := tuple(sorted(logs_in(folder, LOGS))):
        told = visible(f"{folder.absolute()}: " + ", ".join(path.name for path in logs))
        text = f"{len(logs)} log{'s' * (len(logs) > 1)}: hangs, slow ranks, bandwidth, steps"
        yield Entry(text, "logs", Choice(screen="logs", logs=logs, told=told))


def _names(paths: list[Path]) -> dict[Path, str]:
    """Names of reports, told apart and equally wide."""
    names = [*map(visible, told_apart(paths))]
    widest = min(NAME_CELLS, max(map(cell_len, names), default=0))
    return {path: pad(fit(name, widest), widest) for path, name in zip(paths, names, strict=True)}


def _reports(
    kind: str, paths: list[Path], names: Mapping[Path, str], verdicts: Mapping[Path, str]
) -> Iterator[Entry]:
    """Reports with size, age and what was concluded of them (by their resolved paths)."""
    now = time.time()
    for path in paths:
        verdict = verdicts.get(path.resolve(), "")
        try:
            status = path.stat()
        except OSError:
            continue
        size, age = format_bytes(status.st_size), since(now - status.st_mtime)
        told = "\n".join((visible(str(path)), verdict or "not looked at yet: no verdict"))
        yield Entry(
            f"{names[path]}  {size:>8}  {age:>6}  {verdict}", kind, Choice((path,), told=told)
        )


def _as_left() -> Iterator[Entry]:
    """The reports that were open last, as ``--resume`` takes them up."""
    if paths := tuple(path for path in last_session() if is_there(path)):
        first, *others = map(visible, told_apart(paths))
        text = f"{first} and {len(others)} more" if others else first
        told = "\n".join(visible(str(path)) for path in paths)
        choice = Choice(paths, told=told, resume=True)
        yield Entry(f"as you left it: {text}", "last", choice)


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


def _targets(targets: Mapping[str, TargetConfig]) -> Iterator[Entry]:
    """The user's own places for captures."""
    for name, target in targets.items():
        words = dict.fromkeys((name, target.host, target.launcher))
        told = visible("  ".join(word for word in words if word not in ("", "none")))
        choice = Choice(screen="capture", target=name, told=told)
        yield Entry(f"profile a program on {told}", "target", choice)


def since(seconds: float) -> str:
    """How long ago something was, in its largest unit: ``3 h``."""
    for unit, name in _AGES:
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return "now"


class Home(Picker):
    """All that can be opened, and in full what is known of the line under the cursor."""

    DEFAULT_CSS: ClassVar[str] = """
    Home { align: center top; background: $background; }
    Home DialogBox { width: 100%; max-width: 100%; height: 100%; }
    Home #told { height: 5; border-top: solid $frame; }
    """

    def compose(self) -> ComposeResult:
        """The list fills the terminal; what is known of a line stands below it."""
        field = LineInput(placeholder="type to filter, or the path of a report", compact=True)
        entries = LinePane(framed=False, always_cursor=True)
        yield DialogBox(field, entries, LinePane(framed=False, id="told"))

    def lines(self, text: str, room: int) -> Sequence[tuple[bool, str]]:
        """A verdict goes on below itself where that takes few lines."""
        begin = len(text) - len(text.rpartition("  ")[2])
        if room - begin < VERDICT_CELLS:
            return super().lines(text, room)
        first, *more = wrapped(text[begin:], room - begin) or [""]
        return [(True, text[:begin] + first), *((False, " " * begin + line) for line in more)]

    def on_line_pane_moved(self) -> None:
        """Tells of what is under the cursor now."""
        self._tell()

    def _filter(self, typed: str) -> None:
        super()._filter(typed)
        self._tell()

    def _tell(self) -> None:
        entry = self.pane.choice
        told = getattr(getattr(entry, "value", None), "told", "")
        self.query_one("#told", LinePane).show_built(
            lambda width: [
                [(f" {line}", MUTED)]
                for part in told.split("\n")
                for line in wrapped(part, width - 2)
            ]
        )


class HomeApp(ThemedApp, inherit_bindings=False):
    """Shows what can be opened and ends with the ``Choice``, or None.

    Args:
        config: the settings of this run.
        terminal: what the terminal can show.
        folder: where to look for reports.
        refused: why what was chosen before could not be opened.
    """

    def __init__(self, config: Config, terminal: Terminal, folder: Path, refused: str = "") -> None:
        super().__init__(config, terminal)
        self._folder, self.refused = folder, refused
        self.choice: Choice | None = None

    def on_mount(self) -> None:
        """The list is all there is."""
        title = f"nsys-tui {__version__}: open a report"
        entries = home_entries(self._folder, self.config.targets)
        if not any(entry.detail == "here" for entry in entries):
            title += f" (none in {visible(self._folder.absolute().name)}/)"
        self.push_screen(cast("Any", Home(title, entries, free=True)), self._chosen)
        if self.refused:
            self.notify(visible_lines(self.refused), severity="error", markup=False, timeout=10)

    def _chosen(self, choice: Choice | str | None) -> None:
        """A line of the list, or what was typed and is in none of them."""
        self.choice = Choice(name=choice) if isinstance(choice, str) else choice
        self.exit()
