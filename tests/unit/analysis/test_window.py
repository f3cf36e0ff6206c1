from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from synth import Synth

from nsys_tui.analysis.breakdown import device_splits
from nsys_tui.analysis.overview import top_kernels, top_ranges
from nsys_tui.analysis.window import Choice, Scope, clipped, row_numbers, starting
from nsys_tui.commands.options import scope_from
from nsys_tui.errors import UsageError
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.model.report import Report


@pytest.fixture
def report(tmp_path: Path) -> Report:
    path = (
        Synth(tmp_path / "r.sqlite")
        .process(100, "a")
        .nvtx("step 1", 0, 60)
        .kernel("k", 0, 40, stream=7)
        .kernel("k", 50, 50, stream=7)
        .kernel("k", 90, 130, stream=8)
        .process(200, "b")
        .kernel("j", 100, 120, device=1)
        .write()
    )
    return open_report(path)


def test_an_event_that_straddles_an_edge_is_clipped_and_counts_where_it_starts(
    report: Report,
) -> None:
    ops = report.operations
    first, second = (Scope(window=window) for window in ((0, 100), (100, 200)))
    for scope, starts, ends, begun in (
        (first, [0, 50, 90], [40, 50, 100], [True] * 3),
        (second, [100, 100], [130, 120], [False, True]),
    ):
        rows = scope.operations(ops)
        assert [side.tolist() for side in clipped(ops, rows, scope.window)] == [starts, ends]
        assert starting(ops, rows, scope.window).tolist() == begun


def test_counts_and_totals_add_up_over_adjacent_windows(report: Report) -> None:
    whole = {entry.name: entry for entry in top_kernels(report)}
    parts = [
        {entry.name: entry for entry in top_kernels(report, Scope(window=window))}
        for window in ((0, 100), (100, 200))
    ]
    assert {name: entry.count for name, entry in whole.items()} == {"k": 3, "j": 1}
    for name, entry in whole.items():
        found = [part[name] for part in parts if name in part]
        assert entry.count == sum(part.count for part in found)
        assert entry.total_ns == sum(part.total_ns for part in found)
    assert parts[1]["k"].straddling == 1
    assert parts[1]["k"].mean_ns is None
    assert parts[0]["k"].mean_ns == pytest.approx((40 + 0 + 40) / 3)


def test_devices_processes_and_streams_narrow_the_operations(report: Report) -> None:
    ops = report.operations
    kept = {
        "device": Scope(devices=frozenset((1,))),
        "process": Scope(processes=frozenset((200,))),
        "stream": Scope(streams=frozenset((8,))),
        "all of it": Scope(),
        "nothing": Scope(streams=frozenset((7,)), processes=frozenset((200,)), window=(500, 600)),
    }
    starts = {
        what: ops.start[row_numbers(ops, s.operations(ops))].tolist() for what, s in kept.items()
    }
    assert starts == {
        "device": [100],
        "process": [100],
        "stream": [90],
        "all of it": [0, 50, 90, 100],
        "nothing": [],
    }


def test_ranges_follow_the_process(report: Report) -> None:
    assert [r.name for r in top_ranges(report, Scope(processes=frozenset((100,))))] == ["step 1"]
    assert top_ranges(report, Scope(processes=frozenset((200,)))) == []


def test_shares_are_of_the_span_or_of_the_window(report: Report) -> None:
    assert Scope().base(report) == (0, 130)
    splits = device_splits(report, Scope(window=(20, 60)))
    assert [(s.base_ns, s.busy_ns, s.idle_ns) for s in splits] == [(40, 20, 20), (40, 0, 40)]


def _arguments(**given: object) -> object:
    import argparse

    empty = {"window": None, "device": None, "process": None, "stream": None}
    return argparse.Namespace(**(empty | given))


def test_the_command_line_names_a_scope(report: Report) -> None:
    scope = scope_from(
        _arguments(window="10ns/", device=[1], process=[200], stream=[7]),  # type: ignore[arg-type]
        report,
    )
    assert scope == Scope((10, 130), frozenset((1,)), frozenset((200,)), frozenset((7,)))
    assert scope_from(_arguments(), report) == Scope()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"device": [4]}, "it has 0, 1"),
        ({"process": [1]}, "it has 100, 200"),
        ({"stream": [99]}, "it has 7, 8"),
        ({"window": "900/"}, "the trace is 0ns/130ns"),
    ],
)
def test_what_is_not_there_is_named(report: Report, given: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as error:
        scope_from(_arguments(**given), report)  # type: ignore[arg-type]
    assert said in str(error.value)


def test_a_window_without_rows_is_an_index_not_an_error(report: Report) -> None:
    rows = Scope(window=(10_000, 20_000)).operations(report.operations)
    assert isinstance(rows, np.ndarray)
    assert len(rows) == 0


def test_a_gpu_is_chosen_by_its_number_else_by_its_ordinal(tmp_path: Path) -> None:
    synth = Synth(tmp_path / "g.sqlite").process(100, "a").gpu(3, "A").gpu(4, "B")
    synth.cuda_device(100, 0, 3).cuda_device(100, 1, 4)
    synth.kernel("k", 0, 10, device=0).kernel("k", 20, 30, device=1)
    report = open_report(synth.write())
    assert [(device.number, device.id) for device in report.devices] == [(3, 0), (4, 1)]
    for asked, places in ((3, {0}), (4, {1}), (0, {0}), (1, {1})):
        choice = Choice(devices=(asked,))
        assert choice.scope(report).devices == places
        assert not [*choice.lacking(report)]
    assert [lacking.text for lacking in Choice(devices=(2,)).lacking(report)] == [
        "no GPU 2 in this report"
    ]
