"""Export: the window, or the selected area, as a trace that ui.perfetto.dev opens."""

from __future__ import annotations

from pathlib import Path

from nsys_tui.analysis.window import Scope
from nsys_tui.errors import UsageError
from nsys_tui.export.perfetto import trace
from nsys_tui.ui.dialogs.prompt import Prompt
from nsys_tui.ui.screens.timeline.core import TimelineCore
from nsys_tui.units import format_bytes


class Exporting(TimelineCore):
    """The action that writes a file."""

    def action_export_view(self) -> None:
        """Asks for a file name and writes the trace in a worker."""
        if self.report is None or not self.session.finished:
            self.app.say("wait until the report is read")
            return
        selection = self.state.selection
        area = selection.span if selection is not None and selection.kind == "area" else None
        window = area or self.state.window
        what = "area" if area else ("window" if window else "whole trace")
        title = f"Write the {what} as a trace for Perfetto"
        name = f"{Path(self.session.name).stem}.trace.json"
        prompt = Prompt(title, "a file that does not exist yet", name, check=fresh_path)
        self.app.push_screen(prompt, lambda name: self._write(name, window))

    def _write(self, name: str | None, window: tuple[int, int] | None) -> None:
        report = self.report
        if not name or report is None:
            return
        path = fresh_path(name)
        scope = Scope(None if window is None else (window[0], window[1]))

        def work() -> int:
            try:
                with path.open("x", encoding="utf-8") as file:
                    file.writelines(trace(report, scope))
            except OSError as error:
                raise UsageError(f"cannot write {path}: {error.strerror}") from error
            return path.stat().st_size

        def done(size: int) -> None:
            self.app.say(f"written: {path} ({format_bytes(size)})")

        self.compute("export", work, done)


def fresh_path(name: str) -> Path:
    """The path of a file that is to be written.

    Raises:
        UsageError: there is no name, or a file of that name is there.
    """
    path = Path(name.strip()).expanduser()
    if not name.strip():
        raise UsageError("no file name given")
    if path.exists():
        raise UsageError(f"{path} exists already", hint="choose another name")
    return path.absolute()
