from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.theme import BUILTIN_THEMES
from unit.render.test_palette import DISTINCT, smallest_difference

from nsys_tui.config import Config
from nsys_tui.errors import ConfigError
from nsys_tui.model.categories import Category
from nsys_tui.render.cells import Emphasis, Ink, category_ink, slot_ink, style
from nsys_tui.render.colour import contrast
from nsys_tui.render.palette import BORROWED
from nsys_tui.ui.terminal import Colours, erases_in_colour, probe
from nsys_tui.ui.theming import StyleTable, borrowed, choose_theme, find_theme, textual_theme

if TYPE_CHECKING:
    from nsys_tui.render.palette import Theme

UTF8 = {"LANG": "en_US.UTF-8"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, Colours.TRUE),
        ({"TERM": "xterm-256color", "COLORTERM": "24bit"}, Colours.TRUE),
        ({"TERM": "xterm-256color"}, Colours.C256),
        ({"TERM": "tmux"}, Colours.C256),
        ({"TERM": "screen"}, Colours.C256),
        ({"TERM": "linux"}, Colours.C16),
        ({"TERM": "vt100"}, Colours.C16),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, Colours.MONO),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, Colours.C256),
    ],
)
def test_colours(environ: dict[str, str], expected: Colours) -> None:
    assert probe(environ | UTF8).colours is expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"LANG": "en_US.UTF-8", "TERM": "xterm"}, False),
        ({"LANG": "C", "TERM": "xterm"}, True),
        ({"TERM": "xterm"}, True),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "POSIX", "TERM": "xterm"}, True),
        ({"LANG": "en_US.UTF-8", "LC_CTYPE": "de_DE.utf8", "TERM": "xterm"}, False),
        ({"LANG": "en_US.UTF-8", "TERM": "linux"}, True),
        ({"LANG": "ja_JP.UTF-8", "TERM": "xterm"}, True),
    ],
)
def test_ascii(environ: dict[str, str], expected: bool) -> None:
    assert probe(environ).ascii is expected
    assert probe(environ).reasons["ascii"]


def test_the_users_word_beats_the_probe() -> None:
    assert probe({"LANG": "C", "TERM": "linux"}, ascii_only=False).ascii is False
    assert probe(UTF8, ascii_only=True).ascii is True


@pytest.mark.parametrize(
    ("environ", "options", "reason"),
    [
        ({"TERM": "dumb"}, {}, "TERM=dumb"),
        ({}, {}, "TERM=(unset)"),
        ({"TERM": "xterm"}, {"is_tty": False}, "no terminal"),
        ({"TERM": "xterm"}, {"text": True}, "--text"),
    ],
)
def test_no_app_and_why(environ: dict[str, str], options: dict[str, bool], reason: str) -> None:
    found = probe(environ, **options)  # type: ignore[arg-type]
    assert not found.app
    assert reason in found.reasons["app"]


def test_background() -> None:
    assert probe({"COLORFGBG": "0;15"}).dark is False
    assert probe({"COLORFGBG": "15;0"}).dark is True
    assert probe({}).dark is True


def test_theme_by_terminal() -> None:
    rich = {"TERM": "xterm", "COLORTERM": "truecolor"} | UTF8
    assert choose_theme("auto", probe(rich)) == "dark"
    assert choose_theme("auto", probe(rich | {"COLORFGBG": "0;15"})) == "light"
    assert choose_theme("auto", probe({"TERM": "linux"})) == "ansi-dark"
    assert choose_theme("light", probe({"TERM": "xterm"})) == "ansi-light", "never blended into 16"
    assert choose_theme("light", probe(rich | {"NO_COLOR": "1"})) == "mono"
    assert choose_theme("high-contrast", probe(rich)) == "high-contrast"


def test_an_unknown_theme_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        find_theme("pink", Config().path.parent)
    assert "high-contrast" in caught.value.hint


def is_readable(theme: Theme) -> bool:
    ground = theme.colour("background")
    inks = [category_ink(category, odd) for category in Category for odd in (False, True)]
    inks += [slot_ink(slot) + odd for slot in range(12) for odd in (False, True)]
    fills = [theme.look(style(ink)).fg or ground for ink in inks]
    words = ("accent", "axis", "muted", "better", "worse", "warning", "error")
    return (
        all(contrast(fill, ground) >= 4 for fill in fills)
        and all(contrast(theme.colour(key), ground) >= 4.5 for key in words)
        and all(contrast(theme.colour(key), ground) >= 3 for key in ("idle", "border"))
        and all(
            contrast(theme.colour("foreground"), theme.colour(key)) >= 7
            for key in ("background", "surface", "panel")
        )
    )


def test_textuals_themes_are_offered_where_all_of_them_can_be_read() -> None:
    plain = [name for name, theme in BUILTIN_THEMES.items() if not theme.ansi]
    assert {name for name in plain if is_readable(borrowed(name))} == set(BORROWED)
    for name in BORROWED:
        assert smallest_difference([borrowed(name).colour(key) for key in DISTINCT]) >= 12, name
    dracula = find_theme("dracula")
    assert dracula.colour("background") == "#282A36"
    assert dracula.colour("comm") == find_theme("high-contrast").colour("comm")
    assert textual_theme(dracula).name == "nsys-tui-dracula"


def test_style_codes_become_rich_styles_once() -> None:
    table = StyleTable(find_theme("dark"))
    plain = table[style()]
    assert plain.color is not None
    assert plain.color.name == "#e6e6e6"
    assert plain.bgcolor is not None
    assert plain.bgcolor.name == "#101010"
    block = table[style(Ink.CONTRAST, category_ink(0), Emphasis.BOLD)]
    assert block.bold
    assert block.bgcolor is not None
    assert block.bgcolor.name == "#88ccee"
    assert table[style()] is plain


def test_native_themes_leave_colours_to_the_terminal() -> None:
    plain = StyleTable(find_theme("ansi-light"))[style()]
    assert plain.color is not None
    assert plain.color.is_default
    assert textual_theme(find_theme("mono")).ansi
    assert not textual_theme(find_theme("dark")).ansi


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "tmux-256color"}, True),
        ({"TERM": "screen-256color", "TMUX": "/tmp/tmux-0/default,1,0"}, True),
        ({"TERM": "screen-256color"}, False),
        ({"TERM": "xterm", "STY": "1.pts"}, False),
        ({}, False),
    ],
)
def test_erasing(environ: dict[str, str], expected: bool) -> None:
    assert erases_in_colour(environ) is expected
