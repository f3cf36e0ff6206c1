"""One HTML file that stands alone: no network, a strict content policy, everything escaped.

What reports say never stands in a script or a style: both are constants, and the page names their
hashes, so that a browser runs nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from nsys_tui import __version__
from nsys_tui.analysis.stacks.folding import TITLES
from nsys_tui.export.folded import SCRIPT, flame_svg
from nsys_tui.model.table import Table
from nsys_tui.render.colour import readable_on
from nsys_tui.render.palette import CATEGORY_KEYS, CHROME, load_theme, theme_files
from nsys_tui.sharing.answer import Shared
from nsys_tui.sharing.sections import Detail, body_of, entry_of
from nsys_tui.sharing.tables import table_html
from nsys_tui.sharing.words import text_of

LARGEST: Final = 2_000_000
"""Bytes of a page at most."""


_DETAILS: Final = (
    Detail(200, 20, 0.5, 300),
    Detail(100, 12, 1.0, 200),
    Detail(50, 6, 2.0, 120),
    Detail(20, 3, 5.0, 80),
    Detail(10, 1, 20.0, 60),
    Detail(3, 0, 100.0, 40),
)
"""From the fullest to the barest; the first that fits is taken."""


def page(
    reports: Sequence[Shared],
    title: str = "",
    first: Sequence[tuple[str, str, Sequence[Table]]] = (),
) -> str:
    """The page about one or several reports.

    Args:
        reports: what is told of each.
        title: heading; by default that of the report.
        first: parts before them: heading, sentence, tables.
    """
    title = title or (reports[0].title if len(reports) == 1 else f"{len(reports)} reports")
    written = ""
    for detail in _DETAILS:
        written = "".join(_page(reports, title, first, detail))
        if len(written.encode("utf-8", "replace")) <= LARGEST:
            break
    return written


def _page(
    reports: Sequence[Shared],
    title: str,
    first: Sequence[tuple[str, str, Sequence[Table]]],
    detail: Detail,
) -> Iterator[str]:
    style, script = _style(), _script()
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text_of(title, detail.name)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#content">Skip to the content</a>\n'
    )
    alone = len(reports) == 1 and not first
    yield f"<header><h1>{text_of(title, detail.name)}</h1>\n"
    if alone:
        yield entry_of(reports[0], "")
    yield '</header>\n<main id="content">\n'
    for number, (heading, sentence, tables) in enumerate(first):
        yield f'<section><h2 id="first-{number}">{text_of(heading, detail.name)}</h2>\n'
        yield f'<p class="verdict">{text_of(sentence, 600)}</p>\n' if sentence else ""
        for table in tables:
            yield table_html(table, detail.rows, detail.name)
        yield "</section>\n"
    if not alone and reports:
        yield '<nav aria-label="Reports"><ul>'
        for number, one in enumerate(reports):
            yield f'<li><a href="#r{number}-report">{text_of(one.title, detail.name)}</a></li>'
        yield "</ul></nav>\n"
    for number, one in enumerate(reports):
        prefix = "" if alone else f"r{number}-"
        if prefix:
            yield f'<h2 id="{prefix}report">{text_of(one.title, detail.name)}</h2>\n'
            yield entry_of(one, prefix)
        yield from body_of(one, prefix, detail, _flame(one, detail))
    yield (
        f"</main>\n<footer>Made by nsys-tui {html.escape(__version__)}. Estimates are marked ≈."
        " Tokens and passwords are left out; environment variables never stand here.</footer>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _flame(of: Shared, detail: Detail) -> str:
    if of.stacks is None:
        return ""

    def shown(name: str) -> str:
        return html.unescape(text_of(name, min(detail.name, 160)))

    return flame_svg(of.stacks.tree, TITLES[of.source], smallest=detail.pixels, shown=shown)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def _style() -> str:
    themes = theme_files()
    light, dark = (_variables(themes[name]) for name in ("light", "dark"))
    sheet = files(__package__).joinpath("page.css").read_text("utf-8")
    fills = "".join(
        f".{key} .box,.{key}.busy{{fill:var(--{key})}}svg .{key} text{{fill:var(--on-{key})}}"
        for key in CATEGORY_KEYS
    )
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{sheet}{fills}"
    )


def _variables(path: Path) -> str:
    theme = load_theme(path)
    chrome = "".join(f"--{key}:{theme.colour(key)};" for key in CHROME)
    return chrome + "".join(
        f"--{key}:{theme.colour(key)};--on-{key}:{readable_on(theme.colour(key))};"
        for key in CATEGORY_KEYS
    )


@cache
def _script() -> str:
    return files(__package__).joinpath("page.js").read_text("utf-8") + SCRIPT
