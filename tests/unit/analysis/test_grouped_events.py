"""Events in the order of their groups: made, or mapped from the cache, always the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from synth import Synth

from nsys_tui.analysis.timeline import gpu
from nsys_tui.analysis.timeline import grouped_events as ordering
from nsys_tui.analysis.timeline.gpu import keep_order, report_tracks, stream_tracks
from nsys_tui.analysis.timeline.grouped_events import in_groups
from nsys_tui.analysis.timeline.host import api_tracks
from nsys_tui.reader import open_report
from nsys_tui.reader.cache import Sidecar, cache_root

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.model.lanes import Lane

SEED = 20_261_122


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three threads, two GPUs and three streams, with overlapping calls and kernels."""
    synth = Synth(tmp_path / "r.sqlite").gpu(0).gpu(1).process(100, "train")
    synth.cuda_device(100, 0, 0).cuda_device(100, 1, 1)
    random = np.random.default_rng(SEED)
    for number in range(60):
        start, length = int(random.integers(0, 5000)), int(random.integers(1, 400))
        stream, device = (7, 0) if number % 3 else (13, number % 2)
        call, kernel = (start, start + 5), (start + 10, start + 10 + length)
        synth.launch(f"k{number % 4}", call, kernel, stream=stream, device=device)
        synth.api("cudaMemcpy", start, start + length, tid=101 + number % 2)
    return synth.write()


def told(tracks: Sequence[Track]) -> list[tuple[object, ...]]:
    return [(track.key, *(() if track.lane is None else content(track.lane))) for track in tracks]


def content(lane: Lane) -> tuple[list[int], ...]:
    return lane.starts.tolist(), lane.ends.tolist(), lane.index.tolist()


def test_every_event_stands_in_its_group_in_start_order(path: Path) -> None:
    api = open_report(path, use_cache=False).api
    rows = np.flatnonzero(api.duration > 5)
    found = in_groups(api, rows, api.thread[rows])
    expected = [(int(api.thread[row]), row) for row in rows.tolist()]
    assert found.rows.tolist() == [row for _, row in sorted(expected)]
    assert found.start.tolist() == api.start[found.rows].tolist()
    assert found.end.tolist() == api.end[found.rows].tolist()
    for code, lo, hi in zip(found.codes, found.edges[:-1], found.edges[1:], strict=True):
        assert set(api.thread[found.rows[lo:hi]].tolist()) == {code}


def test_no_events_are_no_groups(path: Path) -> None:
    api = open_report(path, use_cache=False).api
    none = np.empty(0, np.intp)
    found = in_groups(api, none, api.thread[none])
    assert (len(found.rows), len(found.codes), found.edges.tolist()) == (0, 0, [0])


def test_lanes_from_the_cache_are_those_made_here(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = open_report(path, use_cache=False)
    expected = told(api_tracks(plain)), told(stream_tracks(plain.operations))
    monkeypatch.setattr(ordering, "LARGE", 1)
    for _ in range(2):
        report = open_report(path)
        assert (told(api_tracks(report)), told(report_tracks(report))) == expected
        keep_order(report)
    stored = {file.name for file in cache_root().rglob("*.columns")}
    assert {"api-by-thread.columns", "operations-by-stream.columns"} <= stored


def test_a_second_opening_reads_the_order_and_makes_none(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "LARGE", 1)
    keep_order(open_report(path))
    monkeypatch.setattr(gpu, "in_groups", None)
    assert any(track.lane is not None for track in report_tracks(open_report(path)))


def test_a_disk_that_fails_meanwhile_costs_time_only(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = told(api_tracks(open_report(path, use_cache=False)))
    monkeypatch.setattr(ordering, "LARGE", 1)

    def failing(self: Sidecar, part: str, arrays: dict[str, object], meta: object) -> None:
        arrays.clear()

    report = open_report(path)
    assert len(report.api)
    monkeypatch.setattr(Sidecar, "store", failing)
    assert told(api_tracks(report)) == expected
