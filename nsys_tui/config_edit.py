"""Writes settings, targets and presets into the config file and leaves the rest of it as it is.

The file is the user's: comments, order and spelling of everything else survive, and a change that
would not read back as meant is refused before anything is written.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.config import Config, load_config, parse_config
from nsys_tui.errors import ConfigError
from nsys_tui.plain_data import plain
from nsys_tui.writing import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from tomlkit import TOMLDocument
    from tomlkit.items import Item


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
# launcher = "sbatch"                     # none, srun, sbatch, mpirun, docker, podman or kubectl
# slurm    = { args = ["--partition=gpu", "--gres=gpu:1", "--time=00:20:00"] }
# jobs_dir = "~/nsys-tui-jobs"            # a folder that the compute nodes see
"""


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
    old = _table(_parsed(_text(path), path), (section,))
    _change(path, (section,), {**old, name: plain(value)})


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
    wanted = {key: plain(value) for key, value in settings.items() if value not in ("", [], {})}
    _change(path, section, wanted)


def remove_table(path: Path, section: Sequence[str]) -> None:
    """Removes a section and the sections inside it.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    _change(path, section, None)


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


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read", str(error)) from error


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{path}: cannot be changed safely", str(error), "edit it by hand"
        ) from error


def _table(document: Mapping[str, Any], section: Sequence[str]) -> dict[str, Any]:
    """The keys of a section; none when it is absent."""
    table: Any = document
    for part in section:
        table = table.get(part, {}) if isinstance(table, Mapping) else {}
    return dict(table) if isinstance(table, Mapping) else {}


def _change(path: Path, section: Sequence[str], wanted: Mapping[str, Any] | None) -> None:
    """Gives a section exactly these keys, or removes it, after a look that nothing else changed."""
    from tomlkit.exceptions import TOMLKitError

    text = _text(path)
    before = _parsed(text, path)
    try:
        changed = _remove(text, section) if wanted is None else _fill(text, section, wanted)
        after = tomllib.loads(changed)
    except (
        TOMLKitError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
    ) as error:  # tomlkit's are among them
        raise _by_hand(path, section) from error
    parse_config(after, path)
    if _table(after, section) != (wanted or {}) or _others(after, section) != _others(
        before, section
    ):
        raise _by_hand(path, section)
    try:
        home = path.resolve()
        mode = home.stat().st_mode & 0o777 if home.exists() else 0o600
        write_whole(home, changed, mode)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written", error.strerror or str(error)) from error


def _by_hand(path: Path, section: Sequence[str]) -> ConfigError:
    return ConfigError(f"{path}: {'.'.join(section)} cannot be changed", hint="edit it by hand")


def _fill(text: str, section: Sequence[str], wanted: Mapping[str, Any]) -> str:
    """The text with exactly these keys in a section."""
    import tomlkit

    document = tomlkit.parse(text)
    table = _opened(document, section)
    old = table.unwrap()
    for key, value in old.items():
        if key not in wanted or (value != wanted[key] and isinstance(value, Mapping)):
            del table[key]
    # read again: without what is gone, the section may stand in one place
    document = tomlkit.parse(tomlkit.dumps(document))
    table = _opened(document, section)
    changes = {key: value for key, value in wanted.items() if old.get(key) != value}
    ending = _without_ending(table) if changes.keys() - table.keys() else []
    for key, value in changes.items():
        table[key] = _item(value)
    for item in ending:
        table.add(item)
    return tomlkit.dumps(document)


def _opened(document: TOMLDocument, section: Sequence[str]) -> Any:
    """A section of a document, new at its end where there is none."""
    import tomlkit

    table: Any = document
    for depth, part in enumerate(section, 1):
        if part not in table:
            table[part] = tomlkit.table(is_super_table=depth < len(section))
        table = table[part]
    return table


def _without_ending(table: Any) -> list[Item]:
    """Takes blank lines and comments from a table's end: they belong to what comes after it."""
    body = getattr(table.value, "body", None)
    ending: list[Item] = []
    while body and body[-1][0] is None:
        ending.insert(0, body.pop()[1])
    return ending


def _remove(text: str, section: Sequence[str]) -> str:
    """The text without a section."""
    import tomlkit

    document = tomlkit.parse(text)
    *outer, last = section
    table: Any = document
    for part in outer:
        table = table.get(part, {})
    if last in table:
        del table[last]
    return tomlkit.dumps(document)


def _item(value: object) -> Item:
    """A value as it is written: tables in one line."""
    import tomlkit

    if not isinstance(value, Mapping):
        return tomlkit.item(value)
    table = tomlkit.inline_table()
    for key, inner in value.items():
        table[key] = _item(inner)
    return table


def _others(document: Mapping[str, Any], section: Sequence[str]) -> dict[str, Any]:
    """A document without one of its sections; sections that are empty then are no difference."""
    first, *inner = section
    rest = {key: value for key, value in document.items() if key != first}
    if inner and isinstance(document.get(first), Mapping):
        below = _others(document[first], inner)
        return {**rest, **({first: below} if below else {})}
    return rest
