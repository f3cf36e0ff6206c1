from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from synth import Synth

from nsys_tui.analysis.estimate import kernel_runs, sampled_kernels
from nsys_tui.analysis.kernel_table import kernel_table
from nsys_tui.analysis.window import Scope
from nsys_tui.model.lanes import cell_edges
from nsys_tui.names import NameStyle
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from nsys_tui.model.events import Operations
    from nsys_tui.model.report import Report

PAGE = 40


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """4000 kernels of 70 ns every 100 ns; in the second half every other one communicates."""
    path = tmp_path_factory.mktemp("estimate") / "r.sqlite"
    synth = Synth(path).process(1, "p").gpu()
    for n in range(4000):
        name = "ncclDevKernel_X(int)" if n >= 2000 and n % 2 else "gemm(float*)"
        synth.kernel(name, 100 * n, 100 * n + 70)
    return open_report(synth.write(), use_cache=False)


@pytest.fixture(scope="module")
def operations(report: Report) -> Operations:
    return report.operations


def sampled(ops: Operations) -> Operations:
    """Every tenth page of rows, as the reader samples."""
    return ops.take((ops.rowid - 1) // PAGE % 10 == 0)


def test_shares_of_a_sample_are_those_of_the_whole(operations: Operations) -> None:
    shares = kernel_runs(sampled(operations), 0).shares
    assert shares.busy == pytest.approx(0.7, abs=0.02)
    assert shares.compute == pytest.approx(0.7 * 0.75, abs=0.02)
    assert shares.comm == pytest.approx(0.7 * 0.25, abs=0.02)


def test_the_lane_covers_wide_cells_as_the_whole_does(operations: Operations) -> None:
    lane = kernel_runs(sampled(operations), 0).lane()
    covered = lane.busy(cell_edges(0, 360_000, 9)) / 40_000
    assert covered == pytest.approx(np.full(9, 0.7), abs=0.03)


def test_overlapping_kernels_never_count_as_more_than_all(operations: Operations) -> None:
    doubled = replace(operations, end=operations.start + 250)
    runs = kernel_runs(sampled(doubled), 0)
    assert runs.shares.busy == pytest.approx(1.0)
    assert runs.shares.comm == pytest.approx(1 / 2 * 1.0, abs=0.15)
    covered = runs.lane().busy(cell_edges(0, 360_000, 9)) / 40_000
    assert covered == pytest.approx(np.ones(9), abs=0.02)


def test_a_device_without_kernels_has_no_runs(operations: Operations) -> None:
    runs = kernel_runs(operations, 5)
    assert runs.shares == (0.0, 0.0, 0.0)
    assert len(runs.lane()) == 0


def test_kernels_of_a_sample_are_scaled_to_the_whole(report: Report) -> None:
    exact = kernel_table(report)
    _, found = sampled_kernels(report, sampled(report.operations), Scope(), NameStyle.SHORT)
    assert found.labels == exact.labels
    # The last of ten sampled pages ends a tenth of the way before the table does.
    assert found.count == pytest.approx(exact.count, rel=0.1)
    assert found.total == pytest.approx(exact.total, rel=0.1)
    assert found.mean == pytest.approx(exact.mean)
    assert found.share == pytest.approx(exact.share, abs=0.05)
