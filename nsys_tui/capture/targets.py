"""A target: one checked place where captures run, from the config file.

Names that end in an argv are checked here against patterns that leave no room for options
(``-oProxyCommand=…``) or shell text; everything else travels quoted on stdin.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

from nsys_tui.capture.launchers import HOST_NAME, Target, all_fields, launcher_of, read_tables
from nsys_tui.config import Config, TargetConfig
from nsys_tui.errors import ConfigError, UsageError

LOCAL: Final = "local"
AUTO: Final = "auto"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_ENV: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def frozen(value: Any) -> Any:
    """A setting back from JSON: lists are tuples again."""
    if isinstance(value, Mapping):
        return {name: frozen(item) for name, item in value.items()}
    return tuple(value) if isinstance(value, list) else value


def from_snapshot(snapshot: Mapping[str, Any]) -> Target:
    """A target as a record remembers it; values of ``env`` are not in it."""
    known = {item.name for item in fields(TargetConfig)}
    values = {key: frozen(value) for key, value in snapshot.items() if key in known}
    tables = {key: value for key, value in snapshot.items() if key not in {"name", *known}}
    settings = TargetConfig(**{**values, "env": {}, "tables": tables})
    return checked(str(snapshot["name"]), settings, "record")


def find_target(config: Config, name: str = "") -> Target:
    """The target of that name, or the default one.

    Raises:
        UsageError: there is none; the message has a near match.
        ConfigError: its settings are not usable.
    """
    name = name or config.capture.default_target
    settings = config.targets.get(name)
    if settings is not None:
        return checked(name, settings, str(config.path))
    if name == LOCAL:
        return Target(LOCAL)
    near = difflib.get_close_matches(name, [*config.targets, LOCAL], 1)
    raise UsageError(
        f"no target is called {name!r}",
        f"targets are sections [targets.NAME] in {config.path}",
        f"did you mean {near[0]}?" if near else "nsys-tui targets edit adds one",
    )


def with_nsys(target: Target, config: Config | None, asked: str = "") -> Target:
    """The target with the nsys that is to run there.

    Args:
        target: its own setting counts unless more is said.
        config: ``nsys.path`` (``NSYS_TUI_NSYS``) stands for the nsys of this machine.
        asked: what the user named just now, which wins.
    """
    here = config.nsys.path if config and not target.remote else AUTO
    chosen = asked or (here if target.settings.nsys == AUTO else AUTO)
    if chosen == AUTO:
        return target
    if not target.remote:
        from nsys_tui.reader.find_nsys import find_nsys

        chosen = os.path.normpath(find_nsys(chosen) or chosen)
    return Target(target.name, replace(target.settings, nsys=chosen))


def all_targets(config: Config) -> list[Target]:
    """All targets, this machine first, unless the file has a ``local`` of its own.

    Raises:
        ConfigError: the settings of one are not usable.
    """
    targets, faults = usable_targets(config)
    if faults:
        raise faults[0]
    return targets


def usable_targets(config: Config) -> tuple[list[Target], list[ConfigError]]:
    """The targets whose settings are usable, and what is wrong with the others."""
    targets, faults = [], []
    for name in dict.fromkeys([LOCAL, *config.targets]):
        try:
            targets.append(find_target(config, name))
        except ConfigError as fault:
            faults.append(fault)
    return targets, faults


def checked(name: str, settings: TargetConfig, where: str) -> Target:
    """Checks every name that will stand in an argv.

    Raises:
        ConfigError: a name could be taken for an option or for shell text, or a launcher lacks
            what it needs; file and key are named.
    """

    def check(key: str, value: str, pattern: re.Pattern[str]) -> None:
        if value and not pattern.fullmatch(value):
            raise ConfigError(
                f"{where}: targets.{name}.{key}: {value!r} cannot be used as a name",
                "it holds characters that could be taken for an option or a command",
            )

    prefix = f"{where}: targets.{name}"
    check("name", name, _NAME)
    launcher = launcher_of(settings, prefix)
    tables = read_tables(settings.tables, prefix)
    for item, _ in all_fields():
        value = tables[item.key] if item.table else getattr(settings, item.key)
        if item.pattern is not None:
            check(item.key, value, item.pattern)
    for key in (*settings.env, *settings.env_from):
        check_env_name(key, prefix)
    for item in launcher.fields:
        if item.required and not tables[item.key]:
            raise ConfigError(f"{prefix}.{item.key} is missing")
    return Target(name, settings)


def check_host(host: str) -> str:
    """Refuses host names that ssh would take for an option.

    Raises:
        UsageError: the name holds what no host name needs.
    """
    if not HOST_NAME.fullmatch(host):
        raise UsageError(
            f"{host!r} is no host name", "it could be taken for an option or a command",
            "give the name that `ssh NAME` understands",
        )  # fmt: skip
    return host


def check_env_name(name: str, where: str) -> str:
    """Refuses names that no shell can assign to.

    Raises:
        ConfigError: the name is empty or holds other than letters, digits and underscores.
    """
    if not _ENV.fullmatch(name):
        raise ConfigError(f"{where}: {name!r} is no name of an environment variable")
    return name
