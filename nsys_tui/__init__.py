"""Nsight Systems reports in the terminal, and as DataFrames; importing this loads nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.api import Profile

__version__ = "0.1.0"


def open(path: str | Path, *, nsys: str | None = None, use_cache: bool = True) -> Profile:  # noqa: A001 - nsys_tui.open is the name
    """Opens a report for scripts and notebooks; see ``nsys_tui.api.Profile``.

    Args:
        path: ``.sqlite``, or ``.nsys-rep``/``.qdrep``, which nsys exports into the cache folder.
        nsys: nsys executable for that export; found by itself otherwise.
        use_cache: keep decoded columns in the user's cache folder.

    Raises:
        UnreadableReportError: the file is no usable report.
        NsysMissingError: an export is needed and no nsys was found.
    """
    from nsys_tui.api import open_profile

    return open_profile(path, nsys=nsys, use_cache=use_cache)
