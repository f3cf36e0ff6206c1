"""COLL bodies of a block as columns: split in C, distinct texts decoded once, then arrays."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

import numpy as np

from nsys_tui.logs.line_prefixes import Head, Heads
from nsys_tui.logs.nccl.calls import KindBook
from nsys_tui.logs.nccl.grammar import (
    ANCHOR,
    HEADER,
    LONGEST_COUNT,
    OP_WORD,
    OPERATIONS,
    RCCL_SUFFIX,
    TAIL,
)
from nsys_tui.model.arrays import Array, Bool, Indices, Int64

UNKNOWN: Final = -1
_WORDS: Final = [b"sendbuff", b"recvbuff", b"count"]
_NO_TAIL: Final = (b"0", b"0", b"0", b"(nil)", None, b"(nil)")


T = TypeVar("T")


class Codes(dict[T, int]):
    """Small integers for values, in order of first sight: ``codes[value]``."""

    def __missing__(self, value: T) -> int:
        code = self[value] = len(self)
        return code


@dataclass(slots=True)
class CallTexts:
    """The texts behind the codes of calls, and their kinds, shared by all files read together."""

    ops: Codes[str] = field(default_factory=Codes)
    streams: Codes[str] = field(default_factory=Codes)
    pointers: Codes[str] = field(default_factory=Codes)
    kinds: KindBook = field(default_factory=KindBook)


@dataclass(slots=True)
class Bodies:
    """The calls of one block."""

    columns: dict[str, Array]
    """Columns of ``Calls`` by name, with ``pointer`` and ``global_rank`` besides; ``line`` counts
    from the block's first line, 0."""
    heads: list[Head]
    """Distinct heads."""
    head: Indices
    """Index into ``heads`` of each call."""
    before: list[tuple[int, bytes]]
    """(line in the block, text) before headers that is not NCCL's: perhaps a trainer's."""
    behind: list[tuple[int, bytes]]
    """The same behind bodies."""


def find_bodies(data: bytes, line_starts: Int64, heads: Heads, texts: CallTexts) -> Bodies:
    """Decodes every whole COLL body of a block.

    What stands before a message, the number of elements and the end of a body repeat, so each is
    decoded once; only the counter and the two buffers are looked at for each call.

    Args:
        data: whole lines.
        line_starts: int64 offsets of the lines in ``data``.
        heads: parser of what stands before a message.
        texts: texts seen so far; extended.
    """
    first, *parts = data.split(ANCHOR)
    starts = np.cumsum([len(first), *map(len, parts)], dtype=np.int64)[: len(parts)]
    starts += len(ANCHOR) * np.arange(len(parts))
    line = np.searchsorted(line_starts, starts, side="right") - 1

    bodies = _split(first, parts)
    tails = [_tail(text) for text in bodies.tail_texts]
    global_rank = np.full(len(parts), UNKNOWN, dtype=np.int32)
    global_rank[list(bodies.ranks)] = list(bodies.ranks.values())
    fits = np.array([one.match is not None for one in tails] + [False], dtype=np.bool_)
    at = np.array(bodies.tail, dtype=np.intp)
    count = np.array([_count(text) for text in bodies.count_texts], np.int64)[bodies.counts]
    op_count, whole = _hex(bodies.op_counts)
    whole &= fits[at] & (count >= 0)
    at = at[whole]
    used, head = np.unique(np.array(bodies.head, dtype=np.intp)[whole], return_inverse=True)
    known = list(bodies.head_texts)
    parsed = [heads(known[code]) for code in used.tolist()]
    shared = np.zeros(len(line), dtype=np.bool_)
    shared[1:] = line[1:] == line[:-1]
    shared[:-1] |= shared[1:]

    columns = {
        "line": line[whole],
        "op_count": op_count[whole],
        "count": count[whole],
        "in_place": np.array(bodies.in_place, dtype=np.bool_)[whole],
        **_take(_head_table(parsed, texts), head),
        **_take(_tail_table(tails, texts), at),
        "global_rank": global_rank[whole],
    }
    columns["torn"] |= shared[whole]
    behind = []
    odd = np.array([bool(one.suffix) for one in tails], dtype=np.bool_)
    for row in np.flatnonzero(odd[at]).tolist():
        suffix = tails[at[row]].suffix
        columns["torn"][row] |= HEADER.search(suffix) is not None
        behind.append((int(columns["line"][row]), suffix))
    return Bodies(columns, parsed, head, _before(parsed, head, columns["line"]), behind)


class _Split(NamedTuple):
    """Each body's counter, what stands before it and how it ends; texts once each."""

    head: list[int]
    """Place in ``head_texts``."""
    tail: list[int]
    """Place in ``tail_texts``, -1 for what is no whole body."""
    counts: list[int]
    """Place in ``count_texts``."""
    op_counts: list[bytes]
    in_place: list[bool]
    ranks: dict[int, int]
    """Global rank that RCCL told, by the body's place."""
    head_texts: Codes[bytes]
    tail_texts: Codes[bytes]
    count_texts: Codes[bytes]


def _split(first: bytes, parts: list[bytes]) -> _Split:
    """Takes bodies apart.

    Args:
        first: what stands before the first body.
        parts: each body with all up to the next.
    """
    tail_texts: Codes[bytes] = Codes()
    head_texts: Codes[bytes] = Codes()
    count_texts: Codes[bytes] = Codes({b"0": 0})
    tail: list[int] = []
    counts: list[int] = []
    op_counts: list[bytes] = []
    in_place: list[bool] = []
    ranks: dict[int, int] = {}
    head = [head_texts[first[first.rfind(b"\n") + 1 :]]]
    for part in parts:
        body, ended, after = part.partition(b"\n")
        fields = body.split(b" ", 7)
        if len(fields) == 8 and fields[5] == b"acc":
            fields[5:] = fields[7].split(b" ", 2)
        if len(fields) == 8 and fields[1:7:2] == _WORDS:
            text = fields[7]
            if b" task " in text and (rccl := RCCL_SUFFIX.search(text)):
                ranks[len(tail)] = int(rccl[1])
                text = text[: rccl.start()]
            tail.append(tail_texts[text])
            counts.append(count_texts[fields[6]])
            op_counts.append(fields[0])
            in_place.append(fields[2] == fields[4])
        else:
            tail.append(UNKNOWN)
            counts.append(0)
            op_counts.append(b"0")
            in_place.append(False)
        head.append(head_texts[after[after.rfind(b"\n") + 1 :] if ended else body])
    texts = head_texts, tail_texts, count_texts
    return _Split(head[:-1], tail, counts, op_counts, in_place, ranks, *texts)


class _Tail(NamedTuple):
    """End of a COLL line, behind its count."""

    match: re.Match[bytes] | None
    suffix: bytes
    """Text behind the body."""


def _tail(text: bytes) -> _Tail:
    match = TAIL.match(text)
    return _Tail(match, text[match.end() :].rstrip(b"\r") if match else b"")


def _take(table: dict[str, Array], index: Indices) -> dict[str, Array]:
    return {name: values[index] for name, values in table.items()}


def _head_table(heads: list[Head], texts: CallTexts) -> dict[str, Array]:
    operations = [_operation(head.text, head.headers) for head in heads]
    return {
        "process": np.array([head.process for head in heads], dtype=np.int32),
        "thread": np.array([head.thread for head in heads], dtype=np.int64),
        "device": np.array([head.device for head in heads], dtype=np.int32),
        "time_ns": np.array([head.time_ns for head in heads], dtype=np.int64),
        "op": np.array([texts.ops[name] for name, _ in operations], dtype=np.int32),
        "torn": np.array([torn for _, torn in operations], dtype=np.bool_),
    }


@lru_cache(maxsize=1024)
def _operation(text: bytes, headers: int) -> tuple[str, bool]:
    """Operation that a COLL line's head ends with, and whether the line is torn."""
    match = OP_WORD.search(text)
    name = match[1].decode() if match else "?"
    if name not in OPERATIONS:
        ends = [known for known in OPERATIONS if name.endswith(known)]
        if ends:
            return max(ends, key=len), True
    return name, headers != 1 or match is None or match.start() > 0


def _tail_table(tails: list[_Tail], texts: CallTexts) -> dict[str, Array]:
    groups = [one.match.groups() if one.match else _NO_TAIL for one in tails]
    return {
        "datatype": np.array([int(group[0]) for group in groups], dtype=np.int32),
        "reduction": np.array([int(group[1]) for group in groups], dtype=np.int32),
        "root": np.array([int(group[2]) for group in groups], dtype=np.int32),
        "pointer": np.array(
            [texts.pointers[group[3].decode()] for group in groups], dtype=np.int32
        ),
        "nranks": np.array([int(group[4] or UNKNOWN) for group in groups], dtype=np.int32),
        "stream": np.array([texts.streams[group[5].decode()] for group in groups], dtype=np.int32),
    }


def _before(heads: list[Head], head: Indices, line: Int64) -> list[tuple[int, bytes]]:
    _, first = np.unique(head, return_index=True)
    texts = [one.before or (one.text if not one.headers else b"") for one in heads]
    return [
        (int(line[row]), text)
        for row, text in zip(first.tolist(), texts, strict=True)
        if len(text) > 8
    ]


def _count(text: bytes) -> int:
    return int(text) if text.isdigit() and len(text) <= LONGEST_COUNT else UNKNOWN


def _hex(words: list[bytes]) -> tuple[Int64, Bool]:
    """Parses hexadecimal words of at most 16 digits, and says which ones are such words.

    The top bit becomes the sign.
    """
    right = np.array([len(word) <= 16 and word.isalnum() for word in words], dtype=np.bool_)
    try:
        values = [int(word, 16) for word in words]
    except ValueError:
        values = [0] * len(words)
        for row, word in enumerate(words):
            try:
                values[row] = int(word, 16)
            except ValueError:
                right[row] = False
    if not right.all():
        values = [value if fits else 0 for value, fits in zip(values, right, strict=True)]
    return np.array(values, dtype=np.uint64).view(np.int64), right
