"""Every private name of Textual that the app relies on is still there, and is listed here."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from textual import _compositor as compositor
from textual import constants, keys
from textual.app import App
from textual.drivers import linux_driver
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input

import nsys_tui.ui

if TYPE_CHECKING:
    from collections.abc import Iterator

UI: Final = Path(nsys_tui.ui.__file__).parent

ON_AN_APP: Final = (
    "_batch_count", "_begin_batch", "_css_update_count", "_dispatch_message", "_driver",
    "_end_batch", "_handle_exception", "_modes", "_screen_stacks",
)  # fmt: skip
ON_A_SCREEN: Final = (
    "_bindings", "_compositor", "_compositor_refresh", "_css_update_count", "_dispatch_message",
    "_get_breakpoint_classes", "_on_timer_update", "_repaint_required", "_timers", "_update_timer",
    "_watch_maximized",
)  # fmt: skip
ON_A_TIMER: Final = ("_active", "_run", "_start", "_tick")
ON_A_DRIVER: Final = ("_writer_thread",)
ELSEWHERE: Final[tuple[tuple[Any, str], ...]] = (
    (Input, "_on_key"),
    (Input, "_value"),
    (compositor.Compositor, "reflow"),
    (compositor, "ReflowResult"),
    (keys, "_character_to_key"),
    (constants, "ESCAPE_DELAY"),
    (linux_driver, "selectors"),
    (linux_driver, "getincrementaldecoder"),
)
OF_NAMED_TUPLES: Final = {"_replace"}


def missing() -> Iterator[str]:
    """Names that are gone, with where they were."""
    source = Path(linux_driver.__file__).read_text()
    app: App[None] = App()
    for thing, names in ((app, ON_AN_APP), (Timer, ON_A_TIMER)):
        yield from (f"{type(thing).__name__}.{name}" for name in names if not hasattr(thing, name))
    known = {*dir(Screen), *vars(Screen())}
    yield from (f"Screen.{name}" for name in ON_A_SCREEN if name not in known)
    yield from (f"LinuxDriver.{name}" for name in ON_A_DRIVER if f"self.{name}" not in source)
    yield from (f"{thing.__name__}.{name}" for thing, name in ELSEWHERE if not hasattr(thing, name))


def test_every_private_name_of_textual_is_still_there() -> None:
    assert list(missing()) == []


def test_every_private_name_that_is_not_ours_is_listed() -> None:
    ours: set[str] = set()
    used: dict[str, str] = {}
    for path in UI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                ours.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                ours.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                ours.add(node.attr)
            elif isinstance(node, ast.Attribute) and node.attr[0] == "_" != node.attr[1]:
                used[node.attr] = path.name
    listed = {*ON_AN_APP, *ON_A_SCREEN, *ON_A_TIMER, *ON_A_DRIVER, *OF_NAMED_TUPLES}
    listed |= {name for _, name in ELSEWHERE}
    assert {name: used[name] for name in used.keys() - ours - listed} == {}
