"""The only room that knows nsys's formats. One door: ``open_report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsys_tui.config import LaunchBoundConfig
    from nsys_tui.model.progress import Progress
    from nsys_tui.model.report import Report
    from nsys_tui.reader.cache import Cache


def open_report(
    path: Path | str,
    *,
    nsys: str | None = None,
    use_cache: bool = True,
    progress: Progress | None = None,
    patterns: tuple[str, ...] = (),
    launch_bound: LaunchBoundConfig | None = None,
    cache: Cache | None = None,
) -> Report:
    """Opens an nsys report; nothing is ever written to it or beside it.

    Only the small tables are read here. Event sets load on first use.

    Args:
        path: ``.sqlite``, or ``.nsys-rep``/``.qdrep``, which nsys exports into the cache folder.
        nsys: nsys executable for that export; found by itself otherwise.
        use_cache: keep decoded columns in the user's cache folder.
        progress: told about an export.
        patterns: the user's own regular expressions for communication kernels.
        launch_bound: what the user calls a launch-bound phase.
        cache: where exports and columns are kept; by default the user's cache folder.

    Raises:
        UnreadableReportError: the file is no usable report.
        NsysMissingError: an export is needed and no nsys was found.
        CancelledError: the progress callback cancelled the export.
    """
    from dataclasses import replace

    from nsys_tui.model.report import Report
    from nsys_tui.reader.cache import Sidecar, cache_at
    from nsys_tui.reader.filecheck import reading
    from nsys_tui.reader.nsys import ensure_sqlite
    from nsys_tui.reader.source import FileSource
    from nsys_tui.reader.sqlite import Database

    cache = cache or cache_at()
    exported = ensure_sqlite(Path(path), nsys, progress, cache)
    with reading(exported.path):
        db = Database.open(exported.path, cache.copies)
    try:
        with reading(exported.path):
            kept = use_cache and not db.recovered
            sidecar = Sidecar.for_report(db.descriptor, *cache) if kept else None
        source = FileSource(db, sidecar, patterns)
    except BaseException:
        db.close()
        raise
    if exported.stale_reason:
        notes = (*source.metadata.notes, exported.stale_reason)
        source.metadata = replace(source.metadata, notes=notes)
    return Report(source, launch_bound)
