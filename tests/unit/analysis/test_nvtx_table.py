from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from synth import Synth

from nsys_tui.analysis.iterations.detection import find_iterations
from nsys_tui.analysis.iterations.table import step_times
from nsys_tui.analysis.nvtx.operation_paths import operation_paths, similar_label, similar_paths
from nsys_tui.analysis.nvtx.table import NvtxTable, nvtx_table
from nsys_tui.analysis.window import WHOLE_REPORT, Scope
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report

US = 1_000
STEPS = 6


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Steps of 100 us with two layers of 30 us; in each layer a kernel of 20 us; step 4 is slow."""
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(100, "train")
    at = 0
    for step in range(STEPS):
        slow = 60 if step == 4 else 0
        synth.nvtx(f"step {step}", at * US, (at + 100 + slow) * US)
        for layer in range(2):
            begin = at + 5 + layer * (40 + slow // 2)
            synth.nvtx(f"layer {layer}", begin * US, (begin + 30 + slow // 2) * US)
            call = (begin + 1) * US
            synth.launch("gemm()", (call, call + US), (call + 5 * US, call + 25 * US))
        at += 100 + slow
    return open_report(synth.write(), use_cache=False)


def table_of(report: Report, *, merge: bool = True, scope: Scope = WHOLE_REPORT) -> NvtxTable:
    raw = operation_paths(report)
    return nvtx_table(report, raw, similar_paths(raw.paths, merge=merge), scope)


def lines(table: NvtxTable) -> dict[str, tuple[int, int, int]]:
    tree = table.tree
    return {
        table.labels[node]: (int(tree.count[node]), int(tree.host[node]), int(tree.gpu[node]))
        for node in np.flatnonzero(table.present).tolist()
        if node
    }


@pytest.mark.parametrize(
    ("names", "label"),
    [
        (["step"], "step"),
        (["layer 0", "layer 31", "layer 4"], "layer 0..31 (3 similar)"),
        (["gemm_64x64", "gemm_128x128"], "gemm_#x# (2 similar)"),
        (["fwd 2 of 7", "fwd 3 of 7"], "fwd 2..3 of 7 (2 similar)"),
        (["aten::mm, op_id = 1", "aten::mm, op_id = 22"], "aten::mm (2 similar)"),
        (["login hf_" + "a1b2" * 8, "login hf_" + "c34d" * 8], "login [redacted] (2 similar)"),
    ],
)
def test_similar_names_become_one_label(names: list[str], label: str) -> None:
    assert similar_label(names) == label


def test_steps_and_layers_are_merged_level_by_level(report: Report) -> None:
    assert lines(table_of(report)) == {
        "step 0..5 (6 similar)": (6, 660 * US, 240 * US),
        "layer 0..1 (2 similar)": (12, 420 * US, 240 * US),
    }
    apart = lines(table_of(report, merge=False))
    assert apart["step 4"] == (1, 160 * US, 40 * US)
    assert len([name for name in apart if name.startswith("step")]) == STEPS


def test_a_window_leaves_out_what_it_does_not_touch(report: Report) -> None:
    table = table_of(report, merge=False, scope=Scope(window=(0, 60 * US)))
    assert set(lines(table)) == {"step 0", "layer 0", "layer 1"}
    assert lines(table)["step 0"] == (1, 60 * US, 29 * US), "11..31 and 51..71"


def test_busy_is_a_share_of_the_span(report: Report) -> None:
    table = table_of(report)
    top = table.labels.index("step 0..5 (6 similar)")
    # First kernel 11..31, last one at 560+45+6 .. +20.
    span = (560 + 45 + 6 + 20 - 11) * US
    assert table.tree.busy_share[top] == pytest.approx(240 * US / span)
    assert table.when[top].sum() == 660 * US


def test_kernels_and_instances_of_a_node(report: Report) -> None:
    table = table_of(report)
    layer = np.array([table.labels.index("layer 0..1 (2 similar)")])
    assert len(table.instances(layer)) == 12
    assert len(table.operations(layer)) == 12
    assert len(table.operations(np.array([0]))) == 12


def test_a_name_inside_itself_counts_once(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(1)
    synth.nvtx("f", 0, 100 * US).nvtx("g", 10 * US, 90 * US).nvtx("f", 20 * US, 60 * US)
    synth.nvtx("f", 200 * US, 250 * US)
    synth.launch("k()", (30 * US, 31 * US), (40 * US, 70 * US))
    synth.launch("k()", (210 * US, 211 * US), (50 * US, 80 * US))
    report = open_report(synth.write(), use_cache=False)
    table = table_of(report)
    flat = table.flat
    row = [table.names[code] for code in flat.label.tolist()].index("f")
    assert int(flat.count[row]) == 3
    assert int(flat.host[row]) == 150 * US
    assert int(flat.host_self[row]) == (20 + 40 + 50) * US
    assert int(flat.gpu[row]) == 60 * US
    assert int(flat.gpu_busy[row]) == 40 * US
    late = table_of(report, scope=Scope((200 * US, 250 * US)))
    assert [late.names[code] for code in late.flat.label.tolist()] == ["f"]
    assert int(late.flat.count[0]) == 1
    assert len(table_of(report, scope=Scope((260 * US, 300 * US))).flat) == 0


def test_one_name_on_two_paths_has_the_union_of_both(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").gpu(0).process(1)
    for base, outer in ((0, "a"), (100, "b")):
        synth.nvtx(outer, base * US, (base + 50) * US)
        synth.nvtx("mm", (base + 1) * US, (base + 40) * US)
        call = (base + 2) * US
        synth.launch("k()", (call, call + US), (200 * US + base * 100, 240 * US + base * 100))
    table = table_of(open_report(synth.write(), use_cache=False))
    flat = table.flat
    row = [table.names[code] for code in flat.label.tolist()].index("mm")
    assert len(flat.nodes[row]) == 2
    assert int(flat.gpu[row]) == 80 * US
    assert int(flat.gpu_busy[row]) == 50 * US
    assert int(flat.span[row]) == 50 * US


def test_small_nodes_are_uninteresting(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1)
    synth.nvtx("big", 0, 1_000 * US).nvtx("tiny", 10, 20).nvtx("small", 1_000 * US, 1_001 * US)
    table = table_of(open_report(synth.write(), use_cache=False))
    dull = {table.labels[node] for node in np.flatnonzero(table.dull).tolist()}
    assert {"tiny", "small"} <= dull
    assert "big" not in dull


def test_time_per_iteration_names_the_slow_one(report: Report) -> None:
    table = table_of(report)
    found = find_iterations(report)
    layer = table.instances(np.array([table.labels.index("layer 0..1 (2 similar)")]))
    steps = step_times(report, found, layer)
    assert steps.time.tolist() == [60 * US] * 4 + [120 * US, 60 * US]
    assert steps.outliers.tolist() == [4]
    assert steps.median == 60 * US
    assert report.ranges.duration[steps.rows[4]] == 60 * US


def test_ranges_outside_of_iterations_are_listed_one_by_one(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1)
    synth.nvtx("load", 0, 5 * US).nvtx("load", 10 * US, 20 * US)
    for step in range(4):
        synth.nvtx(f"step {step}", (100 + step * 10) * US, (109 + step * 10) * US)
    report = open_report(synth.write(), use_cache=False)
    found = find_iterations(report)
    assert len(found) == 4
    loads = np.flatnonzero([report.ranges.names[code] == "load" for code in report.ranges.name])
    steps = step_times(report, found, loads)
    assert not steps.by_iteration
    assert steps.time.tolist() == [5 * US, 10 * US]


def test_busy_is_told_per_gpu(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1)
    for outer, begin in (("a", 0), ("b", 100)):
        synth.nvtx(outer, begin, begin + 90).nvtx("step", begin + 10, begin + 80)
        for device, call in ((0, begin + 20), (1, begin + 30)):
            synth.launch("gemm", (call, call + 5), (begin + 40, begin + 80), device=device)
    table = table_of(open_report(synth.write(), use_cache=False), merge=False)
    flat, tree = table.flat, table.tree
    row = flat.label.tolist().index(table.names.index("step"))
    # Two GPUs busy for 40 ns in each of two instances, over a span of 40..180.
    assert (int(flat.gpu_busy[row]), int(flat.gpus[row])) == (160, 2)
    assert flat.busy_share[row] == pytest.approx(160 / (2 * 140))
    apart = np.flatnonzero(tree.gpu_count == 2)
    assert len(apart) == 4
    assert set(tree.gpu_busy[apart].tolist()) == {80}
    assert set(tree.gpus[apart].tolist()) == {2}
    assert set(tree.busy_share[apart].tolist()) == {1.0}
