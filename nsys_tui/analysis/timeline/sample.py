"""A first picture from a sample of the GPU work, in which each stands for those that follow it.

The sample holds whole pages of the file, a few dozen kernels or copies that follow one another.
Drawn as they are, they would show a busy GPU as idle; spread over the time until the next page
begins, they give its shading as an estimate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.timeline.gpu import device_tracks, stream_tracks

if TYPE_CHECKING:
    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.model.events import Int64, Operations


def sample_tracks(sample: Operations) -> list[Track]:
    """Rows of streams and devices from a sample: to be shaded only, not counted."""
    tracks = stream_tracks(spread(sample), apart=False)
    return [replace(track, estimate=True) for track in (*tracks, *device_tracks(tracks))]


def spread(sample: Operations) -> Operations:
    """Stretches each run of consecutive rows of a table to the begin of the next run.

    The rows of a table that is sampled whole are one run, which stays as it is.
    """
    start, end = sample.start.copy(), sample.end.copy()
    for kind in np.unique(sample.kind):
        rows = np.flatnonzero(sample.kind == kind)
        rows = rows[np.argsort(sample.rowid[rows], kind="stable")]
        start[rows], end[rows] = _stretched(start[rows], end[rows], sample.rowid[rows])
    order = np.argsort(start, kind="stable")
    return replace(sample, start=start, end=end).take(order)


def _stretched(starts: Int64, ends: Int64, rowids: Int64) -> tuple[Int64, Int64]:
    """Times of one table's rows in the order of rowids, stretched run by run."""
    heads = np.flatnonzero(np.append(True, np.diff(rowids) != 1))
    first = np.minimum.reduceat(starts, heads)
    last = np.maximum.reduceat(ends, heads)
    until = np.append(first[1:], last[-1])
    factor = (until - first) / np.maximum(last - first, 1)
    factor[until <= last] = 1.0
    run = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(starts))))
    begin = first[run]
    return (
        begin + ((starts - begin) * factor[run]).astype(np.int64),
        begin + ((ends - begin) * factor[run]).astype(np.int64),
    )
