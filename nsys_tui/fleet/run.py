"""One door to a fleet: summaries from the cache where they are kept, the others from an engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from nsys_tui.errors import NsysTuiError, UnreadableReportError
from nsys_tui.fleet import store
from nsys_tui.fleet.engine import here, local_pool
from nsys_tui.fleet.fleet import Clock, Fleet, reduce
from nsys_tui.fleet.mapping import Opening
from nsys_tui.fleet.summary import Failure, Options, ReportSummary

if TYPE_CHECKING:
    from nsys_tui.fleet.engine import Engine, Result

Told: TypeAlias = Callable[[str, "Result", int, int], None]
"""Called as ``told(path, result, done, total)`` after each report; raising in it stops the run."""


def run_fleet(
    paths: Sequence[Path],
    options: Options | None = None,
    *,
    engine: Engine | None = None,
    workers: int = 1,
    opening: Opening | None = None,
    clock: Clock = Clock.AUTO,
    told: Told | None = None,
) -> Fleet:
    """Summarises reports and puts the summaries together.

    Every summary is kept as soon as it is there, so that a run that is stopped loses only what was
    under way.

    Args:
        paths: reports, in an order that decides ranks only where nothing else does.
        options: what is computed.
        engine: where; by default in ``workers`` processes of this machine.
        workers: processes; 1 stays in this one.
        opening: how reports are opened; its ``use_cache`` also decides about kept summaries.
        clock: how clocks are put together.
        told: hears of every report.

    Raises:
        UnreadableReportError: none of the reports can be read.
    """
    options, opening = options or Options(), opening or Opening()
    results: dict[str, Result] = {}
    names = [str(path.absolute()) for path in paths]

    def take(path: str, result: Result) -> None:
        results[path] = result
        if told is not None:
            told(path, result, len(results), len(names))

    missing = []
    for name in names:
        found = _known(Path(name), options, opening)
        if found is None:
            missing.append(name)
        else:
            take(name, found)
    if missing:
        chosen = engine or (local_pool(workers) if workers > 1 and len(missing) > 1 else here)
        for path, result in chosen(_largest_first(missing), options, opening):
            if opening.use_cache and isinstance(result, ReportSummary):
                store.keep(result, options)
            take(path, result)
    if names and all(isinstance(result, Failure) for result in results.values()):
        reasons = "\n".join(r.reason for r in results.values() if isinstance(r, Failure))
        raise UnreadableReportError("none of the reports can be read", reasons)
    return reduce([(name, results[name]) for name in names], options, clock)


def _known(path: Path, options: Options, opening: Opening) -> Result | None:
    """A kept summary, or a failure that needs no worker to be found."""
    try:
        return store.kept(path, options) if opening.use_cache else None
    except NsysTuiError as error:
        return Failure(str(path), str(error))


def _largest_first(paths: Sequence[str]) -> list[str]:
    """The longest work first, so that no worker is left with it at the end."""

    def size(path: str) -> int:
        try:
            return os.stat(path).st_size
        except OSError:
            return 0

    return sorted(paths, key=lambda path: -size(path))
