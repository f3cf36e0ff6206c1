"""Writes settings, targets and presets into the config file and leaves the rest of it as it is.

The file is the user's: comments, order and spelling of everything else survive, and a change that
would not read back as meant is refused before anything is written.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.config import load_config, parse_config
from nsys_tui.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.config import Config

EXAMPLE: Final = """\
# nsys-tui: see `nsys-tui targets --help`. Lines that start with # are comments.

# [targets.gpu-box]
# host     = "gpu-box"                    # whatever `ssh gpu-box` understands
# cwd      = "~/project"
# preamble = "source .venv/bin/activate"  # shell text, run before the program
# command  = ["python", "train.py"]
# options  = { trace = ["cuda", "nvtx", "osrt"], cuda-graph-trace = "node" }
# env_from = ["WANDB_API_KEY"]            # taken from your environment at the start

# [targets.cluster]
# host     = "login1"
# launcher = "sbatch"                     # none, srun, sbatch, docker, podman or kubectl
# slurm    = { args = ["--partition=gpu", "--gres=gpu:1", "--time=00:20:00"] }
# jobs_dir = "~/nsys-tui-jobs"            # a folder that the compute nodes see
"""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def save_setting(path: Path, key: str, value: object) -> None:
    """Writes one setting, such as ``display.theme``.

    Args:
        path: the config file; made when it is absent.
        key: section and name with a dot between them.
        value: text, number, boolean or list of texts.

    Raises:
        ConfigError: the file cannot be read or written, or the setting is not valid.
    """
    section, _, name = key.partition(".")
    lines = _lines(path)
    old = _table(_document(lines, path), (section,))
    _change(lines, (section,), name, value)
    _write(path, lines, (section,), {**old, name: _plain(value)})


def save_table(path: Path, section: Sequence[str], settings: Mapping[str, Any]) -> None:
    """Writes a whole section, such as ``("targets", "gpu-box")``.

    Keys that keep their value keep their line, and a changed line keeps its comment.

    Args:
        path: the config file; made when it is absent.
        section: the parts of the section's name.
        settings: all its keys to plain values; tables as mappings. Empty values are left out.

    Raises:
        ConfigError: the file cannot be read or written, or the section is not valid.
    """
    wanted = {key: _plain(value) for key, value in settings.items() if value not in ("", [], {})}
    lines = _lines(path)
    old = _table(_document(lines, path), section)
    start, _ = _section(lines, section)
    if start < 0:
        lines = _without(lines, section)
        old = {}
        lines += [*(["\n"] if lines and lines[-1].strip() else []), f"[{_dotted(section)}]\n"]
    for key in [key for key in old if old[key] != wanted.get(key)]:
        if key not in wanted or isinstance(old[key], Mapping):
            _remove(lines, section, key)
    for key, value in wanted.items():
        if old.get(key) != value:
            _change(lines, section, key, value)
    _write(path, lines, section, wanted)


def remove_table(path: Path, section: Sequence[str]) -> None:
    """Removes a section and the sections inside it.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    _write(path, _without(_lines(path), section), section, None)


def save_target(path: Path, name: str, settings: Mapping[str, Any]) -> None:
    """Writes a target: keys of ``[targets.NAME]`` to plain values; see ``save_table``."""
    save_table(path, ("targets", name), settings)


def remove_target(path: Path, name: str) -> None:
    """Removes a target; see ``remove_table``."""
    remove_table(path, ("targets", name))


def reread(config: Config) -> Config:
    """A configuration with targets and capture settings as its file has them now.

    Raises:
        ConfigError: the file is not valid any more.
    """
    fresh = load_config(config.path if config.path.exists() else None)
    return replace(config, capture=fresh.capture, targets=fresh.targets)


def toml(value: object) -> str:
    """A value as TOML; a JSON string is a TOML basic string as well."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{json.dumps(str(key))} = {toml(item)}" for key, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read", str(error)) from error
    if text and not text.endswith("\n"):
        text += "\n"
    return text.splitlines(keepends=True)


def _document(lines: Sequence[str], path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{path}: cannot be changed safely", str(error), "edit it by hand"
        ) from error


def _table(document: Mapping[str, Any], section: Sequence[str]) -> dict[str, Any]:
    """The keys of a section; none when it is absent."""
    found: Any = document
    for part in section:
        found = found.get(part, {}) if isinstance(found, Mapping) else {}
    return dict(found) if isinstance(found, Mapping) else {}


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else json.dumps(text)


def _dotted(section: Sequence[str]) -> str:
    return ".".join(_key(part) for part in section)


def _header(line: str) -> list[str] | None:
    """The parts of a section's name, or ``None`` if the line starts no section."""
    match = re.match(r"\s*\[([^\[\]]+)\]\s*(#.*)?$", line)
    if match is None:
        return None
    return [part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", match[1])]


def _section(lines: Sequence[str], section: Sequence[str]) -> tuple[int, int]:
    """First line after the section's head and first line after its last key; -1 if absent."""
    wanted = list(section)
    start = next((n + 1 for n, line in enumerate(lines) if _header(line) == wanted), -1)
    if start < 0:
        return -1, -1
    keys = _keys(lines, start)
    return start, keys[-1][2] if keys else start


def _keys(lines: Sequence[str], start: int) -> list[tuple[str, int, int]]:
    """The keys of one section from its first line on: name, first line, line after the value."""
    found = []
    row = start
    while row < len(lines) and _header(lines[row]) is None:
        match = re.match(r"\s*([A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')\s*[.=]", lines[row])
        end = row + 1
        if match is not None:
            while not _is_whole(lines[row:end]) and end < len(lines):
                end += 1
            found.append((match[1].strip("\"'"), row, end))
        row = end
    return found


def _is_whole(lines: Sequence[str]) -> bool:
    """Whether a value that may go over several lines ends here."""
    try:
        tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError:
        return False
    return True


def _change(lines: list[str], section: Sequence[str], key: str, value: object) -> None:
    """Sets one key where it stands, or after the last one of its section."""
    start, end = _section(lines, section)
    entry = f"{_key(key)} = {toml(value)}"
    if start < 0:
        lines += [*(["\n"] if lines else []), f"[{_dotted(section)}]\n", f"{entry}\n"]
        return
    places = [place for place in _keys(lines, start) if place[0] == key]
    if not places:
        lines.insert(end, f"{entry}\n")
        return
    _, first, after = places[0]
    lines[first:after] = [_indent(lines[first]) + entry + _comment(lines[first:after]) + "\n"]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _comment(lines: Sequence[str]) -> str:
    """The comment behind a value of one line, with the blanks before it."""
    if len(lines) != 1:
        return ""
    line = lines[0].rstrip("\n")
    for match in re.finditer(r"\s*#", line):
        before = line[: match.start()]
        if _is_whole([before]) and tomllib.loads(before) == tomllib.loads(line):
            return line[match.start() :]
    return ""


def _remove(lines: list[str], section: Sequence[str], key: str) -> None:
    """Removes a key, however it is written: a line, dotted lines, a section of its own."""
    start, _ = _section(lines, section)
    for name, first, after in reversed(_keys(lines, start) if start >= 0 else []):
        if name == key:
            del lines[first:after]
    lines[:] = _without(lines, (*section, key))


def _without(lines: Sequence[str], section: Sequence[str]) -> list[str]:
    """The lines without a section and those inside it."""
    kept: list[str] = []
    inside = False
    wanted = list(section)
    for line in lines:
        header = _header(line)
        if header is not None:
            inside = header[: len(wanted)] == wanted
        if not inside:
            kept.append(line)
    return kept


def _write(
    path: Path, lines: Sequence[str], section: Sequence[str], wanted: Mapping[str, Any] | None
) -> None:
    """Writes the file as a whole, after a look that only that section became what it should."""
    document = _document(lines, path)
    parse_config(document, path)
    rest = _document(_lines(path), path)
    if (_table(document, section) if wanted is not None else None) != wanted or _others(
        document, section
    ) != _others(rest, section):
        raise ConfigError(f"{path}: {_dotted(section)} cannot be changed", hint="edit it by hand")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path.resolve(), "".join(lines))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written", error.strerror or str(error)) from error


def _others(document: Mapping[str, Any], section: Sequence[str]) -> dict[str, Any]:
    """A document without one of its sections; sections that are empty then are no difference."""
    first, *inner = section
    rest = {key: value for key, value in document.items() if key != first}
    if inner and isinstance(document.get(first), Mapping):
        below = _others(document[first], inner)
        return {**rest, **({first: below} if below else {})}
    return rest


def _replace(path: Path, text: str) -> None:
    """Puts a new file in place of the old one at one stroke, with the old one's rights."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    place = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    place.chmod(mode)
    place.replace(path)
