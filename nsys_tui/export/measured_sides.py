"""Measured sides in the user's cache folder: a report that is compared again is read in no time.

A side belongs to the file as it is (content, inode and time of change), to the part and the way it
was measured, and to a version of program, reader and side.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from nsys_tui import analysis
from nsys_tui.analysis.compare.measure import first_look, measure
from nsys_tui.analysis.compare.plan import Plan
from nsys_tui.analysis.compare.side import Found, Side
from nsys_tui.analysis.compare.side_as_data import VERSION, from_data, to_data
from nsys_tui.config import Config
from nsys_tui.plain_data import plain, restored
from nsys_tui.reader.cache import READER_VERSION, Cache, CacheFolder, Sidecar, cache_at
from nsys_tui.reader.recovery import has_log

_NAMED: Final = 6
"""Counted up when a side holds more, or says it otherwise; files of baselines stay readable."""


@dataclass(frozen=True)
class SideCache:
    """Where sides are kept."""

    cache: Cache | None
    """None keeps none."""
    settings: str
    """The program's version, and what the user's configuration says of analyses."""

    def look(self, plan: Plan, label: str = "", identity: str = "") -> Side:
        """The side, if it is kept; else a first look at it."""
        return self._stored(plan, label, identity) or first_look(plan, label, identity)

    def measured(self, plan: Plan, label: str = "", identity: str = "") -> Side:
        """The side, measured unless it is kept; the arguments are those of ``measure``."""
        if (stored := self._stored(plan, label, identity)) is not None:
            return stored
        side = measure(plan, label, identity)
        with self._sidecar(plan, identity) as sidecar:
            if sidecar is not None:
                sidecar.store(self._part(plan, identity), {}, to_data(side))
        return side

    def findings(self, plan: Plan, identity: str = "") -> tuple[Found, ...]:
        """What the expert rules find in the part, unless it is kept."""
        from nsys_tui.analysis.rules.ranking import find

        with self._sidecar(plan, identity) as sidecar:
            part = f"findings-{_rules()}-{self._part(plan, identity)}" if sidecar else ""
            stored = sidecar.load(part) if sidecar is not None else None
            with contextlib.suppress(KeyError, TypeError, ValueError):
                if stored is not None:
                    return restored(tuple[Found, ...], stored[1]["findings"])
            findings = tuple(map(Found.of, find(plan.report, plan.scope)))
            if sidecar is not None:
                sidecar.store(part, {}, {"findings": plain(findings)})
            return findings

    def _stored(self, plan: Plan, label: str, identity: str) -> Side | None:
        with self._sidecar(plan, identity) as sidecar:
            stored = sidecar.load(self._part(plan, identity)) if sidecar is not None else None
        with contextlib.suppress(KeyError, TypeError, ValueError):
            if stored is not None:
                return replace(from_data(stored[1]), label=label or plan.report.name)
        return None

    @contextlib.contextmanager
    def _sidecar(self, plan: Plan, identity: str) -> Iterator[Sidecar | None]:
        path = plan.report.path
        if self.cache is None or has_log(path) or not path.exists():
            yield None
            return
        root, limit = self.cache
        key = identity.partition(" ")[0]
        sidecar = Sidecar(CacheFolder(root, "reports", f"side-{key}", limit))
        try:
            yield sidecar
        finally:
            sidecar.close()

    def _part(self, plan: Plan, identity: str) -> str:
        status = plan.report.path.stat()
        told = (READER_VERSION, VERSION, _NAMED, identity, self.settings, plan.seed)
        file = (status.st_size, status.st_mtime_ns, status.st_ino)
        digest = hashlib.blake2b(repr((told, file, plan.steps_found)).encode(), digest_size=8)
        digest.update(plan.steps.start.tobytes() + plan.steps.end.tobytes())
        return f"side-{digest.hexdigest()}"


def side_cache(config: Config, version: str, *, use_cache: bool) -> SideCache:
    """Where measured sides are kept, as the user's settings say."""
    cache = cache_at(config.cache.dir, config.cache.limit) if use_cache else None
    return SideCache(cache, f"{version} {config.analysis!r}")


@functools.cache
def _rules() -> str:
    """What the files of the analyses are, so that a changed rule is not told as it was."""
    digest = hashlib.blake2b(digest_size=8)
    for folder in analysis.__path__:
        for path in sorted(Path(folder).rglob("*.py")):
            status = path.stat()
            digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
