"""Times, bytes and shares as text and back: the only place where nanoseconds become words.

Times are int64 nanoseconds everywhere else in the program; nothing here does arithmetic on events.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final, TypeAlias

from nsys_tui.errors import UsageError

NS_PER: Final[dict[str, int]] = {
    "ns": 1,
    "nsec": 1,
    "us": 1_000,
    "µs": 1_000,
    "usec": 1_000,
    "ms": 1_000_000,
    "msec": 1_000_000,
    "s": 1_000_000_000,
    "sec": 1_000_000_000,
    "seconds": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
}

_DURATION = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([a-zµ]*)\s*\Z")
_STEPS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))


_DIGITS: Final = 4
"""Significant digits of a duration, wherever it is written."""


def format_duration(ns: float) -> str:
    """The one form of a duration: ``1.143 s``, ``690.1 ms``, ``52.80 us``, ``7 ns``.

    Args:
        ns: nanoseconds, may be negative.

    Returns:
        The number, a space and the unit, in 8 cells (9 where negative); plain nanoseconds are
        printed whole.
    """
    magnitude = abs(round(ns))
    sign = "-" if ns < 0 else ""
    scale, unit = next((step for step in _STEPS if magnitude >= step[0]), _STEPS[-1])
    if scale == 1:
        return f"{sign}{magnitude} ns"
    text = _rounded(magnitude / scale, _DIGITS)
    if scale < 1_000_000_000 and float(text) >= 1000:
        return format_duration((1 if ns > 0 else -1) * scale * 1000)
    return f"{sign}{text} {unit}"


def format_moment(ns: float) -> str:
    """A point in time: as a duration, seconds to the millisecond however late: ``10860.314 s``."""
    return format_duration(ns) if abs(ns) < 9_999_500_000 else f"{ns / 1e9:.3f} s"


def format_difference(ns: float) -> str:
    """A duration that is added or taken away: ``+121.0 ms``, ``-7 ns``, ``0 ns``."""
    return f"{'+' if round(ns) > 0 else ''}{format_duration(ns)}"


def format_bytes(count: int) -> str:
    """The one form of bytes: ``512 B``, ``16.4 kB``, ``2.39 GB`` (1 MB = 10**6 bytes, as nsys)."""
    if abs(count) < 1000:
        return f"{count} B"
    text, prefix = _scaled(count)
    return f"{text} {prefix}B"


def format_rate(bytes_per_s: float) -> str:
    """The one form of a bandwidth: ``24.1 GB/s``."""
    return f"{format_bytes(round(bytes_per_s))}/s"


def format_percent(percent: float) -> str:
    """The one form of a share: ``72.4%``; some that rounds to none is ``<0.1%``."""
    return f"{format_percentage(percent)}%"


def format_percentage(percent: float) -> str:
    """A share under a header that says what it is of: ``72.4``, ``<0.1``."""
    rounded = round(percent, 1) + 0.0
    return "<0.1" if percent > 0 and not rounded else f"{rounded:,.1f}"


def format_share(part: float, whole: float = 1) -> str:
    """``part / whole`` as a percentage, or ``-`` when there is no whole."""
    return format_percent(100 * part / whole) if whole else "-"


def format_change(ratio: float) -> str:
    """The one form of a relative change: ``+5.0%``, ``-17.5%``, from ten times on ``190x``."""
    if ratio >= 9.9995:
        return f"{format_number(1 + ratio)}x"
    percent = round(100 * ratio, 1) + 0.0
    return f"{'+' if percent > 0 else ''}{percent:,.1f}%"


def format_count(value: int) -> str:
    """Formats a count with thousands separators."""
    return f"{value:,}"


def format_number(value: float) -> str:
    """A number in at most 6 cells, for scales and estimates: ``0.25``, ``9,870``, ``123k``."""
    if abs(value) >= 10_000:
        return "".join(_scaled(value))
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def _scaled(value: float) -> tuple[str, str]:
    """Three digits of a number of 1000 or more, and its decimal prefix."""
    step, sign = -1, "-" if value < 0 else ""
    value = abs(value)
    while value >= 999.5 and step + 1 < len(_PREFIXES):
        value /= 1000
        step += 1
    return sign + _rounded(value, 3), _PREFIXES[step]


def _rounded(value: float, digits: int) -> str:
    """A number from 1 on with some significant digits: ``1.143``, ``99.99``, ``100.0``."""
    decimals = max(0, digits - len(str(int(value))))
    return f"{value:.{max(0, digits - len(str(int(round(value, decimals)))))}f}"


_PREFIXES: Final = "kMGTPE"


def out_of(part: int, whole: int) -> str:
    """``33 of 1,204``: the one form of a part of a number of things."""
    return f"{part:,} of {whole:,}"


def parse_duration(text: str, default_unit: str = "ns") -> int:
    """Parses ``12ms``, ``1.5 s``, ``300`` into nanoseconds, exactly (no float is involved).

    Args:
        text: a number with an optional unit of ``NS_PER``.
        default_unit: unit of a bare number.

    Raises:
        UsageError: the text is no time; the message lists the units.
    """
    match = _DURATION.match(text)
    unit = (match.group(2) or default_unit) if match else ""
    if match is None or unit not in NS_PER:
        raise UsageError(f"not a time: {text!r}", hint="write it as 300ns, 12ms, 1.5s or 2min")
    try:
        value = Decimal(match.group(1)) * NS_PER[unit]
    except ArithmeticError:  # an exponent beyond those of Decimal
        value = Decimal("inf")
    if abs(value) >= 2**63:
        raise UsageError(f"time out of range: {text!r}", hint="times are 64-bit nanoseconds")
    if not match.group(2) and value != value.to_integral_value():
        raise UsageError(f"a time without its unit: {text!r}", hint="write it as 12ms or 1.5s")
    return int(value.to_integral_value())


def parse_length(text: str, what: str = "a duration") -> int:
    """Parses ``50us``; a bare 50 could be ns or us, and only 0 needs no unit.

    Args:
        text: a number with a unit of ``NS_PER``.
        what: it is, for the message of an error.

    Raises:
        UsageError: the text is no time, has no unit or is below zero.
    """
    length = parse_duration(text)
    if length < 0:
        raise UsageError(f"{what} cannot be negative: {text!r}")
    if length and not text.strip()[-1].isalpha():
        raise UsageError(f"{what} without its unit: {text!r}", hint="write it as 50us or 1.5ms")
    return length


def parse_percent(text: str) -> float:
    """Parses ``3%`` or ``3`` as 0.03.

    Raises:
        UsageError: it is no percentage, or a negative one.
    """
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"not a percentage: {text!r}", hint="write it as 3% or 0.5%")
    return value / 100


Edges: TypeAlias = "tuple[int | None, int | None]"
"""A window of which either side may be open."""


def parse_window(text: str) -> Edges:
    """Parses ``START/END`` (either side may be empty) into nanoseconds.

    Raises:
        UsageError: no slash, an unreadable side, or an end that is not after the start.
    """
    start_text, slash, end_text = text.partition("/")
    if not slash:
        raise UsageError(
            f"not a time window: {text!r}", hint="write it as START/END, such as 1.2s/1.5s"
        )
    start = parse_duration(start_text) if start_text.strip() else None
    end = parse_duration(end_text) if end_text.strip() else None
    if start is not None and end is not None and end <= start:
        raise UsageError(f"empty time window: {text!r}", hint="the end must come after the start")
    return start, end


def closed(window: Edges, extent: tuple[int, int]) -> tuple[int, int]:
    """A window whose open sides are those of the trace."""
    (start, end), (lo, hi) = window, extent
    return lo if start is None else start, hi if end is None else end


def named_ranks(ranks: Iterable[int]) -> str:
    """``ranks_text`` with its noun: ``rank 3``, ``ranks 0-7``."""
    distinct = set(ranks)
    return f"rank{'s' * (len(distinct) != 1)} {ranks_text(distinct)}"


def ranks_text(ranks: Iterable[int], most: int = 8) -> str:
    """Many ranks in few words: ``3``, ``0-7, 12``, ``0-511 except 37``.

    Args:
        ranks: in any order.
        most: runs named at most, of those in the set and of those left out of it.
    """
    distinct = sorted(set(ranks))
    runs = _runs(distinct)
    if len(runs) > 1:
        members = set(distinct)
        holes = [rank for rank in range(distinct[0], distinct[-1]) if rank not in members]
        if holes and len(holes) * 8 <= len(distinct) and len(_runs(holes)) <= most:
            return f"{distinct[0]}-{distinct[-1]} except {ranks_text(holes, most)}"
    shown = ", ".join(str(lo) if lo == hi else f"{lo}-{hi}" for lo, hi in runs[:most])
    rest = sum(hi - lo + 1 for lo, hi in runs[most:])
    return f"{shown} and {rest:,} more" if rest else shown


def _runs(ranks: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of ranks that follow each other; two that do are no run yet."""
    runs: list[tuple[int, int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], rank
        else:
            runs.append((rank, rank))
    short = [run for run in runs if run[1] - run[0] == 1]
    split = {run: ((run[0], run[0]), (run[1], run[1])) for run in short}
    return [part for run in runs for part in split.get(run, (run,))]


def plural(count: int, what: str) -> str:
    """``1 gap``, ``1,204 gaps``."""
    return f"{format_count(count)} {what}{'' if count == 1 else 's'}"
