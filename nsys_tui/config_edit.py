"""Writes single settings and targets into the config file and leaves the rest of it as it is.

The file is the user's: comments, order and spelling of everything else survive, and a change that
would not read back as meant is refused before anything is written.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.config import parse_config
from nsys_tui.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

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
    start, end = _section(lines, section)
    entry = f"{name} = {toml(value)}\n"
    place = next(
        (n for n in range(start, end) if re.match(rf"\s*{re.escape(name)}\s*=", lines[n])), -1
    )
    if start < 0:
        lines += [*(["\n"] if lines else []), f"[{section}]\n", entry]
    elif place < 0:
        lines.insert(start, entry)
    else:
        lines[place] = entry
    _write(path, lines, {section: {name: _plain(value)}})


def save_target(path: Path, name: str, settings: Mapping[str, Any]) -> None:
    """Writes a target as a whole in place of the section of that name.

    Args:
        path: the config file; made when it is absent.
        name: the target.
        settings: keys of ``[targets.NAME]`` to plain values; tables as mappings.

    Raises:
        ConfigError: the file cannot be read or written, or the target is not valid.
    """
    lines = _without_target(_lines(path), name)
    key = name if _BARE.fullmatch(name) else json.dumps(name)
    block = [
        f"{item} = {toml(value)}\n" for item, value in settings.items() if value not in ("", [], {})
    ]
    lines += [*(["\n"] if lines and lines[-1].strip() else []), f"[targets.{key}]\n", *block]
    _write(path, lines, {})


def remove_target(path: Path, name: str) -> None:
    """Removes the section of a target.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    _write(path, _without_target(_lines(path), name), {})


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
    return list(value) if isinstance(value, tuple) else value


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


def _header(line: str) -> list[str] | None:
    """The parts of a section's name, or ``None`` if the line starts no section."""
    match = re.match(r"\s*\[([^\[\]]+)\]\s*(#.*)?$", line)
    if match is None:
        return None
    return [part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", match[1])]


def _section(lines: list[str], name: str) -> tuple[int, int]:
    """First line after the section's head and first line after the section; -1 if absent."""
    start = next((n + 1 for n, line in enumerate(lines) if _header(line) == [name]), -1)
    if start < 0:
        return -1, -1
    following = (n for n in range(start, len(lines)) if _header(lines[n]) is not None)
    return start, next(following, len(lines))


def _without_target(lines: list[str], name: str) -> list[str]:
    kept: list[str] = []
    inside = False
    for line in lines:
        header = _header(line)
        if header is not None:
            inside = header[:2] == ["targets", name]
        if not inside:
            kept.append(line)
    return kept


def _write(path: Path, lines: list[str], expected: Mapping[str, Mapping[str, object]]) -> None:
    text = "".join(lines)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{path}: cannot be changed safely", str(error), "edit it by hand"
        ) from error
    parse_config(document, path)
    for section, values in expected.items():
        for name, value in values.items():
            if document.get(section, {}).get(name) != value:
                raise ConfigError(
                    f"{path}: {section}.{name} cannot be changed", hint="edit it by hand"
                )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        place = path.with_name(f".{path.name}.{os.getpid()}")
        place.write_text(text, "utf-8")
        if path.exists():
            place.chmod(path.stat().st_mode & 0o777)
        place.replace(path.resolve())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written", error.strerror or str(error)) from error
