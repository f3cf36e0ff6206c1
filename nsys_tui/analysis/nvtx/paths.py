"""NVTX paths: which ranges are open on a thread at any time (definitions: "Path at time t").

Ranges of all domains take part, ordered by (start, -end, rowid). Where they nest, everything is
done depth by depth on arrays; where they cross, that stretch of a thread is walked range by range.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.analysis.aggregate import grouped_union
from nsys_tui.analysis.nvtx.nesting import depths, parents
from nsys_tui.analysis.window import clipped
from nsys_tui.model.arrays import Bool, Indices, Int32, Int64, Integers
from nsys_tui.model.events import Ranges
from nsys_tui.model.groups import by_code, factorise
from nsys_tui.model.progress import Progress, silent
from nsys_tui.model.report import Report
from nsys_tui.model.tree import ROOT, TrieBuilder

FEW: Final = 8
"""Ranges of a thread up to which they are walked: of ten thousand threads, most have a few."""


@dataclass(frozen=True, eq=False)
class ThreadPaths:
    """The paths of one thread as steps: from ``times[i]`` on, ``nodes[i]`` is the innermost one."""

    thread: int
    """globalTid."""
    times: Int64
    nodes: Int32
    """Trie node of the whole path, 0 where no range is open."""
    innermost: Int32
    """Row of the innermost open range in ``Report.ranges``, -1 for none."""
    range_time: int
    """Length of the union of the thread's ranges, in ns."""

    def _at(self, values: Int32, times: Int64, default: int) -> Int64:
        position = np.searchsorted(self.times, times, side="right") - 1
        result = np.where(position >= 0, values[np.maximum(position, 0)], default)
        return result.astype(np.int64)

    def node_at(self, times: Int64) -> Int64:
        """Trie node of the path at each time."""
        return self._at(self.nodes, times, ROOT) if len(self.times) else np.zeros_like(times)

    def innermost_at(self, times: Int64) -> Int64:
        """Row of the innermost range at each time, -1 for none."""
        return self._at(self.innermost, times, -1) if len(self.times) else np.full_like(times, -1)


@dataclass(frozen=True, eq=False)
class Paths:
    """All NVTX paths of a report."""

    builder: TrieBuilder
    """Trie of frames; grows further when leaves are added below the paths."""
    threads: dict[int, ThreadPaths]
    """By globalTid; only threads with nesting ranges."""
    node: Int64
    """Node of each range's own path in ``Report.ranges``; -1 for ranges that do not nest."""
    parent: Int64
    """Row of the range around each range at its start, -1 for none."""
    self_time: Int64
    """Duration minus the union of the children clipped to it, in ns."""

    def node_at(self, thread: int, times: Int64) -> Int64:
        """Trie node of a thread's path at each time, 0 where no range is open."""
        paths = self.threads.get(thread)
        return paths.node_at(times) if paths else np.zeros(len(times), np.int64)


def frame_labels(ranges: Ranges, builder: TrieBuilder) -> Int64:
    """Label code of each range: its name, with the domain before it unless it is the default one.

    Returns:
        int64 (n,) codes of ``builder``.
    """
    names = len(ranges.names)
    keys = ranges.domain.astype(np.int64) * max(names, 1) + ranges.name
    inverse, distinct = factorise(keys)
    codes = []
    for key in distinct:
        domain, name = ranges.domains[int(key) // names], ranges.names[int(key) % names]
        codes.append(builder.label(f"{domain.name}:{name}" if domain.name else name))
    return np.array(codes, np.int64)[inverse] if len(keys) else keys


def nvtx_paths(report: Report, *, launching: bool = False, progress: Progress = silent) -> Paths:
    """Builds the paths of the threads of a report.

    Args:
        report: the report.
        launching: leave out threads that launch no GPU work, of which there may be thousands.
        progress: told how many ranges are nested.
    """
    ranges = report.ranges
    builder = TrieBuilder()
    labels = frame_labels(ranges, builder)
    total, nested = len(ranges), 0
    progress("nesting ranges", 0, total)
    paths = Paths(
        builder,
        {},
        np.full(total, -1, np.int64),
        np.full(total, -1, np.int64),
        np.zeros(total, np.int64),
    )
    kept = _launch(report) if launching else np.ones(len(ranges.threads), bool)
    for thread, rows, covered in _threads(ranges, kept):
        progress("nesting ranges", nested, total)
        nested += len(rows)
        steps = _thread_steps(rows, ranges, labels, paths)
        paths.threads[thread] = ThreadPaths(thread, *steps, covered)
    return paths


def _launch(report: Report) -> Bool:
    """Which threads of the ranges launch GPU work."""
    api, calls = report.api, report.calls
    launches = np.bincount(api.thread[calls[calls >= 0]], minlength=len(api.threads))
    return np.isin(report.ranges.threads, api.threads[launches > 0])


def _threads(ranges: Ranges, kept: Bool) -> Iterator[tuple[int, Indices, int]]:
    """(globalTid, nesting ranges in path order, length of their union) of the kept threads."""
    nesting = np.flatnonzero(ranges.nests & kept[ranges.thread])
    thread, start, end = ranges.thread[nesting], ranges.start[nesting], ranges.end[nesting]
    covered = grouped_union(thread, start, end, len(ranges.threads))
    keys = (ranges.rowid[nesting], -ranges.end[nesting], ranges.start[nesting])
    order = nesting[np.lexsort((*keys, ranges.thread[nesting]))]
    for rows in _groups(order, ranges.thread):
        code = ranges.thread[rows[0]]
        yield int(ranges.threads[code]), rows, int(covered[code])


def _thread_steps(
    rows: Indices, ranges: Ranges, labels: Int64, paths: Paths
) -> tuple[Int64, Int32, Int32]:
    """Times, nodes and innermost ranges of the ``ThreadPaths`` of a thread's ranges."""
    start, end = clipped(ranges, rows, None)
    if len(rows) <= FEW:
        return _few_steps(rows, start, end, labels[rows], paths)
    depth = depths(start, end)
    parent = parents(depth)
    crossing = (parent >= 0) & (end > end[np.maximum(parent, 0)])
    component = _components(start, end)
    crossed = np.isin(component, np.unique(component[crossing]))
    nested = np.flatnonzero(~crossed)
    node = np.full(len(rows), -1, np.int64)
    _intern_by_depth(nested, depth, parent, labels[rows], node, paths.builder)
    self_ns = end - start
    inner = nested[parent[nested] >= 0]
    np.subtract.at(self_ns, parent[inner], end[inner] - start[inner])
    steps = [
        _nested_steps(nested, start, end, node, parent),
        *(
            _walk(part, start, end, labels[rows], node, parent, self_ns, paths.builder)
            for part in _groups(np.flatnonzero(crossed), component)
        ),
    ]
    paths.node[rows] = node
    paths.parent[rows] = np.where(parent >= 0, rows[np.maximum(parent, 0)], -1)
    paths.self_time[rows] = self_ns
    times, events, places, nodes = (np.concatenate(column) for column in zip(*steps, strict=True))
    order = np.lexsort((component[events], times))
    places, nodes = places[order], nodes[order].astype(np.int32)
    innermost = np.where(places >= 0, rows[np.maximum(places, 0)], -1).astype(np.int32)
    return times[order], nodes, innermost


def _few_steps(
    rows: Indices, start: Int64, end: Int64, labels: Int64, paths: Paths
) -> tuple[Int64, Int32, Int32]:
    """``_thread_steps`` of a few ranges: walking them is quicker than some forty array passes."""
    count = len(rows)
    node, parent = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    self_ns = np.zeros(count, np.int64)
    steps = _walk(np.arange(count), start, end, labels, node, parent, self_ns, paths.builder)
    paths.node[rows], paths.self_time[rows] = node, self_ns
    row_of = np.append(rows, -1)  # place -1 means none, here and there
    paths.parent[rows] = row_of[parent]
    times, _, places, nodes = steps
    return times, nodes.astype(np.int32), row_of[places].astype(np.int32)


def _components(start: Int64, end: Int64) -> Int64:
    """Number of the stretch of touching ranges that each range belongs to."""
    reach = np.maximum.accumulate(end)
    return np.cumsum(np.append(False, start[1:] >= reach[:-1]))


def _groups(places: Indices, keys: Integers) -> Iterator[Indices]:
    """Splits places where their key changes."""
    if len(places):
        yield from np.split(places, np.flatnonzero(np.diff(keys[places])) + 1)


def _intern_by_depth(
    places: Indices,
    depth: Int64,
    parent: Int64,
    labels: Int64,
    node: Int64,
    builder: TrieBuilder,
) -> None:
    """Fills ``node``: the path of a range is its parent's path plus its name."""
    deepest = int(depth[places].max(initial=0))
    if 8 * deepest > len(places):
        # Few ranges a level, such as of a recursion: one by one is quicker than level by level.
        _intern_one_by_one(places, parent, labels, node, builder)
        return
    order, edges = by_code(depth[places], deepest + 1)
    for lo, hi in itertools.pairwise(edges.tolist()):
        level = places[order[lo:hi]]
        above = np.where(parent[level] >= 0, node[np.maximum(parent[level], 0)], ROOT)
        if len(level):
            node[level] = builder.children(above, labels[level])


def _intern_one_by_one(
    places: Indices, parent: Int64, labels: Int64, node: Int64, builder: TrieBuilder
) -> None:
    nodes = {-1: ROOT}
    columns = (values[places].tolist() for values in (parent, labels))
    for position, above, label in zip(places.tolist(), *columns, strict=True):
        nodes[position] = builder.child(nodes[above], label)
    node[places] = [nodes[position] for position in places.tolist()]


CROSSED: Final = 64
"""Open ranges inside one that closes up to which their paths are written out."""
KEPT: Final = 2

Steps = tuple[Int64, ...]
"""Time, place of the range that opens or closes, place of the innermost range from then on (-1 for
none), and node of the whole path from then on."""


def _nested_steps(places: Indices, start: Int64, end: Int64, node: Int64, parent: Int64) -> Steps:
    real = places[end[places] > start[places]]
    times = np.concatenate([start[real], end[real]])
    after = np.concatenate([real, parent[real]])
    opens = np.repeat([1, 0], len(real))
    # At one instant ranges close before others open; the inner ones close first.
    tie = np.concatenate([real, -real])
    order = np.lexsort((tie, opens, times))
    events = np.concatenate([real, real])[order]
    after = after[order]
    return times[order], events, after, np.where(after >= 0, node[np.maximum(after, 0)], ROOT)


def _walk(
    places: Indices,
    start: Int64,
    end: Int64,
    labels: Int64,
    node: Int64,
    parent: Int64,
    self_ns: Int64,
    builder: TrieBuilder,
) -> Steps:
    """Walks a stretch in which ranges cross: one that closes leaves the middle of the path."""
    begins, stops = dict(_pairs(places, start)), dict(_pairs(places, end))
    events = [(stops[p], 0, -p) for p in begins if stops[p] > begins[p]]
    events += [(begins[p], 1, p) for p in begins]
    active = _OpenRanges(dict(_pairs(places, labels)), builder)
    steps: list[tuple[int, int, int, int]] = []
    children: dict[int, list[int]] = {}
    for time, opens, key in sorted(events):
        place = abs(key)
        if opens:
            parent[place] = active.innermost
            children.setdefault(active.innermost, []).append(place)
            node[place] = active.open(place)
            if stops[place] == time:
                active.close(place)
                continue
        else:
            active.close(place)
        steps.append((time, place, active.innermost, active.path()))
    for place, lo in begins.items():
        reached, hi = lo, stops[place]
        self_ns[place] = hi - lo
        for inner in children.get(place, ()):
            until = min(stops[inner], hi)
            if until > reached:
                self_ns[place] -= until - max(begins[inner], reached)
                reached = until
    columns = np.array(steps, np.int64).reshape(-1, 4)
    return tuple(columns.T)


class _OpenRanges:
    """The open ranges of a thread, and the node of the path they make, while ranges cross.

    A range that closes leaves the middle of the path, and the paths of those inside it change. Of
    more than ``CROSSED`` of them only the innermost ``KEPT`` are written out, below a frame that
    says how many there are, as a power of two: n ranges of which each crosses all others would
    have n * n nodes.
    """

    def __init__(self, labels: dict[int, int], builder: TrieBuilder) -> None:
        self._labels, self._builder = labels, builder
        self._outer: dict[int, int] = {}
        """The open range around each open one, -1 for none."""
        self._inner: dict[int, int] = {}
        self._node: dict[int, int] = {-1: ROOT}
        """Node of the path to each open range, of those before ``_changed``."""
        self.innermost = -1
        self._changed: int | None = None
        """The first open range whose path was left as it was before one around it closed."""
        self._count = 0
        """Open ranges from there on."""

    def open(self, place: int) -> int:
        """Adds a range inside all others.

        Returns:
            The node of its path.
        """
        around = self.path()
        self._outer[place], self._inner[self.innermost] = self.innermost, place
        self.innermost = place
        self._node[place] = self._builder.child(around, self._labels[place])
        self._count += self._changed is not None
        return self._node[place]

    def close(self, place: int) -> None:
        """Takes a range away, wherever it is."""
        outer, inner = self._outer.pop(place), self._inner.pop(place, None)
        if inner is None:
            self.innermost = outer
            self._inner.pop(outer, None)
        else:
            self._outer[inner], self._inner[outer] = outer, inner
        changed = self._changed
        if changed is not None and place >= changed:
            # Later places are further inside: path order is that of the places.
            self._count -= 1
            self._changed = inner if place == changed else changed
        elif inner is not None:
            self._changed = inner
            self._count += self._between(inner, changed)
        if self._count <= CROSSED:
            self._write_out()

    def _between(self, first: int, last: int | None) -> int:
        """Number of open ranges from one to before another, to the innermost without one."""
        count, place = 0, first
        while place != last:
            count += 1
            following = self._inner.get(place)
            if following is None:
                break
            place = following
        return count

    def _write_out(self) -> None:
        """Makes the paths right again from the first that changed."""
        place = self._changed
        while place is not None:
            around = self._node[self._outer[place]]
            self._node[place] = self._builder.child(around, self._labels[place])
            place = self._inner.get(place)
        self._changed, self._count = None, 0

    def path(self) -> int:
        """Node of the path of all open ranges."""
        if self._changed is None:
            return self._node[self.innermost]
        kept, place = [], self.innermost
        for _ in range(KEPT):
            kept.append(self._labels[place])
            place = self._outer[place]
        told = f"[over {1 << self._count.bit_length() - 1} crossing ranges]"
        node = self._builder.child(
            self._node[self._outer[self._changed]], self._builder.label(told)
        )
        for label in reversed(kept):
            node = self._builder.child(node, label)
        return node


def _pairs(places: Indices, values: Int64) -> Iterator[tuple[int, int]]:
    return zip(places.tolist(), values[places].tolist(), strict=True)
