"""Work in the background makes way, and is forgotten when it is done."""

from __future__ import annotations

import sys
import weakref

from nsys_tui.ui.working import once, take_turns


class Held:
    """Stands for what a job refers to."""


def test_threads_make_way_sooner_than_by_default() -> None:
    before = sys.getswitchinterval()
    try:
        take_turns()
        assert 0 < sys.getswitchinterval() < before
    finally:
        sys.setswitchinterval(before)


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
