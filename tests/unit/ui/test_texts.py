from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from nsys_tui.names import cell_len
from nsys_tui.state import TimeFormat, Window
from nsys_tui.times import moment_text, window_text
from nsys_tui.ui.keymap import Action
from nsys_tui.ui.matching import Entry, matching
from nsys_tui.ui.pane_text import labelled, wrapped
from nsys_tui.ui.recent import nearby, recent, remember
from nsys_tui.ui.runtime.ascii_filter import asciify
from nsys_tui.ui.widgets.chrome import fit_keys
from nsys_tui.ui.widgets.frame import heading_text

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("window", "style", "expected"),
    [
        (Window(0, 5_123_000_000), TimeFormat.AUTO, "0.000-5.123 s"),
        (Window(2_100_000_000, 2_155_000_000), TimeFormat.AUTO, "2.10000-2.15500 s"),
        (Window(-5_000_000, 1_000_000_000), TimeFormat.AUTO, "-0.005-1.000 s"),
        (Window(10, 90), TimeFormat.NS, "10-90 ns"),
        (Window(0, 119_400_000_000), TimeFormat.AUTO, "0.0-119.4 s"),
    ],
)
def test_windows(window: Window, style: TimeFormat, expected: str) -> None:
    assert window_text(window, style) == expected


def test_lines_of_a_text_that_is_broken_hold_no_piece_of_a_secret() -> None:
    token = "hf_QxZvKjWqYpGhTbNmRdLfScUo"
    text = f"void load<{token}>(int) and words around it"
    pieces = {token[at : at + 4] for at in range(3, len(token) - 3)}
    for width in range(10, len(text)):
        in_label = [part for line in labelled("name", text, width) for part, _ in line]
        for line in (*wrapped(text, width), *in_label):
            assert not any(piece in line for piece in pieces)
    assert wrapped(text, len(text)) == [text]


def test_relative_moments_are_distances_with_a_sign() -> None:
    assert moment_text(3_500_000, 1_000, TimeFormat.RELATIVE, origin=1_000_000) == "+2.500 ms"
    assert moment_text(0, 1, TimeFormat.RELATIVE, origin=30) == "-30 ns"


def test_absolute_without_a_start_falls_back_to_seconds() -> None:
    assert moment_text(1_500_000_000, 1_000_000, TimeFormat.ABSOLUTE) == "1.500 s"


def test_seconds_are_exact_where_a_float_is_not() -> None:
    assert moment_text(2**62 + 1, 1, TimeFormat.AUTO) == "4611686018.427387905 s"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("┌─ Title ──┐", "+- Title --+"),
        ("│█▄ ≈72%…", "|## ~72%~"),
        ("plain", "plain"),
        ("→←↑↓", "><^v"),
        ("日本", "? ? "),
        ("é", "e"),
    ],
)
def test_asciify_keeps_the_width(text: str, expected: str) -> None:
    assert asciify(text) == expected
    assert cell_len(text) == len(expected)


def test_headings_fill_the_frame_and_the_remark_gives_way() -> None:
    assert heading_text("Time split", "enter: go", 40, False) == (
        "Time split ───────────── enter: go"
    )
    assert cell_len(heading_text("Time split", "enter: go", 40, False)) == 34
    assert heading_text("A long heading here", "a remark", 30, False) == "A long heading here"
    assert heading_text("T", "", 20, True) == "> T"


def test_headings_show_control_characters() -> None:
    assert "\x1b" not in heading_text("evil\x1b[31m", "", 40, False)


def test_the_footer_joins_keys_of_one_label_and_never_drops_help() -> None:
    labels = {"w": "zoom", "f": "fit", "s": "zoom", "?": "help"}
    ids = {"?": "app.help"}
    keys = tuple((key, Action(ids.get(key, key), (), label, "")) for key, label in labels.items())

    def said(width: int) -> str:
        kept = fit_keys(keys, width, gap=2)
        return "  ".join(f"{'/'.join(key for key, _ in pairs)} {label}" for label, pairs in kept)

    whole = "w/s zoom  f fit  ? help"
    assert said(len(whole)) == whole
    assert said(len(whole) - 1) == "w/s zoom  ? help"
    assert said(3) == "? help"


def test_matching_ranks_equal_then_beginning_then_words() -> None:
    entries = [Entry(text) for text in ("bigemm", "my gemm", "gemm_64", "gemm")]
    assert [e.text for e in matching(entries, "GEMM")] == ["gemm", "gemm_64", "my gemm", "bigemm"]
    assert [e.text for e in matching(entries, "64 gemm")] == ["gemm_64"]
    assert matching(entries, "") == entries
    assert matching(entries, "nothing") == []


def test_recent_reports_newest_first_and_only_those_that_exist(tmp_path: Path) -> None:
    first, second = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    for path in (first, second):
        path.touch()
        remember(path)
    remember(first)
    assert recent() == [first, second]
    second.unlink()
    assert recent() == [first]


def test_nearby_lists_reports_only(tmp_path: Path) -> None:
    for name in ("a.sqlite", "b.nsys-rep", "c.txt"):
        (tmp_path / name).touch()
    assert {path.name for path in nearby(tmp_path)} == {"a.sqlite", "b.nsys-rep"}
    assert nearby(tmp_path / "nowhere") == []


def test_nearby_has_reports_of_one_moment_by_their_names(tmp_path: Path) -> None:
    for rank in (3, 1, 2, 0):
        (tmp_path / f"rank{rank}.sqlite").write_bytes(b"")
        os.utime(tmp_path / f"rank{rank}.sqlite", (9, 9 + (rank == 2)))
    assert [path.stem for path in nearby(tmp_path)] == ["rank2", "rank0", "rank1", "rank3"]
