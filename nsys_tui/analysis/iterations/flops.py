"""How much of its GPUs' peak a step used, by FLOPs that the user gives; tensor-core kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsys_tui.model.categories import Category
from nsys_tui.model.groups import sums
from nsys_tui.units import format_share

if TYPE_CHECKING:
    from nsys_tui.analysis.iterations.table import IterationTable
    from nsys_tui.model.report import Report

TERA: Final = 1e12
PEAKS: Final = (
    ("B200", 2250.0),
    ("H200", 989.0),
    ("H100 PCIe", 756.0),
    ("H100 NVL", 835.0),
    ("H100", 989.0),
    ("A100", 312.0),
    ("A30", 165.0),
    ("A40", 149.7),
    ("A10G", 70.0),
    ("L40S", 362.0),
    ("L40", 181.0),
    ("V100-PCIE", 112.0),
    ("V100", 125.0),
    ("T4", 65.0),
)
"""TFLOP/s of dense 16-bit tensor-core work at boost clock, from NVIDIA's data sheets; the first
name that occurs in the GPU's as whole words counts."""
SOURCE: Final = "NVIDIA's data sheet, dense 16-bit tensor cores at boost clock"
TENSOR: Final = re.compile(
    r"(?i)s(884|1688|16816|161616)|hmma|wgmma|gmma|(?<![a-z])w?mma|tensor_?op|nvjet|(?<![a-z])xmma"
)
"""Names of kernels that use tensor cores: shapes and instructions in them, and cuBLAS's nvjet."""


@dataclass(frozen=True)
class Flops:
    """Use of the GPUs by the median step."""

    step_flops: float
    """FLOPs of one step on all GPUs of its process, as the user gives them."""
    peak_flops: float | None
    """Per second, of these GPUs together; None where it is not known."""
    peak_source: str
    per_second: float
    """Of the median step."""
    tensor_share: float | None
    """Part of the time of compute kernels that those named like tensor-core ones have, 0 to 1."""

    @property
    def utilisation_share(self) -> float | None:
        """Model FLOPs utilisation, 0 to 1."""
        return self.per_second / self.peak_flops if self.peak_flops else None

    @property
    def notes(self) -> list[str]:
        """What people read."""
        reached = f"{self.per_second / TERA:,.1f} TFLOP/s in the median step"
        if self.peak_flops is None:
            return [f"{reached}; {self.peak_source}", *self._tensor]
        share = format_share(self.per_second, self.peak_flops)
        peak = f"{self.peak_flops / TERA:,.0f} TFLOP/s ({self.peak_source})"
        return [f"model FLOPs utilisation {share}: {reached} of {peak}", *self._tensor]

    @property
    def _tensor(self) -> list[str]:
        if self.tensor_share is None:
            return []
        share = format_share(self.tensor_share, 1)
        return [f"≈ {share} of compute kernels' time in those named like tensor-core kernels"]


def step_flops(
    report: Report, table: IterationTable, flops: float, peak: float | None = None
) -> Flops:
    """How much of the peak the median step used.

    Args:
        report: the report.
        table: its steps.
        flops: FLOPs of one step on all GPUs of its process.
        peak: FLOP/s of one GPU; by its name where None.
    """
    places = table.parts.places
    known = [peak or peak_of(report.devices[place].name) for place in places]
    told = [one for one in known if one]
    names = sorted({report.devices[place].name for place in places})
    source = f"no peak is known for {', '.join(names) or 'no GPU'}: give --peak"
    if known and len(told) == len(known):
        source = "as given" if peak else SOURCE
    total = sum(told) if told and len(told) == len(known) else None
    seconds = max(table.whole().median, 1) / 1e9
    return Flops(flops, total, source, flops / seconds, _tensor_share(report, places))


def peak_of(name: str) -> float | None:
    """Peak of a GPU in FLOP/s by its name; None where the table has none, or of a part of a GPU."""
    if "MIG" in name:
        return None
    words = f" {name.replace('-', ' ')} "
    told = (peak for key, peak in PEAKS if f" {key.replace('-', ' ')} " in words)
    return next((peak * TERA for peak in told), None)


def _tensor_share(report: Report, places: tuple[int, ...]) -> float | None:
    ops = report.operations
    rows = np.flatnonzero((ops.category == Category.COMPUTE) & np.isin(ops.device, places))
    if not len(rows):
        return None
    time = sums(ops.name[rows], ops.durations(rows), len(ops.names))
    named = np.array([bool(TENSOR.search(name.demangled)) for name in ops.names], bool)
    return float(time[named].sum() / max(int(time.sum()), 1))
