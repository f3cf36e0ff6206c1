"""Short names of a report's kernels by their full ones, as screens list them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from nsys_tui.model.events import OpName, called
from nsys_tui.model.report import Report
from nsys_tui.names import NameStyle
from nsys_tui.reader.encode import UNNAMED, Strings
from nsys_tui.reader.operations import some_kernel_names
from nsys_tui.reader.sqlite import Database

_OTHERS: Final = 4_000
"""Other texts of a report that are looked at before all its kernels are read: 0.1 s."""


def late_names(report: Report) -> dict[str, str]:
    """The names of all kernels, each of which may have to be read for it."""
    names = report.kernel_names
    return _by_full_name(names, called(names, NameStyle.SHORT))


def early_names(db: Database, strings: Sequence[tuple[int, str]]) -> dict[str, str]:
    """The names of kernels that are soon found; none where others may change them.

    The more kernels are alike, the more words are added to each. What is called the same beside no
    other text of the report and beside all of them is called so beside those that are kernels.
    """
    some = some_kernel_names(db, Strings(db))
    known = {text for name in some for text in (name.short, name.demangled, name.mangled)}
    others = [OpName("", text, "") for _, text in strings if text and text not in known]
    names = called(some, NameStyle.SHORT)
    if len(others) > _OTHERS or called((*some, *others), NameStyle.SHORT)[: len(some)] != names:
        return {}
    return _by_full_name(some, names)


def _by_full_name(names: Iterable[OpName], shown: Iterable[str]) -> dict[str, str]:
    return {
        o.short if o.demangled == UNNAMED else o.demangled: name
        for o, name in zip(names, shown, strict=True)
    }
