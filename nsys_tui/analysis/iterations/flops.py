"""How much of its GPUs' peak a step used, by FLOPs that the user gives; tensor-core kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsys_tui.analysis.iterations.table import IterationTable
from nsys_tui.model.categories import Category
from nsys_tui.model.groups import sums
from nsys_tui.model.report import Report
from nsys_tui.units import format_share

TERA: Final = 1e12
_LITTLE: Final = 1e-6
"""Share of the peak that no step uses: its FLOPs were given in another unit."""
PEAKS: Final = (
    ("B200", 2250.0, "NVIDIA B200 data sheet"),
    ("H200 NVL", None, ""),
    ("H200", 989.4, "NVIDIA H200 data sheet"),
    ("H100 PCIe", 756.5, "NVIDIA H100 data sheet"),
    ("H100 NVL", None, ""),
    ("H100 64GB", None, ""),
    ("H100", 989.4, "NVIDIA H100 architecture white paper, SXM5"),
    ("A100-SXM-64GB", None, ""),
    ("A100", 312.0, "NVIDIA A100 data sheet"),
    ("A40", 149.7, "NVIDIA A40 data sheet"),
    ("L40S", 362.05, "NVIDIA L40S data sheet"),
    ("L40", 181.05, "NVIDIA L40 data sheet"),
    ("V100-PCIE", 112.0, "NVIDIA V100 data sheet"),
    ("V100-FHHL", None, ""),
    ("V100", 125.0, "NVIDIA, Programming Tensor Cores in CUDA 9"),
    ("T4", 65.0, "NVIDIA T4 data sheet"),
)
"""TFLOP/s of dense 16-bit tensor-core work at boost clock, with what publishes it. The first name
that occurs in the GPU's as whole words counts. None is unknown: no figure of it could be looked
up."""
TENSOR: Final = re.compile(
    r"(?i)^(?!.*(ffma|simt)).*([sh](884|1688|16816|161616)|hmma|gmma|(?<![a-z])[wx]?mma|tensor_?op"
    r"|nvjet)"
)
"""Names of kernels that use tensor cores: shapes and instructions in them, and cuBLAS's nvjet.

``xmma`` kernels may use others: then ``ffma`` tells."""
_PART: Final = re.compile(r"\bMIG\b|-\d+[ABCQ]\b")
NO_TENSOR: Final = re.compile(
    r"(?<![a-z])(?:ampere|maxwell|turing|volta)_s(?:gemm|cudnn)_|_simt_sgemm_"
    r"|_xmma_\w*_f32f32_f32f32_f32_|convolve_sgemm<float|[dw]grad\w*_engine<float"
)
"""Names of single-precision matrix products of libraries that use none."""


@dataclass(frozen=True)
class Flops:
    """Use of the GPUs by the median step."""

    step_flops: float
    """FLOPs of one step on all GPUs of its process, as the user gives them."""
    peak_flops: float | None
    """Per second, of these GPUs together; None where it is not known."""
    peak_source: str
    per_second: float
    """Of the median step, or of the GPUs' where the host runs ahead."""
    tensor_share: float | None
    """Part of the time of compute kernels that those named like tensor-core ones have, 0 to 1.

    None where graphs were traced as a whole: their kernels have no names.
    """

    @property
    def utilisation_share(self) -> float | None:
        """Model FLOPs utilisation, 0 to 1."""
        return self.per_second / self.peak_flops if self.peak_flops else None

    @property
    def notes(self) -> list[str]:
        """What people read."""
        reached = f"{self.per_second / TERA:,.1f} TFLOP/s in a usual step"
        if self.peak_flops is None:
            return [f"{reached}; {self.peak_source}", *self._tensor]
        share = format_share(self.per_second, self.peak_flops)
        peak = f"{self.peak_flops / TERA:,.0f} TFLOP/s ({self.peak_source})"
        odd = "more than there is" if self.per_second > self.peak_flops else "next to nothing"
        right = _LITTLE <= self.per_second / self.peak_flops <= 1
        doubt = "" if right else f"; {odd}: are these FLOPs of one step on these GPUs?"
        return [f"model FLOPs utilisation {share}: {reached} of {peak}{doubt}", *self._tensor]

    @property
    def _tensor(self) -> list[str]:
        if self.tensor_share is None:
            return []
        share = format_share(self.tensor_share)
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
    peaks = [peak_of(report.devices[device].name) for device in places]
    known = [peak or one for one, _ in peaks]
    told = [one for one in known if one]
    names = sorted({report.devices[device].name for device in places})
    source = f"no peak is known for {', '.join(names) or 'no GPU'}: give --peak"
    if known and len(told) == len(known):
        told_by = ", ".join(sorted({published for _, published in peaks}))
        source = "as given" if peak else f"{told_by}: dense 16-bit tensor cores at boost clock"
    total = sum(told) if told and len(told) == len(known) else None
    seconds = max(table.gpu_step_ns or table.whole().median, 1) / 1e9
    return Flops(flops, total, source, flops / seconds, _tensor_share(report, places))


def peak_of(name: str) -> tuple[float | None, str]:
    """Peak of a GPU in FLOP/s by its name, and what publishes it.

    None where the table has none, or of a part of a GPU: a MIG instance, a profile such as 40Q.
    """
    words = f" {name.replace('-', ' ')} "
    told = (entry for entry in PEAKS if f" {entry[0].replace('-', ' ')} " in words)
    _, peak, source = next(told, ("", None, ""))
    return (None, "") if peak is None or _PART.search(name) else (peak * TERA, source)


def _tensor_share(report: Report, places: tuple[int, ...]) -> float | None:
    ops = report.operations
    mine = np.isin(ops.device, places) & ops.counted
    rows = np.flatnonzero(mine & (ops.category == Category.COMPUTE))
    if not len(rows) or (mine & (ops.category == Category.GRAPH)).any():
        return None
    time = sums(ops.name[rows], ops.durations(rows), len(ops.names))
    named = np.array([bool(TENSOR.search(name.demangled)) for name in ops.names], bool)
    return float(time[named].sum() / max(int(time.sum()), 1))
