"""Moments and windows as text in the time format that the user chose."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from nsys_tui.model.report import Report
from nsys_tui.state import TimeFormat, Window

_UNITS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))


def moment_text(
    ns: int, step: int, style: TimeFormat, report: Report | None = None, origin: int = 0
) -> str:
    """Writes a moment, as finely as ``step`` needs.

    Args:
        ns: the moment, ns since session start.
        step: what one column or one digit stands for, ns.
        style: ``AUTO`` gives seconds since session start, ``NS`` whole nanoseconds, ``ABSOLUTE``
            the UTC time of day where known, ``RELATIVE`` the distance to ``origin``.
        report: for ``ABSOLUTE``.
        origin: for ``RELATIVE``, usually the cursor or the window's start.
    """
    if style is TimeFormat.NS:
        return f"{ns} ns"
    start = report.metadata.session_start_utc_ns if report else None
    if style is TimeFormat.ABSOLUTE and start is not None:
        return _clock(start + ns, _decimals(step, 1_000_000_000))
    if style is TimeFormat.RELATIVE:
        scale, unit = _unit_for(abs(ns - origin))
        return f"{(ns - origin) / scale:+.{_decimals(step, scale)}f} {unit}"
    return f"{_fixed(ns, _decimals(step, 1_000_000_000))} s"


def window_text(window: Window, style: TimeFormat, report: Report | None = None) -> str:
    """Writes a window: ``2.100-2.155 s``; digits follow its width."""
    step = max(1, window.width // 1000)
    start = moment_text(window.start, step, style, report, window.start)
    end = moment_text(window.end, step, style, report, window.start)
    unit = end.rpartition(" ")[2]
    return f"{start.removesuffix(' ' + unit)}-{end}" if " " in end else f"{start}-{end}"


def _unit_for(ns: int) -> tuple[int, str]:
    return next(((scale, unit) for scale, unit in _UNITS if ns >= scale), _UNITS[-1])


def _decimals(step: int, scale: int) -> int:
    return max(0, len(str(scale)) - len(str(max(step, 1))))


def _fixed(ns: int, decimals: int) -> str:
    """Seconds with a fixed number of decimals, computed on integers."""
    quantum = 10 ** (9 - decimals)
    rounded = (abs(ns) + quantum // 2) // quantum
    whole, part = divmod(rounded, 10**decimals)
    sign = "-" if ns < 0 and rounded else ""
    return f"{sign}{whole}.{part:0{decimals}d}" if decimals else f"{sign}{whole}"


def _clock(utc_ns: int, decimals: int) -> str:
    seconds, rest = divmod(utc_ns, 1_000_000_000)
    try:
        text = datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return f"{utc_ns} ns"
    return f"{text}.{rest:09d}"[: len(text) + 1 + decimals] if decimals else text
