"""Themes: what a style code looks like, and the files that say so.

A theme is a flat TOML file: a name, chrome colours, one entry a category. There are three kinds:
``rgb`` (hex colours), ``ansi`` (the terminal's own 16 colours, never blended) and ``mono`` (words
for emphasis instead of colours). Turning a look into a terminal style is the screen's business.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import numpy as np

from nsys_tui.errors import ConfigError
from nsys_tui.model.arrays import Int64, Integers, UInt8
from nsys_tui.model.categories import Category
from nsys_tui.render.cells import OWN_INKS, SLOTS, Emphasis, Ink, parts
from nsys_tui.render.colour import is_hex, legible, luminance, mix, own_colour, readable_on


def slot_inks(codes: Integers) -> UInt8:
    """Inks by stream or name: the same code has the same colour everywhere, others may share it."""
    return (Ink.SLOT + 2 * (codes % SLOTS)).astype(np.uint8)


def duration_inks(durations: Int64) -> UInt8:
    """Inks by order of magnitude: up to 9 ns the first slot, 10–99 ns the second, and so on."""
    decades = np.searchsorted(10 ** np.arange(1, SLOTS, dtype=np.int64), durations, side="right")
    return (Ink.SLOT + 2 * decades).astype(np.uint8)


def own_inks(theme: Theme, argb: Int64, fallback: int) -> tuple[Theme, UInt8]:
    """Inks of events that carry a colour of their own, such as NVTX ranges.

    Args:
        theme: only ``rgb`` themes show such colours.
        argb: int64 [n], negative for none.
        fallback: even ink of events without a colour, with one too close to the background, or
            with one of the rarest beyond ``OWN_INKS``.

    Returns:
        The theme with these colours, and uint8 [n] inks.
    """
    inks = np.full(len(argb), fallback, np.uint8)
    if theme.kind != "rgb":
        return theme, inks
    colours, inverse, counts = np.unique(argb, return_inverse=True, return_counts=True)
    table = np.full(len(colours), fallback, np.uint8)
    chosen: list[str] = []
    for place in np.argsort(-counts, kind="stable").tolist():
        colour = own_colour(int(colours[place]), theme.colour("background"))
        if colour is not None and len(chosen) < OWN_INKS:
            table[place] = Ink.OWN + 2 * len(chosen)
            chosen.append(colour)
    return replace(theme, own=tuple(chosen)), table[inverse]


_T = TypeVar("_T")

KINDS: Final = ("rgb", "ansi", "mono")
CHROME: Final = (
    *("background", "surface", "panel", "foreground", "muted", "border", "accent"),
    *("cursor", "mark", "idle", "axis", "counter", "better", "worse", "warning", "error"),
)
"""Keys every theme has besides the categories."""
CATEGORY_KEYS: Final = tuple(category.name.lower() for category in Category)
SLOT_KEYS: Final = tuple(f"slot{number}" for number in range(SLOTS))
BORROWED: Final = (
    *("atom-one-light", "catppuccin-macchiato", "catppuccin-mocha", "dracula", "flexoki"),
    *("gruvbox", "monokai", "nord", "rose-pine", "rose-pine-moon", "textual-dark", "textual-light"),
)
"""Textual's themes on whose background our colours of categories, and words, can be read."""
ANSI: Final = frozenset(
    f"{bright}{name}"
    for bright in ("", "bright_")
    for name in ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
) | {"default"}
EMPHASIS_WORDS: Final = frozenset(
    ("normal", *(flag.name.lower() for flag in Emphasis if flag.name))
)
_DARK_ANSI: Final = frozenset(("black", "red", "blue", "magenta", "bright_black", "default"))
_CHROME_INKS: Final[dict[int, str]] = {
    Ink.MUTED: "muted",
    Ink.IDLE: "idle",
    Ink.STALL: "sync",
    Ink.AXIS: "axis",
    Ink.CURSOR: "cursor",
    Ink.MARK: "mark",
    Ink.BETTER: "better",
    Ink.WORSE: "worse",
    Ink.COUNTER: "counter",
}
_BRIGHT: Final = 0.5
"""Luminance above which a colour on dark has no room left for a brighter neighbour."""


class Look(NamedTuple):
    """A style code in terms of the terminal."""

    fg: str | None
    """Hex, an ANSI name of ``ANSI``, or None for the default."""
    bg: str | None
    emphasis: Emphasis


@dataclass(frozen=True)
class Theme:
    """All colours of one theme."""

    name: str
    kind: str
    """``rgb``, ``ansi`` or ``mono``."""
    dark: bool
    colours: dict[str, str] = field(hash=False)
    """Keys of ``CHROME``, ``CATEGORY_KEYS`` and ``SLOT_KEYS``."""
    own: tuple[str, ...] = ()
    """Hex colours that events brought along (see ``inks.own_inks``); ``rgb`` themes only."""

    def colour(self, key: str) -> str:
        """One entry, such as ``background`` or ``compute``."""
        return self.colours[key]

    def look(self, code: int) -> Look:
        """Colours and emphasis of a style code."""
        ink, ground, emphasis = parts(code)
        if self.kind == "mono":
            words = self._words(ink) | self._words(ground)
            return Look(
                None, None, emphasis ^ words ^ (Emphasis.REVERSE if ground else Emphasis(0))
            )
        bg = self._paint(ground)
        fg = _contrast_ink(bg) if ink == Ink.CONTRAST and bg else self._paint(ink)
        return Look(fg, bg, emphasis)

    def _paint(self, ink: int) -> str | None:
        key, alternate = _key(ink)
        if ink >= Ink.OWN:
            colour = self.own[(ink - Ink.OWN) // 2]
        elif key is None:
            return None
        else:
            colour = self.colours[key]
        if alternate and self.kind == "rgb":
            return _step(colour, self.dark)
        if Ink.WORDS <= ink < Ink.SLOT:
            if self.kind == "rgb":
                return legible(colour, self.colours["background"], self.colours["foreground"])
            return None if not self.dark and colour not in _DARK_ANSI else colour
        return None if colour == "default" else colour

    def _words(self, ink: int) -> Emphasis:
        key, _ = _key(ink)
        return _emphasis(self.colours[key]) if key else Emphasis(0)


def _key(ink: int) -> tuple[str | None, bool]:
    """The theme key of an ink, and whether it is the alternate step."""
    if ink >= Ink.OWN:
        return None, bool(ink & 1)
    if ink >= Ink.SLOT:
        return SLOT_KEYS[(ink - Ink.SLOT) // 2 % SLOTS], bool(ink & 1)
    if ink >= Ink.WORDS:
        return CATEGORY_KEYS[ink - Ink.WORDS], False
    if ink >= Ink.CATEGORY:
        place = (ink - Ink.CATEGORY) // 2
        return (CATEGORY_KEYS[place] if place < len(CATEGORY_KEYS) else None), bool(ink & 1)
    return _CHROME_INKS.get(ink), False


def _step(colour: str, dark: bool) -> str:
    """The neighbour of a colour: away from the background, or a little towards a dark one."""
    if not dark:
        return mix(colour, "#000000", 0.35)
    return (
        mix(colour, "#000000", 0.2) if luminance(colour) > _BRIGHT else mix(colour, "#FFFFFF", 0.35)
    )


def _contrast_ink(ground: str) -> str:
    if is_hex(ground):
        return readable_on(ground)
    return "bright_white" if ground in _DARK_ANSI else "black"


def _emphasis(words: str) -> Emphasis:
    flags = Emphasis(0)
    for word in words.split():
        if word != "normal":
            flags |= Emphasis[word.upper()]
    return flags


def load_theme(path: Path) -> Theme:
    """Reads a theme file.

    Raises:
        ConfigError: the file cannot be read, or a key is missing, unknown or has a bad value.
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"theme {path} cannot be read", str(error), "correct it, or choose another theme"
        ) from error
    name = _entry(path, entries, "name", str)
    dark = _entry(path, entries, "dark", bool)
    kind = entries.pop("kind", "rgb")
    if kind not in KINDS:
        raise _bad(path, "kind", f"is {kind!r}", "write one of " + ", ".join(KINDS))
    colours = {key: _entry(path, entries, key, str) for key in (*CHROME, *CATEGORY_KEYS)}
    for number, key in enumerate(SLOT_KEYS):
        colours[key] = str(entries.pop(key, colours[CATEGORY_KEYS[number % len(CATEGORY_KEYS)]]))
    for key in entries:
        known = ", ".join((*CHROME, *CATEGORY_KEYS))
        raise _bad(path, key, "is no key of a theme", f"the keys are name, dark, kind, {known}")
    for key, value in colours.items():
        _check(path, key, value, kind)
    return Theme(name, kind, dark, colours)


def _entry(path: Path, entries: dict[str, object], key: str, kind: type[_T]) -> _T:
    value = entries.pop(key, None)
    if not isinstance(value, kind):
        problem = "is missing" if value is None else f"is {value!r}"
        raise _bad(path, key, problem, f"write it as a {kind.__name__}")
    return value


def _check(path: Path, key: str, value: str, kind: str) -> None:
    if kind == "rgb" and not is_hex(value):
        raise _bad(path, key, f"is {value!r}", "write a colour as #RRGGBB")
    if kind == "ansi" and value not in ANSI:
        raise _bad(path, key, f"is {value!r}", "write one of " + ", ".join(sorted(ANSI)))
    if kind == "mono" and not set(value.split()) <= EMPHASIS_WORDS:
        raise _bad(
            path, key, f"is {value!r}", "write words of " + ", ".join(sorted(EMPHASIS_WORDS))
        )


def _bad(path: Path, key: str, problem: str, hint: str) -> ConfigError:
    return ConfigError(f"theme {path}: {key} {problem}", hint=hint)


def builtin_folder(package: Path) -> Path:
    """Where the program's own themes lie: in the installed package or, in a checkout, beside it."""
    inside = package / "themes"
    return inside if inside.is_dir() else package.parent / "themes"


def theme_files(user_folder: Path | None = None) -> dict[str, Path]:
    """Theme files by name (the file's stem); one of the user's hides a built-in of that name."""
    paths = sorted(builtin_folder(Path(__file__).parent.parent).glob("*.toml"))
    if user_folder is not None and user_folder.is_dir():
        paths += sorted(user_folder.glob("*.toml"))
    return {path.stem: path for path in paths}


def theme_names(user_folder: Path) -> list[str]:
    """All that ``--theme`` takes: files, and what is borrowed."""
    return sorted({*theme_files(user_folder), *BORROWED})
