"""How much a problem matters: by the part of the time looked at, and by the time itself."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


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
    share = saved_ns / base_ns if base_ns > 0 else 0.0
    if share >= HIGH_SHARE and saved_ns >= HIGH_NS:
        return Severity.HIGH
    return Severity.MEDIUM if share >= MEDIUM_SHARE and saved_ns >= MEDIUM_NS else Severity.LOW
