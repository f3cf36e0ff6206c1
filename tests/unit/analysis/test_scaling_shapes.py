"""Shapes that once took time or memory with the square of their size, checked by their figures."""

from __future__ import annotations

import tracemalloc
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np
import pytest
from synth import Synth

from nsys_tui.analysis.iterations.table import iteration_table
from nsys_tui.analysis.nvtx.nesting import segments
from nsys_tui.analysis.rules.imbalance import _medians_of_others
from nsys_tui.analysis.stats.reports import run_report
from nsys_tui.analysis.window import Scope
from nsys_tui.model.tree import MOST_FRAMES
from nsys_tui.reader import open_report
from nsys_tui.reader.cache import cache_at

if TYPE_CHECKING:
    from pathlib import Path


def test_phases_of_steps_are_unions_clipped_to_each_step(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1000)
    for step in range(4):
        at = step * 1000
        synth.nvtx(f"step {step}", at, at + 900)
        synth.nvtx("load 1", at + 10, at + 60).nvtx("load 2", at + 100, at + 150)
        synth.nvtx("forward", at + 200, at + 700).nvtx("inner", at + 210, at + 300)
    table = iteration_table(open_report(synth.write()))
    phases = dict(zip(table.phases.names, table.phases.time.tolist(), strict=True))
    assert phases == {
        "load #": [100] * 4,
        "forward": [500] * 4,
        "[not annotated]": [400, 400, 400, 300],
    }


def test_the_stack_of_a_range_deep_down_is_cut_and_counted(tmp_path: Path) -> None:
    depth = MOST_FRAMES + 20
    synth = Synth(tmp_path / "r.sqlite").process(1000)
    for level in range(depth):
        synth.nvtx("visit", level, 10_000 - level)
    table = run_report(open_report(synth.write()), "nvtx_pushpop_trace")
    stacks, levels = list(table["RangeStack"]), [int(level) for level in table["Lvl"]]
    assert levels == list(range(depth))
    ids = [str(number) for number in table["RangeId"]]
    assert stacks[MOST_FRAMES] == "".join(f":{number}" for number in ids[: MOST_FRAMES + 1])
    trunk = "".join(f":{number}" for number in ids[:MOST_FRAMES])
    assert stacks[-1] == f"{trunk}:[... 19 ranges]:{ids[-1]}"


def test_the_innermost_of_ranges_on_fifty_thousand_levels() -> None:
    count = 50_000
    starts = np.arange(count)
    found = segments(starts, 4 * count - starts)
    assert found.owner[np.searchsorted(found.starts, starts)].tolist() == list(range(count))
    crossing = segments(starts, starts + count)
    assert crossing.owner[np.searchsorted(crossing.starts, starts)].tolist() == list(range(count))


def test_the_median_of_all_others() -> None:
    for values in ([3, 1, 2], [5, 5], [9, 1, 4, 4], [1, 2, 3, 4, 5]):
        found = _medians_of_others(np.array(values))
        wanted = [np.median([*values[:at], *values[at + 1 :]]) for at in range(len(values))]
        assert found.tolist() == wanted


def test_each_device_has_the_operations_that_a_mask_finds(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1000)
    for number in range(40):
        synth.kernel("k", number * 10, number * 10 + 25, device=number % 7)
    report = open_report(synth.write())
    ops = report.operations
    for scope in (Scope(), Scope(window=(95, 230)), Scope(devices=frozenset((1, 4)))):
        found = dict(scope.by_device(report))
        assert [*found] == scope.device_rows(report)
        for place, rows in found.items():
            lo, hi = scope.window or (-1, 10_000)
            mine = (ops.device == place) & (ops.start < hi) & (ops.end > lo)
            assert np.arange(len(ops))[rows].tolist() == np.flatnonzero(mine).tolist()


@pytest.mark.parametrize("name", ["range {}", "leak"])
@pytest.mark.parametrize("report", ["nvtx_kern_sum", "nvtx_gpu_proj_trace"])
def test_memory_grows_with_nested_ranges_not_with_their_square(
    tmp_path: Path, name: str, report: str
) -> None:
    peaks = []
    for count in (500, 2000):
        synth = Synth(tmp_path / f"{count}.sqlite").gpu()
        for at in range(0, 10 * count, 10):
            synth.nvtx(name.format(at), at, 100 * count - at)
            synth.launch(f"k{at % 70}", (at + 3, at + 6), (at + 5, at + 9 + at % 11))
        opened = open_report(synth.write(), use_cache=False)
        tracemalloc.start()
        run_report(opened, report)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 6 * peaks[0], "four times the ranges, not sixteen times the memory"


def test_parts_of_steps_are_the_same_from_the_cache(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "r.sqlite").process(1000)
    for step in range(6):
        at = step * 1_000_000
        synth.nvtx(f"step {step}", at, at + 900_000).osrt("read", at, at + 300_000)
        synth.launch("k", call=(at + 300_000, at + 310_000), gpu=(at + 320_000, at + 900_000))
        synth.launch("nccl", call=(at + 330_000, at + 340_000), gpu=(at + 900_000, at + 950_000))
    path = synth.write()
    cache = cache_at(str(tmp_path / "cache"))
    made, again = (iteration_table(open_report(path, cache=cache)).parts for _ in range(2))
    mine = iteration_table(open_report(path, patterns=("^k$",), cache=cache)).parts
    for one in fields(made):
        assert str(getattr(made, one.name)) == str(getattr(again, one.name)), one.name
    assert any("read" in name for step in again.names for name in step.values())
    assert mine.busy["transfer"].sum() > made.busy["transfer"].sum(), "other communication"
