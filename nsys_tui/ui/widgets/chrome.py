"""The lines around every screen: title, tabs, status and footer, clickable where it helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import events
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.visual import VisualType

from nsys_tui.names import cell_len, pad
from nsys_tui.ui.keymap import FUNCTION_KEYS, SCREENS, Action, ScreenSpec, tab_key
from nsys_tui.ui.runtime.faults import KeepsDrawing

MESSAGE_SECONDS = 4.0
"""How long a message stands in the footer."""


TAB_SPACES: Final = ((" ", "  "), ("", "  "), ("", " "))
"""Blanks inside the brackets and between two tabs, the widest first."""


class Line(KeepsDrawing):
    """One row of text that is never wrapped and never markup."""

    DEFAULT_CSS: ClassVar[str] = """
    Line { height: 1; width: 1fr; }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._shown: tuple[object, ...] = ()

    def show(self, *parts: object) -> None:
        """Replaces what is shown; equal parts cost no repaint."""
        if parts != self._shown:
            self._shown = parts
            self.refresh()


class TitleLine(Line):
    """Names of the open reports, GPUs and window."""

    @dataclass
    class Clicked(Message):
        """The left part was clicked."""

        cell: int
        """Counted from its beginning."""

    def on_click(self, event: events.Click) -> None:
        """Tells where."""
        self.post_message(self.Clicked(event.x - 1))

    def render(self) -> VisualType:
        """Left part, fill, right part; the right part gives way last."""
        left, right = map(str, self._shown or ("", ""))
        room = max(0, self.size.width - len(right) - 3)
        return Content(f" {pad(left, room)} {right} ")


class ActionLine(Line):
    """A line whose parts run actions when they are clicked."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.targets: list[tuple[int, int, str]] = []
        """First cell of a part, the cell after its last one, and the id of its action."""

    def on_click(self, event: events.Click) -> None:
        """Runs the clicked action."""
        for start, end, action in self.targets:
            if start <= event.x < end:
                self.app.run_worker(self.app.run_action(f"app.do('{action}')"), exclusive=False)


class TabLine(ActionLine):
    """The screens behind the number keys, shortened as needed and never hidden."""

    def render(self) -> VisualType:
        """``1 Over [2 Time] 3 Kern``; with room, all names in full."""
        current = str(self._shown[0]) if self._shown else ""
        text, self.targets = Content(""), []
        labels, gap = tab_labels(current, self.size.width)
        for name, label in labels:
            start = len(text.plain)
            text = text.append(Content.styled(label, "bold" if name == current else ""))
            self.targets.append((start, start + len(label), f"view.{name}"))
            text = text.append(gap)
        return text


def tab_labels(current: str, width: int) -> tuple[list[tuple[str, str]], str]:
    """Name and label of every tab, and the gap between two: the widest form that fits.

    Args:
        current: name of the screen in front; it has a tab even without a key.
        width: cells of the line.
    """
    tabs = [spec for spec in SCREENS if tab_key(spec) or spec.name == current]
    texts = {spec.name: spec.long for spec in tabs}
    for blank, gap in TAB_SPACES:
        labels = _labels(tabs, texts, current, blank)
        if _width(labels, gap) <= width:
            return labels, gap
    for shorter in _shorter(tabs, current):
        texts |= shorter
        labels = _labels(tabs, texts, current, "")
        if _width(labels, gap) <= width:
            break
    return labels, gap


def _shorter(tabs: list[ScreenSpec], current: str) -> Iterator[dict[str, str]]:
    """Names to shorten one after another: what gains most first, the tab in front last."""
    others = sorted((spec for spec in tabs if spec.name != current), key=_gain, reverse=True)
    yield from ({spec.name: spec.short} for spec in others)
    yield from ({spec.name: spec.short} for spec in tabs if spec.name == current)
    yield {spec.name: "" for spec in others if spec.name in FUNCTION_KEYS}
    yield from ({spec.name: spec.short[:3]} for spec in others if spec.name not in FUNCTION_KEYS)


def _gain(spec: ScreenSpec) -> int:
    return len(spec.long) - len(spec.short)


def _labels(
    tabs: list[ScreenSpec], texts: dict[str, str], current: str, blank: str
) -> list[tuple[str, str]]:
    labels = []
    for spec in tabs:
        label = f"{blank}{f'{tab_key(spec).upper()} {texts[spec.name]}'.strip()}{blank}"
        label = f"[{label}]" if spec.name == current else f" {label} " if blank else label
        labels.append((spec.name, label))
    return labels


def _width(labels: list[tuple[str, str]], gap: str) -> int:
    return sum(len(label) for _, label in labels) + len(gap) * (len(labels) - 1)


class KeyLine(ActionLine):
    """The footer: the keys that work here, in order of rank; ``?`` is never dropped."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._message = ""
        self._clearing: Timer | None = None

    def say(self, text: str) -> bool:
        """Shows a message in place of the keys for a while; False where it does not fit."""
        if cell_len(text) > self.size.width - 10:
            return False
        self._message = text
        if self._clearing is not None:
            self._clearing.stop()
        self._clearing = self.set_timer(MESSAGE_SECONDS, self._clear)
        self.refresh()
        return True

    def _clear(self) -> None:
        self._message = ""
        self.refresh()

    def show_keys(self, keys: tuple[tuple[str, Action], ...]) -> None:
        """Shows (key text, action) pairs, in order."""
        self.show(keys)

    def render(self) -> VisualType:
        """Pairs that fit, from the left; room for the help key is kept free."""
        keys: tuple[tuple[str, Action], ...] = self._shown[0] if self._shown else ()  # type: ignore[assignment]
        gap = "   " if self.size.width >= 120 else "  "
        if self._message:
            keys = tuple(pair for pair in keys if pair[1].id == "app.help")
        text, self.targets = Content(""), []
        if self._message:
            text = Content(self._message).append(gap)
        for label, pairs in fit_keys(keys, self.size.width, len(gap)):
            for key, action in pairs:
                start = len(text.plain)
                text = text.append(Content.styled(key, "bold"))
                self.targets.append((start, len(text.plain) + 1, action.id))
                text = text.append("/" if action is not pairs[-1][1] else f" {label}")
            start, _, last = self.targets.pop()
            self.targets.append((start, len(text.plain), last))
            text = text.append(gap)
        return text


def fit_keys(
    keys: tuple[tuple[str, Action], ...], width: int, gap: int
) -> list[tuple[str, list[tuple[str, Action]]]]:
    """What fits into ``width`` cells, by label: help first of all, then in order.

    Keys of one label, such as those to and fro, stand together: ``w/s zoom``.
    """
    groups: dict[str, list[tuple[str, Action]]] = {}
    for key, action in keys:
        groups.setdefault(action.label, []).append((key, action))
    last = [("help", pairs)] if (pairs := groups.pop("help", [])) else []
    room = width + gap - sum(_need(label, pairs, gap) for label, pairs in last)
    kept = []
    for label, pairs in groups.items():
        if (room := room - _need(label, pairs, gap)) < 0:
            break
        kept.append((label, pairs))
    return kept + last


def _need(label: str, pairs: list[tuple[str, Action]], gap: int) -> int:
    """Cells that some keys of one label take in the footer."""
    return sum(len(key) + 1 for key, _ in pairs) + len(label) + gap


class StatusLine(Line):
    """Progress of work in the background, or an error that stays until it is seen."""

    DEFAULT_CSS: ClassVar[str] = """
    StatusLine { display: none; height: auto; max-height: 6; }
    StatusLine.-shown { display: block; }
    StatusLine.-error { text-style: bold; }
    """

    def say(self, text: str, *, error: bool = False) -> None:
        """Shows a text, or nothing for an empty one."""
        self.set_class(bool(text), "-shown")
        self.set_class(error, "-error")
        lines = str(next(iter(self._shown), "")).count("\n")
        self.show(text)
        if text.count("\n") != lines:
            self.refresh(layout=True)

    def render(self) -> VisualType:
        """The text as it is."""
        return Content(str(self._shown[0]) if self._shown else "")
