"""What this terminal can show, found once at the start: colours, ASCII, app or plain text.

Pure functions of the environment, without Textual, so that ``doctor`` and pipes stay quick.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Colours(StrEnum):
    """How many colours may be sent."""

    TRUE = "truecolor"
    C256 = "256"
    C16 = "16"
    MONO = "mono"


_ERASING: Final = (
    *("xterm", "tmux", "linux", "rxvt", "alacritty", "foot", "ghostty", "kitty", "wezterm"),
    *("gnome", "konsole", "vte", "st-256color"),
)
"""What ``TERM`` begins with where erased cells take the background's colour."""


@dataclass(frozen=True)
class Terminal:
    """What was found; ``Help`` and ``doctor`` show the reasons."""

    colours: Colours
    ascii: bool
    """Only ASCII may be sent."""
    app: bool
    """Whether the app can run; if not, plain text is printed."""
    dark: bool
    reasons: Mapping[str, str]
    """Property name (``colours``, ``ascii``, ``app``, ``dark``) to why."""


def probe(
    environ: Mapping[str, str] | None = None,
    *,
    is_tty: bool = True,
    ascii_only: bool | None = None,
    no_color: bool = False,
    text: bool = False,
) -> Terminal:
    """Finds out what the terminal can show.

    Args:
        environ: the environment; by default the one of this process.
        is_tty: whether stdin, stdout and stderr are terminals (Textual draws on stderr).
        ascii_only: the user's word from flag or config; None leaves it to the probe.
        no_color: the flag ``--no-color``.
        text: the flag ``--text``.
    """
    env = os.environ if environ is None else environ
    colours, why_colours = _colours(env, no_color)
    ascii_mode, why_ascii = _ascii(env, ascii_only)
    app, why_app = _app(env, is_tty, text)
    dark, why_dark = _dark(env)
    reasons = {"colours": why_colours, "ascii": why_ascii, "app": why_app, "dark": why_dark}
    return Terminal(colours, ascii_mode, app, dark, reasons)


def _colours(env: Mapping[str, str], no_color: bool) -> tuple[Colours, str]:
    if no_color:
        return Colours.MONO, "--no-color"
    if env.get("NO_COLOR"):
        return Colours.MONO, "NO_COLOR is set"
    if env.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return Colours.TRUE, f"COLORTERM={env['COLORTERM']}"
    term = env.get("TERM", "")
    if term.endswith("-256color") or term.startswith(("tmux", "screen")):
        return Colours.C256, f"TERM={term}"
    return Colours.C16, f"TERM={term or '(unset)'}"


def _ascii(env: Mapping[str, str], asked: bool | None) -> tuple[bool, str]:
    if asked is not None:
        return asked, "--ascii or config" if asked else "--unicode or config"
    name, value = _locale(env)
    if "UTF-8" not in value.upper() and "UTF8" not in value.upper():
        return True, f"{name}={value or '(unset)'} is not UTF-8"
    if env.get("TERM") in ("linux", "vt100"):
        return True, f"TERM={env['TERM']}"
    if is_wide_ambiguous(value):
        return True, f"{name}={value}: box lines are two cells wide in this locale"
    return False, f"{name}={value}"


def _locale(env: Mapping[str, str]) -> tuple[str, str]:
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        if env.get(name):
            return name, env[name]
    return "LANG", ""


def erases_in_colour(env: Mapping[str, str]) -> bool:
    """Whether erased cells take the background's colour; those of GNU screen may not."""
    if env.get("STY"):
        return False
    return "TMUX" in env or env.get("TERM", "").startswith(_ERASING)


def is_wide_ambiguous(locale: str) -> bool:
    """Whether terminals of this locale usually give East Asian ambiguous characters two cells."""
    return locale.lower().startswith(("ja", "ko", "zh"))


def _app(env: Mapping[str, str], is_tty: bool, text: bool) -> tuple[bool, str]:
    if text:
        return False, "--text"
    if in_browser(env):
        return True, "a browser"
    if not is_tty:
        return False, "no terminal (pipe or file)"
    if env.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return False, f"TERM={env.get('TERM', '(unset)')}"
    return True, "a terminal"


def in_browser(env: Mapping[str, str]) -> bool:
    """Whether a server hands what is drawn to a page, and its keys to the app."""
    return env.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


def _dark(env: Mapping[str, str]) -> tuple[bool, str]:
    background = env.get("COLORFGBG", "").rpartition(";")[2]
    if background.isdigit():
        return int(background) not in (7, *range(9, 16)), f"COLORFGBG={env['COLORFGBG']}"
    return True, "default (COLORFGBG is not set)"
