from __future__ import annotations

from nsys_tui.render.cells import Emphasis, Ink, Row, parts, style
from nsys_tui.render.glyphs import ASCII, UNICODE, UNICODE_ANSI, UNICODE_MONO, glyphs_for


def test_codes_pack_and_unpack() -> None:
    code = style(200, 99, Emphasis.BOLD | Emphasis.REVERSE)
    assert parts(code) == (200, 99, Emphasis.BOLD | Emphasis.REVERSE)
    assert style() == 0


def test_runs_join_equal_neighbours() -> None:
    row = Row.blank(6)
    row.put(1, "abc", style(Ink.AXIS))
    assert row.runs() == [(" ", 0), ("abc", style(Ink.AXIS)), ("  ", 0)]
    assert Row.blank(0).runs() == []


def test_texts_are_cut_at_both_ends() -> None:
    row = Row.blank(4)
    row.put(-2, "abcd")
    row.put(3, "xyz")
    row.put(9, "never")
    assert row.text() == "cd x"


def test_wide_characters_are_never_halved() -> None:
    row = Row.blank(4)
    row.put(0, "前向")
    assert row.text() == "前向"
    row.put(1, "-")
    assert row.text() == " -向"
    cut = Row.blank(3)
    cut.put(0, "前向")
    assert cut.text() == "前 "
    left = Row.blank(3)
    left.put(-1, "前x")
    assert left.text() == " x "


def test_each_glyph_takes_one_cell_and_ascii_is_ascii() -> None:
    for glyphs in (ASCII, UNICODE, UNICODE_ANSI, UNICODE_MONO):
        singles = (glyphs.cursor, glyphs.separator, glyphs.bar, glyphs.opened, glyphs.closed)
        assert all(len(glyph) == 1 for glyph in singles)
        if glyphs.ascii_only:
            assert "".join((*singles, glyphs.ramp, glyphs.density, glyphs.edges)).isascii()


def test_glyphs_follow_terminal_and_theme() -> None:
    assert glyphs_for(True, "rgb") is ASCII
    assert glyphs_for(False, "rgb") is UNICODE
    assert glyphs_for(False, "ansi") is UNICODE_ANSI
    assert glyphs_for(False, "mono") is UNICODE_MONO


def test_a_level_above_nothing_is_seen() -> None:
    assert [UNICODE.level(value, 8) for value in (0, 0.01, 4, 8, 99)] == list(" ▁▄██")
    assert UNICODE.level(5, 0) == " "
