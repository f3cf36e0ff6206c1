from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.model.events import ApiCalls
from nsys_tui.reader.encode import codes, combine
from nsys_tui.reader.host import join_calls

PROCESSES = [5 << 24, 9 << 24]
IDS = st.one_of(st.integers(0, 6), st.sampled_from([2**31, 2**40]))


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 1), IDS, st.sampled_from([0, 1, 67]), st.integers(0, 20)),
        max_size=12,
    ),
    operations=st.lists(st.tuples(st.integers(0, 1), st.one_of(st.just(-1), IDS)), max_size=12),
)
def test_join_equals_a_search_row_by_row(
    rows: list[tuple[int, int, int, int]], operations: list[tuple[int, int]]
) -> None:
    rows.sort(key=lambda row: row[3])
    start = np.array([row[3] for row in rows], np.int64)
    api = ApiCalls(
        start=start,
        end=start + 1,
        rowid=np.arange(len(rows)),
        thread=np.array([row[0] for row in rows], np.int32),
        name=np.zeros(len(rows), np.int32),
        names=("cudaLaunchKernel",),
        threads=np.array(PROCESSES, np.int64) + 3,
        correlation=np.array([row[1] for row in rows], np.int64),
        event_class=np.array([row[2] for row in rows], np.uint8),
        return_value=np.zeros(len(rows), np.int32),
        callchain=np.full(len(rows), -1),
    )
    expected = [
        next(
            (
                place
                for place, (owner, correlation, event_class, _) in enumerate(rows)
                if owner == process and correlation == wanted and event_class != 67
            ),
            -1,
        )
        for process, wanted in operations
    ]
    found = join_calls(
        np.array([process for process, _ in operations], np.int32),
        np.array(PROCESSES, np.int64),
        np.array([wanted for _, wanted in operations], np.int64),
        api,
    )
    assert found.tolist() == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=40))
def test_codes_rebuild_the_column(values: list[int]) -> None:
    column = np.array(values, np.int64)
    distinct, code = codes(column)
    assert distinct.tolist() == sorted(set(values))
    assert distinct[code].tolist() == values


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 10**12), st.integers(0, 1))))
def test_combined_codes_rebuild_the_rows(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[i] for row in rows], np.int64) for i in range(3)]
    values, code = combine(columns)
    rebuilt = list(zip(*(value[code].tolist() for value in values), strict=True))
    assert rebuilt == rows
    assert len(values[0]) == len(set(rows))
