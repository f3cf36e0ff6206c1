"""Idle gaps told by the calls around them, by pages and files, and those that are of copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from machine import Machine
from planted import MS, US

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Severity
from nsys_tui.analysis.rules.ranking import find_in
from nsys_tui.analysis.rules.verdict import COPIES, parts, verdict
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsys_tui.analysis.rules.finding import Finding

LARGE = 8_000_000
PIECE = 16 << 20


def found(run: Machine) -> list[Finding]:
    return find_in(Case(open_report(run.report.write(), use_cache=False)))


def waits(run: Machine) -> None:
    run.wait()


def reads(run: Machine) -> None:
    run.copy(LARGE, 12, "DtoH")


def reads_and_frees(run: Machine) -> None:
    reads(run)
    run.call("cudaFree_v3020", 20 * US)


def reads_a_little(run: Machine) -> None:
    run.wait()
    run.copy(8, 1, "DtoH")


def uploads(run: Machine) -> None:
    run.copy(LARGE, 12, "HtoD")


def uploads_late(run: Machine) -> None:
    run.now += 2 * MS
    uploads(run)


def reads_soon(run: Machine) -> None:
    run.now += 2 * MS
    reads_a_little(run)


@pytest.mark.parametrize(
    ("ends", "where", "advice"),
    [
        (waits, " after cudaDeviceSynchronize", "wait later"),
        (reads, " after cudaMemcpy", "launch the next batch before working on these results"),
        (reads_and_frees, " between cudaFree and cudaMalloc", "record what it does"),
        (reads_a_little, " after cudaMemcpy", "read results later, or many at once"),
        (reads_soon, " after cudaMemcpy", "launch ahead of what the host computes here"),
        (uploads, " after cudaMemcpy", "launch ahead: cudaMemcpy empties the queue first"),
        (uploads_late, " after cudaMemcpy", "record what it does"),
    ],
)
def test_an_unseen_host_is_told_by_the_calls_around_its_time(
    ends: Callable[[Machine], None], where: str, advice: str, tmp_path: Path
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.call("cudaMalloc_v3020", 20 * US)
        run.launch("sweep", 2 * MS)
        ends(run)
        run.now += 4 * MS
    first = found(run)[0]
    assert first.title.endswith(f"gaps{where}, nothing recorded")
    assert first.advice.startswith(advice)


@pytest.mark.parametrize("since", [0, 3 * MS])
def test_unseen_time_right_before_code_is_loaded_was_likely_spent_on_compiling(
    since: int, tmp_path: Path
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("sweep", 2 * MS)
        run.wait()
        run.now += 4 * MS - since
        run.call("cuModuleLoadData", 100 * US)
        run.now += since
    (one,) = [one for one in found(run) if one.rule == "gpu_idle" and one.lost is not None]
    assert one.title.endswith(", before code is loaded") is (not since)
    assert one.advice.startswith("code is loaded there") is (not since)
    assert one.severity is (Severity.HIGH if since else Severity.MEDIUM)


@pytest.mark.parametrize("sets_up", [0, 60 * MS])
def test_a_call_that_sets_cuda_up_is_no_wait_for_the_gpu(sets_up: int, tmp_path: Path) -> None:
    run = Machine(tmp_path / "r.sqlite")
    run.call("cudaMemcpyToSymbol_v3020", sets_up)
    for _ in range(100):
        run.launch("sweep", 20 * US)
        run.copy(2_500, 1, "DtoH")
        run.now += 300 * US
    assert not any("wait later" in one.advice for one in found(run))


def trains(path: Path, size: Callable[[int], int], host: int, *, rounds: int) -> Machine:
    """Kernels on arrays that come in pieces, each after the host had some time for it."""
    run = Machine(path)
    for _ in range(rounds):
        for number in range(8):
            run.now += host
            run.copy(size(number), 24, "HtoD")
        run.launch("sweep", MS)
        run.wait()
    return run


def staged(findings: list[Finding]) -> list[Finding]:
    return [one for one in findings if one.subject == "copies not hidden, and staging them"]


@pytest.mark.parametrize(
    ("size", "host"),
    [
        (lambda _: PIECE, 8 * MS),
        (lambda number: PIECE + number, 1_600 * US),
        (lambda _: 64 << 10, 6 * US),
    ],
)
def test_copies_that_differ_or_come_late_are_no_pieces(
    size: Callable[[int], int], host: int, tmp_path: Path
) -> None:
    assert not staged(found(trains(tmp_path / "r.sqlite", size, host, rounds=6)))


def test_pieces_of_a_train_and_the_time_between_them_are_one_sum(tmp_path: Path) -> None:
    findings = found(trains(tmp_path / "r.sqlite", lambda _: PIECE, 1_600 * US, rounds=6))
    assert staged(findings) == findings[:1]
    copy, between = PIECE // 24, 1_600 * US
    assert findings[0].saved_ns == pytest.approx(5 * 8 * (copy + between), rel=0.05)
    assert findings[0].stake_ns == pytest.approx(6 * 8 * (copy + between), rel=0.05)
    assert "keep the data on the GPU" in findings[0].advice


def test_time_between_pieces_is_bound_by_copies(tmp_path: Path) -> None:
    run = trains(tmp_path / "r.sqlite", lambda _: PIECE, 1_600 * US, rounds=6)
    case = Case(open_report(run.report.write(), use_cache=False))
    time = {part.name: part.ns for part in parts(case, find_in(case))}
    assert time[COPIES] == pytest.approx(6 * 8 * (PIECE // 24 + 1_600 * US), rel=0.05)


@pytest.mark.parametrize(("leaf", "copies"), [("__memcpy_avx", True), ("adam_step", False)])
def test_no_pieces_are_staged_while_samples_hit_what_is_no_copy(
    leaf: str, copies: bool, tmp_path: Path
) -> None:
    run = trains(tmp_path / "r.sqlite", lambda _: PIECE, 1_600 * US, rounds=6)
    for at in range(US, run.now, MS):
        run.report.sample(at, (leaf, "main"))
    assert bool(staged(found(run))) is copies


def test_what_is_staged_once_has_no_price(tmp_path: Path) -> None:
    (one,) = staged(found(trains(tmp_path / "r.sqlite", lambda _: PIECE, 1_600 * US, rounds=1)))
    assert (one.saved_ns, one.advice.split(",")[0]) == (0, "copy up only what kernels read")


@pytest.mark.parametrize(("rounds", "priced"), [(1, False), (6, True)])
def test_staged_results_cost_no_more_than_pinning_their_memory(
    rounds: int, priced: bool, tmp_path: Path
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(rounds):
        run.launch("sweep", 20 * MS)
        for _ in range(8):
            run.copy(PIECE, 24, "DtoH")
            run.now += 1_600 * US
    (copies,) = [one for one in found(run) if one.rule == "exposed_copies"]
    assert (copies.saved_ns > 0) is priced


@pytest.mark.parametrize("at", [100 * US, 3 * MS])
@pytest.mark.parametrize(("cause", "touched"), [(2, True), (1, False)])
def test_a_host_works_on_pages_that_come_to_it_before_or_after(
    at: int, cause: int, touched: bool, tmp_path: Path
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("sweep", 2 * MS)
        run.wait()
        if not touched:
            run.call("cudaMemPrefetchAsync_v8000", 10 * US)
        come = run.now + at
        run.report.memcpy(come, come + 20 * US, kind="UVM DtoH", bytes=65536, migrationCause=cause)
        run.now += 4 * MS
    first = found(run)[0]
    assert first.title.endswith("nothing recorded while pages come to the host") is touched
    assert first.advice.startswith("the host works on pages") is touched


@pytest.mark.parametrize(("later", "told"), [(0, False), (1, True)])
def test_one_long_gap_is_of_pages_where_they_come_at_both_of_its_ends(
    later: int, told: bool, tmp_path: Path
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("sweep", 2 * MS)
        run.wait()
    for at in (run.now + MS, run.now + 60 * MS)[: 1 + later]:
        run.report.memcpy(at, at + 20 * US, kind="UVM DtoH", bytes=65536, migrationCause=2)
    run.now += 61 * MS
    run.launch("sweep", 2 * MS)
    one = max(found(run), key=lambda one: one.stake_ns)
    assert one.title.startswith("GPU 0 idle 6")
    assert ("pages come to the host" in one.title) is told


@pytest.mark.parametrize(
    ("pauses", "lasts", "apart"),
    [([15], 60, True), ([15], 5, False), ([9, 15, 21], 20, True), ([*range(3, 30, 3)], 20, False)],
)
def test_few_gaps_far_longer_than_the_many_others_are_told_apart(
    pauses: list[int], lasts: int, apart: bool, tmp_path: Path
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for number in range(31):
        run.launch("sweep", 2 * MS)
        run.wait()
        run.now += lasts * MS if number in pauses else MS
    case = Case(open_report(run.report.write(), use_cache=False))
    findings = [one for one in find_in(case) if "nothing recorded" in one.title]
    told = sorted(round(one.stake_ns, -6) // MS for one in findings)
    few, many = len(pauses) * lasts, 30 - len(pauses)
    assert told == (sorted((few, many)) if apart else [few + many])
    assert ("in one gap" in verdict(case, findings)) is (apart and len(pauses) == 1)


@pytest.mark.parametrize(("shapes", "once"), [(4, True), (9, False)])
def test_what_is_compiled_for_each_new_shape_is_one_cause_whatever_the_host_waits_for(
    shapes: int, once: bool, tmp_path: Path
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(shapes):
        run.now += 20 * MS
        run.off("waitpid", 30 * MS)
        run.call("cuModuleLoadData", MS)
        for _ in range(20):
            run.launch("sweep", MS)
            run.wait()
    first = max(found(run), key=lambda one: one.weight_ns)
    assert first.rule == ("warm_up" if once else "gpu_idle")
    assert first.weight_ns == pytest.approx((shapes - 1) * 51 * MS, rel=0.02)
    assert once or "waitpid" not in first.subject  # What came once is said with its longest call.


@pytest.mark.parametrize("cause", [0, 1])
@pytest.mark.parametrize(("waits", "wanted"), [(True, True), (False, False)])
def test_pages_that_come_when_prefetches_are_done_are_touched(
    waits: bool, wanted: bool, cause: int, tmp_path: Path
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    run.call("cudaMemPrefetchAsync_v8000", 10 * US)
    run.launch("sweep", 2 * MS)
    if waits:
        run.wait()
    run.report.memcpy(3 * MS, 4 * MS, kind="UVM DtoH", bytes=1 << 21, migrationCause=cause)
    case = Case(open_report(run.report.write(), use_cache=False))
    assert case.on_demand(case.copies).tolist() == [wanted]


@pytest.mark.parametrize(
    ("writes", "lasts", "along", "much"),
    [(40, 15, True, True), (40, 3, True, False), (8, 15, False, False)],
)
def test_short_calls_all_along_a_gap_tell_that_the_host_writes(
    writes: int, lasts: int, along: bool, much: bool, tmp_path: Path
) -> None:
    """To write ahead helps where the calls take much of the time, not where code between does."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("sweep", 2 * MS)
        run.wait()
        until = run.now + 4 * MS
        for _ in range(writes):
            run.off("write", lasts * US)
            run.now += (93 - lasts) * US
        run.now = until
    first = found(run)[0]
    assert first.title.endswith("nothing recorded between calls of write") is along
    assert first.advice.startswith("read or write ahead") is much


@pytest.mark.parametrize(("second", "loads"), [(7, True), (2, False)])
def test_files_opened_all_along_a_gap_tell_that_the_host_loads_them(
    second: int, loads: bool, tmp_path: Path
) -> None:
    """The host opens and reads two files in each gap of 10 ms, the second one after so many."""
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(20):
        run.launch("train", 2 * MS)
        run.wait()
        for name in ("open64", "read", "read") * 2:
            run.off(name, 50 * US)
            run.now += 0 if name == "open64" else second * MS // 2
        run.now += (10 - 2 * second) * MS
    first = found(run)[0]
    assert first.title.endswith("nothing recorded between calls of open64") is loads
    assert first.advice.startswith("load and decode") is loads


@pytest.mark.parametrize(("name", "told"), [("other", False), ("sweep", True)])
def test_a_long_first_launch_within_a_longer_gap_comes_once(
    name: str, told: bool, tmp_path: Path
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(30):
        run.launch("sweep", 2 * MS)
    run.wait()
    run.now += 30 * MS
    corr = run.report.next_correlation()
    run.call("cudaLaunchKernel_v7000", 14 * MS, corr)
    run.report.kernel(name, run.now, run.now + 2 * MS, corr=corr)
    assert any("cudaLaunchKernel" in one.title for one in found(run)) is told


@pytest.mark.parametrize(("opens", "told"), [(False, True), (True, False)])
def test_unseen_time_before_all_work_is_told_by_reads_of_one_file_all_along(
    opens: bool, told: bool, tmp_path: Path
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for _ in range(100):
        for name in ("fopen", "read") if opens else ("read",):
            run.off(name, 3 * US)
        run.now += MS
    for _ in range(20):
        run.launch("sweep", MS)
    run.wait()
    said = [one.title for one in found(run) if one.rule == "outside_work"]
    assert bool(said) is told
    assert all("between calls of read)" in one for one in said)


@pytest.mark.parametrize(
    ("pauses", "grave"),
    [([6], False), ([18, 19], False), ([3, 6], True), ([3, 6, 9, 12], True)],
)
def test_unseen_time_that_comes_once_or_at_the_end_is_no_grave_fault(
    pauses: list[int], grave: bool, tmp_path: Path
) -> None:
    run = Machine(tmp_path / "r.sqlite")
    for number in range(21):
        run.launch("sweep", 2 * MS)
        run.wait()
        run.now += (number in pauses) * 60 * MS
    (one,) = [one for one in found(run) if "nothing recorded" in one.title]
    assert (one.severity is Severity.HIGH) is grave
    assert np.isclose(one.stake_ns, len(pauses) * 60 * MS, rtol=0.02)
