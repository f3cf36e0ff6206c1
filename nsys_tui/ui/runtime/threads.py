"""Threads of work in the background: how they make way for the one that draws.

Textual 8.2.8 runs thread workers in the loop's default pool, with the priority of everything else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import Context
from functools import partial
from threading import get_ident, get_native_id
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

TURN: Final = 0.0005
"""Seconds that a thread computes while another waits."""
STEP_BACK: Final = 5
"""Added to the niceness of a thread that computes."""


@contextmanager
def counted(jobs: set[int]) -> Iterator[None]:
    """Keeps the number of the running thread in ``jobs`` while its work lasts."""
    me = get_ident()
    jobs.add(me)
    try:
        yield
    finally:
        jobs.discard(me)


def take_turns() -> None:
    """Has threads that compute make way sooner for the one that draws.

    With Python's 5 ms a frame of forty lanes, which gives way some forty times, took 0.2 s beside a
    worker; now 0.07 s, for the same CPU time.
    """
    sys.setswitchinterval(TURN)


def background() -> ThreadPoolExecutor:
    """Threads for work in the background, which the system runs after the one that draws.

    Two of them fill two processors: of 20 openings of 5 M kernels 3 had frames of 116 to 141 ms; of
    50 with threads that step back one had 99 ms, in the same time.
    """
    return ForgettingThreads(thread_name_prefix="background", initializer=step_back)


class ForgettingThreads(ThreadPoolExecutor):
    """Threads that keep nothing of a job when it is over.

    Textual 8.2.8 sets ``active_worker`` in the thread's own context: an idle thread held the last
    worker, its screen and the closed report of that until another job came.
    """

    def submit(self, job: Callable[P, T], /, *args: P.args, **named: P.kwargs) -> Future[T]:
        """Runs the job in a context of its own."""
        return super().submit(partial(Context().run, job, *args, **named))


def step_back() -> None:
    """Lowers the priority of the running thread, and of those that it starts, where that exists."""
    if sys.platform == "linux":  # elsewhere a priority is that of the whole process
        with suppress(OSError):
            me = get_native_id()
            os.setpriority(os.PRIO_PROCESS, me, os.getpriority(os.PRIO_PROCESS, me) + STEP_BACK)


def once(job: Callable[[], None]) -> Callable[[], None]:
    """The same job, forgotten when it ran, with all that it refers to.

    A worker lies in a cycle with its task: until garbage is collected it would keep, say, lanes
    that have been replaced.
    """
    held = [job]
    return lambda: held.pop()()
