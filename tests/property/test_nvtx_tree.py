from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from synth import Synth

from nsys_tui.analysis.nvtx import tree as nvtx
from nsys_tui.analysis.nvtx.operation_paths import operation_paths
from nsys_tui.analysis.window import Scope
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    import pytest

RANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(0, 2)), max_size=8)
WORK = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 40), st.integers(0, 9), st.integers(0, 1)),
    max_size=8,
)


def nested(ranges: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    kept: list[tuple[int, int, int]] = []
    for start, length, name in ranges:
        end = start + length
        if all(
            e <= start or end <= s or (s <= start and end <= e) or (start <= s and e <= end)
            for s, e, _ in kept
        ):
            kept.append((start, end, name))
    return kept


@settings(max_examples=60, deadline=None)
@given(RANGES, WORK, st.sampled_from([None, (10, 35)]), st.sampled_from([2, 1000]))
def test_tree_equals_sums_by_hand(
    tmp_path_factory: pytest.TempPathFactory,
    ranges: list[tuple[int, int, int]],
    work: list[tuple[int, int, int, int]],
    window: tuple[int, int] | None,
    piece: int,
) -> None:
    synth = Synth(tmp_path_factory.mktemp("tree") / "r.sqlite").process(1000)
    spans = sorted(nested(ranges), key=lambda span: (span[0], -span[1]))
    for start, end, name in spans:
        synth.nvtx("abc"[name], start, end)
    operations = []
    for number, (call, start, length, device) in enumerate(work):
        synth.api("cudaLaunchKernel_v7000", call, call + 1, corr=number + 1)
        synth.kernel("k", start, start + length, corr=number + 1, device=device)
        operations.append((call, start, start + length, device))
    if not spans and not work:
        return
    lo, hi = window or (-(10**6), 10**6)

    def path_at(time: int, before: int | None = None) -> tuple[str, ...]:
        part = spans if before is None else spans[:before]
        return tuple("abc"[name] for start, end, name in part if start <= time < end)

    with patch.object(nvtx, "PIECE", piece):
        report = open_report(synth.write(), use_cache=False)
        raw = operation_paths(report)
        tree = nvtx.nvtx_tree(report, Scope(window=window), raw.paths, raw.node)
    found = {
        tree.trie.path(node): (
            int(tree.count[node]),
            int(tree.straddling[node]),
            int(tree.host[node]),
            int(tree.host_self[node]),
            int(tree.gpu[node]),
            int(tree.gpu_count[node]),
            int(tree.gpu_busy[node]),
            int(tree.gpus[node]),
            int(tree.span[node]),
        )
        for node in range(1, len(tree.trie))
        if tree.count[node] or tree.host[node] or tree.gpu_count[node]
    }
    expected: dict[tuple[str, ...], tuple[int, ...]] = {}
    own = [
        (*path_at(s, before=i), "abc"[n]) if i else ("abc"[n],) for i, (s, _, n) in enumerate(spans)
    ]
    under = [
        (path_at(call) or ("[no NVTX range]",), max(s, lo), min(e, hi), device)
        for call, s, e, device in operations
        if (s < hi and e > lo) or lo <= s < hi
    ]
    paths = {prefix for path in own for prefix in [path]} | {
        path[: size + 1] for path, *_ in under for size in range(len(path))
    }
    for path in paths:
        mine = [span for span, p in zip(spans, own, strict=True) if p == path]
        inside = [(s, max(s, e), d) for p, s, e, d in under if p[: len(path)] == path]
        ticks = {(t, device) for s, e, device in inside for t in range(s, e)}
        self_time = sum(
            1 for s, e, _ in mine for t in range(max(s, lo), min(e, hi)) if path_at(t) == path
        )
        row = (
            sum(lo <= s < hi for s, _, _ in mine),
            sum(s < lo < e for s, e, _ in mine),
            sum(max(0, min(e, hi) - max(s, lo)) for s, e, _ in mine),
            self_time,
            sum(e - s for s, e, _ in inside),
            len(inside),
            len(ticks),
            len({device for *_, device in inside}),
            max(e for _, e, _ in inside) - min(s for s, *_ in inside) if inside else 0,
        )
        if row[0] or row[2] or row[5]:
            expected[path] = row
    assert found == expected
