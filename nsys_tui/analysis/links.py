"""Permalinks: a report with a place in it, ``report.sqlite#2.1s-2.3s/GPU0/7``.

After the last ``#`` stand a window, a GPU by the number that the overview shows, and the number key
of a screen; each may be left out. Times are exact to the nanosecond.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsys_tui.units import NS_PER, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_tui.analysis.rules.finding import Finding
    from nsys_tui.model.report import Report

_TIME: Final = r"-?\d+(?:\.\d+)?(?:ns|us|ms|s)"
_PLACE: Final = re.compile(
    rf"(?:(?P<start>{_TIME})-(?P<end>{_TIME}))?"
    r"(?:(?:^|/)GPU(?P<device>\d+))?(?:(?:^|/)(?P<screen>\d))?",
    re.ASCII,
)
_LIKE_A_PLACE: Final = re.compile(r"[-\d.]+(ns|us|ms|s)\b|/?GPU", re.ASCII)
TIMELINE: Final = "2"
"""Number key of the screen that shows a window best."""


@dataclass(frozen=True)
class Place:
    """Where in a report somebody looks."""

    window: tuple[int, int] | None = None
    """[start, end) in ns."""
    device: int | None = None
    """Number of a GPU, as the overview shows it."""
    screen: str = ""
    """Number key of a screen."""

    def __str__(self) -> str:
        parts = [] if self.window is None else ["-".join(map(exact_time, self.window))]
        parts += [] if self.device is None else [f"GPU{self.device}"]
        parts += [self.screen] if self.screen else []
        return "/".join(parts)

    def options(self) -> list[str]:
        """The same as options of a verb."""
        times = "/".join(map(exact_time, self.window or ()))
        words = {"--window": times, "--device": "" if self.device is None else str(self.device)}
        return [f"{name}={value}" for name, value in words.items() if value]


def exact_time(ns: int) -> str:
    """A time that reads back as the same nanosecond: ``2.1s``, ``-350us``, ``0s``."""
    unit = next((name for name in ("s", "ms", "us") if abs(ns) >= NS_PER[name]), "ns")
    if not ns:
        return "0s"
    whole, rest = divmod(abs(ns), NS_PER[unit])
    digits = f"{rest:0{len(str(NS_PER[unit])) - 1}d}".rstrip("0") if rest else ""
    return f"{'-' if ns < 0 else ''}{whole}{'.' if digits else ''}{digits}{unit}"


def parse_place(text: str) -> Place | None:
    """Reads what stands after the ``#``; None where that is no place."""
    match = _PLACE.fullmatch(text)
    if match is None or not text:
        return None
    start, end, device = match["start"], match["end"], match["device"]
    window = None if start is None else (parse_duration(start), parse_duration(end))
    if window is not None and window[1] <= window[0]:
        return None
    return Place(window, None if device is None else int(device), match["screen"] or "")


def split_link(text: str, is_file: Callable[[str], bool]) -> tuple[str, Place | None]:
    """The file and the place that a link names; a file of that whole name comes first.

    Args:
        text: what the user gave, such as ``a.sqlite#1s-2s``; ``#`` may stand in the file's name.
        is_file: whether a name is one of a file.

    Returns:
        The name and the place; the text itself and None where it is no link.
    """
    name, sign, place = text.rpartition("#")
    if not sign or not name or is_file(text):
        return text, None
    target = parse_place(place)
    return (text, None) if target is None else (name, target)


def looks_like_link(text: str) -> bool:
    """Whether a name that is no file may have been meant as a link."""
    _, sign, place = text.rpartition("#")
    return bool(sign and _LIKE_A_PLACE.match(place))


def link(name: str, place: Place) -> str:
    """The link to a place in a report of that name; the name alone for no place."""
    where = str(place)
    return f"{name}#{where}" if where else name


def finding_link(report: Report, finding: Finding) -> str:
    """The link to where a finding shows."""
    return evidence_link(report, finding.window, finding.device, finding.screen)


def evidence_link(
    report: Report, window: tuple[int, int] | None, place: int | None, screen: str = TIMELINE
) -> str:
    """The link to some time on a device.

    Args:
        report: the report.
        window: [start, end) in ns, or None.
        place: of the device in ``Report.devices``; None or -1 for none.
        screen: number key of the screen that opens.
    """
    known = place is not None and 0 <= place < len(report.devices)
    device = report.devices[place].number if known and place is not None else None
    wide = window if window is not None and window[1] > window[0] else None
    return link(report.name, Place(wide, device, screen))
