"""COLL bodies of a block as columns: split in C, distinct texts decoded once, then arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

from nsys_tui.logs.grammar import (
    ANCHOR,
    HEADER,
    OP_WORD,
    OPERATIONS,
    RCCL_SUFFIX,
    TAIL,
    element_bytes,
)

if TYPE_CHECKING:
    import re

    from numpy.typing import NDArray

    from nsys_tui.logs.heads import Head, Heads

UNKNOWN: Final = -1
_NO_TAIL: Final = (b"0", b"0", b"0", b"0", b"(nil)", None, b"(nil)")


T = TypeVar("T")


class Codes(dict[T, int]):
    """Small integers for values, in order of first sight: ``codes[value]``."""

    def __missing__(self, value: T) -> int:
        code = self[value] = len(self)
        return code


@dataclass(slots=True)
class CallTexts:
    """The texts behind the codes of calls, shared by all files read together."""

    ops: Codes[str] = field(default_factory=Codes)
    streams: Codes[str] = field(default_factory=Codes)
    pointers: Codes[str] = field(default_factory=Codes)


@dataclass(slots=True)
class Bodies:
    """The calls of one block."""

    columns: dict[str, NDArray[Any]]
    """Columns of ``Calls`` by name, with ``pointer`` and ``global_rank`` besides; ``line`` counts
    from the block's first line, 0."""
    heads: list[Head]
    """Distinct heads."""
    head: NDArray[np.intp]
    """Index into ``heads`` of each call."""
    leftovers: list[tuple[int, bytes]]
    """(line in the block, text) around bodies that is not NCCL's: perhaps a trainer's."""


def find_bodies(
    data: bytes, line_starts: NDArray[np.int64], heads: Heads, texts: CallTexts
) -> Bodies:
    """Decodes every whole COLL body of a block.

    The text between one ``: opCount`` and the next (the tail of a body and the head of the next
    call) repeats, so only the counter and the two buffers are looked at for each call.

    Args:
        data: whole lines.
        line_starts: int64 offsets of the lines in ``data``.
        heads: parser of what stands before a message.
        texts: texts seen so far; extended.
    """
    parts = data.split(ANCHOR)
    starts = np.cumsum([len(part) for part in parts[:-1]], dtype=np.int64)
    starts += len(ANCHOR) * np.arange(len(starts))
    line = np.searchsorted(line_starts, starts, side="right") - 1

    rests: Codes[bytes] = Codes()
    rest: list[int] = []
    op_counts: list[bytes] = []
    in_place: list[bool] = []
    for part in parts[1:]:
        fields = part.split(b" ", 5)
        if len(fields) == 6 and fields[1] == b"sendbuff" and fields[3] == b"recvbuff":
            rest.append(rests[fields[5]])
            op_counts.append(fields[0])
            in_place.append(fields[2] == fields[4])
        else:
            rest.append(UNKNOWN)
            op_counts.append(b"0")
            in_place.append(False)

    between = _between(rests)
    op_count, whole = _hex(op_counts)
    at = np.array(rest, dtype=np.intp)
    whole &= between.whole(at, line, len(line_starts))
    head_texts: Codes[bytes] = Codes()
    codes = np.array(_heads_of(parts, rest, between, head_texts), dtype=np.intp)
    used, head = np.unique(codes[whole], return_inverse=True)
    known = list(head_texts)
    parsed = [heads(known[code]) for code in used.tolist()]
    shared = np.zeros(len(line), dtype=np.bool_)
    shared[1:] = line[1:] == line[:-1]
    shared[:-1] |= shared[1:]

    columns = {
        "line": line[whole],
        "op_count": op_count[whole],
        "in_place": np.array(in_place, dtype=np.bool_)[whole],
        **_take(_head_table(parsed, texts), head),
        **_take(_tail_table(between.tails, texts), between.tail[at[whole]]),
        "global_rank": between.global_rank[at[whole]],
    }
    columns["torn"] |= shared[whole]
    leftovers = _glued_before(parsed, head, columns["line"])
    for row in np.flatnonzero(between.odd[between.tail[at[whole]]]).tolist():
        suffix = between.tails[between.tail[at[whole][row]]].suffix
        columns["torn"][row] |= HEADER.search(suffix) is not None
        leftovers.append((int(columns["line"][row]), suffix))
    return Bodies(columns, parsed, head, leftovers)


class _Tail(NamedTuple):
    """End of a COLL line, from ``count`` on."""

    match: re.Match[bytes] | None
    suffix: bytes
    """Text behind the body that is not RCCL's."""


@dataclass(slots=True)
class _Between:
    """What stands between the buffers of one body and the next ``: opCount``, by distinct text."""

    tails: list[_Tail]
    """Distinct ends of lines."""
    tail: NDArray[np.intp]
    newlines: NDArray[np.int64]
    global_rank: NDArray[np.int32]
    heads: list[bytes]
    """Last line of each text: what stands before the next anchor."""

    @property
    def odd(self) -> NDArray[np.bool_]:
        """Which tails have text behind them."""
        return np.array([bool(one.suffix) for one in self.tails], dtype=np.bool_)

    def whole(self, at: NDArray[np.intp], line: NDArray[np.int64], lines: int) -> NDArray[np.bool_]:
        """Which anchors start a whole body: its tail fits and no line ends before it.

        Args:
            at: text of each anchor, ``UNKNOWN`` where the words before it did not fit.
            line: line of each anchor.
            lines: lines of the block.
        """
        if not self.tails:
            return np.zeros(len(at), dtype=np.bool_)
        fits = np.array([one.match is not None for one in self.tails], dtype=np.bool_)
        newlines = self.newlines[at]
        # Lines that begin before the next anchor; the last part runs to the end of the block.
        until = np.append(line[1:], lines)
        ends_early = newlines != until - line
        ends_early[-1:] = newlines[-1:] < until[-1:] - line[-1:] - 1
        return np.asarray(fits[self.tail[at]] & (at >= 0) & ~ends_early, dtype=np.bool_)


def _between(texts: Codes[bytes]) -> _Between:
    tails: Codes[bytes] = Codes()
    tail: list[int] = []
    newlines: list[int] = []
    ranks: list[int] = []
    heads: list[bytes] = []
    for text in texts:
        end, newline, rest = text.partition(b"\n")
        rank = UNKNOWN
        if b" task " in end and (rccl := RCCL_SUFFIX.search(end)):
            rank = int(rccl[1])
            end = end[: rccl.start()]
        tail.append(tails[end])
        ranks.append(rank)
        newlines.append(len(newline) + rest.count(b"\n"))
        heads.append(rest[rest.rfind(b"\n") + 1 :] if newline else text)
    decoded = [
        _Tail(match, end[match.end() :].rstrip(b"\r") if match else b"")
        for end in tails
        for match in [TAIL.match(end)]
    ]
    return _Between(
        decoded,
        np.array(tail, dtype=np.intp),
        np.array(newlines, dtype=np.int64),
        np.array(ranks, dtype=np.int32),
        heads,
    )


def _heads_of(
    parts: list[bytes], rest: list[int], between: _Between, texts: Codes[bytes]
) -> list[int]:
    """Code of the text before each anchor in its line."""
    codes = [texts[parts[0][parts[0].rfind(b"\n") + 1 :]]] if len(parts) > 1 else []
    known = [texts[head] for head in between.heads]
    for index, code in enumerate(rest[:-1], start=1):
        if code >= 0:
            codes.append(known[code])
        else:
            codes.append(texts[parts[index][parts[index].rfind(b"\n") + 1 :]])
    return codes


def _take(table: dict[str, NDArray[Any]], index: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
    return {name: values[index] for name, values in table.items()}


def _head_table(heads: list[Head], texts: CallTexts) -> dict[str, NDArray[Any]]:
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


def _tail_table(tails: list[_Tail], texts: CallTexts) -> dict[str, NDArray[Any]]:
    groups = [one.match.groups() if one.match else _NO_TAIL for one in tails]
    count = [int(group[0]) for group in groups]
    datatype = [int(group[1]) for group in groups]
    sizes = [element_bytes(code) for code in datatype]
    total = [UNKNOWN if size is None else n * size for n, size in zip(count, sizes, strict=True)]
    return {
        "count": np.array(count, dtype=np.int64),
        "bytes": np.array(total, dtype=np.int64),
        "datatype": np.array(datatype, dtype=np.int32),
        "reduction": np.array([int(group[2]) for group in groups], dtype=np.int32),
        "root": np.array([int(group[3]) for group in groups], dtype=np.int32),
        "pointer": np.array(
            [texts.pointers[group[4].decode()] for group in groups], dtype=np.int32
        ),
        "nranks": np.array([int(group[5] or UNKNOWN) for group in groups], dtype=np.int32),
        "stream": np.array([texts.streams[group[6].decode()] for group in groups], dtype=np.int32),
    }


def _glued_before(
    heads: list[Head], head: NDArray[np.intp], line: NDArray[np.int64]
) -> list[tuple[int, bytes]]:
    _, first = np.unique(head, return_index=True)
    texts = [one.before or (one.text if not one.headers else b"") for one in heads]
    return [
        (int(line[row]), text)
        for row, text in zip(first.tolist(), texts, strict=True)
        if len(text) > 8
    ]


def _hex(words: list[bytes]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
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
