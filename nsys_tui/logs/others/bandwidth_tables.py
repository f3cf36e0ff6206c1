"""Tables of bandwidth by size whose header tells what their columns are, and TransferBench's rows.

MSCCL++'s Python benchmark, DeepSpeed's communication benchmark, ``all_reduce_bench.py`` and what is
like nccl-tests with one place have such a header.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from nsys_tui.logs.trainers.step_lines import number
from nsys_tui.logs.trainers.trainer_table import N

WORDS: Final = (
    *(b"usbw", b"usBW", b"lgBW"),
    *(b"Performance of ", b"average bandwidth of "),
    *(b" GB/s ", b" bytes]"),
)
"""One of these stands in each title, header and row of TransferBench's."""
TITLE: Final = re.compile(
    r"(?:Performance of|The average bandwidth of) (\w+) (?:on|over) (\d{1,9}) (?:devices|ranks)\b"
)
TRANSFERS: Final = re.compile(r"^\s*Test \d+: \[(\d{1,18}) bytes\]\s*$")
"""Begins a test of TransferBench's in versions whose rows have no size."""
TRANSFER: Final = re.compile(
    rf"^\W*Transfer\s+(\d{{1,9}})\b.*?({N}) GB/s\s*[|│]\s*({N}) ms(?:\s*[|│]\s*(\d{{1,18}}) bytes)?"
)
_NAMES: Final = re.compile(r"\S+(?: \([^()]*\))?")
_CELLS: Final = re.compile(r"\S+(?: (?:[KMGTP]i?B|B|us|ms|s)(?!\S))?")
_SIZE_NAME: Final = re.compile(
    r"(?i)(?:(?:message|msg|data)[ _])?(?:size|payload|bytes)"
    r"(?:\s?\((?:(?P<bytes>b|bytes)|(?:fp|bf|float|int|uint)\d+)\))?"
)
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s?(B|[KMGT]iB)?")
_UNITS: Final = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_ELEMENTS: Final = re.compile(r"(\d{1,15})x(\d{1,2})")
_TOLD: Final = re.compile(r"(?i)time|latency|duration|bw|bandwidth|throughput")
_BANDWIDTH: Final = re.compile(r"(?i)(?:alg|bus)_?bw")
_VALUE: Final = re.compile(rf"({N})\s?([a-zA-Z/]*)")
_TO_US: Final = {"us": 1, "ms": 10**3, "s": 10**6}
_NEAR: Final = Fraction(1, 20)


class Header(NamedTuple):
    """The columns of a table, the first of which is the size."""

    names: tuple[str, ...]
    told: tuple[int, ...]
    """Places of those that are times and bandwidths."""
    in_bytes: bool
    """Whether it says that sizes are bytes."""


class Row(NamedTuple):
    """What a row says in the columns that are told."""

    size: int | None
    """Bytes; None where nothing tells that they are."""
    names: tuple[str, ...]
    """Names of the columns, with the units that stand in the cells."""
    values: tuple[Fraction | None, ...]
    failed: bool
    """Whether a check of its results did."""


def header(text: str) -> Header | None:
    """The header that a line is, if it is one."""
    names = tuple(_split(text, _NAMES))
    size = _SIZE_NAME.fullmatch(names[0]) if names else None
    if not size or len({*names}) < len(names) or not any(map(_BANDWIDTH.search, names)):
        return None
    told = tuple(place for place, name in enumerate(names) if place and _TOLD.search(name))
    return Header(names, told, bool(size["bytes"]) or names[0].lower() == "bytes")


def row(head: Header, text: str) -> Row | None:
    """The row that a line is, if it has a size and a number in each column that is told."""
    cells = _split(text, _CELLS)
    if len(cells) != len(head.names) or not cells[0][:1].isdigit():
        return None
    names, values = [], []
    for place in head.told:
        value = _VALUE.fullmatch(cells[place])
        if value is None:
            return None
        read, unit, name = number(value[1]), value[2], head.names[place]
        scale = _TO_US.get(unit)
        names.append(f"{name} ({'us' if scale else unit})" if unit else name)
        values.append(read * scale if scale and read is not None else read)
    size = _size(head, cells, dict(zip(names, values, strict=True)))
    return Row(size, tuple(names), tuple(values), "FAIL" in cells)


def _size(head: Header, cells: Sequence[str], values: Mapping[str, Fraction | None]) -> int | None:
    """Bytes of a row: exact ones, of a number without a unit only where its bandwidth says so."""
    for cell in cells:
        if elements := _ELEMENTS.fullmatch(cell):
            return int(elements[1]) * int(elements[2])
    size = _SIZE.fullmatch(cells[0])
    if size is None:
        return None
    exact = Fraction(size[1]) * _UNITS[size[2] or "B"]
    if exact.denominator > 1 or not (size[2] or head.in_bytes or _agrees(exact, values)):
        return None
    return int(exact)


def _agrees(size: Fraction, values: Mapping[str, Fraction | None]) -> bool:
    """Whether a size over the time is the bandwidth, as it is of bytes, us and GB/s."""
    time = next((value for name, value in values.items() if "time" in name.lower()), None)
    algbw = next((value for name, value in values.items() if "alg" in name.lower()), None)
    return bool(time and algbw) and abs(size / (time or 1) / 1000 / (algbw or 1) - 1) < _NEAR


def _split(text: str, cells: re.Pattern[str]) -> list[str]:
    text = text.strip().strip("#").strip()
    if "|" in text:
        return [cell.strip() for cell in text.strip("|").split("|")]
    return [match[0] for match in cells.finditer(text)]
