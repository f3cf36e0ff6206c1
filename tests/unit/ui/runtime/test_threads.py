"""Work in the background makes way, and is forgotten when it is done."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from nsys_tui.ui.runtime.threads import background, once, take_turns

running: ContextVar[Held] = ContextVar("running")


class Held:
    """Stands for what a job refers to."""


def test_threads_make_way_sooner_than_by_default() -> None:
    before = sys.getswitchinterval()
    try:
        take_turns()
        assert 0 < sys.getswitchinterval() < before
    finally:
        sys.setswitchinterval(before)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_work_in_the_background_steps_back_with_the_threads_that_it_starts() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def of_both() -> tuple[int, int]:
        with ThreadPoolExecutor() as second:
            return niceness(), second.submit(niceness).result()

    before = niceness()
    with background() as pool:
        own, started = pool.submit(of_both).result()
    assert before < own == started
    assert niceness() == before


def test_a_job_runs_and_is_forgotten() -> None:
    held, ran = Held(), []
    alive = weakref.ref(held)

    def job(of: Held = held) -> None:
        ran.append(of is not None)

    run = once(job)
    del held, job
    assert alive() is not None
    run()
    assert ran == [True]
    assert alive() is None


def test_an_idle_thread_keeps_nothing_of_what_a_job_set() -> None:
    def job() -> weakref.ref[Held]:
        held = Held()
        running.set(held)
        return weakref.ref(held)

    with background() as pool:
        alive = pool.submit(job).result()
        end = time.monotonic() + 10
        while alive() is not None and time.monotonic() < end:
            time.sleep(0.01)
        assert alive() is None
