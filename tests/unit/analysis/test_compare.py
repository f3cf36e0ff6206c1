from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from machine import MS, Machine
from paths import REPORTS, needs_reports, report_paths
from synth import Synth
from training import GAP, KERNELS, REPEATS, US, Run

from nsys_tui.analysis.compare.comparison import (
    Comparison,
    aligned,
    compare,
    is_settled,
    measure_both,
    paired,
    with_findings,
)
from nsys_tui.analysis.compare.gates import outcomes, parse_gate
from nsys_tui.analysis.compare.judgement import percent
from nsys_tui.analysis.compare.measure import first_look, measure
from nsys_tui.analysis.compare.plan import iteration_scope, plan
from nsys_tui.analysis.compare.pooling import pooled_side
from nsys_tui.analysis.compare.side import Found, Side
from nsys_tui.analysis.compare.side_as_data import from_data, to_data
from nsys_tui.analysis.compare.stats import FEWEST, RUN_NOISE, Change, Verdict
from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.iterations.steps import Rule
from nsys_tui.analysis.rules.ranking import find
from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.window import Scope
from nsys_tui.reader import open_report
from nsys_tui.text.compare import as_text, change_sentences, side_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_tui.model.report import Report


def opened(path: Path) -> Report:
    return open_report(path, use_cache=False)


def compared(
    a: Path,
    b: Path,
    *,
    threshold: float = 0.01,
    findings: bool = False,
    noise: float = 0.0,
    force: bool = False,
) -> Comparison:
    """Compares as if runs did not differ, unless it is said by how much."""
    reports = [opened(path) for path in (a, b)]
    sides = measure_both(*map(plan, reports))
    found = compare(*sides, threshold=threshold, noise=noise, force=force)
    if not findings:
        return found
    return with_findings(found, *(tuple(map(Found.of, find(report))) for report in reports))


def pair(folder: Path, a: Run, b: Run, threshold: float = 0.01) -> Comparison:
    return compared(a.write(folder / "a.sqlite"), b.write(folder / "b.sqlite"), threshold=threshold)


def of_run(
    path: Path, number: int, *variables: str, talks: bool = True, paces: bool = False
) -> Side:
    """One of several reports of a moment: steps of 10 ms, in which a GPU computes and reduces."""
    synth = Synth(path).gpu(number, cu_device=0).process(100, "train").cuda_device(100, 0, number)
    synth.environment("Hostname", "node").session(2 * 10**8, utc=10**18 + number * 10**5)
    for text in variables:
        synth.meta("PROCESS_0:ENVIRONMENT_VARIABLE", text, capture=True)
    took = 10**7 * (100 + 20 * number * paces) // 100
    for step in range(12):
        synth.nvtx(f"step {step}", step * took, (step + 1) * took - US)
        synth.kernel("gemm", step * took, step * took + 5 * 10**6)
        if talks:
            synth.kernel("ncclDevKernel_AllReduce", step * took + 6 * 10**6, step * took + 10**7)
    return measure(plan(opened(synth.write())))


@pytest.mark.parametrize(
    ("variables", "talks", "paces", "runs"),
    [
        ((), True, False, 1),
        (("SLURM_JOB_ID=7", "SLURM_PROCID={}", "SLURM_NTASKS=3"), True, False, 1),
        (("SLURM_PROCID=0", "SLURM_NTASKS=1", "RANK={}", "WORLD_SIZE=3"), True, False, 1),
        (("RANK={}", "WORLD_SIZE=3"), False, False, 1),
        ((), False, False, 3),
        ((), True, True, 3),
        (("RANK=0", "WORLD_SIZE=1", "MASTER_PORT=29500"), True, False, 3),
        (("CI_JOB_ID=90{}",), True, False, 3),
        (("SLURM_JOB_ID=8{}", "SLURM_PROCID={}"), True, False, 3),
    ],
)
def test_ranks_are_told_from_jobs_side_by_side(
    tmp_path: Path, variables: tuple[str, ...], talks: bool, paces: bool, runs: int
) -> None:
    sides = []
    for number in range(3):
        told = [text.format(number) for text in variables]
        path = tmp_path / f"{number}.sqlite"
        sides.append(of_run(path, number, *told, talks=talks, paces=paces))
    read = [from_data(json.loads(json.dumps(to_data(side)))) for side in sides]
    assert [side.origin for side in read] == [side.origin for side in sides]
    found = pooled_side(read)
    assert (found.run_count, len(found.metrics["wall"].runs)) == (runs, runs)
    assert found.label == "0.sqlite and 2 more"
    said = "reports count as the ranks of one" if runs == 1 else "but runs of their own"
    assert said in found.notes[-1]
    assert compare(sides[0], sides[1]).noise == (0.0 if runs == 1 else RUN_NOISE)


def test_a_cause_of_an_older_baseline_has_its_present_name(tmp_path: Path) -> None:
    data = json.loads(json.dumps(to_data(of_run(tmp_path / "r.sqlite", 0))))
    _, named = data["groups"]["stalls"].popitem()
    data["groups"]["stalls"]["nothing"] = named
    assert Cause.NOTHING.key in from_data(data).names("stalls")


def test_what_jobs_are_called_is_kept_as_a_digest(tmp_path: Path) -> None:
    side = of_run(tmp_path / "r.sqlite", 0, "CI_JOB_ID=secretive", "TOKEN=hidden")
    assert set(side.origin.jobs) == {"CI_JOB_ID"}
    assert not {"secretive", "hidden"} & set(json.dumps(to_data(side)).split('"'))


def assert_all_same(found: Comparison) -> None:
    rows = [*found.summary, *(row for rows in found.groups.values() for row in rows)]
    assert {row.verdict for row in rows} <= {Verdict.SAME}
    assert {row.kind for row in rows} <= {"same"}
    assert all(row.delta == 0 and row.change.delta == 0 for row in rows)
    assert all(row.change.ratio == 0 for row in rows)
    assert found.findings is None or all(c.status == "in both" for c in found.findings)


def test_a_run_against_an_equal_one_is_the_same(tmp_path: Path) -> None:
    run = Run(jitter=0.1, seed=4)
    found = pair(tmp_path, run, run)
    assert found.verdict is Verdict.SAME
    assert found.judgement.basis == "steps"
    assert len(found.groups["kernels"]) == len(KERNELS)
    assert_all_same(found)


@needs_reports
@pytest.mark.parametrize("path", report_paths(), ids=lambda path: path.stem)
def test_every_real_report_against_itself_is_the_same(path: Path) -> None:
    made = plan(opened(path))
    found = compare(*measure_both(made, made, identities=("x", "x")))
    assert found.verdict is Verdict.SAME
    assert found.differences == ()
    assert_all_same(found)


def test_a_planted_regression_of_5_percent_is_found(tmp_path: Path) -> None:
    found = pair(tmp_path, Run(jitter=0.005, seed=1), Run(jitter=0.005, seed=2, scale=1.05))
    assert found.verdict is Verdict.WORSE
    wall = found.row("wall")
    assert wall is not None
    assert wall.change.ratio is not None
    # All but the gaps of a step, 120 us of 2120 us, takes 5 % longer.
    assert wall.change.ratio == pytest.approx(0.05 * 2000 / 2120, abs=0.003)
    for row in found.groups["kernels"]:
        assert (row.verdict, row.kind, row.by_step) == (Verdict.WORSE, "slower", True)
        assert row.change.ratio == pytest.approx(0.05, abs=0.01)
    assert {row.verdict for row in found.groups["copies"]} == {Verdict.SAME}
    assert {row.verdict for row in found.groups["stalls"]} == {Verdict.SAME}


def test_an_improvement_is_the_regression_seen_from_the_other_side(tmp_path: Path) -> None:
    found = pair(tmp_path, Run(jitter=0.005, seed=2, scale=1.05), Run(jitter=0.005, seed=1))
    assert found.verdict is Verdict.BETTER
    assert {row.words for row in found.groups["kernels"]} == {"better: faster"}


@pytest.mark.parametrize("seed", range(6))
def test_noise_of_half_a_percent_is_no_change(tmp_path: Path, seed: int) -> None:
    found = pair(tmp_path, Run(jitter=0.005, seed=2 * seed), Run(jitter=0.005, seed=2 * seed + 1))
    assert found.verdict is Verdict.SAME
    assert {row.verdict for row in found.groups["kernels"]} == {Verdict.SAME}


@pytest.mark.parametrize(
    ("begin", "took", "said"),
    [
        (4, 2, []),
        (5, 2, ["exposed comm is more (+100.0%), +1.000 ms per step"]),
        (4, 3, ["ncclDevKernel_AllReduce is more (+50.0%), +1.000 ms per step"]),
    ],
)
def test_a_lost_overlap_is_among_the_changes(
    tmp_path: Path, begin: int, took: int, said: list[str]
) -> None:
    """Steps of 10 ms that compute for 5 ms and reduce in ms 4 and 5, at first."""
    sides = []
    for name, first, last in (("a", 4, 6), ("b", begin, begin + took)):
        synth = Synth(tmp_path / f"{name}.sqlite").gpu(0).process(100, "train")
        for step in range(20):
            at = step * 10**7
            synth.nvtx(f"step {step}", at, at + 10**7 - US).kernel("gemm", at, at + 5 * 10**6)
            span = (at + part * 10**6 for part in (first, last))
            synth.kernel("ncclDevKernel_AllReduce", *span, stream=13)
        sides.append(synth.write())
    told = change_sentences(compared(*sides))
    assert [line for line in told if not line.startswith("idle: ")] == said


def test_figures_of_a_step_are_those_of_the_run(tmp_path: Path) -> None:
    found = pair(tmp_path, Run(), Run(copies=3))
    values = {row.key: (row.a_total, row.b_total) for row in found.summary}
    compute = REPEATS * sum(length for _, length in KERNELS) * US
    wall = compute + REPEATS * GAP + 20 * US
    # The last step has no next one: it ends 1 us before.
    assert values["wall"] == pytest.approx((wall, wall + 40 * US), rel=1e-4)
    assert values["compute"] == (compute, compute)
    assert values["kernel_time"] == (compute, compute)
    assert values["memory"] == (10 * US, 30 * US)
    assert values["exposed_memory"] == (10 * US, 30 * US)
    idle = (wall - compute - 10 * US, wall + 40 * US - compute - 30 * US)
    assert values["idle"] == pytest.approx(idle, rel=1e-3)
    assert values["busy_share"][0] == pytest.approx(1e9 * (compute + 10 * US) / wall, rel=1e-4)
    (copy,) = found.groups["copies"]
    assert (copy.kind, copy.verdict) == ("more calls", Verdict.WORSE)
    assert (copy.a_count, copy.b_count, copy.a_bytes, copy.b_bytes) == (1, 3, 1e6, 3e6)
    gemm = next(row for row in found.groups["kernels"] if row.name == "gemm_kernel")
    assert (gemm.a_total, gemm.a_count) == (REPEATS * 300 * US, REPEATS)


def test_warm_up_and_a_step_cut_by_the_capture_are_left_out(tmp_path: Path) -> None:
    report = Synth(tmp_path / "r.sqlite")
    for step in range(8):
        at = step * 1000
        length = 900 if step == 0 else 100
        report.launch("k()", (at, at + 5), (at + 10, at + 10 + length))
        report.nvtx(f"step {step}", at, at + 950 if step < 7 else None)
    side = measure(plan(opened(report.session(20_000).write())))
    assert side.metrics["wall"].count == 6
    assert side.names("kernels")["k"].instances.most == 100
    assert side.names("kernels")["k"].count == 6


def of_steps(
    path: Path,
    lasting: Sequence[int],
    *,
    overhead: int = 0,
    size: int = 0,
    extra: int = 0,
    run: int = 0,
) -> Report:
    """Steps of some lengths in us, a tenth of each idle; with overhead, a copy, a kernel more."""
    synth = Synth(path).gpu().process(100, "train").cuda_device(100, 0, 0)
    at = 0
    for number, length in enumerate(lasting):
        begin, at = at, at + (length + overhead) * US
        synth.launch("k()", (begin, begin + 5), (begin + 10, begin + length * US * 9 // 10))
        if overhead:
            synth.overhead("Buffer flush", at - (overhead * US), at)
        if size:
            synth.memcpy(begin + 20, begin + 20 + max(size // 10, 900), bytes=size, kind="DtoH")
        if extra:
            synth.launch("extra()", (at - extra - 30, at - extra - 25), (at - extra - 20, at - 20))
        synth.nvtx(f"step {number}", begin, at - 5)
    return opened(synth.session(at, utc=10**18 + run * 10**13).write())


def test_a_longer_warm_up_is_no_change(tmp_path: Path) -> None:
    steady = [1000 + place % 7 for place in range(40)]
    a = plan(of_steps(tmp_path / "a.sqlite", [3000, *steady]))
    b = plan(of_steps(tmp_path / "b.sqlite", [3000] * 12 + steady))
    assert (len(a.steps), len(b.steps)) == (40, 40)
    assert [note for note in b.notes if "first 12 steps are warm-up" in note]
    found = compare(*measure_both(a, b), noise=0)
    assert found.judgement.change is not None
    assert found.judgement.change.ratio == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(
    "lasting",
    [
        [3000, 2000, *([1000, 1000, 1000, 2000] * 10)],
        [3000, 2000, 1000, 1000, 1000, 1000],
        [3000, 1400, *([1000] * 20)],
    ],
    ids=["slow later too", "too few are left", "not slow"],
)
def test_slow_steps_at_the_beginning_are_not_always_warm_up(
    tmp_path: Path, lasting: list[int]
) -> None:
    made = plan(of_steps(tmp_path / "r.sqlite", lasting))
    assert len(made.steps) == len(lasting) - 1
    assert not made.notes


def test_overhead_explains_a_change_of_several_runs_too(tmp_path: Path) -> None:
    sides = [
        pooled_side(
            [
                measure(plan(of_steps(tmp_path / f"{most}-{run}.sqlite", [900 + run] * 12,
                                      overhead=most, run=100 * most + run)))
                for run in range(3)
            ]
        )
        for most in (0, 200)
    ]  # fmt: skip
    found = compare(*sides)
    assert found.verdict is Verdict.UNKNOWN
    assert "profiler overhead explains 100.0% of the change" in found.judgement.reason


def test_few_steps_are_counted_by_run(tmp_path: Path) -> None:
    sides = [
        pooled_side(
            [
                measure(plan(of_steps(tmp_path / f"{length}-{run}.sqlite", [length + run] * 4,
                                      run=length + run)))
                for run in range(3)
            ]
        )
        for length in (1000, 2000)
    ]  # fmt: skip
    reason = compare(*sides).judgement.reason
    assert "too few steady steps (3 a run in A, 3 a run in B, 5 needed)" in reason


@pytest.mark.parametrize(("extra", "told"), [(2_000, ["extra"]), (500, [])])
def test_a_change_too_small_to_see_gets_no_sentence(
    tmp_path: Path, extra: int, told: list[str]
) -> None:
    """A thousandth of a step of 1 ms is 1 us."""
    a, b = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    of_steps(a, [1000] * 12)
    of_steps(b, [1000] * 12, extra=extra)
    found = compared(a, b)
    assert [row.name for row in found.largest if not row.name.startswith("idle")] == told
    assert "extra" in {row.name for row in found.groups["kernels"]}, "the table has it"


@pytest.mark.parametrize(
    ("sizes", "words"),
    [((10**5, 2 * 10**5), "worse: more bytes"), ((10**6, 40), "better: fewer bytes")],
)
def test_a_copy_of_other_size_is_not_called_slower_or_faster(
    tmp_path: Path, sizes: tuple[int, int], words: str
) -> None:
    """A few bytes take their time: slower each, and yet sooner done than many."""
    paths = []
    for size in sizes:
        paths.append(tmp_path / f"{size}.sqlite")
        of_steps(paths[-1], [1000] * 12, size=size)
    (copy,) = compared(*paths, force=True).groups["copies"]
    assert copy.words == words
    found = compared(*paths)
    assert found.verdict is Verdict.UNKNOWN, "it is different work"
    assert [row.words for row in found.groups["copies"]] == [words.split(": ")[1]]


@pytest.mark.parametrize(("gpu", "judged"), [("Test GPU", True), ("Faster GPU", False)])
def test_of_other_gpus_no_row_is_better_or_worse(tmp_path: Path, gpu: str, judged: bool) -> None:
    found = pair(tmp_path, Run(scale=2), Run(gpu=gpu))
    rows = [*found.summary, *(row for rows in found.groups.values() for row in rows)]
    assert any(row.verdict.told for row in rows) == judged
    assert (found.verdict is Verdict.UNKNOWN) != judged
    assert {row.kind for row in found.groups["kernels"]} == {"faster" if judged else "less"}


@pytest.mark.parametrize("whole", [(False, True), (True, True)])
def test_graphs_traced_as_a_whole_on_one_side_are_the_reason(
    tmp_path: Path, whole: tuple[bool, bool]
) -> None:
    paths = []
    for number, as_graph in enumerate(whole):
        report = Synth(tmp_path / f"{number}.sqlite")
        for step in range(9):
            at = 1000 * step
            report.nvtx(f"step {step}", at, at + 900)
            if as_graph:
                report.api("cudaGraphLaunch", at + 10, at + 20, corr=step + 1)
                report.graph(at + 100, at + 700, graph=number, corr=step + 1)
            else:
                report.launch("gemm()", (at + 10, at + 20), (at + 100, at + 700))
        paths.append(report.write())
    reason = compared(*paths).judgement.reason
    assert ("B holds CUDA graphs that were traced as a whole" in reason) == (whole[0] is False)
    assert ("2 of 2 kernel names differ" in reason) == whole[0]


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        ((297.1, 297.2), "298x"),
        ((250.0, 340.0), "298x (95% interval 251x to 341x)"),
    ],
)
def test_an_interval_without_width_in_its_digits_is_not_told(
    interval: tuple[float, float], text: str
) -> None:
    change = Change(1.0, 298.2, 297.2, interval, Verdict.WORSE, (1.0, 298.2))
    assert percent(change) == text


@pytest.mark.parametrize(
    ("b", "settled"),
    [
        (([1000 + n % 5 for n in range(60)], 0), True),
        (([1200 + n % 5 for n in range(60)], 0), True),
        (([1000 + 1500 * (n % 4 == 3) for n in range(60)], 0), True),
        (([1000] * 60, 200), False),
        (([1000] * 3, 0), False),
    ],
    ids=["same", "worse", "slow steps", "overhead", "few steps"],
)
def test_the_verdict_of_a_first_look_is_that_of_the_whole(
    tmp_path: Path, b: tuple[list[int], int], settled: bool
) -> None:
    plans = aligned(
        plan(of_steps(tmp_path / "a.sqlite", [1000 + n % 3 for n in range(60)])),
        plan(of_steps(tmp_path / "b.sqlite", b[0], overhead=b[1])),
    )
    look = compare(*(first_look(made) for made in plans), noise=0, keys=())
    assert is_settled(look, *plans) is settled
    if settled:
        assert look.judgement == compare(*map(measure, plans), noise=0).judgement


@pytest.mark.parametrize("processes", [2, 150])
def test_each_process_counts_in_its_own_steps(tmp_path: Path, processes: int) -> None:
    report = Synth(tmp_path / "r.sqlite")
    for number, pid in enumerate(range(100, 100 + processes)):
        report.process(pid, f"rank{number}").cuda_device(pid, 0, number)
        for step in range(8):
            at = step * 1000 + number % 2 * 600
            report.nvtx(f"step {step}", at, at + 900, tid=pid)
            report.launch("k()", (at + 800, at + 805), (at + 810, at + 850), device=0)
    side = measure(plan(opened(report.write())))
    named = side.names("kernels")["k"]
    assert named.per_step is not None
    found = named.calls, named.per_step.least, named.per_step.most
    assert found == (processes, processes * 40, processes * 40)


def test_names_of_few_steps_are_judged_by_all_steps(tmp_path: Path) -> None:
    paths = []
    for number, length in enumerate((100, 120)):
        report = Synth(tmp_path / f"{number}.sqlite")
        for step in range(10):
            at = step * 10_000
            report.nvtx(f"step {step}", at, at + 9_900)
            report.launch("often()", (at, at + 5), (at + 10, at + 3000))
            for extra in range(3 if step % 3 == 1 else 0):
                begin = at + 4000 + extra * 1000
                report.launch("seldom()", (begin, begin + 5), (begin + 10, begin + 10 + length))
        paths.append(report.write())
    found = compared(*paths)
    rows = {row.name: row for row in found.groups["kernels"]}
    seldom = rows["seldom"]
    assert (seldom.a_total, seldom.b_total) == (100, 120)
    assert seldom.statistic == rows["often"].statistic == "mean per step"
    assert seldom.change.ratio == pytest.approx(0.2)
    # Nothing in most steps and three times as much in some: nine steps do not tell.
    assert seldom.words == "inconclusive"


def test_new_and_gone_kernels_are_told(tmp_path: Path) -> None:
    fused = (("gemm_kernel(float*)", 300), ("fused_softmax_adamw(float*)", 150))
    found = pair(tmp_path, Run(), Run(names=fused))
    kinds = {row.name: row.words for row in found.groups["kernels"]}
    assert kinds == {
        "gemm_kernel": "same",
        "softmax_kernel": "gone",
        "adamw": "gone",
        "fused_softmax_adamw": "new",
    }
    assert found.verdict is Verdict.BETTER


@pytest.mark.parametrize(("evaluations", "told"), [(2, []), (12, ["eval is new"])])
def test_what_is_new_in_a_few_steps_may_be_chance(
    tmp_path: Path, evaluations: int, told: list[str]
) -> None:
    paths = []
    for name, count in (("a", 0), ("b", evaluations)):
        made = Machine(tmp_path / f"{name}.sqlite")
        for step in range(24):
            since = made.now
            made.layers(4)
            if step and step % (24 // max(count, 1)) == 1 and count:
                made.launch("eval", 400 * US)
            made.wait()
            made.named(f"step {step}", since)
        paths.append(made.report.write())
    sentences = change_sentences(compared(*paths))
    assert [text.partition(",")[0] for text in sentences] == told


def test_same_wall_but_busier_gpus_are_worse(tmp_path: Path) -> None:
    paths = []
    for number, length in enumerate((500, 600)):
        report = Synth(tmp_path / f"{number}.sqlite")
        for step in range(10):
            at = step * 1000
            report.nvtx(f"step {step}", at, at + 1000)
            report.launch("k()", (at, at + 5), (at + 10, at + 10 + length))
        paths.append(report.write())
    found = compared(*paths)
    wall = found.row("wall")
    assert wall is not None
    assert wall.verdict is Verdict.SAME
    assert found.verdict is Verdict.WORSE
    assert "GPU busy time per step +20.0%" in found.judgement.reason


def test_slower_kernels_that_the_wall_time_hides_are_worse(tmp_path: Path) -> None:
    paths = []
    for number, length in enumerate((500, 600)):
        report = Synth(tmp_path / f"{number}.sqlite")
        for step in range(10):
            at = step * 2000
            report.nvtx(f"step {step}", at, at + 2000)
            report.launch("long()", (at, at + 5), (at + 10, at + 1510))
            report.launch("short()", (at + 6, at + 9), (at + 10, at + 10 + length), stream=8)
            report.launch("ncclAllReduce()", (at + 6, at + 9), (at + 10, at + 900 - length))
        paths.append(report.write())
    found = compared(*paths)
    assert {row.key: row.verdict for row in found.summary}["busy"] is Verdict.SAME
    assert found.verdict is Verdict.WORSE
    # 1500 + 500 ns against 1500 + 600 ns; communication lasts as long as it waits, so it is out.
    assert "time of compute kernels per step +5.0%" in found.judgement.reason


@pytest.mark.parametrize(
    ("blocks", "said"), [(54, "better: fewer threads"), (108, "better: faster")]
)
def test_a_kernel_of_half_the_threads_is_no_faster_one(
    tmp_path: Path, blocks: int, said: str
) -> None:
    paths = []
    for number, (length, grid) in enumerate(((500, 108), (250, blocks))):
        report = Synth(tmp_path / f"{number}.sqlite")
        for step in range(10):
            at = step * 1000
            report.nvtx(f"step {step}", at, at + 1000)
            report.launch("gemm()", (at, at + 5), (at + 10, at + 10 + length), grid=(grid, 1, 1))
        paths.append(report.write())
    assert [row.words for row in compared(*paths).groups["kernels"]] == [said]


def test_a_collective_that_waits_longer_is_no_slower_one(tmp_path: Path) -> None:
    paths = []
    for number, length in enumerate((200, 300)):
        report = Synth(tmp_path / f"{number}.sqlite")
        for step in range(10):
            at = step * 1000
            report.nvtx(f"step {step}", at, at + 1000)
            report.launch("gemm()", (at, at + 5), (at + 10, at + 600))
            report.launch("ncclAllReduce()", (at + 6, at + 9), (at + 10, at + 10 + length))
        paths.append(report.write())
    words = {row.name: row.words for row in compared(*paths).groups["kernels"]}
    assert words == {"ncclAllReduce": "worse: more", "gemm": "same"}


def test_too_few_steps_fall_back_to_instances_and_say_so(tmp_path: Path) -> None:
    few = Run(steps=FEWEST, jitter=0.002)
    found = pair(tmp_path, few, replace(few, scale=1.05, seed=9))
    assert found.judgement.basis == "instances"
    assert found.verdict is Verdict.WORSE
    assert "too few steady steps (4 in A, 4 in B, 5 needed)" in found.judgement.reason
    assert not any(row.by_step for row in found.groups["kernels"])
    assert any("instances" in note for note in found.notes)
    assert {row.kind for row in found.summary} <= {"too few", "same"}


def test_noise_of_half_a_percent_without_steps_is_no_change(tmp_path: Path) -> None:
    run = Run(steps=4, jitter=0.005, step_name="")
    for seed in range(4):
        pair_of = (replace(run, seed=seed), replace(run, seed=seed + 50))
        paths = [made.write(tmp_path / f"{place}.sqlite") for place, made in enumerate(pair_of)]
        plans = [plan(opened(path), by_step=False) for path in paths]
        found = compare(*measure_both(*plans), noise=0)
        assert found.judgement.basis == "instances"
        assert found.verdict is Verdict.SAME


def test_steps_by_name_and_by_pattern_are_no_counterparts(tmp_path: Path) -> None:
    by_name, by_pattern = Run(), Run(step_name="", copies=0, waits=True)
    plans = [
        plan(opened(run.write(tmp_path / f"{number}.sqlite")))
        for number, run in enumerate((by_name, by_pattern))
    ]
    assert [p.steps.rule for p in plans] == [Rule.NAME, Rule.PATTERN]
    assert all(p.by_step for p in plans)
    assert not any(p.by_step for p in aligned(*plans))
    found = compare(*measure_both(*plans))
    assert "by NVTX name in A and by pattern in B" in found.judgement.reason


def test_nothing_in_common_is_not_comparable_and_says_why(tmp_path: Path) -> None:
    other = Run(names=(("other(int)", 50),), step_name="batch")
    found = pair(tmp_path, Run(), other)
    assert found.verdict is Verdict.UNKNOWN
    assert "no kernel and no NVTX range of A occurs in B" in found.judgement.reason
    assert found.largest == [], "none of them is told beside it"
    assert {row.verdict for row in found.summary} == {Verdict.UNKNOWN}
    wall = found.row("wall")
    assert wall is not None
    assert wall.delta < 0
    assert wall.words == "less", "not better: it is another program's"
    assert {(row.kind, row.words) for row in found.groups["kernels"]} == {
        ("new", "new"),
        ("gone", "gone"),
    }


FOUR = (*KERNELS, ("ncclDevKernel_AllReduce", 200), ("layer_norm(float*)", 40))
"""Without communication gemm has 56 % of the time, softmax 22 %, adamw 15 %, the last 7 %."""


@pytest.mark.parametrize(
    ("grids", "told"),
    [
        ((200, 200, 200, 8, 200), "4 of 4 compute kernels (100.0% of their time) launch more"),
        ((120, 120, 100, 8, 120), "3 of 4 compute kernels (85.2% of their time) launch more"),
        ((50, 50, 50, 8, 100), "3 of 4 compute kernels (92.6% of their time) launch fewer"),
        ((105, 105, 105, 8, 105), ""),
        ((200, 200, 100, 16, 100), ""),
        ((200, 100, 200, 8, 200), ""),
        ((200, 50, 200, 8, 50), ""),
    ],
    ids=["all", "most", "fewer", "slightly", "two tuned", "gemm not softmax", "both ways"],
)
def test_other_grids_of_nearly_all_kernels_are_another_problem(
    tmp_path: Path, grids: tuple[int, ...], told: str
) -> None:
    runs = [
        Run(names=FOUR, grids=each, scale=scale, seed=seed).write(tmp_path / f"{seed}.sqlite")
        for seed, (each, scale) in enumerate((((100, 100, 100, 8, 100), 1.0), (grids, 1.9)))
    ]
    found = compared(*runs)
    assert found.judgement.reason.startswith(told or "mean wall per step +")
    assert compared(*runs, force=True).verdict is Verdict.WORSE
    sides = measure_both(*(plan(opened(path)) for path in runs))
    older = [
        replace(side, threads=data)
        for side, data in zip(sides, ({}, sides[1].threads), strict=True)
    ]
    assert compare(*older).verdict is Verdict.WORSE
    read = [from_data(json.loads(json.dumps(to_data(side)))) for side in sides]
    assert compare(*read).judgement == compare(*sides).judgement
    assert first_look(plan(opened(runs[0]))).threads == sides[0].threads


def gemms(*choices: str) -> tuple[tuple[str, float], ...]:
    """A training step that cuBLAS computes with these kernels, of 56 % of its time."""
    products = [(f"ampere_bf16_s16816gemm_bf16_{choice}", 100) for choice in choices]
    others = (("layer_norm(float*)", 60), ("gelu(float*)", 90), ("softmax(float*)", 90))
    return (*products, *others, ("adamw(float*)", 70))


SMALL = gemms(
    *("128x128_ldg8_f2f_stages_32x5_tn", "256x128_ldg8_f2f_stages_64x3_tn"),
    *("128x128_ldg8_f2f_stages_32x5_nn", "128x64_ldg8_f2f_stages_32x6_nt"),
)
SOME = (("ampere_bf16_s16816gemm_bf16_256x64_ldg8_f2f_stages_64x3_tn", 100), *SMALL[1:])
LARGE = gemms(
    *("256x64_ldg8_f2f_stages_32x3_tn", "64x64_sliced1x2_ldg8_f2f_stages_64x5_tn"),
    *("256x64_ldg8_f2f_stages_32x3_nn", "256x64_ldg8_f2f_stages_32x4_nt"),
)
LARGER, AS_LARGE = (
    (300, 300, 300, 300, 200, 200, 200, 100),
    (300, 300, 300, 300, 100, 100, 100, 100),
)
"""Blocks: those of an optimizer do not grow with the batch, nor do those of some products."""


@pytest.mark.parametrize(
    ("names", "grids", "products", "rest", "told"),
    [
        (SOME, LARGER, 1.9, 1.9, "3 of 9 compute kernels (33.8% of their time) launch more"),
        (LARGE, LARGER, 1.9, 1.9, "3 of 12 compute kernels (33.8% of their time) launch more"),
        (SMALL, LARGER, 1.9, 1.9, "3 of 8 compute kernels (33.8% of their time) launch more"),
        (LARGE, LARGER, 1.0, 1.0, "8 of 12 kernel names differ, and 43.7% of the kernel time"),
        (gemms("64x64_ldg8_f2f_tn"), AS_LARGE, 4, 1.0, "5 of 9 kernel names differ"),
        (LARGE, AS_LARGE, 1.3, 1.0, ""),
        (SOME, AS_LARGE, 1.3, 1.3, ""),
        (SMALL, LARGER, 1.0, 1.2, ""),
        (SMALL, LARGER, 1.2, 1.0, ""),
    ],
)
def test_other_gemms_are_the_same_work_unless_the_rest_is_larger(
    tmp_path: Path,
    names: tuple[tuple[str, float], ...],
    grids: tuple[int, ...],
    products: float,
    rest: float,
    told: str,
) -> None:
    """Libraries choose a GEMM by its size and by their release: the kernels beside it decide."""
    timed = tuple(
        (name, took * (products if "gemm" in name else 1 if "adamw" in name else rest))
        for name, took in names
    )
    runs = (Run(names=SMALL, grids=AS_LARGE), Run(names=timed, grids=grids[-len(names) :]))
    paths = [run.write(tmp_path / f"{place}.sqlite") for place, run in enumerate(runs)]
    found = compared(*paths)
    assert found.judgement.reason.startswith(told or "mean wall per step +")
    assert found.verdict is (Verdict.UNKNOWN if told else Verdict.WORSE)
    note = [note for note in found.notes if "matched as one kind" in note]
    assert bool(note) is (not told and names is not SMALL)
    plans = [plan(opened(path)) for path in paths]
    look = compare(*measure_both(*plans, measuring=first_look), keys=(), noise=0)
    assert look.judgement.reason[:40] == found.judgement.reason[:40]


def test_what_is_matched_by_kind_is_counted(tmp_path: Path) -> None:
    found = pair(tmp_path, Run(names=SMALL, grids=AS_LARGE), Run(names=LARGE, grids=AS_LARGE))
    assert found.verdict is Verdict.SAME
    assert (
        "gemm bf16: 4 of 4 kernel names only in A and 4 of 4 only in B; matched as one kind,"
        f" {4 * REPEATS:.1f} launches per step: libraries choose them by size and release"
    ) in found.notes
    some = pair(tmp_path, Run(names=SMALL, grids=AS_LARGE), Run(names=SOME, grids=AS_LARGE))
    (note,) = (note for note in some.notes if "matched as one kind" in note)
    assert note.startswith("gemm bf16: 1 of 4 kernel names only in A and 1 of 4 only in B;")


@needs_reports
def test_a_report_without_events_is_not_comparable_with_another() -> None:
    found = compared(REPORTS / "no-events.sqlite", REPORTS / "cuda-graph-2025.5.sqlite")
    assert found.verdict is Verdict.UNKNOWN
    assert side_text(found.a) == "no events"
    assert found.row("wall") is None


@needs_reports
def test_too_few_instances_of_every_name_are_not_comparable(tmp_path: Path) -> None:
    report = Synth(tmp_path / "r.sqlite")
    for number in range(2):
        report.launch(
            "k()", (number * 100, number * 100 + 5), (number * 100 + 9, 150 * number + 40)
        )
    other = Synth(tmp_path / "s.sqlite").launch("k()", (0, 5), (9, 80))
    found = compared(report.write(), other.write())
    assert found.verdict is Verdict.UNKNOWN
    assert "too little of the work occurs 5 times on both sides" in found.judgement.reason


def test_what_is_short_does_not_stand_for_the_rest(tmp_path: Path) -> None:
    paths = []
    for name, took in (("a", 10**6), ("b", 3 * 10**6)):
        synth = Synth(tmp_path / f"{name}.sqlite")
        for number in range(3):
            at = number * 10**7
            synth.launch("gemm", (at, at + 5 * US), (at + 9 * US, at + 9 * US + took))
            for part in range(3):
                start = at + 5 * 10**6 + part * US * 20
                synth.launch("relu", (start, start + US), (start + 2 * US, start + 9 * US))
        paths.append(synth.write())
    assert compared(*paths).verdict is Verdict.UNKNOWN


def test_two_iterations_of_one_report(tmp_path: Path) -> None:
    report = opened(Run().write(tmp_path / "r.sqlite"))
    steps = find_iterations(report)
    plans = [plan(report, iteration_scope(steps, n, Scope()), by_step=False) for n in (3, 7)]
    found = compare(*measure_both(*plans))
    assert found.verdict is Verdict.SAME
    wall = found.row("wall")
    assert wall is not None
    assert wall.a_total == steps.duration[3]
    assert all(row.a_count == row.b_count for row in found.groups["kernels"])
    with pytest.raises(IndexError):
        iteration_scope(steps, len(steps), Scope())


def test_a_window_clips_times_and_counts_what_starts_in_it(tmp_path: Path) -> None:
    report = Synth(tmp_path / "r.sqlite")
    for number in range(10):
        report.launch(
            "k()", (number * 100, number * 100 + 5), (number * 100 + 10, number * 100 + 90)
        )
    side = measure(plan(opened(report.write()), Scope((50, 550))))
    named = side.names("kernels")["k"]
    # From 50: the last 40 of the first, four whole ones, and 10..50 of the one that starts at 510.
    assert named.total == 40 + 4 * 80 + 40
    assert named.count == 5
    assert named.instances.most == 80
    assert side.metrics["wall"].total == 500
    assert side.metrics["busy"].total == 400


def test_idle_time_by_cause_adds_up_to_the_gaps(tmp_path: Path) -> None:
    found = pair(tmp_path, Run(), Run())
    stalls = found.groups["stalls"]
    # Four gaps of 25 us a step; the last of them also ends the step's copy, 10 us after it.
    assert sum(row.a_total for row in stalls) == pytest.approx(REPEATS * GAP + 10 * US, rel=0.01)


def test_other_gpus_and_missing_traces_are_said(tmp_path: Path) -> None:
    a = Run().write(tmp_path / "a.sqlite")
    b = Run(gpu="Faster GPU", step_name="").write(tmp_path / "b.sqlite")
    found = {d.what: d for d in compared(a, b).differences}
    assert (found["GPUs"].a, found["GPUs"].b) == ("Test GPU", "Faster GPU")
    assert found["GPUs"].unfair
    assert found["NVTX ranges recorded"].unfair


def test_options_of_the_capture_are_compared_and_secrets_are_not_read(tmp_path: Path) -> None:
    paths = []
    for number, period in enumerate(("1000", "2000")):
        report = Synth(tmp_path / f"{number}.sqlite").launch("k()", (0, 5), (10, 20))
        report.meta("PROCESS_0:CUDA_FLUSH_PERIOD", period, capture=True)
        report.meta("PROCESS_0:ENVIRONMENT_3", f"API_TOKEN={number}", capture=True)
        paths.append(report.write())
    differences = compared(*paths).differences
    assert [(d.what, d.a, d.b) for d in differences] == [
        ("option CUDA_FLUSH_PERIOD", "1000", "2000")
    ]


def test_findings_are_solved_new_or_in_both(tmp_path: Path) -> None:
    a = Run(copies=0).write(tmp_path / "a.sqlite")
    b = Run(copies=40).write(tmp_path / "b.sqlite")
    found = compared(a, b, findings=True)
    assert found.findings is not None
    assert "exposed_copies" in {c.rule for c in found.findings if c.status == "new"}
    back = compared(b, a, findings=True)
    assert back.findings is not None
    assert "exposed_copies" in {c.rule for c in back.findings if c.status == "solved"}


def test_findings_of_different_work_are_neither_new_nor_solved(tmp_path: Path) -> None:
    a = Run(copies=0).write(tmp_path / "a.sqlite")
    b = Run(copies=40, gpu="Slow GPU", scale=2).write(tmp_path / "b.sqlite")
    found = compared(a, b, findings=True)
    assert found.verdict is Verdict.UNKNOWN
    assert "only B" in {c.status for c in found.findings or ()}
    assert {"new", "solved"}.isdisjoint(c.status for c in found.findings or ())


@pytest.mark.parametrize(
    ("missing", "judged", "statuses"),
    [
        ((), True, {"in both"}),
        (("b",), False, {"only A", "only B"}),
        (("a", "b"), True, {"in both"}),
    ],
)
def test_causes_are_compared_where_both_sides_recorded_what_tells_them(
    tmp_path: Path, missing: Sequence[str], judged: bool, statuses: set[str]
) -> None:
    paths = []
    for name in ("a", "b"):
        omitted = ("OSRT_API",) * (name in missing)
        made = Machine(tmp_path / f"{name}.sqlite")
        made.report = Synth(tmp_path / f"{name}.sqlite", omit_tables=omitted).process(10, "train")
        made.report.gpu(0)
        for step in range(12):
            since = made.now
            made.off("pread64", 3 * MS)
            made.layers(4)
            made.wait()
            made.named(f"step {step}", since)
        paths.append(made.report.write())
    found = compared(*paths, findings=True)
    assert [row.kind for row in found.groups["stalls"]] == ["same"] * judged
    gate = outcomes(found, [parse_gate("stall:.*:5%")])[0]
    assert (gate.verdict is Verdict.UNKNOWN) is not judged
    assert ("only one side has OS runtime calls" in gate.reason) is not judged
    idle = {change.status for change in found.findings or () if change.rule == "gpu_idle"}
    assert idle == statuses


def test_findings_of_one_cause_are_one_wherever_it_was_seen() -> None:
    titles = (
        ("GPU 0, GPU 1 idle 5 us in 2 gaps, nothing recorded in Train step 9",
         "GPU 0 idle 6 us in 4 gaps, nothing recorded in Train step 7"),
        ("GPU 0 idle 65 ms in 4 gaps, OSRT call: pread64 in read shard",
         "GPU 0 idle 10 ms in 1 gap, OSRT call: poll"),
    )  # fmt: skip
    sides = [tuple(Found("gpu_idle", "low", pair[n], 5) for pair in titles) for n in (0, 1)]
    changes = paired(*sides)
    assert changes is not None
    assert [change.status for change in changes] == ["in both"] * 2


@needs_reports
def test_work_of_a_report_adds_up_whatever_the_basis() -> None:
    report = opened(REPORTS / "many-kernels-2025.5.sqlite")
    side = measure(plan(report, by_step=False))
    ops = report.operations
    total = sum(n.total for g in ("kernels", "copies") for n in side.names(g).values())
    assert total == int(np.sum(ops.end - ops.start))


def host_only(path: Path, wait: int) -> Path:
    """Forty reductions of MPI between as many reads, which last 30 us; every fifth read nests."""
    synth = Synth(path).process(1000, "solver")
    for n in range(40):
        at = n * 1_000_000
        synth.mpi("MPI_Allreduce", at, at + wait + n % 3 * 100)
        synth.osrt("read", at + 600_000, at + 630_000 + n % 3 * 100)
        if n % 5 == 0:
            synth.osrt("read", at + 610_000, at + 620_000, nesting=1)
    return synth.write()


def test_calls_are_compared_where_there_is_no_gpu_work(tmp_path: Path) -> None:
    slow, fast = (
        host_only(tmp_path / "a.sqlite", 200_000),
        host_only(tmp_path / "b.sqlite", 100_000),
    )
    found = compared(slow, fast)
    (reduced,), (read,) = found.groups["mpi_calls"], found.groups["os_calls"]
    assert (reduced.name, reduced.a_count, reduced.b_count) == ("MPI_Allreduce", 40, 40)
    assert (reduced.a_total, reduced.b_total) == (40 * 200_000 + 3_900, 40 * 100_000 + 3_900)
    assert (str(reduced.verdict), reduced.kind) == ("better", "faster")
    assert (read.a_count, read.a_total) == (40, 40 * 30_000 + 3_900), "a nested call counts once"
    assert read.verdict is Verdict.SAME
    assert found.verdict is Verdict.BETTER
    assert found.judgement.reason.startswith("mean durations of 1 MPI call name")
    text = as_text(found)
    assert "Time of the whole" in text
    assert "MPI_Allreduce is faster (-50.0%)" in text


def test_calls_belong_to_the_step_in_which_they_start(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "a.sqlite").process(1000, "solver")
    for n in range(11):
        synth.nvtx(f"train step {n}", n * 10_000, n * 10_000 + 9_000)
        synth.osrt("read", n * 10_000 + 100, n * 10_000 + 1_100)
    side = measure(plan(opened(synth.write())))
    (read,) = side.groups["os_calls"].values()
    assert read.per_step is not None
    assert (read.per_step.count, read.per_step.mean, read.calls) == (side.parts, 1_000, 1)


@pytest.mark.parametrize(("asked", "kinds"), [("false", set()), ("true", {"gone"})])
def test_what_a_capture_did_not_record_is_not_gone(
    tmp_path: Path, asked: str, kinds: set[str]
) -> None:
    sides = []
    for name in ("a", "b"):
        synth = Synth(tmp_path / f"{name}.sqlite").process(1000, "solver")
        synth.meta("PROCESS_0:COLLECT_NVTX_TRACE", asked if name == "b" else "true", capture=True)
        for n in range(12):
            synth.osrt("read", n * 10_000, n * 10_000 + 5_000)
            if name == "a":
                synth.nvtx("load", n * 10_000, n * 10_000 + 7_000)
        sides.append(synth.write())
    found = compared(*sides)
    assert {row.kind for row in found.groups["ranges"]} == kinds
    assert found.why_empty("ranges").startswith("B: no NVTX ranges in this report: ")
    assert found.why_empty("api").startswith("A and B: no CUDA API calls in this report: ")
    assert as_text(found).count("no NVTX ranges in this report") == 1


def test_without_gpu_work_ranges_of_a_step_are_told_before_calls(tmp_path: Path) -> None:
    sides = []
    for name, load in (("a", 100_000), ("b", 500_000)):
        synth = Synth(tmp_path / f"{name}.sqlite").process(1000, "solver")
        for n in range(12):
            at = n * 2_000_000
            synth.nvtx(f"train step {n}", at, at + load + 200_000)
            synth.nvtx("load", at, at + load + 100 * n)
            synth.osrt("poll", at + 10, at + load + 100_000)
        sides.append(synth.write())
    (told,) = change_sentences(compared(*sides))
    assert told.startswith("load is slower (")


def test_another_host_program_is_not_comparable(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "b.sqlite").process(1000, "other")
    for n in range(200):
        synth.osrt("read", n * 1_000_000, n * 1_000_000 + 100_000)
    mine = Synth(tmp_path / "a.sqlite").process(1000, "mine")
    for n in range(20):
        mine.osrt("read", n * 1_000_000, n * 1_000_000 + 1_000)
        mine.osrt("nanosleep", n * 1_000_000 + 2_000, n * 1_000_000 + 900_000)
    found = compared(mine.write(), synth.write())
    assert found.verdict is Verdict.UNKNOWN
    assert found.judgement.reason.startswith("0.1% of the time in OS runtime calls is in those")
    (gate,) = outcomes(replace(found, judgement=compare(found.a, found.b, force=True).judgement),
                       [parse_gate("os:.*:5%")])  # fmt: skip
    assert gate.verdict is Verdict.WORSE


def ranks(path: Path, seed: int, slow: int = -1) -> Path:
    """Eight processes with a GPU each, 21 steps; one may compute a tenth longer."""
    random = np.random.default_rng(seed)
    synth = Synth(path)
    for rank in range(8):
        synth.process(1000 + rank, "train").gpu(rank, "Test GPU", cu_device=rank)
        synth.cuda_device(1000 + rank, rank, rank).mpi_rank(rank)
        for step in range(21):
            at = step * 1000 * US
            length = round(500 * US * (1.1 if rank == slow else 1) * random.normal(1, 0.01))
            synth.nvtx(f"train step {step}", at, at + 900 * US)
            synth.launch("gemm", (at + 5, at + 50), (at + US, at + US + length), device=rank)
    return synth.write()


def test_ranks_are_rows_corrected_as_a_family(tmp_path: Path) -> None:
    before = ranks(tmp_path / "a.sqlite", 1)
    found = compared(before, ranks(tmp_path / "b.sqlite", 2, slow=5))
    rows = {row.name: row for row in found.groups["ranks"]}
    assert len(rows) == 8
    assert [name for name, row in rows.items() if row.verdict.told] == ["rank 5, GPU 5"]
    row = rows["rank 5, GPU 5"]
    assert row.verdict is Verdict.WORSE
    assert row.change.ratio == pytest.approx(0.1, abs=0.02)
    assert row.statistic == "mean per step"
    told = 0
    for seed in range(3, 13):  # one of eight is outside of its own 95 % interval in a third of them
        same = compared(before, ranks(tmp_path / f"{seed}.sqlite", seed), threshold=0.0)
        told += any(row.verdict.told for row in same.groups["ranks"])
    assert told <= 2
    outcome, = outcomes(found, [parse_gate("rank:rank 5:5%")])  # fmt: skip
    assert outcome.verdict is Verdict.WORSE


def test_one_gpu_has_no_rows_of_ranks(tmp_path: Path) -> None:
    run = Run(jitter=0.005, seed=4)
    found = pair(tmp_path, run, run)
    assert found.groups["ranks"] == ()
    assert "by rank" not in as_text(found)


@pytest.mark.parametrize("other", ["", "DROP COLUMN deviceId", "RENAME TO kernels_of_tomorrow"])
def test_ranges_do_not_speak_for_kernels_that_cannot_be_known(tmp_path: Path, other: str) -> None:
    path = Run(steps=FEWEST).write(tmp_path / "a.sqlite")
    changed = tmp_path / "b.sqlite"
    shutil.copyfile(path, changed)
    with closing(sqlite3.connect(changed)) as db:
        db.execute("CREATE TABLE mine (a)")  # not the same file
        if other:
            db.execute(f"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL {other}")
        db.commit()
    judgement = compared(path, changed).judgement
    assert (judgement.verdict is Verdict.UNKNOWN) is bool(other)
    assert ("kernels cannot be known in B" in judgement.reason) is bool(other)
