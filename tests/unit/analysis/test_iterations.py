from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synth import Synth

from nsys_tui.analysis.compare.measure import measure
from nsys_tui.analysis.compare.plan import plan
from nsys_tui.analysis.compare.side import HOST_AHEAD
from nsys_tui.analysis.iterations.answer import answer_of
from nsys_tui.analysis.iterations.detection import find_iterations, gpu_step_ns
from nsys_tui.analysis.iterations.kernel_pattern import smallest_period
from nsys_tui.analysis.iterations.steps import Rule
from nsys_tui.analysis.iterations.table import REMAINDER, phases
from nsys_tui.analysis.nvtx.paths import nvtx_paths
from nsys_tui.analysis.window import Scope
from nsys_tui.errors import UsageError
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MS = 1_000_000


@pytest.fixture
def synth(tmp_path: Path) -> Synth:
    return Synth(tmp_path / "report.sqlite").process(1000)


def steps(synth: Synth, name: str = "Train step {}", count: int = 4, width: int = 100) -> Synth:
    for number in range(count):
        start = number * width
        synth.nvtx(name.format(number), start, start + width - 10)
        synth.nvtx("forward", start + 5, start + 35).nvtx("backward", start + 40, start + 80)
        synth.kernel("k", start, start + 10)
    return synth


def test_steps_are_found_by_name_and_last_from_start_to_next_start(synth: Synth) -> None:
    found = find_iterations(open_report(steps(synth).write()))
    assert (found.rule, found.name) == (Rule.NAME, "Train step #")
    assert found.duration.tolist() == [100, 100, 100, 90]
    assert found.labels[2] == "Train step 2"
    assert found.steady.tolist() == [100, 100, 90]


@pytest.mark.parametrize("name", ["Train step 7{}", "Train step", "block 7{} of 9"])
def test_a_capture_that_begins_in_mid_run_leaves_no_step_out(synth: Synth, name: str) -> None:
    found = find_iterations(open_report(steps(synth, name).write()))
    assert not found.warm_up
    called_a_step = name.startswith("Train")
    assert found.steady.tolist() == [100, 100, 100, *[90] * called_a_step]


@pytest.mark.parametrize(
    ("call", "at", "warm"),
    [
        ("cuModuleLoadData", 50, True),
        ("cuLibraryLoadData", 50, True),
        ("cuModuleLoadData", 150, False),
        ("cudaMalloc_v3020", -50, True),
        ("cudaMalloc_v3020", 50, False),
        ("cudaLaunchKernel_v7000", 50, False),
    ],
)
def test_a_first_step_with_what_only_a_first_one_does_is_warm_up(
    synth: Synth, call: str, at: int, warm: bool
) -> None:
    found = find_iterations(open_report(steps(synth, "Train step").api(call, at, at + 9).write()))
    assert (found.warm_up, len(found.steady)) == (int(warm), 3 if warm else 4)


@pytest.mark.parametrize(("first", "warm"), [((-40,), False), ((-40, -25), True)])
def test_who_always_allocates_does_not_set_up(
    synth: Synth, first: tuple[int, ...], warm: bool
) -> None:
    """A capture begins in a step; each allocates once, the one before the first whole one twice."""
    synth.launch("k", (-50, -49), (-45, -40))
    for at in (*first, 50, 150, 250, 350):
        synth.api("cudaMalloc_v3020", at, at + 9)
    synth.api("cudaFree_v3020", 360, 370).api("cudaFree_v3020", 380, 390)
    found = find_iterations(open_report(steps(synth, "Train step").write()))
    assert found.warm_up == warm


@pytest.mark.parametrize(
    ("call", "lasts", "warm"),
    [
        ("cudaFree_v3020", 10_000_000, True),
        ("cudaFree_v3020", 9_000_000, False),
        ("cudaStreamSynchronize_v3020", 10_000_000, False),
    ],
)
def test_who_makes_a_context_sets_up(synth: Synth, call: str, lasts: int, warm: bool) -> None:
    """It allocates in each step as much as before the first one."""
    synth.api(call, -lasts - 60, -60).launch("k", (-50, -49), (-45, -40))
    for at in (-40, 50, 150, 250, 350):
        synth.api("cudaMalloc_v3020", at, at + 9)
    found = find_iterations(open_report(steps(synth, "Train step").write()))
    assert found.warm_up == warm


@pytest.mark.parametrize("warm", [False, True])
def test_a_first_call_that_copies_has_a_context(synth: Synth, warm: bool) -> None:
    corr = synth.next_correlation()
    synth.api("cudaMemcpyAsync_v3020", -10_000_060, -60, corr=None if warm else corr)
    synth.memcpy(-10_000_000, -60, corr=corr)
    found = find_iterations(open_report(steps(synth, "Train step").write()))
    assert found.warm_up == warm


@pytest.mark.parametrize(("width", "warm"), [(140, False), (160, True)])
def test_a_first_step_far_longer_than_the_others_is_warm_up(
    synth: Synth, width: int, warm: bool
) -> None:
    for start in (0, *range(width, width + 500, 100)):
        synth.nvtx("Train step", start, start + 90).kernel("k", start, start + 10)
    found = find_iterations(open_report(synth.write()))
    assert (found.warm_up, int(found.counted.sum())) == (warm, 5 if warm else 6)


@pytest.mark.parametrize(
    ("name", "slow", "warm"),
    [
        ("step {}", (), 1),
        ("step {}", (0, 1), 2),
        ("step {}", (0, 1, 2), 3),
        ("step {}", (0, 1, 2, 3, 4), 5),
        ("step", (), 0),
        ("step", (0, 1, 2), 3),
        ("step", (2,), 0),  # mid-run
        ("step {}", (2,), 1),
        ("step {}", (0, 1, 2, 14), 3),
        ("step {}", (0, 1, 2, 9, 14), 1),  # slow ones come all the time
        ("step", tuple(range(7)), 1),  # a phase of its own
    ],
)
def test_slow_steps_right_after_the_first_are_warm_up(
    synth: Synth, name: str, slow: tuple[int, ...], warm: int
) -> None:
    start = 0
    for number in range(20):
        synth.nvtx(name.format(number), start, start + 90).kernel("k", start, start + 10)
        start += 160 if number in slow else 100
    found = find_iterations(open_report(synth.write()))
    assert (found.warm_up, int(found.counted.sum())) == (warm, 20 - warm)


@pytest.mark.parametrize(("at", "warm"), [((), 1), ((1,), 2), ((2,), 1), ((1, 2), 3), ((7,), 1)])
def test_a_slow_step_in_which_code_is_loaded_is_warm_up_though_slow_ones_come_later(
    synth: Synth, at: tuple[int, ...], warm: int
) -> None:
    """The host waits for the GPU in the last ten of 30 steps, as in runs that launch ahead."""
    start = 0
    for number in range(30):
        synth.nvtx(f"step {number}", start, start + 90)
        if number in at:
            synth.api("cuLibraryLoadData", start + 10, start + 60)
        start += 200 if number < 3 or number >= 20 else 100
    assert find_iterations(open_report(synth.write())).warm_up == warm


def test_a_window_in_mid_run_leaves_no_step_out(synth: Synth) -> None:
    report = open_report(steps(synth.api("cuModuleLoadData", 5, 9), count=9).write())
    found = find_iterations(report, scope=Scope(window=(250, 900)))
    assert (found.labels[0], found.warm_up) == ("Train step 2", False)


def test_steps_of_one_name_are_told_apart_by_their_numbers(synth: Synth) -> None:
    found = find_iterations(open_report(steps(synth, "Train step").write()))
    assert found.labels == tuple(f"Train step ({number})" for number in range(4))


def test_outermost_repeated_range_serves_when_no_name_tells(synth: Synth) -> None:
    found = find_iterations(open_report(steps(synth, "chunk {}").write()))
    assert (found.rule, found.name) == (Rule.OUTERMOST, "chunk #")


@pytest.mark.parametrize(
    ("name", "lengths", "found"),
    [
        ("join", [95] * 6, True),
        ("join", [5, 95, 40, 20, 80, 60], False),  # six times something else
        ("layer {}", [95] * 6, False),  # one pass through a model
        ("phase {}", [95] * 6, False),
        ("aten::to, op_id = {}", [95] * 6, False),
        ("Convolution, seq = {}, op_id = 7", [95] * 6, False),
    ],
)
def test_what_is_not_called_a_step_is_one_only_if_it_looks_like_one(
    synth: Synth, name: str, lengths: list[int], found: bool
) -> None:
    at = 0
    for number, length in enumerate(lengths):
        synth.nvtx(name.format(number), at, at + length).kernel(f"k{number}", at, at + length)
        at += length + 5
    assert (find_iterations(open_report(synth.write())).rule is Rule.OUTERMOST) is found


def test_repeats_with_a_layer_each_are_one_pass(synth: Synth) -> None:
    for number in range(6):
        at = number * 100
        synth.nvtx(f"pre_forward (blocks.{number + 2}.mlp), op_id = {number * 57}", at, at + 3)
        synth.kernel("a", at, at + 20).kernel("b", at + 30, at + 90)
    assert find_iterations(open_report(synth.write())).rule is Rule.NONE


@pytest.mark.parametrize(
    ("other", "width"),
    [("train epoch {}", 800), ("Optimizer.step#Adam.step", 10), ("validation_step", 95)],
)
def test_what_holds_steps_or_is_beside_them_is_none(synth: Synth, other: str, width: int) -> None:
    for number in range(24):
        synth.nvtx("training_step" if number % 8 else other, number * 100, number * 100 + 60)
        if number % 8 == 0:
            synth.nvtx(other.format(number), number * 100 + 5, number * 100 + 5 + width)
        synth.kernel("k", number * 100, number * 100 + 90)
    assert find_iterations(open_report(synth.write())).name == "training_step"


def test_steps_are_those_of_a_thread_that_launches(synth: Synth) -> None:
    steps(synth, "train_step", 6)
    for number in range(6):
        at = number * 100
        synth.nvtx("load batch", at, at + 99, tid=11)
        synth.launch("k", call=(at, at + 5), gpu=(at + 6, at + 90))
    assert find_iterations(open_report(synth.write())).name == "train_step"


@pytest.mark.parametrize(("restart", "wanted"), [(6, Rule.NUMBERED), (4, Rule.NONE)])
def test_ranges_that_count_up_are_steps_though_they_cover_little(
    synth: Synth, restart: int, wanted: Rule
) -> None:
    for number in range(6):
        start = number * 1000
        synth.nvtx(f"frame {number % restart + 7}", start, start + 100)
        synth.kernel("k", start, start + 10)
    found = find_iterations(open_report(synth.write()))
    assert found.rule is wanted
    assert found.duration.tolist() == ([1000] * 5 + [100] if found else [])


@pytest.mark.parametrize("width", [40, 900])
def test_a_turn_through_all_layers_is_a_step(synth: Synth, width: int) -> None:
    for number in range(30):
        start = number * 1000 + number // 5 * 300
        synth.nvtx(f"layer.{number % 5}", start, start + width)
        for kernel in range(3):
            at = start + 10 * kernel
            synth.launch(f"k{kernel}", call=(at, at + 1), gpu=(at + 2, at + 8))
    found = find_iterations(open_report(synth.write()))
    assert (found.rule, found.name) == (Rule.NUMBERED, "layer.0 to layer.4")
    assert found.duration.tolist() == [5300] * 5 + [4000 + width]
    assert (found.labels[1], len(found.rows)) == ("turn 1", 0)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("training_step", True), ("ProfilerStep#{}", True), ("batch_norm", False), ("walk", False)],
)
def test_steps_are_found_inside_epochs_that_come_again(
    synth: Synth, name: str, wanted: bool
) -> None:
    for epoch in range(3):
        synth.nvtx(f"epoch {epoch}", epoch * 400, epoch * 400 + 395)
    found = find_iterations(open_report(steps(synth, name, count=12).write()))
    assert (found.name, len(found)) == ((name.format("#"), 12) if wanted else ("epoch #", 3))
    assert found.rule is (Rule.NAME if wanted else Rule.OUTERMOST)


def test_two_instances_are_too_few(synth: Synth) -> None:
    assert find_iterations(open_report(steps(synth, count=2).write())).rule is Rule.NONE


def test_kernel_pattern_serves_without_ranges(synth: Synth) -> None:
    for number in range(5):
        for place, name in enumerate("abac"):
            start = number * 100 + place * 20
            synth.kernel(name, start, start + 10)
    found = find_iterations(open_report(synth.write()))
    assert (found.rule, found.name) == (Rule.PATTERN, "4 kernels")
    assert found.start.tolist() == [0, 100, 200, 300, 400]
    assert found.duration.tolist() == [100, 100, 100, 100, 70]
    assert found.steady.tolist() == [100] * 4  # what follows the last kernel is not known


@pytest.mark.parametrize(("pause", "steady"), [(9, 5), (11, 4)])
def test_the_last_repeat_counts_where_hardly_anything_follows_the_others(
    synth: Synth, pause: int, steady: int
) -> None:
    for number in range(5):
        for place, name in enumerate("abac"):
            start = number * 1000 + place * 250
            synth.kernel(name, start, start + 250 - (pause if place == 3 else 10))
    found = find_iterations(open_report(synth.write()))
    assert (len(found), len(found.steady)) == (5, steady)


@pytest.mark.parametrize(
    ("graph", "layers", "told"),
    [
        (False, 1, (12, "2 kernels")),
        (False, 2, (6, "4 kernels")),
        (False, 6, (0, "")),  # two turns are too few
        (True, 4, (3, "8 kernels")),
        (True, 6, (0, "")),
    ],
)
def test_what_no_other_call_parts_is_one_turn(
    synth: Synth, graph: bool, layers: int, told: tuple[int, str]
) -> None:
    """12 layers of two kernels; some are launched, one by one or by a graph, then waited for."""
    call = 0
    for place in range(24):
        at, first = 20 * place, place % (2 * layers) == 0
        if first:
            synth.api("cudaDeviceSynchronize", at - 9, at - 1, corr=1000 + place)
        if first or not graph:
            call += 1
            synth.api("cudaGraphLaunch" if graph else "cudaLaunchKernel", at, at + 5, corr=call)
        synth.kernel("ab"[place % 2], at + 10, at + 20, corr=call)
    found = find_iterations(open_report(synth.write()))
    assert (len(found), found.name) == told


@pytest.mark.parametrize(
    ("lengths", "told"),
    [
        ([100] * 8, True),
        ([100, 120, 80, 110, 95, 300, 90, 105], True),  # one slow step is still a step
        ([100, 900, 90, 400, 2_000, 85, 700, 1_500], False),
    ],
)
def test_repeats_are_steps_only_if_they_are_alike(
    synth: Synth, lengths: list[int], told: bool
) -> None:
    start = 0
    for length in lengths:
        for place, name in enumerate("abac"):
            synth.kernel(name, start + place * 20, start + place * 20 + 10)
        start += length
    found = find_iterations(open_report(synth.write()))
    assert (found.rule is Rule.PATTERN, len(found) > 0) == (told, told)


def test_a_pattern_asked_for_comes_first_and_must_be_valid(synth: Synth) -> None:
    report = open_report(steps(synth).write())
    found = find_iterations(report, "^backward$")
    assert (found.rule, found.name, len(found)) == (Rule.ASKED, "backward", 4)
    with pytest.raises(UsageError):
        find_iterations(report, "(")
    assert len(find_iterations(report, "nothing like this")) == 0


def test_a_slow_step_is_an_outlier_and_the_warm_up_is_not(synth: Synth) -> None:
    start = 0
    for number, width in enumerate((900, 100, 101, 99, 100, 300, 100, 100)):
        synth.nvtx(f"step {number}", start, start + width - 5)
        start += width
    found = find_iterations(open_report(synth.write()))
    assert found.outliers.tolist() == [5]


def test_a_step_that_never_closed_is_in_no_deviation(synth: Synth) -> None:
    start = 0
    for number, width in enumerate((900, 1000, 1020, 980, 1060, 1200)):
        synth.nvtx(f"step {number}", start, start + width)
        start += width
    synth.nvtx("step 6", start, None).kernel("k", start, start + 40)
    found = find_iterations(open_report(synth.write()))
    # Median 1020, median distance 40; with the last one the median would be 1010.
    assert found.z[5] == pytest.approx(180 / (1.4826 * 40))


def test_without_gpu_work_the_outermost_ranges_that_come_again_are_steps(synth: Synth) -> None:
    for at in range(0, 400, 100):
        synth.nvtx("decode", at, at + 60).nvtx("write", at + 65, at + 95)
    report = open_report(synth.session(1000).write())
    found = find_iterations(report)
    assert (found.rule, found.name) == (Rule.OUTERMOST, "decode")
    split = phases(report, found, nvtx_paths(report).parent)
    assert split.names == ("decode", "write", REMAINDER)
    assert split.time[:, :3].tolist() == [[60] * 3, [30] * 3, [10] * 3]


def test_what_follows_a_step_before_the_next_is_a_phase_of_it(synth: Synth) -> None:
    synth.nvtx("save", 192, 197).nvtx("other thread", 192, 198, tid=9)
    report = open_report(steps(synth).write())
    split = phases(report, find_iterations(report), nvtx_paths(report).parent)
    assert split.names == ("forward", "backward", "save", REMAINDER)
    assert split.time[2:].tolist() == [[0, 5, 0, 0], [30, 25, 30, 20]]


@pytest.mark.parametrize(("session", "closed"), [(5100, True), (5000, False)])
def test_a_step_that_ends_with_the_session_to_the_nanosecond_never_closed(
    synth: Synth, session: int, closed: bool
) -> None:
    for number in range(5):
        synth.nvtx(f"step {number}", 1000 * number, 1000 * (number + 1))
    found = find_iterations(open_report(synth.session(session).write()))
    assert found.never_closed.tolist() == [False] * 4 + [not closed]


def test_phases_and_what_is_not_annotated_add_up(synth: Synth) -> None:
    report = open_report(steps(synth).write())
    found = find_iterations(report)
    split = phases(report, found, nvtx_paths(report).parent)
    assert split.names == ("forward", "backward", REMAINDER)
    assert split.time[0].tolist() == [30, 30, 30, 30]
    assert split.time.sum(axis=0).tolist() == found.duration.tolist()


def by_hand(names: list[int]) -> int | None:
    equal = {}
    for shift in range(1, len(names) // 3 + 1):
        pairs = list(zip(names, names[shift:], strict=False))
        equal[shift] = sum(a == b for a, b in pairs) / len(pairs)
    enough = max(0.9, max(equal.values(), default=0) - 0.01)
    return next((shift for shift, share in equal.items() if share >= enough), None)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(1, 9))
def test_smallest_period_equals_a_search_by_hand(block: list[int], repeats: int) -> None:
    names = block * repeats
    assert smallest_period(np.array(names)) == by_hand(names)


def test_a_long_noisy_pattern_is_found() -> None:
    random = np.random.default_rng(1)
    names = np.tile(random.integers(0, 30, 1733), 40)
    noise = random.random(len(names)) < 0.03
    names[noise] = random.integers(0, 30, int(noise.sum()))
    assert smallest_period(names) == 1733


def test_a_step_of_layers_is_its_period_and_not_a_layer() -> None:
    step = [0, *[1, 2, 3, 4] * 24, 5]
    assert smallest_period(np.array(step * 5)) == len(step)
    assert smallest_period(np.array(step * 50)) == len(step)


def test_repeats_begin_after_the_pause_of_the_host(tmp_path: Path) -> None:
    """The capture begins amid a step; half of each is launched by another thread."""
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for number in range(3, 60):
        at = number * 10_000 + number // 6 * 50_000
        tid = 10 + number % 6 // 3
        synth.launch(f"k{number % 6}", (at, at + 2_000), (at + 5_000, at + 9_000), tid=tid)
        if number % 6 == 5:
            synth.api("cudaStreamSynchronize_v3020", at + 3_000, at + 9_500)
    found = find_iterations(open_report(synth.write(), use_cache=False))
    assert (found.rule, len(found)) == (Rule.PATTERN, 9)
    assert found.start[0] == 6 * 10_000 + 50_000 + 5_000


@pytest.mark.parametrize(("waits", "rule"), [(True, Rule.PATTERN), (False, Rule.NONE)])
@pytest.mark.parametrize("graphs", [True, False])
def test_launches_over_and_over_are_steps_only_with_another_call(
    tmp_path: Path, waits: bool, rule: Rule, graphs: bool
) -> None:
    """A graph, or a GEMM with its reduction; the host waits each time, or never."""
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for number in range(20):
        at = number * 100_000
        if graphs:
            corr = synth.next_correlation()
            synth.api("cudaGraphLaunch_v10000", at, at + 2_000, corr=corr)
            synth.graph(at + 5_000, at + 85_000, corr=corr)
        else:
            synth.launch("gemm", (at, at + 2_000), (at + 5_000, at + 80_000))
            synth.launch("reduce", (at + 3_000, at + 4_000), (at + 80_000, at + 85_000))
        if waits:
            synth.api("cudaStreamSynchronize_v3020", at + 5_000, at + 86_000)
    assert find_iterations(open_report(synth.write(), use_cache=False)).rule is rule


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("steps", True), ("threads", False), ("calls", False), ("a part", False), ("even", False)],
)
def test_a_pattern_of_kernels_needs_a_host_that_repeats_itself(
    tmp_path: Path, kind: str, wanted: bool
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for repeat in range(20):
        start = repeat * 100_000
        for number in range(5):
            at = start + number * (20_000 if kind == "even" else 17_000)
            tid = 10 + repeat % 3 if kind == "threads" else 10
            synth.launch(f"k{number}", (at, at + 2_000), (at + 5_000, at + 19_000), tid=tid)
            for _ in range(repeat**2 if kind == "calls" else 1):
                synth.api("cudaEventRecord_v3020", at + 3_000, at + 3_010, tid=10)
    if kind == "a part":
        synth.launch("last", (9_000_000, 9_001_000), (9_002_000, 9_003_000))
    found = find_iterations(open_report(synth.write(), use_cache=False))
    assert (found.rule is Rule.PATTERN) is wanted


@pytest.mark.parametrize(
    ("kernels", "waits_each", "wanted"),
    [(100, 10, True), (100, 200, False), (100, 12, False), (103, 10, False), (100, 1, False)],
)
def test_an_even_stream_is_a_loop_where_whole_turns_are_all_of_it(
    tmp_path: Path, kernels: int, waits_each: int, wanted: bool
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for number in range(kernels):
        at = number * 20_000
        synth.launch(f"k{number % 5}", (at, at + 2_000), (at + 5_000, at + 19_000))
        if number % waits_each == waits_each - 1:
            synth.api("cudaDeviceSynchronize_v3020", at + 3_000, at + 19_500)
    found = find_iterations(open_report(synth.write(), use_cache=False))
    assert (found.rule is Rule.PATTERN) is wanted
    assert len(found) == wanted * kernels // waits_each


@pytest.mark.parametrize(("waits", "wanted"), [(False, 1000.0), (True, None)])
def test_steps_of_a_host_that_runs_ahead_are_told_from_those_of_the_gpu(
    synth: Synth, waits: bool, wanted: float | None
) -> None:
    for number in range(8):
        start = number * (1000 if waits else 20)
        synth.nvtx(f"step {number}", start, start + (990 if waits else 18))
        gpu = number * 1000 + 5
        synth.launch("k", call=(start + 1, start + 4), gpu=(gpu, gpu + 980))
    found = find_iterations(report := open_report(synth.write()))
    told = gpu_step_ns(report, found)
    assert told == (None if wanted is None else pytest.approx(wanted, rel=0.01))
    made = plan(report)
    assert made.by_step is waits
    assert (measure(made).notes == (HOST_AHEAD,)) is not waits


@pytest.mark.parametrize(
    ("label", "rule"), [("my_step {}", Rule.NAME), ("my_step", None), ("train_step", Rule.NAME)]
)
def test_counted_steps_of_a_host_far_ahead_are_found_by_a_joined_name(
    tmp_path: Path, label: str, rule: Rule | None
) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(10)
    for step in range(6):
        begin = step * 100_000
        synth.nvtx(label.format(step), begin, begin + 90_000)
        gpu = (step * 10_000_000 + 100_000, step * 10_000_000 + 9_000_000 + step)
        synth.launch(f"k{step}", (begin, begin + 5_000), gpu)
    found = find_iterations(open_report(synth.write(), use_cache=False))
    assert (found.rule if found.rule is not Rule.NONE else None) is rule


def recorded_in_the_middle(path: Path, calls: Sequence[int] = ()) -> Synth:
    """Ten steps of 10 ms, of which CUDA is recorded in steps 4 to 6, and 3 and 7 in part."""
    synth = Synth(path).process(10).gpu(0)
    for step in range(10):
        synth.nvtx(f"step {step}", step * 10 * MS, (step + 1) * 10 * MS)
        if step in calls:
            synth.api("cudaGetDevice", step * 10 * MS, step * 10 * MS + 10)
    for at in range(39 * MS, 72 * MS, MS):
        synth.launch("k", call=(at, at + 10), gpu=(at + 20, at + MS // 2))
    return synth


def test_nothing_is_said_of_gpus_in_steps_that_cuda_was_not_recorded_in(tmp_path: Path) -> None:
    report = open_report(recorded_in_the_middle(tmp_path / "r.sqlite").write())
    steps = find_iterations(report)
    assert steps.coverage == "CUDA is recorded in 3 of 10 steps"
    assert steps.typical == 4
    assert [*steps.of_recorded.labels] == ["step 4", "step 5", "step 6"]
    assert [*steps.of_recorded.duration] == [10 * MS] * 3
    answer = answer_of(report)
    known = [bool(share == share) for share in answer.shares]
    assert known == [step in (4, 5, 6) for step in range(10)]
    columns = {column.key: column for column in answer.each().columns}
    for key in ("gpu_busy_ns", "gpu_busy_share"):
        told = [columns[key].of(step, answer) for step in range(10)]
        assert [one is not None and one == one for one in told] == known
    assert steps.coverage in [note.split(":")[0] for note in answer.phases().notes]


def test_steps_without_gpu_work_between_calls_of_cuda_are_idle(tmp_path: Path) -> None:
    run = recorded_in_the_middle(tmp_path / "r.sqlite", calls=(0, 9))
    answer = answer_of(open_report(run.write()))
    assert not answer.table.iterations.coverage
    assert answer.shares[0] == answer.shares[9] == 0
