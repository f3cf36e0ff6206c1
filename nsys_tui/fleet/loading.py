"""One door to a fleet: summaries from the user's cache where they are kept, others from an engine.

So a run that was interrupted goes on where it stopped. A file's name is evidence of ranks, so a
summary belongs to content and name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from nsys_tui.errors import NO_DATA, NoDataError, NsysTuiError, UnreadableReportError
from nsys_tui.fleet.engine import Engine, Result, here, local_pool
from nsys_tui.fleet.fleet import Clock, Fleet
from nsys_tui.fleet.mapping import Opening, Task
from nsys_tui.fleet.reduction import reduce
from nsys_tui.fleet.summary import Failure, Options, ReportSummary
from nsys_tui.model.packed import pack, unpack
from nsys_tui.reader.cache import Cache, CacheFolder, Sidecar, cache_at
from nsys_tui.reader.filecheck import report_id
from nsys_tui.reader.recovery import has_log
from nsys_tui.units import Edges

Told: TypeAlias = Callable[[str, "Result", int, int], None]
"""Called as ``told(path, result, done, total)`` after each report; raising in it stops the run."""
Alive: TypeAlias = Callable[[int, int], None]
"""Called as ``alive(done, total)`` meanwhile; raising in it stops the run too."""


def run_fleet(
    paths: Sequence[Path | str],
    options: Options | None = None,
    *,
    engine: Engine | None = None,
    workers: int = 1,
    opening: Opening | None = None,
    clock: Clock = Clock.AUTO,
    window: Edges | None = None,
    given: Mapping[str, tuple[int, ...]] | None = None,
    told: Told | None = None,
    alive: Alive | None = None,
) -> Fleet:
    """Summarises reports and puts the summaries together.

    Every summary is kept as soon as it is there, so that a run that is stopped loses only what was
    under way. Ranks and clocks are those of the whole reports, whatever part of them counts.

    Args:
        paths: reports, in an order that decides ranks only where nothing else does; texts are
            names that the engine knows.
        options: what is computed.
        engine: where; by default in ``workers`` processes of this machine.
        workers: processes; 1 stays in this one.
        opening: how reports are opened; its ``use_cache`` also decides about kept summaries.
        clock: how clocks are put together.
        window: only this counts, ns on the common clock (for which all reports are read whole
            first), or on each session's own where ``clock`` is ``SESSION``.
        given: ranks that the user tells, by path.
        told: hears of every report.
        alive: hears several times a second that a pool works on.

    Raises:
        UnreadableReportError: none of the reports can be read.
    """
    options, opening = options or Options(), opening or Opening()
    names = [path if isinstance(path, str) else str(path.absolute()) for path in paths]
    run = _Run(engine, workers, opening, told, alive)
    every = options.unrestricted
    common = window is not None and clock is not Clock.SESSION
    options = replace(options, window=None if common else window)
    if not common and options == options.unrestricted:
        return reduce(run([Task(name, options) for name in names]), options, clock, given)
    whole = reduce(run([Task(name, every) for name in names]), every, clock, given)
    clocks = {member.path: member.clock for member in whole.members}
    if window is None or not common:
        tasks = [Task(path, options) for path in clocks]
        return whole.cut_to(dict(run(tasks)), options)
    lo = whole.span[0] if window[0] is None else window[0]
    hi = whole.span[1] if window[1] is None else window[1]
    tasks = [
        Task(path, replace(options, window=(clock.session_time(lo), clock.session_time(hi))))
        for path, clock in clocks.items()
    ]
    return whole.cut_to(dict(run(tasks)), replace(options, window=(lo, hi)))


@dataclass(frozen=True)
class _Run:
    """Summaries of reports, kept ones first."""

    engine: Engine | None
    workers: int
    opening: Opening
    told: Told | None
    alive: Alive | None

    def __call__(self, tasks: Sequence[Task]) -> list[tuple[str, Result]]:
        """The result of each task, in their order.

        Raises:
            UnreadableReportError: none of the reports can be read.
            NoDataError: none has the step or range that was asked for.
        """
        results: dict[str, Result] = {}

        def take(path: str, result: Result) -> None:
            results[path] = result
            if self.told is not None:
                self.told(path, result, len(results), len(tasks))

        missing = {}
        for task in tasks:
            known = _known(task, self.opening, elsewhere=self.engine is not None)
            if known is None:
                missing[task.path] = task
            else:
                take(task.path, known)
        for done in self._computed(list(missing.values())):
            if done is not None:
                path, result = done
                if self.opening.use_cache and isinstance(result, ReportSummary):
                    options = missing[path].options
                    keep(Path(path), result, options, self.opening.cache)
                take(path, result)
            elif self.alive is not None:
                self.alive(len(results), len(tasks))
        _check_any(results.values())
        return [(task.path, results[task.path]) for task in tasks]

    def _computed(self, tasks: Sequence[Task]) -> Iterable[tuple[str, Result] | None]:
        """Results as they come; None now and then while none comes."""
        if not tasks:
            return ()
        several = self.workers > 1 and len(tasks) > 1
        engine = self.engine or (local_pool(self.workers) if several else here)
        return engine(_largest_first(tasks), self.opening)


def _check_any(results: Collection[Result]) -> None:
    failures = [result for result in results if isinstance(result, Failure)]
    if not failures or len(failures) < len(results):
        return
    reasons = "\n".join(dict.fromkeys(failure.reason for failure in failures))
    if all(failure.exit_code == NO_DATA for failure in failures):
        raise NoDataError("none of the reports has what was asked for", reasons)
    raise UnreadableReportError("none of the reports can be read", reasons)


def _known(task: Task, opening: Opening, *, elsewhere: bool) -> Result | None:
    """A kept summary, or a failure that needs no worker to be found.

    Workers elsewhere may read what is not to be seen here.
    """
    try:
        if not opening.use_cache:
            return None
        return kept(Path(task.path), task.options, opening.cache)
    except NsysTuiError as error:
        return None if elsewhere else Failure(task.path, str(error))


def _largest_first(tasks: Sequence[Task]) -> list[Task]:
    """The longest work first, so that no worker is left with it at the end."""

    def size(task: Task) -> int:
        try:
            return os.stat(task.path).st_size
        except OSError:
            return 0

    return sorted(tasks, key=lambda task: -size(task))


def kept(path: Path, options: Options, cache: Cache | None = None) -> ReportSummary | None:
    """The summary of a report of the same content and name, with the same options; None if absent.

    Raises:
        UnreadableReportError: the report cannot be read.
    """
    if has_log(path):
        return None
    sidecar = _sidecar(report_id(path), cache)
    try:
        stored = sidecar.load(_part(path, options))
        return None if stored is None else unpack(ReportSummary, *stored)
    except (KeyError, TypeError, ValueError, IndexError):
        return None
    finally:
        sidecar.close()


def keep(path: Path, summary: ReportSummary, options: Options, cache: Cache | None = None) -> None:
    """Stores a summary; a full or read-only disk costs only time later."""
    if has_log(path):
        return
    sidecar = _sidecar(summary.report_id, cache)
    try:
        sidecar.store(_part(path, options), *pack(summary))
    finally:
        sidecar.close()


def _sidecar(key: str, cache: Cache | None) -> Sidecar:
    root, limit = cache or cache_at()
    return Sidecar(CacheFolder(root, "reports", f"fleet-{key}", limit))


def _part(path: Path, options: Options) -> str:
    name = hashlib.blake2b(os.fsencode(path.stem), digest_size=8).hexdigest()
    return f"summary-{options.key()}-{name}"
