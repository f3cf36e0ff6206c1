"""The register of statistical reports: name, old names, title, arguments, help, how to compute.

A report is a small function in a family file, registered by the decorator; ``--help-reports`` and
the default list read this register.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from nsys_tui.analysis.stats.query import Query
from nsys_tui.model.table import Column, Values

if TYPE_CHECKING:
    from nsys_tui.model.capabilities import Capability

Columns: TypeAlias = list[tuple[Column, Values]]
"""A table in the making: each column with its values."""
Builder: TypeAlias = Callable[[Query], Columns]

KERNEL_NAMES: Final = {
    "nvtx-name": "put the innermost NVTX range around the launch before kernels' names",
    "base": "the kernel's base name, without types and arguments",
    "mangled": "the kernel's mangled name, where the report has it",
}
"""Arguments of every report that names kernels."""


def nothing(_query: Query) -> tuple[str, ...]:
    """The notes of a report that needs none."""
    return ()


@dataclass(frozen=True)
class Needs:
    """What reports on one kind of data are made of."""

    data: str
    """As in "does not contain ... data"."""
    option: str
    """What to add to ``nsys profile`` to record it."""
    kinds: tuple[Capability, ...] = ()
    """Kinds of data that a file may hold in a form that is not believed."""
    by_device: bool = False
    """Whether rows belong to GPUs, so that ``--by-device`` can tell them apart."""
    notes: Callable[[Query], tuple[str, ...]] = nothing


@dataclass(frozen=True)
class StatReport:
    """One statistical report."""

    name: str
    title: str
    build: Builder
    needs: Needs
    old_names: tuple[str, ...]
    arguments: dict[str, str]
    """Accepted arguments with a line of help; ``name=`` takes a value."""
    help: str
    """What the report tells."""


REPORTS: Final[dict[str, StatReport]] = {}
"""All reports by name."""


def report(
    title: str, needs: Needs, *, old: str = "", arguments: dict[str, str] | None = None
) -> Callable[[Builder], Builder]:
    """Registers a report under its function's name, with its docstring as help.

    Args:
        title: stands above its table.
        needs: what it is made of.
        old: names that older nsys knew it by, apart by blanks.
        arguments: accepted arguments with a line of help.
    """

    def register(build: Builder) -> Builder:
        name, text = build.__name__, (build.__doc__ or "").strip()
        old_names = tuple(old.split())
        REPORTS[name] = StatReport(name, title, build, needs, old_names, arguments or {}, text)
        return build

    return register
