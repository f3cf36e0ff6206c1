"""The register of statistical reports: name, old names, title, arguments, help, how to compute.

A report is a small function in a family file, registered by the decorator; ``--help-reports`` and
the default list read this register.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from nsys_tui.analysis.stats.query import Query
from nsys_tui.model.table import Column, Values

Columns: TypeAlias = list[tuple[Column, Values]]
"""A table in the making: each column with its values."""
Builder: TypeAlias = Callable[[Query], Columns]

KERNEL_NAMES: Final = {
    "nvtx-name": "put the innermost NVTX range around the launch before the kernel's name",
    "base": "the kernel's base name, without types and arguments",
    "mangled": "the kernel's mangled name, where the report has it",
}
"""Arguments of every report that names kernels."""


@dataclass(frozen=True)
class StatReport:
    """One statistical report."""

    name: str
    title: str
    build: Builder
    data: str
    """What the report needs, as in "does not contain ... data"."""
    option: str
    """What to add to ``nsys profile`` to record it."""
    old_names: tuple[str, ...]
    arguments: dict[str, str]
    """Accepted arguments with a line of help; ``name=`` takes a value."""
    by_device: bool
    """Whether rows belong to GPUs, so that ``--by-device`` can tell them apart."""
    notes: Callable[[Query], tuple[str, ...]]

    @property
    def help(self) -> str:
        """What the report tells, from its docstring."""
        return (self.build.__doc__ or "").strip()


REPORTS: Final[dict[str, StatReport]] = {}
"""All reports by name."""


def report(
    title: str,
    *,
    data: str,
    option: str,
    old: tuple[str, ...] = (),
    arguments: dict[str, str] | None = None,
    by_device: bool = False,
    notes: Callable[[Query], tuple[str, ...]] = lambda _query: (),
) -> Callable[[Builder], Builder]:
    """Registers a report under its function's name; the arguments are fields of ``StatReport``."""

    def register(build: Builder) -> Builder:
        name = build.__name__
        REPORTS[name] = StatReport(
            name, title, build, data, option, old, arguments or {}, by_device, notes
        )
        return build

    return register
