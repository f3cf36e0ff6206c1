"""The same run beside others, twice, later or seen less of: the same first finding, never a bolder.

``test_metamorphic.py`` asks as much of all that the verbs print, of the demo; this asks for the
story alone, of many small runs whose truth is planted.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import planted
import planted_programs as programs
import planted_training as training
import pytest

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from synth import Synth

    from nsys_tui.analysis.rules.finding import Finding

LATER: Final = 3600 * 10**9
THREADS: Final = ("globalTid", "globalPid")
OF_GPUS: Final = ("exposed_copies", "slow_copies", "small_copies", "memsets", "small_grids")
"""Rules whose price hangs on no event of a host but its calls of CUDA."""
WITNESSES: Final = ("OSRT_API", "SCHED_EVENTS", "COMPOSITE_EVENTS")
RUNS: Final = (
    planted.copy_bound,
    planted.flushed,
    planted.late_loader,
    planted.one_kernel,
    planted.reading_step,
    planted.sleeping_host,
    planted.slow_step,
    programs.blocking,
    programs.second_set_up,
    programs.ticking,
    training.weights_each_step,
)


def events(run: Synth) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Tables of events with their rows."""
    for table, rows in run.rows.items():
        if rows and "start" in rows[0]:
            yield table, rows


def twice(run: Synth) -> None:
    """The same processes once more, on the next GPU."""
    run.gpu(1)
    for table, rows in [*events(run), ("PROCESSES", run.rows["PROCESSES"])]:
        others = [dict(row) for row in rows]
        for row in others:
            row |= {key: row[key] + (500 << 24) for key in THREADS if row.get(key)}
            row |= {"deviceId": 1} if "deviceId" in row else {}
            row |= {"pid": row["pid"] + 500} if "pid" in row else {}
            row |= {"id": row["id"] + 10**6} if table == "COMPOSITE_EVENTS" else {}
        run.rows[table] = rows + others


def beside_an_idle_program(run: Synth) -> None:
    last = max(row["start"] for _, rows in events(run) for row in rows)
    run.process(900, "other").osrt("poll", 0, last, tid=900)


def beside_a_thread_that_asks(run: Synth) -> None:
    """Another thread of the process makes short calls of CUDA all the time."""
    last = max(row["start"] for _, rows in events(run) for row in rows)
    for start in range(0, last, max(last // 2000, 1)):
        run.api("cudaGetDevice_v3020", start + 7, start + 300, tid=77)


def later(run: Synth) -> None:
    for _, rows in events(run):
        for row in rows:
            row |= {key: row[key] + LATER for key in ("start", "end") if row.get(key) is not None}


def in_another_order(run: Synth) -> None:
    for _, rows in events(run):
        random.Random(1).shuffle(rows)


def first(findings: list[Finding]) -> tuple[str, str, str, float]:
    one = findings[0]
    return one.rule, one.subject, one.confidence, round(one.saved_ns / one.of_ns, 2)


def found(make: Callable[[Path], Synth], path: Path, way: Callable[[Synth], None]) -> list[Finding]:
    run = make(path)
    way(run)
    return find_in(Case(open_report(run.write(), use_cache=False)))


@pytest.mark.parametrize("run", RUNS)
def test_what_changes_nothing_of_a_run_changes_not_its_story(
    run: Callable[[Path], Synth], tmp_path: Path
) -> None:
    told = first(found(run, tmp_path / "r.sqlite", lambda _: None))
    ways = (twice, beside_an_idle_program, beside_a_thread_that_asks, later, in_another_order)
    after = {way.__name__: first(found(run, tmp_path / "w.sqlite", way)) for way in ways}
    assert after == dict.fromkeys(after, told)


@pytest.mark.parametrize("run", [run for run in RUNS if run is not programs.ticking])
def test_with_less_seen_of_the_host_nothing_of_the_gpu_costs_more(
    run: Callable[[Path], Synth], tmp_path: Path
) -> None:
    """But of what waits for a clock: nobody sees it then."""

    def less(synth: Synth) -> None:
        for table in WITNESSES:
            synth.rows.pop(table, None)

    def prices(findings: list[Finding]) -> dict[str, int]:
        return {one.rule: one.saved_ns for one in findings if one.rule in OF_GPUS}

    before = prices(found(run, tmp_path / "r.sqlite", lambda _: None))
    after = prices(found(run, tmp_path / "w.sqlite", less))
    assert {rule: ns for rule, ns in after.items() if ns > 1.05 * before.get(rule, 0)} == {}
