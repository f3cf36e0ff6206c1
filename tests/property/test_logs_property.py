"""Log parsing and its figures against loops that do the same line by line."""

from __future__ import annotations

import re
import tempfile
from collections import Counter, defaultdict
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from loglines import body, info, logs_json, nemo

from nsys_tui.errors import NsysTuiError
from nsys_tui.logs import LogResult, read_logs
from nsys_tui.logs.nccl import statistics
from nsys_tui.logs.nccl.calls import COLUMNS, Calls
from nsys_tui.logs.nccl.hangs import find_hangs

QUICK = settings(max_examples=60, deadline=None)
OPS = ("AllReduce", "AllGather", "Broadcast", "Send")
BODY = re.compile(
    r"(\w+): opCount ([0-9a-f]{1,16}) sendbuff (\S+) recvbuff (\S+) (?:acc \S+ )?"
    r"count (\d{1,18}) datatype (\d+) op (\d+) root (-?\d+) comm (0x[0-9a-f]+|\(nil\)) "
    r"(?:\[nranks=\d+\] )?stream (?:0x[0-9a-f]+|\(nil\))"
)


def read(*texts: str | bytes, **options: Any) -> LogResult:
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, text in enumerate(texts):
            path = Path(folder) / f"{number}.log"
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            paths.append(path)
        return read_logs(paths, **options)


@st.composite
def coll_lines(draw: st.DrawFn) -> str:
    pointer = st.sampled_from(["0x1", "0xab", "(nil)"])
    line = body(
        draw(st.sampled_from(OPS)),
        draw(st.integers(0, 2**64 - 1)),
        count=draw(st.integers(0, 10**18 - 1)),
        datatype=draw(st.integers(0, 13)),
        reduction=draw(st.integers(0, 6)),
        root=draw(st.integers(0, 9)),
        comm=draw(pointer),
        stream=draw(pointer),
        buffers=(draw(pointer), draw(pointer)),
        acc=draw(st.sampled_from(["", "acc 0x7 "])),
    )
    prefix = draw(st.sampled_from(["", "3: ", "[2025-07-25 19:54:57] ", "out 1.5  "]))
    suffix = draw(st.sampled_from(["", " task 3 globalrank 1", "\r"]))
    return prefix + info(line, pid=draw(st.integers(1, 3))) + suffix


@st.composite
def logs(draw: st.DrawFn) -> str:
    """Lines whole, cut, glued and mixed with others."""
    text = ""
    for line in draw(st.lists(coll_lines(), max_size=12)):
        kind = draw(st.sampled_from(["whole"] * 4 + ["cut", "glued", "other"]))
        if kind == "cut":
            text += line[: draw(st.integers(0, len(line)))] + "\n"
        elif kind == "glued":
            text += line[: draw(st.integers(0, len(line)))]
        elif kind == "other":
            text += draw(st.sampled_from(["", nemo(3), info("Using network IB")])) + "\n"
        else:
            text += line + "\n"
    return text


@QUICK
@given(logs())
def test_bodies_are_those_a_loop_over_lines_finds(text: str) -> None:
    expected = []
    for number, line in enumerate(text.split("\n"), start=1):
        for match in BODY.finditer(line):
            _, op_count, send, receive, count, datatype, reduction, root, comm = match.groups()
            expected.append(
                (
                    number,
                    np.array([int(op_count, 16)], dtype=np.uint64).view(np.int64).item(),
                    send == receive,
                    int(count),
                    int(datatype),
                    int(reduction),
                    int(root),
                    comm,
                )
            )
    result = read(text)
    calls = result.calls.select()
    found = zip(
        calls.line.tolist(),
        calls.op_count.tolist(),
        calls.in_place.tolist(),
        calls.count.tolist(),
        calls.datatype.tolist(),
        calls.reduction.tolist(),
        calls.root.tolist(),
        [result.communicators[i].pointer for i in calls.communicator.tolist()],
        strict=True,
    )
    assert list(found) == expected
    assert result.files[0].lines == len(text.removesuffix("\n").split("\n")) * bool(text)


@QUICK
@given(st.binary(max_size=400), st.lists(coll_lines(), max_size=3))
def test_no_bytes_make_it_fail(noise: bytes, lines: list[str]) -> None:
    cut = len(noise) // 2
    data = noise[:cut] + "\n".join(lines).encode() + noise[cut:]
    try:
        result = read(data)
    except NsysTuiError:
        return
    logs_json(result)


@st.composite
def call_lists(draw: st.DrawFn) -> Calls:
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 2),
                st.one_of(st.integers(0, 3), st.sampled_from([65535, 65536, 2**24, 2**62])),
                st.integers(0, 1),
                st.integers(-1, 2),
                st.booleans(),
                st.integers(1, 3),
            ),
            max_size=30,
        )
    )
    columns: dict[str, Any] = {name: np.zeros(len(rows), np.int64) for name in COLUMNS}
    for at, (op, count, datatype, gpu, sized, number) in enumerate(rows):
        columns["number"][at] = number
        columns["op"][at], columns["count"][at] = op, count
        columns["datatype"][at] = datatype if sized else 99
        columns["bytes"][at], columns["gpu"][at] = (count if sized else -1), gpu
    assert {f.name for f in fields(Calls)} == {*COLUMNS, "ops", "streams"}
    return Calls(**columns, ops=("AllGather", "AllReduce", "Send"), streams=("0x1",))


@QUICK
@given(call_lists())
def test_statistics_against_loops(calls: Calls) -> None:
    sizes: dict[tuple[int, str], list[int]] = defaultdict(list)
    distinct: Counter[tuple[str, int, int]] = Counter()
    buckets: Counter[tuple[str, str]] = Counter()
    names = ("<64KB", "64KB-1MB", "1MB-16MB", ">16MB")
    columns = (calls.op, calls.count, calls.datatype, calls.bytes, calls.gpu)
    for code, count, kind, size, gpu in np.repeat(columns, calls.number, axis=1).T.tolist():
        op = calls.ops[code]
        sizes[gpu, op].append(size)
        distinct[op, count, kind] += 1
        if size >= 0:
            which = sum(size >= bound for bound in (1 << 16, 1 << 20, 1 << 24))
            buckets[op, names[which]] += 1
    found = statistics.per_owner(calls, calls.gpu)
    assert [(row.owner, row.op) for row in found] == sorted(sizes)
    for row in found:
        known = [size for size in sizes[row.owner, row.op] if size >= 0]
        assert row.calls == len(sizes[row.owner, row.op])
        assert row.total_bytes == sum(known)
        assert row.unsized == row.calls - len(known)
        assert (row.min_bytes, row.max_bytes) == (min(known, default=0), max(known, default=0))
    rows = statistics.histogram(calls)
    assert {(row.op, row.bucket): row.calls for row in rows} == dict(buckets)
    assert sorted(row.calls for row in statistics.aggregate(calls)) == sorted(distinct.values())
    total = sum(row.total_bytes for row in statistics.per_op(calls))
    assert total == sum(size for one in sizes.values() for size in one if size >= 0)


@QUICK
@given(
    st.lists(st.one_of(st.integers(0, 6), st.just(-1)), max_size=25),
    st.integers(0, 5),
    st.integers(0, 3),
)
def test_windows_against_a_state_machine(script: list[int], first: int, length: int) -> None:
    """Numbers are step lines, -1 is a call; the state machine is the AWK kit's."""
    last = first + length
    lines = [info(body(op_count=n)) if step < 0 else nemo(step) for n, step in enumerate(script)]
    if not any(step >= 0 for step in script):
        return
    state, legacy, legacy_lines = -1, [], 0
    for number, step in enumerate(script):
        state = step if step >= 0 else state
        if first - 1 < state <= last:
            legacy_lines += 1
            legacy += [number] if step < 0 else []
    owned = []
    for number, step in enumerate(script):
        closing = next((s for s in script[number:] if s >= 0), -1)
        if step < 0 and first <= closing <= last:
            owned.append(number)
    text = "\n".join(lines) + "\n"
    old = read(text, steps=(first, last), legacy_window=True)
    assert old.calls.select().op_count.tolist() == legacy
    assert old.window is not None
    assert old.window.lines == legacy_lines
    assert read(text, steps=(first, last)).calls.select().op_count.tolist() == owned


@QUICK
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=8),
        min_size=2,
        max_size=4,
    )
)
def test_mismatches_against_a_dictionary(ranks: list[list[tuple[int, int]]]) -> None:
    """Each rank is a list of (opCount, operation), in the order of opCount."""
    files = []
    for rank, calls in enumerate(ranks):
        start = f"ncclCommInitRank comm 0x{rank} rank {rank} nranks 4 cudaDev 0 commId 0xc"
        lines = [info(f"{start} - Init COMPLETE", pid=rank)]
        for op_count, op in sorted(calls, key=lambda call: call[0]):
            text = body(OPS[op], op_count + 1, comm=f"0x{rank}", nranks=4)
            lines.append(info(text, pid=rank))
        files.append("\n".join(lines) + "\n")
    by_count: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    ends: dict[int, set[int]] = defaultdict(set)
    begins: set[int] = set()
    for calls in ranks:
        begins.add(min(op_count for op_count, _ in calls))
        own: dict[int, list[int]] = defaultdict(list)
        for op_count, op in sorted(calls, key=lambda call: call[0]):
            own[op_count].append(op)
        for op_count, ops in own.items():
            by_count[op_count].append(tuple(ops))
            if op_count == max(own):
                ends[op_count].add(len(ops))
    expected = set()
    for op_count, sequences in by_count.items():
        longest = max(sequences, key=len)
        prefixes = all(longest[: len(one)] == one for one in sequences)
        # Counters begin above 0 here, so that a log may begin inside the group of its first calls.
        suffixes = all(longest[len(longest) - len(one) :] == one for one in sequences)
        late = op_count in begins and suffixes
        if len(set(sequences)) > 1 and not (prefixes and ends[op_count]) and not late:
            expected.add(op_count + 1)
    found = find_hangs(read(*files))
    assert {one.op_count for one in found.mismatches} == expected
    furthest = [max(op_count for op_count, _ in calls) for calls in ranks]
    assert bool(found.drifts) == (len(set(furthest)) > 1)
