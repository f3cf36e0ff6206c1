"""What a thread that works on beside the GPU would be waited for nevertheless."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from planted import FULL, MS, STEPS, US, bare
from synth import Synth

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.held import held, without_held
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import verdict
from nsys_tui.model import intervals
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding

LOADER = 99
COPY = 3 * MS // 2


def loading(
    path: Path,
    *,
    copies: int = COPY,
    asked: bool = False,
    seen: bool = True,
    signals: bool = True,
    polls: bool = False,
    name: str = "next(batch)",
    uneven: bool = False,
    delay: int = 0,
) -> Synth:
    """Steps that wait for their batch, copy it and compute 5 ms on it.

    Args:
        path: of the report.
        copies: how long the copy of a batch takes, ns.
        asked: the loader begins when it is asked and takes 3 ms; else it works on, 10 ms a batch.
        seen: what the loader does is recorded.
        signals: the loader wakes the other when a batch is ready; else it spins for something else.
        polls: it calls poll all the time.
        name: of the range in which the step waits.
        uneven: some steps compute up to 2 ms longer, and some batches come up to 1 ms later.
        delay: each third step waits so long, and no other one, whatever the loader does, ns.
    """
    synth, now, last = bare(path).thread(LOADER, "loader"), 0, 0
    for step in range(STEPS):
        late = step * step % 5 * 200 * US * uneven  # a loader is no clock
        begin, ready = now, now + 3 * MS if asked else (step + 1) * 10 * MS + late
        ready = now + (delay if step % 3 == 1 else 20 * US) if delay else ready
        synth.osrt("pthread_cond_timedwait", begin, ready).nvtx(name, begin, ready)
        if signals and not asked and seen:
            synth.osrt("pthread_cond_signal", ready - 2 * US, ready, tid=LOADER)
        corr = synth.next_correlation()
        synth.api("cudaMemcpyAsync", ready, ready + US, corr=corr)
        if copies:
            synth.memcpy(ready + 2 * US, ready + copies, bytes=24_000_000, corr=corr)
        begun = ready + max(copies, 3 * US)
        now = ready + copies + 5 * MS + step * step % 7 * 300 * US * uneven
        synth.launch(f"k{step % 3}", (ready + US, ready + 2 * US), (begun, now), grid=FULL)
        synth.api("cudaDeviceSynchronize", ready + 3 * US, now).nvtx(f"step {step}", begin, now)
        if seen and asked:
            synth.sched(begin, True, tid=LOADER).sched(ready, False, tid=LOADER)
            synth.osrt("pthread_cond_wait", last, begin, tid=LOADER)
        last = ready
    for number in range(STEPS * 100 * polls):
        synth.osrt("poll", number * 100 * US, number * 100 * US + 20 * US, tid=LOADER)
    if seen and not asked:
        synth.sched(0, True, tid=LOADER).sched(STEPS * 10 * MS, False, tid=LOADER)
    return synth


def found(path: Path, **how: Any) -> tuple[Case, list[Finding]]:
    case = Case(open_report(loading(path, **how).write(), use_cache=False))
    return case, find_in(case)


def copies_in(findings: list[Finding]) -> Finding:
    (one,) = [one for one in findings if one.rule == "exposed_copies"]
    return one


def test_what_a_loader_that_works_on_would_take_is_not_claimed(tmp_path: Path) -> None:
    case, findings = found(tmp_path / "run.sqlite")
    without, _ = found(tmp_path / "without.sqlite", copies=0)
    one = copies_in(findings)
    assert findings[0].title.endswith("wait: until loader wakes it")
    assert one.saved_ns == pytest.approx(case.base_ns - without.base_ns, abs=MS // 10)
    assert one.held_ns + one.saved_ns == pytest.approx(STEPS * COPY, rel=0.01)
    assert one.advice.startswith("29.96 ms once loader is quicker: copy on a stream")
    assert "copies" not in verdict(case, findings)


def test_what_two_threads_hold_is_said_once(tmp_path: Path) -> None:
    case, findings = found(tmp_path / "run.sqlite")
    (waiting,) = [one for one in findings if one.held is not None]
    told = copies_in(findings)
    fresh = replace(told, saved_ns=told.saved_ns + told.held_ns, held_ns=0, advice="copy: twice")
    *_, one = without_held(case, [waiting, waiting, fresh])
    assert one.advice == "29.96 ms once loader is quicker: copy: twice"
    assert one.held_ns + one.saved_ns == fresh.saved_ns


@pytest.mark.parametrize("held_up", [False, True])
def test_what_passes_while_a_thread_is_waited_for_does_not_have_most_of_the_time(
    held_up: bool, tmp_path: Path
) -> None:
    case, findings = found(tmp_path / "run.sqlite")
    long = 6 * case.judged_ns // 10
    one = replace(copies_in(findings), stake_ns=long, held_ns=long * held_up)
    assert ("Most of the time (60.0%) is copies" in verdict(case, [one])) != held_up


def test_where_nothing_of_the_gaps_can_be_had_no_thread_holds_it_up(tmp_path: Path) -> None:
    case, _ = found(tmp_path / "run.sqlite")
    thread = int(case.report.api.threads[0])
    assert held(case, thread, intervals.empty(), "load") is None


def test_a_loader_that_begins_when_it_is_asked_takes_nothing(tmp_path: Path) -> None:
    case, findings = found(tmp_path / "run.sqlite", asked=True)
    without, _ = found(tmp_path / "without.sqlite", copies=0, asked=True)
    one = copies_in(findings)
    assert one.saved_ns == pytest.approx(case.base_ns - without.base_ns, rel=0.05)
    assert (one.held_ns, one.severity) == (0, Severity.HIGH)
    assert "copies not hidden" in verdict(case, findings)


def test_beside_waits_for_data_of_a_loader_that_is_not_recorded_nothing_is_claimed(
    tmp_path: Path,
) -> None:
    case, findings = found(tmp_path / "run.sqlite", seen=False)
    one = copies_in(findings)
    assert (one.saved_ns, one.severity) == (0, Severity.MEDIUM)
    assert one.advice.startswith("29.96 ms once its data come sooner: ")
    assert one.stake_ns == pytest.approx(STEPS * COPY, rel=0.01)
    assert "copies" not in verdict(case, findings)


def test_a_wait_that_always_lasts_the_same_is_a_delay_that_holds_nothing_up(tmp_path: Path) -> None:
    delayed, findings = found(tmp_path / "d", seen=False, uneven=True, delay=5 * MS)
    one = copies_in(findings)
    copied = STEPS * (COPY - 2 * US)
    assert (one.saved_ns, one.held_ns) == (pytest.approx(copied, rel=0.01), 0)
    late = next(one for one in findings if one.rule == "gpu_idle")
    delays = len(range(1, STEPS, 3))
    assert late.title.startswith("GPU 0 idle 35.")
    assert f"in {delays} of {STEPS} steps, wait: pthread_cond_timed" in late.title
    assert late.saved_ns == pytest.approx(delays * 5 * MS, rel=0.02)
    assert "data come sooner" not in verdict(delayed, findings)
    # Where the wait ends when a batch is ready, it lasts the longer the less a step computes.
    _, findings = found(tmp_path / "l", seen=False, uneven=True)
    assert copies_in(findings).saved_ns == 0


@pytest.mark.parametrize("polls", [False, True])
def test_a_thread_that_merely_spins_beside_the_waits_leaves_prices_alone(
    polls: bool, tmp_path: Path
) -> None:
    _, findings = found(tmp_path / "r.sqlite", signals=False, polls=polls, name="reduce")
    one = copies_in(findings)
    assert one.saved_ns == pytest.approx(STEPS * COPY, rel=0.01)
    assert one.held_ns == 0


def writing(path: Path, *, copies: int = COPY, reduces: int = 0, waits: bool = False) -> Synth:
    """Two ranks that write a file for 6 ms before they launch a copy, 2 ms of work, a reduction.

    Args:
        path: of the report.
        copies: how long the copy takes, ns.
        reduces: how long the reduction takes, ns.
        waits: the host waits for the GPU then; else it writes on beside it.
    """
    synth = Synth(path)
    for rank in range(2):
        synth.process(10 + rank, f"rank {rank}").gpu(rank)
        where: dict[str, Any] = {"device": rank, "context": rank + 1}
        begin = 0
        for step in range(STEPS):
            call = begin + 6 * MS
            synth.osrt("write", begin, call)
            corr, copied = synth.next_correlation(), call + 10 * US + copies
            if copies:
                synth.api("cudaMemcpyAsync", call, call + 3 * US, corr=corr)
                synth.memcpy(call + 10 * US, copied, bytes=24_000_000, corr=corr, **where)
            works, done = copied + 2 * MS, copied + 2 * MS + reduces
            name = ("gemm", "softmax")[step % 2]
            synth.launch(name, (call + 4 * US, call + 7 * US), (copied, works), grid=FULL, **where)
            asked, until = call + 11 * US, call + 15 * US
            if reduces:
                synth.launch("ncclDevKernel_AllReduce", (asked, until), (works, done), **where)
            if waits:
                until = done
                synth.api("cudaStreamSynchronize", asked + 4 * US, done)
            synth.nvtx(f"step {step}", begin, until)
            begin = until + 5 * US
    return synth


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(("rule", "most"), [("exposed_copies", "copies"), ("", "reduces")])
def test_what_gpus_do_while_the_host_works_on_without_waiting_gives_nothing_back(
    rule: str, most: str, waits: bool, tmp_path: Path
) -> None:
    how = {"copies": 0, most: COPY}
    run = writing(tmp_path / "r.sqlite", waits=waits, **how).write()
    less = writing(tmp_path / "l.sqlite", waits=waits, **how | {most: 0}).write()
    case, without = (Case(open_report(path, use_cache=False)) for path in (run, less))
    findings = find_in(case)
    (one,) = [one for one in findings if one.rule == (rule or "exposed_communication")]
    gain = case.base_ns - without.base_ns
    assert gain == pytest.approx(STEPS * COPY if waits else 0, abs=2 * MS)
    assert one.saved_ns == pytest.approx(gain, abs=2 * MS)
    assert findings[0].title.startswith("GPU 0 and others idle")
