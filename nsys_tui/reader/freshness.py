"""Whether a ``.sqlite`` beside a report is the export of that very report.

nsys itself reuses any file of the right name, which shows old figures after a second capture
under the same name.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from nsys_tui.errors import UnreadableReportError
from nsys_tui.reader.schema import METADATA_TABLES
from nsys_tui.reader.sqlite import Database

if TYPE_CHECKING:
    from pathlib import Path


_INPUT_KEYS: Final = ("EXPORT_PARAM_INPUT_FILE", "EXPORT_INPUT_FILE")
_NS: Final = 1_000_000_000
_COPY_SECONDS: Final = 10


def doubt_about(sqlite: Path, report: Path, scratch: Path | None = None) -> str | None:
    """Finds a reason not to trust an export.

    It is trusted if it names the report as its input and was made after the session it holds
    began. A report that was written well after its export is in doubt as well, unless the time
    of the export is later still: somebody captured again under the same name.

    Args:
        sqlite: the ``.sqlite`` beside the report.
        report: the ``.nsys-rep`` or ``.qdrep``.
        scratch: folder for a copy of an export that a writer left unfinished; by default in the
            user's cache folder.

    Returns:
        The reason in a few words, or None.
    """
    try:
        with Database.open(sqlite, scratch) as db:
            metadata = export_metadata(db)
            starts = db.select("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))
    except UnreadableReportError as error:
        return f"{sqlite.name} is unreadable: {error.message}"
    source = next((metadata[key] for key in _INPUT_KEYS if key in metadata), None)
    if source is None:
        return f"{sqlite.name} does not say which report it was exported from"
    if re.split(r"[/\\]", source)[-1] != report.name:
        return f"{sqlite.name} was exported from another report"
    exported = _seconds_utc(metadata.get("EXPORT_TIME_UTC", ""))
    if exported is None:
        return f"{sqlite.name} does not say when it was exported"
    if any(type(start) is int and exported < start // _NS for (start,) in starts):
        return f"{sqlite.name} was exported before the session began"
    written, beside = report.stat().st_mtime, sqlite.stat().st_mtime
    if written > max(exported, beside) + _COPY_SECONDS:
        return f"{report.name} was written after {sqlite.name} was exported"
    return None


def export_metadata(db: Database) -> dict[str, str]:
    """Reads what the exporter noted about itself; empty for exports before 2022."""
    rows = [row for table in METADATA_TABLES for row in db.select(table, ("name", "value"))]
    return {str(name): str(value) for name, value in rows if name is not None}


def _seconds_utc(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
