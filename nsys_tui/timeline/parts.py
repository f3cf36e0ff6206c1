"""Parts: what the lanes of each part of a report are built from, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Protocol, TypeAlias, TypeVar

import numpy as np

from nsys_tui.analysis.nvtx.paths import nvtx_paths
from nsys_tui.analysis.stalls.causes import Cause, Gaps
from nsys_tui.analysis.timeline.gpu import (
    device_tracks,
    memory_tracks,
    projected_tracks,
    report_tracks,
)
from nsys_tui.analysis.timeline.host import (
    api_tracks,
    host_tracks,
    mark_tracks,
    osrt_tracks,
    range_tracks,
    sample_tracks,
    state_tracks,
    sync_tracks,
)
from nsys_tui.analysis.timeline.metrics import metric_tracks, step_tracks
from nsys_tui.analysis.timeline.tracks import Track
from nsys_tui.model.lanes import Lane
from nsys_tui.model.report import Report
from nsys_tui.render.dominant import Layers
from nsys_tui.timeline.filtering import layers_of
from nsys_tui.timeline.summary_view import Explained

T = TypeVar("T")

Built: TypeAlias = "tuple[list[Track], dict[Lane, Layers]]"
"""Tracks of a part, and layers of its longest lanes."""

STREAMS: Final = "operations"
"""Part that the rows of the devices are built from; what makes wide views quick comes with them."""
TRACKS_OF: Final[dict[str, Callable[[Report], list[Track]]]] = {
    "operations": report_tracks,
    "ranges": range_tracks,
    "api": api_tracks,
    "memory_usage": memory_tracks,
    "gpu_metrics": metric_tracks,
    "samples": sample_tracks,
    "marks": mark_tracks,
    "host_events": host_tracks,
    "osrt": osrt_tracks,
    "syncs": sync_tracks,
    "states": state_tracks,
    "steps": step_tracks,
    "projected": lambda report: projected_tracks(report, nvtx_paths(report, launching=True)),
}
"""What makes the tracks of each part."""
ORDER: Final = ("sample", STREAMS, "ranges", "devices", *TRACKS_OF, "explained")
"""They are built one at a time in this order: streams, then what all of a device do together."""
NEEDS: Final = {"projected": ("operations", "ranges", "api"), "steps": ("operations",)}
"""Parts that others are built from; without events in each of them there is nothing to build."""


class Memo(Protocol):
    """Keeps what was made once."""

    def __call__(self, key: Hashable, make: Callable[[], T], *, lasting: bool = False) -> T:
        """The value of a key, made at the first call; a lasting one is kept to the end."""


def part_tracks(memo: Memo, report: Report, part: str) -> Built:
    """Tracks of a part of a report, built once for all screens that draw them; for a worker.

    Args:
        memo: keeps them with the report.
        report: the part is loaded, and so are those that it is built from.
        part: one of ``TRACKS_OF``, or ``devices``: all streams of each together.
    """

    def build() -> Built:
        if not all(len(getattr(report, need)) for need in NEEDS.get(part, ())):
            return [], {}
        if part == "devices":
            streams, _ = part_tracks(memo, report, STREAMS)
            return device_tracks(streams), layers_of(streams)
        tracks = TRACKS_OF[part](report)
        return tracks, {} if part == STREAMS else layers_of(tracks)

    return memo(("timeline", part), build, lasting=True)


def explained_gaps(gaps: Gaps) -> dict[int, Explained]:
    """Those of some idle gaps whose cause is known, by device."""
    known = gaps.take((gaps.cause != Cause.UNKNOWN) & (gaps.cause != Cause.NOTHING))
    by_place = {}
    for device in np.unique(known.device).tolist():
        rows = np.flatnonzero(known.device == device)
        rows = rows[np.argsort(known.end[rows], kind="stable")]
        by_place[device] = Explained(known.end[rows], known.cause[rows].astype(np.uint8))
    return by_place
