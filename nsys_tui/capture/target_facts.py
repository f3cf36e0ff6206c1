"""What is known about the place where a capture would run, as far as advice depends on it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nsys_tui.capture.own_help import OwnOption

_SCOPE = re.compile(r"CPU Profiling.*\((process-tree|system-wide)\).*\bfail", re.IGNORECASE)
_VERSION = re.compile(r"(\d{4})\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True)
class Facts:
    """Findings of the preflight; ``None`` means not known (yet).

    Attributes:
        nsys_version: (year, release, patch) of the nsys found there.
        options: what this nsys says of its options, by long names; empty = not known.
        paranoid: ``/proc/sys/kernel/perf_event_paranoid``.
        root: whether the user there is root.
        gpu_admin_only: whether the driver keeps GPU counters to administrators.
        refused_scopes: ``process-tree`` and ``system-wide`` as far as ``nsys status -e`` says that
            the CPU cannot be profiled so.
    """

    nsys_version: tuple[int, int, int] | None = None
    options: Mapping[str, OwnOption] = field(default_factory=dict)
    paranoid: int | None = None
    root: bool | None = None
    gpu_admin_only: bool | None = None
    refused_scopes: frozenset[str] = frozenset()

    @property
    def version(self) -> str:
        """The version for a reader; empty = not known."""
        return ".".join(map(str, self.nsys_version or ()))


def parse_version(text: str) -> tuple[int, int, int] | None:
    """Finds the version in what ``nsys --version`` prints, such as ``2024.5.1.113-…``."""
    match = _VERSION.search(text)
    if match is None:
        return None
    return int(match[1]), int(match[2]), int(match[3] or 0)


def refused_scopes(status: Iterable[str]) -> frozenset[str]:
    """Finds the scopes of CPU profiling that the lines of ``nsys status -e`` call a failure."""
    return frozenset(match[1].lower() for line in status if (match := _SCOPE.search(line)))
