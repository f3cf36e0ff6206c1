"""The only room that knows nsys's formats. One door: ``open_report``, plain or as settings say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsys_tui.errors import ConfigError, UsageError
from nsys_tui.patterns import compiled

if TYPE_CHECKING:
    from nsys_tui.config import Config, LaunchBoundConfig
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


def open_configured(
    path: Path,
    config: Config,
    nsys: str | None = None,
    *,
    use_cache: bool = True,
    progress: Progress | None = None,
) -> Report:
    """Opens a report as the user's settings say; ``nsys`` is the flag and wins.

    Raises:
        UnreadableReportError: the file is no usable report.
        NsysMissingError: it must be exported first and no nsys was found.
        ConfigError: a pattern of the configuration is no regular expression.
    """
    from nsys_tui.reader.cache import cache_at

    check_patterns(config)
    return open_report(
        path,
        nsys=nsys or config.nsys.path,
        use_cache=use_cache,
        progress=progress,
        patterns=config.analysis.communication,
        launch_bound=config.analysis.launch_bound,
        cache=cache_at(config.cache.dir, config.cache.limit),
    )


def export_configured(
    report: Path, target: Path | None, nsys: str | None = None, *, anew: bool = False
) -> Path:
    """The export that ``--sqlite FILE`` and ``--force-export`` name, made where it is missing.

    Args:
        report: a ``.nsys-rep`` or ``.qdrep`` file, or an export, which stays what it is.
        target: the file to make or to read; without it one in the cache folder.
        nsys: the flag of the command line; the configuration says otherwise.
        anew: make it although it is there.

    Raises:
        UsageError: an export of an export was asked for.
        UnreadableReportError: nsys cannot export the report.
        NsysMissingError: there is no nsys to export it.
    """
    from nsys_tui.config import load_config
    from nsys_tui.reader.cache import cache_at
    from nsys_tui.reader.nsys import export_at

    config = load_config()
    cache = cache_at(config.cache.dir, config.cache.limit)
    return export_at(report, target, nsys or config.nsys.path, cache, anew=anew)


def check_patterns(config: Config) -> None:
    """Checks the patterns of communication kernels.

    Raises:
        ConfigError: a pattern of the configuration is no regular expression.
    """
    for pattern in config.analysis.communication:
        try:
            compiled(pattern)
        except UsageError as error:
            place = f"{config.path}: analysis.communication"
            raise ConfigError(f"{place}: {error.title}", error.message) from error
