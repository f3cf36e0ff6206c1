"""Baselines: reports measured once, compared with whenever it is needed.

A baseline holds figures and the facts of the capture, no events, so it serves when its report is
gone; it says so then. Named ones stand in the user's state folder.

Those of many runs are one small JSON file that a repository keeps. One run stands on one line,
sorted by its id, and no line depends on its neighbours: runs that two branches add merge line by
line, and what a merge left behind (its markers, a run twice) is passed over. Hosts, commands, paths
and notes of the reports are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from nsys_tui.analysis.compare.side import Side
from nsys_tui.analysis.compare.side_as_data import from_data, to_data
from nsys_tui.analysis.identity import digest
from nsys_tui.errors import UsageError
from nsys_tui.paths import state_folder
from nsys_tui.redaction import redacted
from nsys_tui.writing import refusals, write_whole

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
VERSION: Final = 1
_HEAD: Final = f'{{"nsys-tui baseline": {VERSION}, "runs": [\n'
_END: Final = "null]}\n"
"""Every run ends with a comma, so that the last is a line like all others."""
_KEPT: Final = ("GPUs", "GPUs used", "GPU clock", "driver", "nsys", "CPU", "OS")
_PLAIN: Final = re.compile(r"[\w.,:+ -]{0,60}")
"""Values of capture options that say nothing of people and places."""
_VERSION: Final = re.compile(r'\{"nsys-tui baseline": (\d+),')
_DIGITS: Final = 7


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

    @property
    def as_side(self) -> Side:
        """What is compared, named after the baseline."""
        gone = "" if self.there else "; its report is no longer there"
        return replace(self.side, label=f"baseline {self.name}: {self.side.label}{gone}")


def folder() -> Path:
    """``baselines`` in the user's state folder."""
    return state_folder() / "baselines"


def save(name: str, side: Side, report: Path, report_id: str) -> Path:
    """Writes a baseline, replacing one of the same name.

    Raises:
        UsageError: the name cannot be used, or the folder cannot be written.
    """
    target = _path(name)
    data = {
        "name": name,
        "report": str(report.absolute()),
        "report_id": report_id,
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "side": to_data(side),
    }
    with refusals(target):
        write_whole(target, json.dumps(data))
    return target


def load(name: str) -> Baseline:
    """Reads a baseline.

    Raises:
        UsageError: there is none of this name, or its file is damaged.
    """
    path = _path(name)
    try:
        return _baseline(json.loads(path.read_bytes()))
    except FileNotFoundError as error:
        known = ", ".join(names()) or "none yet"
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


def names() -> list[str]:
    """Names of all baselines, sorted."""
    stems = (path.stem for path in folder().glob("*.json"))
    return sorted(name for name in stems if NAME.fullmatch(name))


def remove(name: str) -> None:
    """Removes a baseline; its report is left alone.

    Raises:
        UsageError: there is none of this name, or it cannot be removed.
    """
    path = _path(name)
    try:
        path.unlink()
    except FileNotFoundError as error:
        known = ", ".join(names()) or "none"
        raise UsageError(f"no baseline is called {name!r}", f"there are: {known}") from error
    except OSError as error:
        raise UsageError(f"cannot remove {path}: {error.strerror}") from error


def _path(name: str) -> Path:
    if not NAME.fullmatch(name):
        raise UsageError(
            f"not a name for a baseline: {name!r}",
            hint="letters, digits, dots, dashes and underscores, 64 at most",
        )
    return folder() / f"{name}.json"


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a baseline."""

    id: str
    taken: str
    """When it was captured, UTC; runs are in this order."""
    added: str
    """When it was added, UTC: the order of runs of one moment."""
    side: Side


@dataclass(frozen=True, eq=False)
class RunFile:
    """A baseline of many runs."""

    path: Path
    runs: tuple[Run, ...]
    """In the order of time."""


def run_of(side: Side, label: str, host: str, taken_ns: int | None) -> Run:
    """What is kept of a measured report.

    Args:
        side: the measured report.
        label: what the run is called.
        host: name of the machine, which is taken out of the label.
        taken_ns: when it was captured, ns since 1970; None for now.
    """
    now = datetime.now(UTC)
    taken = now if taken_ns is None else datetime.fromtimestamp(taken_ns // 10**9, UTC)
    identity = digest(side.identity)
    label = label.replace(host, "host") if host else label
    kept = replace(
        side,
        label=label,
        identity=identity,
        run=digest(side.run),
        facts={name: side.facts[name] for name in _KEPT if name in side.facts},
        options={k: v for k, v in side.options.items() if _PLAIN.fullmatch(v)},
        findings=None,
        notes=(),
        lacks={},
    )
    return Run(identity, taken.isoformat(timespec="seconds"), now.isoformat(), kept)


def load_runs(path: Path) -> RunFile:
    """Reads a file.

    Raises:
        UsageError: there is none, it is damaged or of a later version, or holds no run.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        runs = {run.id: run for run in map(_run, lines) if run is not None}
        versions = {int(match.group(1)) for match in map(_VERSION.match, lines) if match}
    except FileNotFoundError as error:
        hint = f"nsys-tui baseline add --file {path} REPORT makes it"
        raise UsageError(f"no such file: {path}", hint=hint) from error
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read as a baseline", str(error)) from error
    if versions != {VERSION}:
        raise UsageError(f"{path}: no baseline of version {VERSION}")
    if not runs:
        raise UsageError(f"{path}: holds no run")
    return RunFile(
        path, tuple(sorted(runs.values(), key=lambda run: (run.taken, run.added, run.id)))
    )


def add_run(path: Path, run: Run) -> RunFile:
    """Adds a run to a file, which is made if it is not there; the same run again is replaced.

    Raises:
        UsageError: the file cannot be read or written, or kernels are named otherwise in it.
    """
    runs = {each.id: each for each in load_runs(path).runs} if path.exists() else {}
    styles = {each.side.style for each in runs.values()}
    if styles - {run.side.style}:
        raise UsageError(f"{path} was saved with --names {styles.pop()}")
    runs[run.id] = run
    lines = [f"{_text(runs[key])},\n" for key in sorted(runs)]
    with refusals(path):
        write_whole(path, "".join((_HEAD, *lines, _END)), 0o644)
    return load_runs(path)


def _run(line: str) -> Run | None:
    """The run on a line; None where it holds none, such as the first and a merge's markers."""
    if not line.startswith('{"id": '):
        return None
    data = json.loads(line.rstrip().removesuffix(","), parse_constant=_refused)
    return Run(str(data["id"]), str(data["taken"]), str(data["added"]), from_data(data["run"]))


def _refused(text: str) -> None:
    raise ValueError(f"no number: {text}")


def _text(run: Run) -> str:
    side = to_data(run.side, whole=False)
    data = {"id": run.id, "taken": run.taken, "added": run.added, "run": _as_kept(side)}
    return json.dumps(data, sort_keys=False)


def _as_kept(value: Any) -> Any:
    """Real numbers to as many digits as matter, texts without tokens and passwords."""
    match value:
        case float():
            return float(f"{value:.{_DIGITS}g}")
        case str():
            return redacted(value)
        case list():
            return [*map(_as_kept, value)]
        case dict():
            return {redacted(key): _as_kept(each) for key, each in value.items()}
    return value
