"""Named baselines in the user's state folder: measured once, compared with whenever it is needed.

A baseline holds figures and the facts of the capture, no events, so it serves when its report is
gone; it says so then.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.analysis.compare.side_as_data import from_data, to_data
from nsys_tui.errors import UsageError
from nsys_tui.writing import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_tui.analysis.compare.side import Side

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, eq=False)
class Baseline:
    """One named baseline."""

    name: str
    report: Path
    """Where the report was when the baseline was saved."""
    report_id: str
    """Identity of its content, empty where unknown."""
    saved: str
    """When, UTC."""
    side: Side

    @property
    def there(self) -> bool:
        """Whether the report's file is still in its place."""
        return self.report.is_file()


def default_folder() -> Path:
    """``baselines`` in the user's state folder."""
    from platformdirs import user_state_path

    return user_state_path("nsys-tui", appauthor=False) / "baselines"


def save(name: str, side: Side, report: Path, report_id: str, folder: Path | None = None) -> Path:
    """Writes a baseline, replacing one of the same name.

    Raises:
        UsageError: the name cannot be used, or the folder cannot be written.
    """
    target = _path(name, folder)
    data = {
        "name": name,
        "report": str(report.absolute()),
        "report_id": report_id,
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "side": to_data(side),
    }
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(target, json.dumps(data))
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}") from error
    return target


def load(name: str, folder: Path | None = None) -> Baseline:
    """Reads a baseline.

    Raises:
        UsageError: there is none of this name, or its file is damaged.
    """
    path = _path(name, folder)
    try:
        return _baseline(json.loads(path.read_bytes()))
    except FileNotFoundError as error:
        known = ", ".join(names(folder)) or "none yet"
        raise UsageError(
            f"no baseline is called {name!r}",
            f"there are: {known}",
            "nsys-tui baseline save NAME REPORT makes one",
        ) from error
    except (OSError, KeyError, TypeError, ValueError) as error:
        hint = f"save it again: nsys-tui baseline save {name} REPORT"
        raise UsageError(f"{path}: cannot be read as a baseline", str(error), hint) from error


def _baseline(data: Mapping[str, Any]) -> Baseline:
    return Baseline(
        name=str(data["name"]),
        report=Path(data["report"]),
        report_id=str(data["report_id"]),
        saved=str(data["saved"]),
        side=from_data(data["side"]),
    )


def names(folder: Path | None = None) -> list[str]:
    """Names of all baselines, sorted."""
    place = folder or default_folder()
    found = (path.stem for path in place.glob("*.json")) if place.is_dir() else ()
    return sorted(name for name in found if NAME.fullmatch(name))


def remove(name: str, folder: Path | None = None) -> None:
    """Removes a baseline; its report is left alone.

    Raises:
        UsageError: there is none of this name, or it cannot be removed.
    """
    path = _path(name, folder)
    try:
        path.unlink()
    except FileNotFoundError as error:
        known = ", ".join(names(folder)) or "none"
        raise UsageError(f"no baseline is called {name!r}", f"there are: {known}") from error
    except OSError as error:
        raise UsageError(f"cannot remove {path}: {error.strerror}") from error


def _path(name: str, folder: Path | None) -> Path:
    if not NAME.fullmatch(name):
        raise UsageError(
            f"not a name for a baseline: {name!r}",
            hint="letters, digits, dots, dashes and underscores, 64 at most",
        )
    return (folder or default_folder()) / f"{name}.json"
