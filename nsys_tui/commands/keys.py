"""``nsys-tui keys``: every key of the app, as text, as Markdown, or as a card to print."""

from __future__ import annotations

import sys
from html import escape
from typing import TYPE_CHECKING, Final

from nsys_tui.commands.options import add
from nsys_tui.commands.printing import write
from nsys_tui.errors import OK

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from nsys_tui.ui.keymap import Action

DESCRIPTION = "Prints the keys of every screen, with those of your preset and configuration."
COLUMNS: Final = 4
WIDTH, LINE, GAP, TITLE_GAP = 370, 15, 20, 10
"""Of the card, in pixels: a column, a line, what is left between columns and above a title."""
KEYS_WIDTH: Final = 84
KEYS_LETTERS: Final = 13
"""Letters of keys that fit beside what they do."""
SHARED_BY: Final = 4
"""Screens that have a key in common before the card says it once for all."""

Block = tuple[str, list[tuple[str, "Action"]]]
"""Title of a screen, and the shown keys of its actions."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    text = "text, md (Markdown) or svg, a card to print"
    add(parser, "--format", text, choices=("text", "md", "svg"), default="text")
    add(parser, "--keys PRESET", "keyboard preset: default, vim, azerty, …")


def run(arguments: argparse.Namespace) -> int:
    """Prints all keys."""
    from nsys_tui.config import load_config
    from nsys_tui.ui.presets import effective

    keymap = effective(load_config(flags={"keys.preset": arguments.keys}).keys)
    form = {"text": as_text, "md": as_markdown, "svg": as_svg}[arguments.format]
    write(sys.stdout, (form(key_blocks(keymap)),))
    return OK


def key_blocks(keymap: Mapping[str, tuple[str, ...]]) -> list[Block]:
    """What works everywhere, then screen by screen.

    Args:
        keymap: keys by action id that replace the usual ones.
    """
    from nsys_tui.ui.keymap import GLOBAL, SCREENS, effective_keys, shown_key

    def shown(actions: Iterable[Action]) -> list[tuple[str, Action]]:
        return [(" ".join(map(shown_key, effective_keys(a, keymap))), a) for a in actions]

    blocks = [(spec.long, shown(spec.actions())) for spec in SCREENS if spec.actions()]
    return [("Everywhere", shown(GLOBAL)), *blocks]


def as_text(blocks: Iterable[Block]) -> str:
    """Keys and what they do, in two columns."""
    lines = []
    for title, rows in blocks:
        lines += [title, *(f"  {keys:<24} {action.help}" for keys, action in rows), ""]
    return "\n".join(lines)


def as_markdown(blocks: Iterable[Block]) -> str:
    """A table for each screen, with the ids by which keys are remapped."""
    lines = ["# Keys", ""]
    for title, rows in blocks:
        lines += [f"## {title}", "", "| key | action id | does |", "|---|---|---|"]
        for shown, action in rows:
            keys = " ".join(f"`{key}`" for key in shown.split()).replace("|", "\\|")
            lines.append(f"| {keys} | `{action.id}` | {action.help} |")
        lines.append("")
    return "\n".join(lines)


def as_svg(blocks: Iterable[Block]) -> str:
    """A card of four columns; what works in most tables is said once."""
    every = _tables_once(list(blocks))
    height = (sum(len(rows) + 2 for _, rows in every) // COLUMNS + 4) * LINE
    parts, column, y, lowest = [], 0, 0, 0
    for title, rows in every:
        if y and y + len(rows) * LINE * 0.7 > height and column < COLUMNS - 1:
            column, y = column + 1, 0
        x = GAP + column * (WIDTH + GAP)
        y += TITLE_GAP + LINE
        parts.append(f'<text class="title" x="{x}" y="{y}">{escape(title)}</text>')
        for keys, action in rows:
            y += LINE
            squeezed = f' textLength="{KEYS_WIDTH - 6}" lengthAdjust="spacingAndGlyphs"'
            fit = squeezed if len(keys) > KEYS_LETTERS else ""
            parts.append(f'<text class="key" x="{x}" y="{y}"{fit}>{escape(keys)}</text>')
            parts.append(f'<text x="{x + KEYS_WIDTH}" y="{y}">{escape(action.help)}</text>')
        lowest = max(lowest, y)
    width, height = COLUMNS * (WIDTH + GAP) + GAP, lowest + GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">\n'
        "<title>Keys of nsys-tui</title>\n"
        "<style>text{font:10px sans-serif;fill:#1a1a1a}.key{font-family:monospace;fill:#332288;"
        "font-weight:bold}.title{font-size:13px;font-weight:bold}</style>\n"
        '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _tables_once(blocks: list[Block]) -> list[Block]:
    """Keys that several screens share, after those of everywhere, in a block of their own."""
    first, *screens = blocks
    screens_of: dict[tuple[str, str], set[str]] = {}
    for title, rows in screens:
        for keys, action in rows:
            screens_of.setdefault((keys, action.help), set()).add(title)
    shared = {key for key, titles in screens_of.items() if len(titles) >= SHARED_BY}
    once = {(keys, a.help): (keys, a) for _, rows in screens for keys, a in rows}
    own = [
        (title, [(keys, a) for keys, a in rows if (keys, a.help) not in shared])
        for title, rows in screens
    ]
    tables = ("Most tables", [once[key] for key in once if key in shared])
    return [first, tables, *((title, rows) for title, rows in own if rows)]
