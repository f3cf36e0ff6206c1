from __future__ import annotations

import numpy as np

from nsys_tui.render.cells import OWN_INKS, Ink, category_ink, style
from nsys_tui.render.palette import duration_inks, load_theme, own_inks, slot_inks, theme_files

THEMES = {name: load_theme(path) for name, path in theme_files().items()}


def test_codes_share_slots_in_turn() -> None:
    assert slot_inks(np.array([0, 1, 12, 25])).tolist() == [64, 66, 64, 66]


def test_durations_step_by_decades() -> None:
    durations = np.array([0, 9, 10, 999, 1000, 10**18], np.int64)
    assert ((duration_inks(durations) - 64) // 2).tolist() == [0, 0, 1, 2, 3, 11]


def test_ranges_keep_their_own_colour_if_it_can_be_seen() -> None:
    argb = np.array([0xFF88CCEE, -1, 0xFF111111, 0xFFFFB000, 0xFFFFB000], np.int64)
    theme, inks = own_inks(THEMES["dark"], argb, category_ink(7))
    shown = [theme.look(style(int(ink))).fg for ink in inks]
    nvtx = THEMES["dark"].colour("nvtx")
    assert shown == ["#88CCEE", nvtx, nvtx, "#FFB000", "#FFB000"]
    assert theme.look(style(int(inks[0]) + 1)).fg not in (None, "#88CCEE")


def test_more_colours_than_inks_leave_the_rarest_out() -> None:
    argb = np.array([0xFF808000 + k for k in range(100)] + [0xFF808000 + 99], np.int64)
    theme, inks = own_inks(THEMES["dark"], argb, category_ink(7))
    assert len(theme.own) == OWN_INKS
    assert inks[99] == Ink.OWN
    assert int(inks.max()) <= 255
    assert (inks == category_ink(7)).sum() == 100 - OWN_INKS


def test_themes_without_blending_show_none() -> None:
    theme, inks = own_inks(THEMES["mono"], np.array([0xFF88CCEE]), category_ink(7))
    assert theme is THEMES["mono"]
    assert inks.tolist() == [category_ink(7)]
