"""The settings of one run: defaults < config file (TOML) < environment < command-line flags.

A :class:`Config` is frozen and knows where each value came from, so that the screen that shows a
setting can say so. Nothing here acts on a setting, and nothing here writes (see ``config_edit``).
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from nsys_tui import config_values as values
from nsys_tui.config_values import OptionValue
from nsys_tui.errors import ConfigError

APP: Final = "nsys-tui"
FILE_NAME: Final = "config.toml"
EXPORTS: Final = ("auto", "remote", "local", "none")
Section = TypeVar("Section")


def _setting(default: Any, parse: Callable[[object], Any]) -> Any:
    return field(default=default, metadata={"parse": parse})


def _table(item: Callable[[object], Any]) -> Any:
    return field(
        default_factory=lambda: MappingProxyType({}), metadata={"parse": values.table(item)}
    )


@dataclass(frozen=True)
class DisplayConfig:
    """How things look; every value may be changed for one run by a flag or in the app."""

    theme: str = _setting("auto", values.text)
    ascii: bool | None = _setting(None, values.auto_flag)
    mouse: bool = _setting(True, values.flag)
    time: str = _setting("auto", values.one_of("auto", "ns", "absolute", "relative"))
    names: str = _setting("short", values.one_of("short", "normalised", "full"))
    colour_by: str = _setting("category", values.one_of("category", "stream", "name", "duration"))
    density: str = _setting("normal", values.one_of("normal", "compact"))
    nvtx_depth: str = _setting("all", values.text)
    labels: str = _setting("inside", values.one_of("inside", "off"))
    counters: str = _setting("blocks", values.one_of("blocks", "braille", "ascii"))
    min_duration: int = _setting(0, values.duration)


@dataclass(frozen=True)
class KeysConfig:
    """The key map: a preset, and the user's own keys for single actions."""

    preset: str = _setting("default", values.text)
    bindings: Mapping[str, tuple[str, ...]] = _table(values.key_list)


@dataclass(frozen=True)
class NsysConfig:
    """Where nsys is on this machine; ``auto`` looks in PATH and the usual install folders."""

    path: str = _setting("auto", values.text)


@dataclass(frozen=True)
class CacheConfig:
    """The cache folder: its place (empty = the platform's) and its limit in bytes."""

    dir: str = _setting("", values.text)
    limit: int = _setting(10 * 10**9, values.size)


@dataclass(frozen=True)
class LaunchBoundConfig:
    """When a series of operations of a GPU counts as launch-bound; times in nanoseconds."""

    operations: int = _setting(20, values.count)
    """At least so many in a row."""
    duration: int = _setting(20_000, values.duration)
    """Each shorter than this."""
    gap: int = _setting(50_000, values.duration)
    """No idle time between two of them longer than this."""
    idle: float = _setting(0.25, values.share)
    """At least this part of the run is idle."""
    late: float = _setting(0.5, values.share)
    """In at least this part of them the call returns after the previous operation ended."""


@dataclass(frozen=True)
class AnalysisConfig:
    """What decides figures."""

    communication: tuple[str, ...] = _setting((), values.words)
    """Further regular expressions for communication kernels, searched in short and full names."""
    launch_bound: LaunchBoundConfig = field(default_factory=LaunchBoundConfig)


@dataclass(frozen=True)
class CaptureConfig:
    """Defaults of all captures; times in nanoseconds, sizes in bytes."""

    default_target: str = _setting("local", values.text)
    grace: int = _setting(120 * 10**9, values.duration)
    ssh: tuple[str, ...] = _setting(("ssh",), values.words)
    log_limit: int = _setting(64 * 10**6, values.size)
    presets: Mapping[str, Mapping[str, OptionValue]] = _table(values.table(values.option))


@dataclass(frozen=True)
class TargetConfig:
    """One place where captures run, as the file has it; ``capture.targets`` checks its names.

    Attributes:
        tables: tables that belong to a launcher, as they are: it knows what stands in them.
    """

    host: str = _setting("", values.text)
    cwd: str = _setting("", values.text)
    preamble: str = _setting("", values.text)
    launcher: str = _setting("none", values.text)
    nsys: str = _setting("auto", values.text)
    options: Mapping[str, OptionValue] = _table(values.option)
    command: tuple[str, ...] = _setting((), values.words)
    env: Mapping[str, str] = _table(values.text)
    env_from: tuple[str, ...] = _setting((), values.words)
    export: str = _setting("auto", values.one_of(*EXPORTS))
    jobs_dir: str = _setting("~/.local/state/nsys-tui/jobs", values.text)
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Config:
    """All settings of one run.

    Attributes:
        path: the config file, whether or not it exists.
        sources: dotted key to ``file``, ``environment`` or ``flag``; absent keys have defaults.
    """

    display: DisplayConfig = field(default_factory=DisplayConfig)
    keys: KeysConfig = field(default_factory=KeysConfig)
    nsys: NsysConfig = field(default_factory=NsysConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)
    analysis: AnalysisConfig = field(default_factory=AnalysisConfig)
    capture: CaptureConfig = field(default_factory=CaptureConfig)
    targets: Mapping[str, TargetConfig] = field(default_factory=lambda: MappingProxyType({}))
    path: Path = field(default_factory=lambda: default_path())
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def source(self, key: str) -> str:
        """Where the value of a dotted key came from: default, file, environment or flag."""
        return self.sources.get(key, "default")


SECTIONS: Final = ("display", "keys", "nsys", "cache", "analysis", "capture")

ENVIRONMENT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "NSYS_TUI_THEME": "display.theme",
        "NSYS_TUI_ASCII": "display.ascii",
        "NSYS_TUI_MOUSE": "display.mouse",
        "NSYS_TUI_TIME": "display.time",
        "NSYS_TUI_NAMES": "display.names",
        "NSYS_TUI_KEYS": "keys.preset",
        "NSYS_TUI_NSYS": "nsys.path",
        "NSYS_TUI_CACHE": "cache.dir",
        "NSYS_TUI_CACHE_LIMIT": "cache.limit",
        "NSYS_TUI_TARGET": "capture.default_target",
        "NSYS_TUI_GRACE": "capture.grace",
    }
)
"""Environment variables and the settings that they stand for."""


def default_path(environ: Mapping[str, str] | None = None) -> Path:
    """The config file of this user: ``NSYS_TUI_CONFIG``, else the platform's config folder."""
    from platformdirs import user_config_path

    given = (os.environ if environ is None else environ).get("NSYS_TUI_CONFIG")
    return Path(given).expanduser() if given else user_config_path(APP, appauthor=False) / FILE_NAME


def load_config(
    path: Path | str | None = None,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Reads the settings of this run.

    Args:
        path: a config file named on the command line; it must exist. ``None`` takes the user's
            own, which may be absent.
        flags: dotted key to value, for instance ``{"display.theme": "dark"}``; ``None`` stands
            for a flag that was not given.
        environ: the environment; by default the one of this process.

    Raises:
        ConfigError: the file cannot be read, is no TOML, or holds an unknown key or a value of
            the wrong kind; file and key are named, with a near match for an unknown key.
    """
    environ = os.environ if environ is None else environ
    file = Path(path).expanduser() if path is not None else default_path(environ)
    must_exist = path is not None or bool(environ.get("NSYS_TUI_CONFIG"))
    config = parse_config(_read(file, must_exist), file)
    for name, key in ENVIRONMENT.items():
        if environ.get(name):
            config = _override(config, key, environ[name], "environment", f"environment: {name}")
    for key, value in (flags or {}).items():
        if value is not None:
            config = _override(config, key, value, "flag", "command line")
    return config


def parse_config(document: Mapping[str, Any], path: Path) -> Config:
    """Turns a parsed TOML document into a :class:`Config`; ``path`` is only for the messages.

    Raises:
        ConfigError: as :func:`load_config`.
    """
    sources: dict[str, str] = {}
    sections: dict[str, Any] = {}
    for name, content in document.items():
        if name not in (*SECTIONS, "targets"):
            raise unknown_key(f"{path}: {name}", (*SECTIONS, "targets"))
        if name == "targets":
            sections[name] = _targets(content, path)
        else:
            default = getattr(Config(path=path), name)
            sections[name] = _section(default, content, str(path), name)
        sources |= {f"{name}.{key}": "file" for key in content}
    return replace(Config(path=path), **sections, sources=MappingProxyType(sources))


def _targets(content: object, path: Path) -> Mapping[str, TargetConfig]:
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path}: targets must be a section, written [targets.NAME]")
    return MappingProxyType(
        {
            name: _target(settings, str(path), f"targets.{name}")
            for name, settings in content.items()
        }
    )


def _target(content: object, where: str, prefix: str) -> TargetConfig:
    known = {item.name for item in fields(TargetConfig)} - {"tables"}
    whole = content if isinstance(content, Mapping) else {}
    tables = {
        key: table
        for key, table in whole.items()
        if isinstance(table, Mapping) and key.replace("-", "_") not in known
    }
    plain = {key: value for key, value in whole.items() if key not in tables}
    target = _section(TargetConfig(), plain if whole else content, where, prefix)
    return replace(target, tables=MappingProxyType(tables))


def _section(default: Section, content: object, where: str, prefix: str) -> Section:
    if not isinstance(content, Mapping):
        raise ConfigError(f"{where}: {prefix} must be a section, written [{prefix}]")
    known = {item.name: item for item in fields(default) if item.name != "tables"}  # type: ignore[arg-type]
    changes: dict[str, Any] = {}
    for key, value in content.items():
        item = known.get(str(key).replace("-", "_"))
        dotted = f"{prefix}.{key}"
        if item is None:
            raise unknown_key(f"{where}: {dotted}", known)
        current = getattr(default, item.name)
        if is_dataclass(current):
            changes[item.name] = _section(current, value, where, dotted)
        else:
            changes[item.name] = _parsed(item, value, where, dotted)
    return replace(default, **changes)  # type: ignore[type-var]


def _parsed(item: Field[Any], value: object, where: str, dotted: str) -> Any:
    try:
        return item.metadata["parse"](value)
    except ValueError as error:
        raise ConfigError(f"{where}: {dotted} must be {error}", f"it is {value!r}") from error


def _override(config: Config, key: str, value: object, source: str, where: str) -> Config:
    section, _, name = key.partition(".")
    current = getattr(config, section)
    item = next(item for item in fields(current) if item.name == name)
    changed = replace(current, **{name: _parsed(item, value, where, key)})
    sources = MappingProxyType({**config.sources, key: source})
    return replace(config, **{section: changed}, sources=sources)


def unknown_key(place: str, known: Iterable[str]) -> ConfigError:
    """The error for a key that nothing reads, with a near match.

    Args:
        place: file and dotted key, such as ``config.toml: display.themes``.
        known: the keys that there are beside it.
    """
    names = sorted(known)
    where, _, dotted = place.rpartition(": ")
    near = difflib.get_close_matches(dotted.rpartition(".")[2], names, 1)
    hint = f"did you mean {near[0]}?" if near else "known here: " + ", ".join(names)
    return ConfigError(f"{where}: unknown key {dotted}", hint=hint)


def _read(path: Path, must_exist: bool) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8")
        import tomllib  # 7 ms, for a file that most users do not have

        return tomllib.loads(text)
    except FileNotFoundError as error:
        if not must_exist:
            return {}
        raise ConfigError(
            f"{path}: no such config file", hint="create it or name another"
        ) from error
    except ValueError as error:
        raise ConfigError(
            f"{path}: is not a TOML file", str(error), "correct the line named above"
        ) from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read", error.strerror or str(error)) from error
