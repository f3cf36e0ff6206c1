"""How much a problem matters: by the part of the time looked at, and by the time itself."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from nsys_tui.model.events import Int64


class Severity(StrEnum):
    """High, medium or low, in words that need no colour."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def letter(self) -> str:
        """H, M or L."""
        return self.value[0].upper()

    @property
    def rank(self) -> int:
        """2 for high, 1 for medium, 0 for low."""
        return 2 - list(Severity).index(self)


HIGH_SHARE: Final = 0.01
MEDIUM_SHARE: Final = 0.001
"""Parts of the span (or window) from which a problem counts as high or medium."""
HIGH_NS: Final = 1_000_000
MEDIUM_NS: Final = 100_000
"""Times below which it does not, however short the run is."""


def severity(saved_ns: int, base_ns: int) -> Severity:
    """Severity of a problem that costs ``saved_ns`` of ``base_ns``."""
    return list(Severity)[2 - int(ranks(np.array([saved_ns], np.int64), base_ns)[0])]


def ranks(saved_ns: Int64, base_ns: int) -> Int64:
    """The rank of the severity of many: int64 [n], 2 for high, 1 for medium, 0 for low."""
    share = saved_ns / base_ns if base_ns > 0 else np.zeros(len(saved_ns))
    high = (share >= HIGH_SHARE) & (saved_ns >= HIGH_NS)
    medium = (share >= MEDIUM_SHARE) & (saved_ns >= MEDIUM_NS)
    found: Int64 = np.maximum(2 * high.astype(np.int64), medium)
    return found
