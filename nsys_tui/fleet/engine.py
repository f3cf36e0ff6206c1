"""Where the map step runs: in this process or in a pool of local ones; ``cluster`` has another.

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
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from queue import Empty, SimpleQueue
from typing import TypeAlias

from nsys_tui.fleet.mapping import Opening, Task, map_report
from nsys_tui.fleet.summary import Failure, ReportSummary

Result: TypeAlias = ReportSummary | Failure
Done: TypeAlias = tuple[str, Result] | None
"""A path and its result; None says only that the work goes on."""
Engine: TypeAlias = Callable[[Sequence[Task], Opening], Iterator[Done]]

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
    finished: SimpleQueue[Future[Result]] = SimpleQueue()
    pool = ProcessPoolExecutor(min(workers, len(tasks)), context, _leave_with_parent)
    try:
        with _interrupts_ignored():
            waiting: dict[Future[Result], str] = {}
            for task in tasks:
                future = pool.submit(map_report, *task, opening)
                waiting[future] = task.path
                future.add_done_callback(finished.put)  # wait() looks at all of them every time
        while waiting:
            try:
                future = finished.get(timeout=PULSE)
            except Empty:
                yield None
                continue
            result = future.result()
            yield waiting.pop(future), result
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
