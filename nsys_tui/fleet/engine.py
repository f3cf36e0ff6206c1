"""Where the map step runs: in this process, in a pool of local ones, or on a Dask cluster.

All engines call the same function with the same arguments and hand back the same values, in the
order in which they are done.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from typing import Any, TypeAlias

from nsys_tui.errors import NsysTuiError, UsageError
from nsys_tui.fleet.mapping import Opening, Task, map_report
from nsys_tui.fleet.summary import Failure, ReportSummary

Result: TypeAlias = ReportSummary | Failure
Done: TypeAlias = tuple[str, Result] | None
"""A path and its result; None says only that the work goes on."""
Engine: TypeAlias = Callable[[Sequence[Task], Opening], Iterator[Done]]

PATIENCE = "10s"
"""How long a scheduler may take to answer."""
PATIENCE_FOR_WORKERS = "120s"
"""How long it may take until it has a worker: batch systems start them late."""
PULSE = 0.2
"""Seconds after which a pool says that the work goes on."""
_DIED = "the process that read it died: out of memory, or killed"


def default_workers() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def here(tasks: Sequence[Task], opening: Opening) -> Iterator[Done]:
    """One report after the other in this process."""
    for task in tasks:
        yield task.path, map_report(*task, opening)


def local_pool(workers: int) -> Engine:
    """Processes on this machine, started afresh so that no state of this one leaks into them."""

    def run(tasks: Sequence[Task], opening: Opening) -> Iterator[Done]:
        left = {task.path: task for task in tasks}
        try:
            for done in _pool(list(left.values()), opening, workers):
                if done is not None:
                    del left[done[0]]
                yield done
        except BrokenProcessPool:
            # One report took a worker down, and the pool with it: alone, each tells if it was it.
            for path, task in left.items():
                yield path, _alone(task, opening)

    return run


def _pool(tasks: Sequence[Task], opening: Opening, workers: int) -> Iterator[Done]:
    context = multiprocessing.get_context("spawn")
    # It inherits stderr, which inside the app is no file: pass it the real one.
    with contextlib.redirect_stderr(sys.__stderr__):
        resource_tracker.ensure_running()
    unwanted = False
    pool = ProcessPoolExecutor(min(workers, len(tasks)), context, _leave_with_parent)
    try:
        with _interrupts_ignored():
            waiting: dict[Future[Result], str] = {
                pool.submit(map_report, *task, opening): task.path for task in tasks
            }
        while waiting:
            finished = wait(waiting, timeout=PULSE, return_when=FIRST_COMPLETED).done
            for future in finished:
                result = future.result()
                yield waiting.pop(future), result
            if not finished:
                yield None
    except GeneratorExit:  # what is under way ends by itself
        unwanted = True
        raise
    finally:
        pool.shutdown(wait=not unwanted, cancel_futures=True)


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes that start meanwhile ignore Ctrl+C for good: it is their parent that stops."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave_with_parent() -> None:
    """Ends a worker when its parent is killed; it would wait for work forever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _alone(task: Task, opening: Opening) -> Result:
    try:
        return next(done for done in _pool([task], opening, 1) if done is not None)[1]
    except BrokenProcessPool:
        return Failure(task.path, _DIED)


def dask_cluster(address: str) -> Engine:
    """The workers of a Dask scheduler; they must see the same files under the same names.

    Args:
        address: of the scheduler, such as ``tcp://node1:8786``.

    Raises:
        UsageError: dask is not installed.
    """
    try:
        import distributed
    except ImportError as error:
        raise UsageError(
            "--scheduler needs dask[distributed], which is not installed",
            hint="pip install 'nsys-tui[cluster]', here and on the workers; or --workers N",
        ) from error

    def run(tasks: Sequence[Task], opening: Opening) -> Iterator[Done]:
        client = _connected(distributed, address)
        try:
            futures = {
                client.submit(map_report, *task, opening, pure=False): task.path for task in tasks
            }
            with client.as_current():
                completed: Any = distributed.as_completed
                done = completed(list(futures))
            for future in done:
                yield futures[future], _result(future, futures[future])
        finally:
            client.close()

    return run


def _connected(distributed: Any, address: str) -> Any:
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"no Dask scheduler at {address}",
            str(error),
            "start one with: dask scheduler; and workers with: dask worker ADDRESS",
        ) from error
    try:
        client.wait_for_workers(1, timeout=PATIENCE_FOR_WORKERS)
    except (OSError, TimeoutError) as error:
        client.close()
        raise UsageError(
            f"the Dask scheduler at {address} has no workers",
            hint=f"start some with: dask worker {address}",
        ) from error
    return client


def _result(future: Any, path: str) -> Result:
    try:
        found: Result = future.result()
    except NsysTuiError:
        raise
    except Exception as error:
        return Failure(path, f"the worker that read it failed: {type(error).__name__}: {error}")
    return found
