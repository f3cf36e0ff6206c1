from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsys_tui.errors import ConfigError
from nsys_tui.model.categories import Category
from nsys_tui.render.cells import Emphasis, Ink, category_ink, slot_ink, style, word_ink
from nsys_tui.render.colour import contrast, own_colour, readable_on
from nsys_tui.render.palette import Look, builtin_folder, load_theme, theme_files

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

THEMES = {name: load_theme(path) for name, path in theme_files().items()}
DISTINCT = ("compute", "comm", "memory", "graph", "sync", "osrt", "nvtx")

# Colour vision deficiency at full severity, Machado, Oliveira and Fernandes 2009, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritan": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
D65 = np.array([0.95047, 1.0, 1.08883])
LEVELS = (0, 95, 135, 175, 215, 255)


def linear(colour: str) -> npt.NDArray[np.float64]:
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def lab(colour: str, vision: str) -> npt.NDArray[np.float64]:
    xyz = TO_XYZ @ np.clip(VISION[vision] @ linear(colour), 0, 1) / D65
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def smallest_difference(colours: list[str]) -> float:
    pairs = combinations(colours, 2)
    return min(
        float(np.linalg.norm(lab(a, vision) - lab(b, vision)))
        for a, b in pairs
        for vision in VISION
    )


def rounded_to_256(colour: str) -> str:
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    cube = [(r, g, b) for r in LEVELS for g in LEVELS for b in LEVELS]
    greys = [(8 + 10 * step,) * 3 for step in range(24)]
    best = min(
        cube + greys, key=lambda c: sum((a - b) ** 2 for a, b in zip(c, wanted, strict=True))
    )
    return "#{:02X}{:02X}{:02X}".format(*best)


def categories(theme: str) -> list[str]:
    return [THEMES[theme].colour(key) for key in DISTINCT]


@pytest.mark.parametrize(
    ("theme", "least"), [("dark", 23.5), ("light", 17.1), ("high-contrast", 27)]
)
def test_categories_stay_apart_for_every_eye(theme: str, least: float) -> None:
    assert smallest_difference(categories(theme)) >= least


@pytest.mark.parametrize("theme", ["dark", "light", "high-contrast"])
def test_categories_stay_apart_in_256_colours(theme: str) -> None:
    assert smallest_difference([rounded_to_256(colour) for colour in categories(theme)]) >= 12


@pytest.mark.parametrize(("theme", "least"), [("dark", 4), ("light", 4), ("high-contrast", 7)])
def test_fills_stand_out_from_the_background(theme: str, least: float) -> None:
    background = THEMES[theme].colour("background")
    inks = [
        category_ink(category, alternate) for category in Category for alternate in (False, True)
    ]
    inks += [slot_ink(slot) + alternate for slot in range(12) for alternate in (False, True)]
    for ink in inks:
        colour = THEMES[theme].look(style(ink)).fg
        assert colour is not None
        assert contrast(colour, background) >= least, (ink, colour)


@pytest.mark.parametrize("theme", ["dark", "light", "high-contrast"])
def test_text_is_readable(theme: str) -> None:
    chosen = THEMES[theme]
    for ground in ("background", "surface", "panel"):
        assert contrast(chosen.colour("foreground"), chosen.colour(ground)) >= 7
    for key in ("better", "worse", "warning", "error", "axis"):
        assert contrast(chosen.colour(key), chosen.colour("background")) >= 4.5


@pytest.mark.parametrize("theme", ["dark", "light", "high-contrast"])
def test_words_about_a_category_can_be_read(theme: str) -> None:
    background = THEMES[theme].colour("background")
    for category in Category:
        colour = THEMES[theme].look(style(word_ink(category))).fg
        assert colour is not None
        assert contrast(colour, background) >= 4.5


def test_words_on_a_light_terminal_have_none_of_its_pale_colours() -> None:
    theme = THEMES["ansi-light"]
    inks = {category: theme.look(style(word_ink(category))).fg for category in Category}
    assert inks[Category.COMM] is inks[Category.MEMORY] is inks[Category.GRAPH] is None
    assert inks[Category.COMPUTE] == "blue"
    assert theme.look(style(category_ink(Category.COMM))).fg == "yellow", "bars keep it"
    words = {theme.colour(key) for key in ("better", "worse", "warning", "error", "accent", "mark")}
    assert words <= {"blue", "red", "magenta"}


def test_neighbours_of_one_category_differ_in_luminance() -> None:
    for name in ("dark", "light", "high-contrast"):
        for category in Category:
            pair = [
                THEMES[name].look(style(category_ink(category, a))).fg or "" for a in (False, True)
            ]
            assert smallest_difference(pair) >= 7, (name, category)


def test_ansi_themes_name_their_colours_and_blend_nothing() -> None:
    for name in ("ansi-dark", "ansi-light"):
        theme = THEMES[name]
        assert len(set(categories(name))) == len(DISTINCT)
        base, step = (theme.look(style(category_ink(0, a))).fg for a in (False, True))
        assert base == step == theme.colour("compute")
    look = THEMES["ansi-dark"].look(style(Ink.CONTRAST, category_ink(Category.COMM)))
    assert look == Look("black", "yellow", Emphasis(0))


def test_looks() -> None:
    dark = THEMES["dark"]
    assert dark.look(style()) == Look(None, None, Emphasis(0))
    label = dark.look(style(Ink.CONTRAST, category_ink(Category.SYNC), Emphasis.BOLD))
    assert label == Look("#000000", "#D55E00", Emphasis.BOLD)
    assert dark.look(style(Ink.STALL)).fg == dark.colour("sync")


def test_mono_uses_no_colour_and_tells_most_categories_apart() -> None:
    looks = [THEMES["mono"].look(style(category_ink(category))) for category in Category]
    assert all(look.fg is look.bg is None for look in looks)
    assert len({look.emphasis for look in looks}) >= 5


def test_readable_ink() -> None:
    assert readable_on("#FFB000") == "#000000"
    assert readable_on("#332288") == "#FFFFFF"
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)


def test_own_colours_of_ranges_need_contrast() -> None:
    assert own_colour(0xFF88CCEE, "#101010") == "#88CCEE"
    assert own_colour(0xFF202020, "#101010") is None
    assert own_colour(0x0088CCEE, "#101010") is None
    assert own_colour(-1, "#101010") is None


def test_all_six_themes_ship() -> None:
    names = {"dark", "light", "high-contrast", "ansi-dark", "ansi-light", "mono"}
    assert set(THEMES) == names
    assert all(theme.name == name for name, theme in THEMES.items())


def test_a_theme_of_the_users_hides_a_built_in_one(tmp_path: Path) -> None:
    text = theme_files()["dark"].read_text().replace("#88CCEE", "#99DDFF")
    (tmp_path / "dark.toml").write_text(text)
    assert load_theme(theme_files(tmp_path)["dark"]).colour("compute") == "#99DDFF"
    assert len(theme_files(tmp_path)) == 6


def test_themes_are_found_in_a_wheel_and_beside_a_checkout(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    assert builtin_folder(tmp_path / "pkg") == tmp_path / "themes"
    (tmp_path / "pkg" / "themes").mkdir()
    assert builtin_folder(tmp_path / "pkg") == tmp_path / "pkg" / "themes"


BAD = [
    ('comm = "#FFB000"', 'comm = "orange"', "comm is 'orange'"),
    ('comm = "#FFB000"', "comm = 3", "comm is 3"),
    ('comm = "#FFB000"', "", "comm is missing"),
    ("dark = true", "dark = 1", "dark is 1"),
    ('kind = "rgb"', 'kind = "neon"', "kind is 'neon'"),
    ('kind = "rgb"', 'kind = "rgb"\nblink = "#000000"', "blink is no key"),
    ('kind = "rgb"', "kind = ", "cannot be read"),
]


@pytest.mark.parametrize(("old", "new", "expected"), BAD)
def test_errors_name_the_file_and_the_key(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(theme_files()["dark"].read_text().replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_theme(path)
    assert str(path) in caught.value.title
    assert expected in caught.value.title
    assert caught.value.hint
