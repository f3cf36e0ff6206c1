"""Summaries in the user's cache folder: an interrupted run goes on where it stopped.

A file's name is evidence of ranks, so a summary belongs to content and name.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from nsys_tui.fleet.summary import ReportSummary
from nsys_tui.reader.cache import Cache, CacheFolder, Sidecar, cache_at
from nsys_tui.reader.filecheck import report_id
from nsys_tui.reader.recovery import has_log

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.fleet.summary import Options


def kept(path: Path, options: Options, cache: Cache | None = None) -> ReportSummary | None:
    """The summary of a report of the same content and name, with the same options; None if absent.

    Raises:
        UnreadableReportError: the report cannot be read.
    """
    if has_log(path):
        return None
    sidecar = _sidecar(report_id(path), cache)
    try:
        stored = sidecar.load(_part(path, options))
        return None if stored is None else ReportSummary.unpack(*stored)
    except (KeyError, TypeError, ValueError, IndexError):
        return None
    finally:
        sidecar.close()


def keep(path: Path, summary: ReportSummary, options: Options, cache: Cache | None = None) -> None:
    """Stores a summary; a full or read-only disk costs only time later."""
    if has_log(path):
        return
    sidecar = _sidecar(summary.report_id, cache)
    try:
        sidecar.store(_part(path, options), *summary.pack())
    finally:
        sidecar.close()


def _sidecar(key: str, cache: Cache | None) -> Sidecar:
    root, limit = cache or cache_at()
    return Sidecar(CacheFolder(root, "reports", f"fleet-{key}", limit))


def _part(path: Path, options: Options) -> str:
    name = hashlib.blake2b(os.fsencode(path.stem), digest_size=8).hexdigest()
    return f"summary-{options.key()}-{name}"
