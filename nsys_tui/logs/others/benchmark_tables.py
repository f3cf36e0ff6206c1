"""Tables of benchmarks: nccl-tests (out of place and in place), and kinds that are data.

What a table prints is kept as printed. Of nccl-tests the bandwidths are worked out again from size
and time, so that a figure which was computed otherwise shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, compress, groupby, zip_longest
from typing import Final

from nsys_tui.logs.others import bandwidth_tables
from nsys_tui.logs.others.bandwidth_tables import Header, Row
from nsys_tui.logs.others.table_kinds import KINDS
from nsys_tui.logs.trainers.step_lines import number
from nsys_tui.model.collective_sizes import wire_factor

_NUMBER: Final = r"(\d+(?:\.\d*)?|nan|inf)"
_NEAR: Final = Fraction(1, 50)
_NCCL_HEADER: Final = re.compile(r"\b(out-of-place)\s+(in-place)\b|\b(in-place)\s+(out-of-place)\b")
_NCCL_COLUMNS: Final = re.compile(
    r"\bsize\s+count(\s+type(?:\s+redop)?(\s+root)?)?\s+time\s+algbw\b"
)
_NCCL_SIZE: Final = r"(?:^|[\s:])(\d{1,18})\s+\d{1,18}\s+([a-z]\w*)(?:\s+([a-z]\w*))?"
_WITHOUT_ROOT: Final = re.compile(rf"{_NCCL_SIZE}(?=\s|$)")
_WITH_ROOT: Final = re.compile(rf"{_NCCL_SIZE}(?:\s+(-?\d{{1,9}})|\s*$)(?=\s|$)")
_WITHOUT_TYPE: Final = re.compile(r"(?:^|[\s:])(\d{1,18})\s+\d{1,18}(?=\s|$)")
"""Start of a row, in tables without a column root and with one: a time may be a whole number too,
so that a row alone does not tell. A root may be glued to NCCL's host."""
_NCCL_TIMES: Final = re.compile(
    r"\s*(\d+(?:\.\d*)?|N/A)\s+(\d+\.\d+|N/A)\s+(\d+\.\d+|N/A)(?:\s+(\d+(?![.\d])|N/A|\S*e[+-]\d+))?"
    r"(?=\s|$)"
)
"""A row comes in up to three pieces where NCCL writes between them: its size, then each place's
times, without their last number where that was glued to NCCL's host."""
_NCCL_RANK: Final = re.compile(r"\bRank\s+(\d+)\s.*\bPid\s+\d+ on ")
_NCCL_TEST: Final = re.compile(r"\b(\w+?)_perf(?:_mpi)?\b")
_NCCL_AVERAGE: Final = re.compile(rf"\bAvg bus bandwidth\s*: {_NUMBER}")
_NCCL_BOUNDS: Final = re.compile(r"\bOut of bounds values\s*: (\d+)")
_LONGEST: Final = 400


_WRONG: Final = re.compile(r"FAIL|0*[1-9]\d*")
_OF_PLACES: Final = ("nccl-tests", "mscclpp-test")
_COUNTS: Final = ("iterations", "repetitions")
"""Columns that say how often a row was measured, and not what."""
_TITLES: Final = tuple(word for kind in KINDS.values() for word in kind.words)
WORDS: Final = (b"out-of-place", b"_perf", b" Pid ", *_TITLES, *bandwidth_tables.WORDS)
"""One of these stands in the first lines of a table."""


@dataclass(frozen=True)
class Point:
    """One row of a series."""

    size: int | None
    """Bytes; None where a table has none."""
    value: Fraction | None
    """µs of nccl-tests; what the column holds of others."""
    algbw: Fraction | None = None
    """GB/s as printed."""
    busbw: Fraction | None = None
    our_algbw: Fraction | None = None
    """GB/s: size over time."""
    our_busbw: Fraction | None = None
    """GB/s by the operation's rule; None where the operation is not named."""
    wrong: str = ""
    """Wrong elements as printed."""


@dataclass
class Series:
    """One column of one table."""

    kind: str
    """One of ``_OF_PLACES``, of ``KINDS``, ``bandwidth-table`` or ``transferbench``."""
    test: str
    """Name as printed; empty where the file names none."""
    column: str
    """``out-of-place``, ``in-place`` or the column's header."""
    file: int
    line: int
    nranks: int = -1
    runs: int = 1
    """Runs that print into one another: each lists the same ranks."""
    points: list[Point] = field(default_factory=list)
    printed_mean_busbw: Fraction | None = None
    """nccl-tests' average over all series of a table."""
    out_of_bounds: int | None = None
    of: tuple[str | None, ...] = ()
    """Type, reduction and root of nccl-tests' rows, as far as printed."""

    @property
    def of_bandwidth(self) -> bool:
        """Whether its points have bandwidths: those of tests of collectives."""
        return self.kind in _OF_PLACES

    def numbers(self) -> list[Fraction]:
        """The values that are known."""
        return [point.value for point in self.points if point.value is not None]

    @property
    def wrong_rows(self) -> int:
        """Rows in which nccl-tests counts wrong elements; older ones print the largest error."""
        return sum(_WRONG.fullmatch(point.wrong) is not None for point in self.points)

    @property
    def best(self) -> Point | None:
        """The point with the greatest bus bandwidth."""
        return max(
            (point for point in self.points if point.busbw is not None),
            key=lambda point: point.busbw or 0,
            default=None,
        )


@dataclass
class BenchmarkTables:
    """Gathers the tables of one file."""

    file: int
    series: list[Series] = field(default_factory=list)
    _current: list[Series] = field(default_factory=list)
    """Series that the next row belongs to."""
    _kind: str = ""
    _title: str = ""
    """Test of the table that begins, until its columns are known."""
    _columns: tuple[int, ...] = ()
    """Places of the values that are of the current series."""
    _header: Header | None = None
    """Of the table of bandwidths that the next row may be of."""
    _devices: int = -1
    """Of the test that a title named."""
    _transfers: set[str] = field(default_factory=set)
    """Numbers of transfers in the current test of TransferBench's."""
    _test: str = ""
    _ranks: list[str] = field(default_factory=list)
    """Ranks listed since the last table."""
    _row_start: re.Pattern[str] = _WITH_ROOT
    _kinds: dict[tuple[str | None, ...], list[Series]] = field(default_factory=dict)
    """Series of nccl-tests' table by what their rows are of."""
    _size: int | None = None
    """Size of a row whose times are still to come."""
    _place: int = 0
    """Series that the next times are of."""
    _pending: list[tuple[int, bytes]] = field(default_factory=list)
    """Lines that came out of order."""

    @property
    def inside(self) -> bool:
        """Whether the next line may be of a table."""
        return bool(self._current or self._title or self._header)

    def add(self, text: bytes, line: int) -> bool:
        """Takes in a line that may be of a table; returns whether it is OSU's title, "MPI" in it.

        Lines come out of order: what stood before a message of NCCL's is told before the rest of
        its block. ``settle`` puts them in order.
        """
        if len(text) <= _LONGEST:
            self._pending.append((line, text))
        return b"# OSU " in text

    def settle(self) -> None:
        """Reads the lines taken in so far."""
        for line, text in sorted(self._pending):
            if self.inside or any(word in text for word in WORDS):
                self._add(text.decode("utf-8", "replace").rstrip("\r"), line)
        self._pending.clear()

    def _add(self, text: str, line: int) -> None:
        if match := _NCCL_HEADER.search(text):
            self._begin_nccl([place for place in match.groups() if place], line)
        elif match := _NCCL_RANK.search(text):
            self._ranks.append(match[1])
        elif (title := _title(text)) is not None:
            self._current, (self._kind, self._title), self._header = [], title, None
        elif self._title and (match := KINDS[self._kind].columns.match(text)):
            self._begin_columns(match[1], line)
        elif self._add_bandwidths(text, line):
            return
        elif self._current:
            row = self._kind_row if self._current[0].kind in KINDS else self._nccl_row
            row(text)
        elif match := _NCCL_TEST.search(text):
            self._test = match[1]

    def end(self) -> None:
        """The file is read: what a table does not name is looked for in its figures."""
        self.settle()
        self.series = [
            one for one in self.series if one.points and (one.of_bandwidth or one.numbers())
        ]
        for _, table in groupby(self.series, lambda one: one.line):
            _name_rows([*table])
        for series in self.series:
            if series.of_bandwidth and (factor := _printed_factor(series)):
                series.points = [
                    replace(point, our_busbw=point.our_algbw * factor)
                    if point.our_algbw is not None and point.our_busbw is None
                    else point
                    for point in series.points
                ]

    def _begin_nccl(self, places: Sequence[str], line: int) -> None:
        """Begins a table of nccl-tests, or of MSCCL++'s tests, which have in-place first."""
        kind = "nccl-tests" if places[0] == "out-of-place" else "mscclpp-test"
        listed, lines = {*map(int, self._ranks)}, len(self._ranks)
        ranks = len(listed) if max(listed, default=-1) < len(listed) else 0
        if ranks or not (self._current and not self._current[0].points):
            runs = lines // ranks if ranks else 1
            self._begin(
                Series(kind, self._test, place, self.file, line, ranks or -1, runs)
                for place in places
            )
            self._kinds = {}
        self._title, self._ranks, self._size, self._header = "", [], None, None

    def _begin_columns(self, header: str, line: int) -> None:
        names = [name for name in re.split(r"\s{2,}|\t", header) if name]
        told = {i: name for i, name in enumerate(names) if not name.lower().endswith(_COUNTS)}
        self._columns = tuple(told)
        self._begin(
            Series(self._kind, self._title, KINDS[self._kind].of + name, self.file, line)
            for name in told.values()
        )
        self._title, self._header = "", None

    def _begin(self, series: Iterable[Series]) -> None:
        self._current = [*series]
        self.series += self._current

    def _add_bandwidths(self, text: str, line: int) -> bool:
        """Takes in a line of a table whose header tells its columns, or of TransferBench's."""
        if match := bandwidth_tables.TRANSFER.match(text):
            self._add_transfer(match, line)
        elif match := bandwidth_tables.TRANSFERS.match(text):
            self._transfers, self._size = set(), int(match[1])
        elif match := bandwidth_tables.TITLE.search(text):
            self._current, self._test, self._devices = [], match[1], int(match[2])
        elif self._current and self._current[0].of_bandwidth:
            return False
        elif header := bandwidth_tables.header(text):
            self._header, self._current = header, []
        elif self._header and (row := bandwidth_tables.row(self._header, text)):
            self._add_row(row, line)
        else:
            return False
        return True

    def _add_row(self, row: Row, line: int) -> None:
        if not self._current:
            named = "bandwidth-table", self._test
            self._begin(Series(*named, name, self.file, line, self._devices) for name in row.names)
            self._test, self._devices = "", -1
        for series, name, value in zip(self._current, row.names, row.values, strict=True):
            if series.column == name:
                wrong = "FAIL" * (row.failed and series is self._current[0])
                series.points.append(Point(row.size, value, wrong=wrong))

    def _add_transfer(self, match: re.Match[str], line: int) -> None:
        if match[1] in self._transfers or not self._transfers:
            self._transfers, self._header = set(), None
            test = 1 + sum(one.kind == "transferbench" for one in self.series) // 2
            named = "transferbench", f"test {test}"
            self._begin(Series(*named, unit, self.file, line) for unit in ("GB/s", "ms"))
        self._transfers.add(match[1])
        size = int(match[4]) if match[4] else self._size
        for series, value in zip(self._current, match.groups()[1:3], strict=True):
            series.points.append(Point(size, number(value)))

    def _nccl_row(self, text: str) -> None:
        if not text.lstrip().startswith("#") and self._pieces(text):
            return
        if match := _NCCL_COLUMNS.search(text):
            typed = _WITH_ROOT if match[2] else _WITHOUT_ROOT
            self._row_start = typed if match[1] else _WITHOUT_TYPE
        elif match := _NCCL_AVERAGE.search(text):
            for series in chain(*self._kinds.values()):
                series.printed_mean_busbw = number(match[1])
            self._current, self._test = [], ""
        elif match := _NCCL_BOUNDS.search(text):
            for series in chain(*self._kinds.values()):
                series.out_of_bounds = int(match[1])

    def _pieces(self, text: str) -> bool:
        """Takes in a row, or a piece of one; returns whether it is that."""
        if match := self._row_start.search(text):
            self._size, self._place = int(match[1]), 0
            self._turn_to(match.groups()[1:])
            text = text[match.end() :]
        size, any_piece = self._size, match is not None
        while size is not None and self._place < 2 and (times := _NCCL_TIMES.match(text)):
            series = self._current[self._place]
            series.points.append(_nccl_point(series, size, times.groups("")))
            self._place += 1
            text, any_piece = text[times.end() :], True
        return any_piece

    def _turn_to(self, told: Sequence[str | None]) -> None:
        """The next times are of a row that tells these; a root that is glued is the last one."""
        of = tuple(new or old for new, old in zip_longest(told, self._current[0].of))
        if of not in self._kinds:
            self._begin(replace(one, of=of, points=[]) for one in self._current)
            self._kinds[of] = self._current
        self._current = self._kinds[of]

    def _kind_row(self, text: str) -> None:
        match, points = KINDS[self._kind].row.match(text), self._current[0].points
        if match is None:
            return
        values = match["values"].split()
        if "size" not in match.groupdict():
            points += [Point(None, number(word)) for word in values]
            return
        size = int(match["size"])
        # Others may write between the rows; what is none of them rarely looks like the next.
        if points and size <= (points[-1].size or 0):
            return
        for series, place in zip(self._current, self._columns, strict=True):
            if place < len(values):
                series.points.append(Point(size, number(values[place])))


def _title(text: str) -> tuple[str, str] | None:
    """Kind and test of a table that a line begins."""
    for name, kind in KINDS.items():
        if match := kind.title.match(text):
            return name, match[1]
    return None


def _name_rows(table: Sequence[Series]) -> None:
    """Says in the columns of a table what their rows are of, as far as that differs."""
    differ = [len({*told}) > 1 for told in zip(*(one.of for one in table), strict=False)]
    for one in table:
        told = [word for word in compress(one.of, differ) if word]
        words = (f"root {word}" if word.lstrip("-").isdigit() else word for word in told)
        one.column += ", " * bool(told) + " ".join(words)


def _nccl_point(series: Series, size: int, values: Sequence[str]) -> Point:
    time, algbw, busbw = map(number, values[:3])
    ours = Fraction(size) / time / 1000 if time else None
    operation = "send" if series.test == "sendrecv" else series.test.replace("_", "")
    factor = wire_factor(operation, series.nranks) if series.nranks > 1 else None
    bus = ours * factor if ours is not None and factor is not None else None
    return Point(size, time, algbw, busbw, ours, bus, values[3])


def _printed_factor(series: Series) -> Fraction | None:
    """Factor of the bus bandwidth that the fastest row shows, if it is one of NCCL's."""
    best = series.best
    if best is None or not best.algbw or best.busbw is None or series.nranks < 2:
        return None
    ratio = best.busbw / best.algbw
    known = {wire_factor(name, series.nranks) for name in ("AllReduce", "AllGather", "Send")}
    near = [one for one in known if one and abs(ratio / one - 1) < _NEAR]
    return near[0] if len(near) == 1 else None
