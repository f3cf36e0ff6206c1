"""Themes on the screen: a theme file as Textual's theme and as one Rich style per style code."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich.style import Style
from textual.theme import BUILTIN_THEMES
from textual.theme import Theme as TextualTheme

from nsys_tui.errors import ConfigError
from nsys_tui.render.cells import Emphasis
from nsys_tui.render.colour import READABLE, VISIBLE, contrast, legible, mix
from nsys_tui.render.palette import BORROWED, Theme, load_theme, theme_files
from nsys_tui.ui.terminal import Colours, Terminal

AUTO: Final = "auto"


class StyleTable(dict[int, Style]):
    """Rich styles by style code, each made once: a run of cells costs one lookup.

    Args:
        theme: whose colours; defaults of the theme fill in where a code names none, so that a
            segment needs no other style below it.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        plain = theme.kind == "mono"
        self._fg = "default" if plain else theme.colour("foreground")
        self._bg = "default" if plain else theme.colour("background")

    def __missing__(self, code: int) -> Style:
        fg, bg, emphasis = self.theme.look(code)
        style = self[code] = Style(
            color=fg or self._fg,
            bgcolor=bg or self._bg,
            bold=bool(emphasis & Emphasis.BOLD),
            dim=bool(emphasis & Emphasis.DIM),
            italic=bool(emphasis & Emphasis.ITALIC),
            underline=bool(emphasis & Emphasis.UNDERLINE),
            reverse=bool(emphasis & Emphasis.REVERSE),
        )
        return style


def choose_theme(asked: str, terminal: Terminal) -> str:
    """The name of the theme to start with.

    Args:
        asked: a name, or ``auto``: then the terminal decides.
        terminal: what was found.
    """
    if terminal.colours is Colours.MONO:
        return "mono"
    shade = ("dark" if terminal.dark else "light") if asked == AUTO else asked
    plain = terminal.colours is Colours.C16 and shade in ("dark", "light")
    return f"ansi-{shade}" if plain else shade


def find_theme(name: str, user_folder: Path | None = None) -> Theme:
    """Loads one theme by name; only its file is read.

    Raises:
        ConfigError: there is no such theme, or its file is bad.
    """
    files = theme_files(user_folder)
    if name in files:
        return load_theme(files[name])
    if name in BORROWED:
        return borrowed(name)
    known = sorted({*files, *BORROWED})
    raise ConfigError(f"no theme named {name!r}", hint="there are " + ", ".join(known))


def borrowed(name: str) -> Theme:
    """One of Textual's themes: its background, words and accent, with our colours of categories."""
    theirs = BUILTIN_THEMES[name]
    made = {key: value[:7] for key, value in theirs.to_color_system().generate().items()}
    ground, words = made["background"], made["foreground"]
    accents = (made[key] for key in ("primary", "accent", "secondary"))
    colours = {
        "background": ground,
        "surface": made["surface"],
        "panel": made["surface"],
        "foreground": words,
        "accent": next((c for c in accents if contrast(c, ground) >= READABLE), words),
        "axis": mix(words, ground, 0.15),
        "muted": legible(mix(words, ground, 0.25), made["surface"], words),
        "idle": legible(mix(words, ground, 0.5), ground, words, VISIBLE),
        "border": legible(mix(words, ground, 0.65), ground, words, VISIBLE),
    }
    ours = load_theme(theme_files()["high-contrast" if theirs.dark else "light"])
    fills = {key: legible(colour, ground, words) for key, colour in ours.colours.items()}
    return Theme(name, "rgb", theirs.dark, fills | colours)


def textual_theme(theme: Theme) -> TextualTheme:
    """Textual's form of a theme, for everything that style sheets draw."""
    native = theme.kind != "rgb"
    colour = {key: _css(theme, key) for key in theme.colours}
    variables = {
        "frame": colour["border"],
        "muted": colour["muted"],
        "ansi-background": "ansi_black" if theme.dark else "ansi_white",
        "ansi-foreground": "ansi_white" if theme.dark else "ansi_black",
        "border-blurred": colour["border"],
        "block-cursor-background": colour["accent"],
        "block-cursor-foreground": "ansi_black" if native else theme.colour("background"),
        "scrollbar": colour["border"],
        "scrollbar-hover": colour["muted"],
        "scrollbar-active": colour["accent"],
        "scrollbar-background": colour["background"],
        "scrollbar-background-hover": colour["background"],
        "scrollbar-background-active": colour["background"],
        "scrollbar-corner-color": colour["background"],
    }
    return TextualTheme(
        name=f"nsys-tui-{theme.name}",
        primary=colour["accent"],
        secondary=colour["border"],
        warning=colour["warning"],
        error=colour["error"],
        success=colour["better"],
        accent=colour["accent"],
        foreground=colour["foreground"],
        background=colour["background"],
        surface=colour["surface"],
        panel=colour["panel"],
        dark=theme.dark,
        ansi=native,
        variables=variables,
    )


def _css(theme: Theme, key: str) -> str:
    if theme.kind == "mono":
        return "ansi_default"
    value = theme.colour(key)
    return value if theme.kind == "rgb" else f"ansi_{value}"
