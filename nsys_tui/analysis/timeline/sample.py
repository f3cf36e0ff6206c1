"""A first picture from a sample of the kernels, in which each stands for those that follow it.

The sample holds whole pages of the file, a few dozen kernels that follow one another. Drawn as they
are, they would show a busy GPU as idle; spread over the time until the next page begins, they give
its shading as an estimate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.timeline.gpu import device_tracks, stream_tracks
from nsys_tui.model.categories import OpKind

if TYPE_CHECKING:
    from nsys_tui.analysis.timeline.tracks import Track
    from nsys_tui.model.events import Operations


def sample_tracks(sample: Operations) -> list[Track]:
    """Rows of streams and devices from a sample: to be shaded only, not counted."""
    tracks = stream_tracks(spread(sample), apart=False)
    return [replace(track, estimate=True) for track in (*tracks, *device_tracks(tracks))]


def spread(sample: Operations) -> Operations:
    """Stretches each run of kernels with consecutive rowids to the begin of the next run.

    Copies and memsets, which a sample holds completely, stay as they are.
    """
    kernels = np.flatnonzero(sample.kind == OpKind.KERNEL)
    kernels = kernels[np.argsort(sample.rowid[kernels], kind="stable")]
    if not len(kernels):
        return sample
    heads = np.flatnonzero(np.append(True, np.diff(sample.rowid[kernels]) != 1))
    starts, ends = sample.start[kernels], sample.end[kernels]
    first = np.minimum.reduceat(starts, heads)
    last = np.maximum.reduceat(ends, heads)
    until = np.append(first[1:], last[-1])
    factor = (until - first) / np.maximum(last - first, 1)
    factor[until <= last] = 1.0
    run = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(kernels))))
    start, end = sample.start.copy(), sample.end.copy()
    start[kernels] = first[run] + ((starts - first[run]) * factor[run]).astype(np.int64)
    end[kernels] = first[run] + ((ends - first[run]) * factor[run]).astype(np.int64)
    order = np.argsort(start, kind="stable")
    return replace(sample, start=start, end=end).take(order)
