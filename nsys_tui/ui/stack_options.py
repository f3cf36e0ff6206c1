"""What the stacks screen can be asked to show, by itself and by other screens."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nsys_tui.analysis.stacks.folding import StackSource


class Order(StrEnum):
    """How siblings are laid out, or whether one frame is in the middle."""

    HEAVY = "left-heavy"
    TIME = "time"
    SANDWICH = "sandwich"


@dataclass(frozen=True)
class Options:
    """Everything that decides what is folded and how it is shown."""

    source: StackSource = StackSource.GPU
    order: Order = Order.HEAVY
    across: bool = False
    similar: bool = False
    """Frames that differ in numbers only are one."""
    addresses: bool = False
    """Addresses without a symbol are told apart, not named by their library."""
    recursion: bool = False
    small: bool = False
    thread: int | None = None
    frame: str = ""
    """Frame in the middle of a sandwich."""

    @property
    def merges(self) -> bool:
        """Whether similar frames are merged: only NVTX ranges carry numbers that tell nothing."""
        return self.similar and self.source in (StackSource.GPU, StackSource.NVTX)
