"""The display panel: how things are drawn, changed while the screen behind redraws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.binding import Binding, BindingType

from nsys_tui.errors import NsysTuiError
from nsys_tui.names import NameStyle
from nsys_tui.render.cells import KEY, MUTED
from nsys_tui.render.palette import theme_names
from nsys_tui.state import ALL_DEPTHS, ColourBy, CounterStyle, Density, TimeFormat, displayed
from nsys_tui.ui.pane_text import wrapped
from nsys_tui.ui.runtime.batched_screen import Dialog
from nsys_tui.ui.session import initial_state
from nsys_tui.ui.widgets.lines import LinePane
from nsys_tui.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from nsys_tui.ui.host import Host

DURATIONS: Final = (0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_WIDTH: Final = 42
"""Cells of the panel."""
DEPTHS: Final = (1, 2, 3, 4, 6, 8, ALL_DEPTHS)


@dataclass(frozen=True)
class Setting:
    """One line of the panel."""

    key: str
    """Dotted key of the config file."""
    label: str
    options: Callable[[Host], Sequence[Any]]
    get: Callable[[Host], Any]
    put: Callable[[Host, Any], None]
    show: Callable[[Any], str] = str


def _display(label: str, name: str, options: Sequence[Any], **extra: Any) -> Setting:
    def put(app: Host, value: Any) -> None:
        app.set_state(displayed(app.state, **{name: value}))

    return Setting(
        f"display.{name}",
        label,
        lambda _: options,
        lambda app: getattr(app.state.display, name),
        put,
        **extra,
    )


def _put_duration(app: Host, value: int) -> None:
    app.set_state(replace(app.state, filter=replace(app.state.filter, min_duration=value)))


SETTINGS: Final[tuple[Setting, ...]] = (
    _display("colour by", "colour_by", tuple(ColourBy)),
    _display("lanes", "density", tuple(Density)),
    _display(
        "NVTX depth", "nvtx_depth", DEPTHS, show=lambda n: "all" if n >= ALL_DEPTHS else str(n)
    ),
    _display("labels", "labels", (True, False), show=lambda on: "inside" if on else "off"),
    _display("names", "names", tuple(NameStyle)),
    _display("time", "time", tuple(TimeFormat)),
    _display("counters", "counters", tuple(CounterStyle)),
    Setting(
        "display.min_duration",
        "shorter hidden",
        lambda _: DURATIONS,
        lambda app: app.state.filter.min_duration,
        _put_duration,
        lambda ns: format_duration(ns) if ns else "nothing",
    ),
    Setting(
        "display.theme",
        "theme",
        lambda app: theme_names(app.theme_folder),
        lambda app: app.palette.name,
        lambda app, name: app.use_theme(name),
    ),
    Setting(
        "display.ascii",
        "characters",
        lambda _: (False, True),
        lambda app: app.ascii,
        lambda app, value: app.use_ascii(value),
        lambda ascii_only: "ASCII" if ascii_only else "Unicode",
    ),
)


class DisplayPanel(Dialog[None]):
    """A strip at the right; the screen to its left redraws with each change."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("C,q", "dismiss(None)", show=False),
        Binding("right,space,l", "change(1)", show=False),
        Binding("left,h", "change(-1)", show=False),
        Binding("r", "reset", show=False),
        Binding("w", "write", show=False),
    ]
    DEFAULT_CSS: ClassVar[str] = """
    DisplayPanel { align: right top; }
    DisplayPanel LinePane { width: 42; margin-top: 2; }
    """
    app: Host

    def compose(self) -> ComposeResult:
        """One pane."""
        yield LinePane("Display", "esc close", always_cursor=True)

    def on_mount(self) -> None:
        """Shows the values in force."""
        self._draw()

    def _draw(self) -> None:
        lines: list[list[tuple[str, int]]] = []
        for setting in SETTINGS:
            value = setting.show(setting.get(self.app))
            here = setting.get(self.app) != self._begun(setting)
            source = "here" if here else self.app.config.source(setting.key)
            lines.append([(f" {setting.label:<15}", 0), (f"{value:<12} ", KEY), (source, MUTED)])
        lines += [[("", 0)], [(" <- -> change  r reset  w to config", MUTED)]]
        height = len(lines) + 2
        lines += [[(f" {part}", 0)] for part in self._notes()]
        pane = self.query_one(LinePane)
        pane.styles.height = min(len(lines) + 2, max(height, self.app.size.height - 4))
        pane.show(lines, [*SETTINGS, *[None] * (len(lines) - len(SETTINGS))])

    def _notes(self) -> list[str]:
        """What is to be known about the report in front before its figures are believed."""
        report = self.app.session.report
        texts = () if report is None else report.notes.texts
        return [part for text in texts for part in ("", *wrapped(f"* {text}", _WIDTH - 4))]

    def _chosen(self) -> Setting | None:
        choice = self.query_one(LinePane).choice
        return choice if isinstance(choice, Setting) else None

    def action_change(self, step: int) -> None:
        """Takes the next value of the line under the cursor."""
        if (setting := self._chosen()) is None:
            return
        options = list(setting.options(self.app))
        now = setting.get(self.app)
        at = options.index(now) if now in options else -1
        self._put(setting, options[(at + step) % len(options)])

    def action_reset(self) -> None:
        """Goes back to what config and flags say."""
        if (setting := self._chosen()) is not None:
            self._put(setting, self._begun(setting))

    def _begun(self, setting: Setting) -> Any:
        """What config and flags say."""
        start = initial_state(self.app.config.display)
        name = setting.key.removeprefix("display.")
        values = {
            "min_duration": start.filter.min_duration,
            "theme": self.app.first_theme,
            "ascii": self.app.first_ascii,
        }
        return values.get(name, getattr(start.display, name, None))

    def _put(self, setting: Setting, value: Any) -> None:
        try:
            setting.put(self.app, value)
        except NsysTuiError as error:
            self.app.say(str(error))
        self._draw()

    def action_write(self) -> None:
        """Writes the line under the cursor to the user's config file."""
        if (setting := self._chosen()) is None:
            return
        from nsys_tui.config_edit import save_setting

        value = setting.get(self.app)
        stored = value if isinstance(value, bool | int) else str(value)
        if setting.key in ("display.labels", "display.nvtx_depth"):
            stored = setting.show(value)
        try:
            save_setting(self.app.config.path, setting.key, stored)
        except (NsysTuiError, OSError) as error:
            self.app.say(f"not written: {error}")
        else:
            self._keep(setting, stored)
            self.app.say(f"{setting.key} written to {self.app.config.path}")

    def _keep(self, setting: Setting, stored: bool | int | str) -> None:
        """From now on the value is what the file says."""
        app, config = self.app, self.app.config
        if setting.key == "display.theme":
            app.first_theme = app.palette.name
        if setting.key == "display.ascii":
            app.first_ascii = app.ascii
        written: dict[str, Any] = {setting.key.removeprefix("display."): stored}
        display = replace(config.display, **written)
        sources = {**config.sources, setting.key: "file"}
        app.config = replace(config, display=display, sources=sources)
        self._draw()
