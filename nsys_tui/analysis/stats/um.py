"""Unified memory: migrations and page faults by address, in total, and by CPU instruction."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from nsys_tui.analysis.stats.query import Columns, Needs, Query, report
from nsys_tui.errors import NoDataError, UsageError
from nsys_tui.model.kinds import Kind
from nsys_tui.model.table import Column, Unit

_TO_DEVICE: Final = 11
_TO_HOST: Final = 12
_ROWS: Final = 10
UNIFIED_MEMORY: Final = Needs(
    "CUDA Unified Memory",
    "--trace=cuda --cuda-um-cpu-page-faults=true --cuda-um-gpu-page-faults=true",
)


@dataclass
class Pages:
    """What happened at one virtual address."""

    to_device: int = 0
    """Bytes."""
    to_host: int = 0
    """Bytes."""
    duration: int = 0
    """Time of the migrations in ns."""
    cpu_faults: int = 0
    gpu_faults: int = 0

    @property
    def throughput(self) -> float:
        """Bytes in both directions per second of migration, 0 without any."""
        moved = self.to_device + self.to_host
        return moved * 1e9 / self.duration if self.duration else 0.0


def pages(query: Query) -> dict[int | None, Pages]:
    """Migrations and faults by virtual address; None collects copies without one."""
    by_device: dict[int | None, Pages] = {}
    fields = ("copy_kind", "bytes", "virtual_address")
    for row in query.raw_counted(Kind.MEMCPY, *fields):
        if row["copy_kind"] in (_TO_DEVICE, _TO_HOST):
            page = by_device.setdefault(row["virtual_address"], Pages())
            size = row["bytes"] or 0
            page.to_device += size if row["copy_kind"] == _TO_DEVICE else 0
            page.to_host += size if row["copy_kind"] == _TO_HOST else 0
            if row["end"] is not None:
                page.duration += row["end"] - row["start"]
    for row in query.raw_counted(Kind.UM_CPU_FAULT, "address"):
        by_device.setdefault(row["address"], Pages()).cpu_faults += 1
    for row in query.raw_counted(Kind.UM_GPU_FAULT, "address", "number_of_page_faults"):
        by_device.setdefault(row["address"], Pages()).gpu_faults += (
            row["number_of_page_faults"] or 0
        )
    if not by_device:
        raise NoDataError("no unified memory migrations or page faults")
    return by_device


def _address(address: int | None) -> str | None:
    return None if address is None else f"0x{address & 0xFFFFFFFFFFFFFFFF:X}"


@report(
    "Unified Memory Analysis Summary",
    UNIFIED_MEMORY,
    old="umsum unifiedmemory",
    arguments={"rows=": f"how many addresses to list, {_ROWS} by default, -1 for all"},
)
def um_sum(query: Query) -> Columns:
    """Virtual addresses by how fast their pages migrated, with their page faults."""
    listed = sorted(pages(query).items(), key=lambda item: (-item[1].throughput, item[0] or 0))
    limit = _limit(query.arguments.get("rows"))
    kept = listed if limit < 0 else listed[:limit]
    by_page = [page for _, page in kept]
    return [
        (Column("Virtual Address"), [_address(address) for address, _ in kept]),
        (Column("HtoD Migration Size", Unit.MB), [page.to_device or None for page in by_page]),
        (Column("DtoH Migration Size", Unit.MB), [page.to_host or None for page in by_page]),
        (Column("CPU Page Faults", Unit.COUNT), [page.cpu_faults or None for page in by_page]),
        (Column("GPU Page Faults", Unit.COUNT), [page.gpu_faults or None for page in by_page]),
        (
            Column("Migration Throughput", Unit.MB_PER_S),
            [page.throughput or None for page in by_page],
        ),
    ]


def _limit(text: str | None) -> int:
    if text is None:
        return _ROWS
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(
            f"um_sum: rows={text} is no number", hint="write um_sum:rows=10"
        ) from error


@report("Unified Memory Totals Summary", UNIFIED_MEMORY, old="umtotalsum unifiedmemorytotals")
def um_total_sum(query: Query) -> Columns:
    """Bytes migrated and page faults in total, and the range of addresses."""
    by_device = pages(query)
    each = by_device.values()
    addresses = [address for address in by_device if address is not None]
    return [
        (Column("Total HtoD Migration Size", Unit.MB), [sum(p.to_device for p in each) or None]),
        (Column("Total DtoH Migration Size", Unit.MB), [sum(p.to_host for p in each) or None]),
        (Column("Total CPU Page Faults", Unit.COUNT), [sum(p.cpu_faults for p in each)]),
        (Column("Total GPU PageFaults", Unit.COUNT), [sum(p.gpu_faults for p in each) or None]),
        (Column("Minimum Virtual Address"), [_address(min(addresses, default=None))]),
        (Column("Maximum Virtual Address"), [_address(max(addresses, default=None))]),
    ]


@report(
    "Unified Memory CPU Page Faults Summary",
    Needs("CUDA Unified Memory CPU page faults", "--trace=cuda --cuda-um-cpu-page-faults=true"),
    old="umcpupagefaults",
)
def um_cpu_page_faults_sum(query: Query) -> Columns:
    """CPU page faults on unified memory by the instruction that caused them."""
    rows = query.raw_counted(Kind.UM_CPU_FAULT, "cpu_instruction")
    if not rows:
        raise NoDataError("no CPU page faults on unified memory")
    counts = Counter(row["cpu_instruction"] or "" for row in rows)
    listed = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [
        (Column("CPU Page Faults", Unit.COUNT), [count for _, count in listed]),
        (Column("CPU Instruction Address"), [name for name, _ in listed]),
    ]
