"""Times as people type them: exact to the nanosecond, and refused with the reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nsys_tui.errors import UsageError
from nsys_tui.model.table import Column, Table, Unit, plain
from nsys_tui.text.sections import readable
from nsys_tui.units import (
    format_bytes,
    format_change,
    format_duration,
    format_moment,
    format_number,
    format_rate,
    format_share,
    parse_duration,
    parse_window,
    ranks_text,
)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("300", 300),
        ("-1ms", -1_000_000),
        ("1.5 s", 1_500_000_000),
        ("1e3us", 1_000_000),
        ("9223372036.854775807s", 2**63 - 1),
        ("0.0000000004s", 0),
        ("1e-999999s", 0),
    ],
)
def test_a_time_is_read_exactly(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("abc", "not a time"),
        ("nan", "not a time"),
        ("1 parsec", "not a time"),
        ("1.5", "without its unit"),
        ("9223372036854775808", "out of range"),
        ("1e400s", "out of range"),
        ("-1e999999999999s", "out of range"),
        ("1e99999999999999999999999999", "out of range"),
    ],
)
def test_what_is_no_time_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_duration(text)


def test_either_side_of_a_window_may_be_empty() -> None:
    assert parse_window("1us/2ms") == (1000, 2_000_000)
    assert parse_window("-1us/") == (-1000, None)
    assert parse_window(" / ") == (None, None)
    for wrong in ("", "5", "2/1", "1/1", "1/2/3"):
        with pytest.raises(UsageError):
            parse_window(wrong)


def test_a_shown_time_never_rounds_up_into_the_next_unit() -> None:
    assert format_duration(999_999) == "1.000 ms"
    assert format_duration(-7) == "-7 ns"
    assert format_duration(690_100_000) == "690.1 ms"


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([], ""),
        ([3], "3"),
        ([1, 2], "1, 2"),
        ([2, 0, 1, 9], "0-2, 9"),
        ([n for n in range(512) if n != 37], "0-511 except 37"),
        ([n for n in range(64) if n not in (7, 8, 9, 40)], "0-63 except 7-9, 40"),
        (range(0, 40, 2), "0, 2, 4, 6, 8, 10, 12, 14 and 12 more"),
    ],
)
def test_many_ranks_in_few_words(ranks: list[int], text: str) -> None:
    assert ranks_text(ranks) == text


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (format_duration, 99_999, "100.0 us"),
        (format_duration, 9_999_900, "10.00 ms"),
        (format_bytes, 999, "999 B"),
        (format_bytes, 99_960_000, "100 MB"),
        (format_bytes, -2_390_000_000, "-2.39 GB"),
        (format_rate, 24.06e9, "24.1 GB/s"),
        (format_share, 0.9048, "90.5%"),
        (format_share, 0.0, "0.0%"),
        (format_share, 1e-9, "<0.1%"),
        (format_share, 0.00049, "<0.1%"),
        (format_share, 0.00051, "0.1%"),
        (format_change, -0.0004, "0.0%"),
        (format_change, 0.0004, "0.0%"),
        (format_change, 0.05, "+5.0%"),
        (format_change, 9.999, "+999.9%"),
        (format_change, 188.683, "190x"),
        (format_number, 9_870, "9,870"),
        (format_number, 123_456, "123k"),
        (format_number, 0.25, "0.25"),
    ],
)
def test_a_figure_has_one_form(write: Callable[[float], str], value: float, text: str) -> None:
    assert write(value) == text


def test_late_moments_are_told_apart() -> None:
    late = 3 * 3600 * 10**9
    table = Table.of(
        "gaps",
        "Gaps",
        [(Column(name, Unit.NS), [late + 314 * 10**6, 5]) for name in ("Start", "At", "Idle")],
    )
    assert [cell.strip() for text in readable(table).data for cell in plain(text)] == [
        *("10800.314 s", "5 ns"),
        *("10800.314 s", "5 ns"),
        *("10800 s", "5 ns"),
    ]


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (910_900_000, "910.9 ms"),
        (9_999_400_000, "9.999 s"),
        (9_999_600_000, "10.000 s"),
        (-10_860_314_159_265, "-10860.314 s"),
    ],
)
def test_moments_have_milliseconds_however_late(ns: int, text: str) -> None:
    assert format_moment(ns) == text
