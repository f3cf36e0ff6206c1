"""Reports opened as the user's settings say: one way for the command line and the Python API."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsys_tui.errors import ConfigError
from nsys_tui.reader import open_report
from nsys_tui.reader.cache import cache_at

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.config import Config
    from nsys_tui.model.progress import Progress
    from nsys_tui.model.report import Report


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
            re.compile(pattern)
        except re.error as error:
            place = f"{config.path}: analysis.communication"
            raise ConfigError(
                f"{place}: not a regular expression: {pattern}", str(error)
            ) from error
