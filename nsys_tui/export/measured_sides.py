"""Measured sides in the user's cache folder: a report that is compared again is read in no time.

A side belongs to the file as it is (content, inode and time of change), to the part and the way it
was measured, and to a version of program, reader and side.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass, replace

from nsys_tui.analysis.compare.measure import Plan, measure
from nsys_tui.analysis.compare.side import Side
from nsys_tui.analysis.compare.side_as_data import VERSION, from_data, to_data
from nsys_tui.reader.cache import READER_VERSION, Cache, CacheFolder, Sidecar
from nsys_tui.reader.recovery import has_log


@dataclass(frozen=True)
class SideCache:
    """Where sides are kept."""

    cache: Cache | None
    """None keeps none."""
    settings: str
    """The program's version, and what the user's configuration says of analyses."""

    def measured(self, plan: Plan, label: str = "", identity: str = "") -> Side:
        """The side, measured unless it is kept; the arguments are those of ``measure``."""
        path = plan.report.path
        if self.cache is None or has_log(path):
            return measure(plan, label, identity)
        root, limit = self.cache
        key = identity.partition(" ")[0]
        sidecar = Sidecar(CacheFolder(root, "reports", f"side-{key}", limit))
        try:
            part = self._part(plan, identity)
            stored = sidecar.load(part)
            with contextlib.suppress(KeyError, TypeError, ValueError):
                if stored is not None:
                    return replace(from_data(stored[1]), label=label or plan.report.name)
            side = measure(plan, label, identity)
            sidecar.store(part, {}, to_data(side))
            return side
        finally:
            sidecar.close()

    def _part(self, plan: Plan, identity: str) -> str:
        status = plan.report.path.stat()
        told = (READER_VERSION, VERSION, identity, self.settings, plan.seed)
        file = (status.st_size, status.st_mtime_ns, status.st_ino)
        digest = hashlib.blake2b(repr((told, file, plan.steps_found)).encode(), digest_size=8)
        digest.update(plan.steps.start.tobytes() + plan.steps.end.tobytes())
        return f"side-{digest.hexdigest()}"
