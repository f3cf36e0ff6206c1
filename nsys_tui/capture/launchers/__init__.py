"""The kinds of places to capture on: one file each, found by itself.

A file of this folder registers what it declares with :func:`register`; the form, ``targets``, the
check of the config and the capture itself go by what is registered, and test for no name.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.capture.launchers.base import Launcher, PlaceField, Way
from nsys_tui.config import unknown_key
from nsys_tui.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nsys_tui.capture.launchers.base import Place
    from nsys_tui.config import TargetConfig

_LAUNCHERS: Final[dict[str, Launcher]] = {}
_WAYS: Final[dict[str, Way]] = {}


def register(kind: Launcher | Way) -> None:
    """Adds a launcher or a way to another machine; one of the same name is replaced."""
    if isinstance(kind, Launcher):
        _LAUNCHERS[kind.name] = kind
    else:
        _WAYS[kind.name] = kind


@cache
def _discover() -> None:
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)


def launchers() -> list[Launcher]:
    """All launchers: those that ask for no settings first, then those that need none, by name."""
    _discover()

    def wanted(kind: Launcher) -> tuple[bool, bool, str]:
        return any(field.required for field in kind.fields), bool(kind.fields), kind.name

    return sorted(_LAUNCHERS.values(), key=wanted)


def ways() -> list[Way]:
    """All ways to another machine."""
    _discover()
    return [_WAYS[name] for name in sorted(_WAYS)]


def way_to(place: Place) -> Way | None:
    """How a place's machine is reached; ``None`` = it is this one."""
    return next((way for way in ways() if way.takes(place)), None)


def launcher_of(settings: TargetConfig, where: str = "targets") -> Launcher:
    """The launcher that a target's settings name.

    Raises:
        ConfigError: there is none of that name; those that there are, are listed.
    """
    kinds = {kind.name: kind for kind in launchers()}
    if settings.launcher not in kinds:
        raise ConfigError(
            f"{where}.launcher must be one of {', '.join(kinds)}", f"it is {settings.launcher!r}"
        )
    return kinds[settings.launcher]


@cache
def scheduler_functions() -> str:
    """The shell functions of all schedulers: a lock may be held by a job of any of them."""
    texts = {kind.shell: files(kind.__module__.rpartition(".")[0]) for kind in launchers()}
    return "".join(
        folder.joinpath(name).read_text("utf-8") for name, folder in texts.items() if name
    )


def all_fields() -> Iterator[tuple[PlaceField, tuple[str, ...]]]:
    """Every declared field once, with the launchers that it is for; none = for all."""
    for way in ways():
        for field in way.fields:
            yield field, ()
    users: dict[str, list[str]] = {}
    declared: dict[str, PlaceField] = {}
    for kind in launchers():
        for field in kind.fields:
            declared.setdefault(field.key, field)
            users.setdefault(field.key, []).append(kind.name)
    for key, field in declared.items():
        yield field, tuple(users[key])


def read_tables(
    tables: Mapping[str, Mapping[str, Any]], where: str = "targets"
) -> Mapping[str, Any]:
    """The values of all fields in tables of their own, by dotted key; the default where absent.

    Args:
        tables: the tables of ``[targets.NAME]``, as the file has them.
        where: what messages put before a key.

    Raises:
        ConfigError: a table or key that no launcher declares, or a value that it cannot have.
    """
    declared = {field.key: field for field, _ in all_fields() if field.table}
    settings = {key: field.default for key, field in declared.items()}
    for table, content in tables.items():
        keys = [field.name for field in declared.values() if field.table == table]
        if not keys:
            known = {field.table for field in declared.values()}
            raise unknown_key(f"{where}.{table}", known)
        for name, value in content.items():
            field = declared.get(f"{table}.{name}")
            if field is None:
                raise unknown_key(f"{where}.{table}.{name}", keys)
            try:
                settings[field.key] = field.parse(value)
            except ValueError as error:
                message = f"{where}.{field.key} must be {error}"
                raise ConfigError(message, f"it is {value!r}") from error
    return settings
