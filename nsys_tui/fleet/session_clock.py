"""SessionClock: from the times of one session to those of the fleet and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from nsys_tui.model.events import Int64


class SessionClock(NamedTuple):
    """How the times of a session become fleet times."""

    offset: int
    """ns to add at the session's zero."""
    drift: float = 0.0
    """ns to add for each ns since."""
    residual: int | None = None
    """Three of four ends of its collectives are closer to those of the other ranks, ns; None where
    it shares none with another session."""
    aligned: bool = True
    """Whether it may be compared with other sessions to the residual."""

    @property
    def fitted(self) -> bool:
        """Whether it shares collectives with other sessions, and these end together."""
        return self.aligned and self.residual is not None

    def fleet(self, times: Int64) -> Int64:
        """Fleet times of times of the session."""
        if not self.drift:
            return times + self.offset
        return np.asarray(times + self.offset + np.rint(times * self.drift).astype(np.int64))

    def fleet_time(self, time: int) -> int:
        """Fleet time of one moment of the session."""
        return time + self.offset + round(time * self.drift)

    def session_time(self, time: int) -> int:
        """Time of the session at a fleet time."""
        return round((time - self.offset) / (1 + self.drift)) if self.drift else time - self.offset
