"""The kinds of places to capture on: one file each, found by itself.

A file of this folder registers what it declares with :func:`register`; the form, ``targets``, the
check of the config and the capture itself go by what is registered, and test for no name. What such
a kind declares, its fields, how a program starts there and what it needs, stands here too.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, ClassVar, Final

from nsys_tui import config_values as values
from nsys_tui.config import TargetConfig, unknown_key
from nsys_tui.errors import ConfigError
from nsys_tui.paths import state_folder
from nsys_tui.plain_data import plain

SHELL: Final = ("sh", "-s")
HOST_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:%@\[\]-]{0,254}")
OBJECT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,254}")
"""What may stand in an argv as the name of a container, a pod, a user: never an option."""


@dataclass(frozen=True)
class PlaceField:
    """One setting of a target: for the config file, the form and the help.

    Attributes:
        key: of ``[targets.NAME]``, with a dot for a table in it.
        label: before its value in the form.
        hint: what to write there.
        parse: turns what the file has into the setting, or raises ``ValueError``.
        default: the setting where the file has none.
        pattern: what the text must match, as it ends in an argv; ``None`` = anything.
        required: whether the launcher cannot do without.
    """

    key: str
    label: str
    hint: str
    parse: Callable[[object], Any] = values.text
    default: Any = ""
    pattern: re.Pattern[str] | None = None
    required: bool = False

    @property
    def table(self) -> str:
        """The table that the key stands in; empty = it stands in the target's section itself."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The key inside its table."""
        return self.key.rpartition(".")[2]


HOST: Final = PlaceField(
    "host", "host", "whatever `ssh HOST` understands; empty = this machine", pattern=HOST_NAME
)
"""Another machine, by the user's own OpenSSH; whatever launcher the target has starts there."""


def name_field(key: str, label: str, hint: str, *, required: bool = False) -> PlaceField:
    """A field for the name of a container, a pod or a user, which ends in an argv."""
    return PlaceField(key, label, hint, pattern=OBJECT_NAME, required=required)


def words_field(key: str, label: str, hint: str) -> PlaceField:
    """A field for arguments."""
    return PlaceField(key, label, hint, parse=values.words, default=())


@dataclass(frozen=True)
class QueueState:
    """What a scheduler says about a job."""

    job: str
    """Its id there."""
    words: str
    """The state and its reason for a reader."""
    queued: bool
    """Whether it waits, or waits again."""
    running: bool
    """Whether its program runs."""
    failed: bool
    """Whether it is over and did not end by itself."""
    nodes: str = ""
    """Where it runs; empty = nowhere yet."""


class Launcher:
    """How nsys is started at a place. This base starts it as it is.

    Attributes:
        name: the word for ``launcher = "…"``.
        about: one line for the help.
        title: for messages.
        fields: settings that only this kind has.
        tools: programs that must be found there.
        variable: set in the environment of programs that it started; tells a report's origin.
        scheduler: prefix of its shell functions ``nt_NAME_queue``, ``_state``, ``_submit``,
            ``_signal`` and ``_last_word``, where jobs have a queue; the supervisor calls them.
        shell: a file beside this one with those functions.
        rank_mark: what nsys puts a process's number in place of, in a report's name.
    """

    name: str
    about: ClassVar[str] = ""
    title: ClassVar[str] = ""
    fields: ClassVar[tuple[PlaceField, ...]] = ()
    tools: ClassVar[tuple[str, ...]] = ()
    variable: ClassVar[str] = ""
    scheduler: ClassVar[str] = ""
    shell: ClassVar[str] = ""
    rank_mark: ClassVar[str] = ""

    def inside(self, target: Target) -> str:
        """The name of what the program runs in, such as a container; may be empty."""
        return ""

    def shell_argv(self, target: Target) -> list[str]:
        """The command that opens a shell in there, reading a script from stdin; empty = none."""
        return []

    def processes(self, target: Target) -> int:
        """How many nsys it starts."""
        return 1

    def command(self, target: Target, capture: str, argv: Sequence[str]) -> list[str]:
        """What the job runs: nsys with its arguments, and this launcher's words around them."""
        return list(argv)

    def batch_script(
        self, target: Target, body: str, *, once: bool
    ) -> tuple[str, list[str]] | None:
        """A script to submit and its arguments; ``None`` = the job is started directly.

        Args:
            target: the target.
            body: its commands.
            once: whether the job cannot be run a second time.
        """
        return None

    def typed(self, target: Target, argv: Sequence[str], env: Sequence[str], cwd: str) -> list[str]:
        """The command as one types it by hand; ``cwd`` matters where it opens a shell inside."""
        return [*(["env", *env] if env else []), *argv]

    def faults(self, target: Target, needed_s: float) -> list[str]:
        """What this kind would pass over in silence, or find too late.

        Args:
            target: the target.
            needed_s: seconds that the capture takes at least; 0 = open.
        """
        return []

    def read_queue(self, line: str) -> QueueState:
        """Reads what the scheduler's ``queue`` function printed."""
        raise NotImplementedError(f"{self.name} has no queue")


@dataclass(frozen=True)
class Target:
    """A checked target; ``settings`` is what the file says about it."""

    name: str
    settings: TargetConfig = field(default_factory=TargetConfig)

    @cached_property
    def launcher(self) -> Launcher:
        """What starts the program there."""
        return launcher_of(self.settings)

    @cached_property
    def own(self) -> Mapping[str, Any]:
        """Values of the launchers' fields by key, such as ``container.name``."""
        return read_tables(self.settings.tables)

    @property
    def remote(self) -> bool:
        """Whether reports have to be fetched: another machine, a container or a pod."""
        return bool(self.settings.host) or bool(self.launcher.shell_argv(self))

    @property
    def jobs_dir(self) -> str:
        """The folder of all jobs there; on this machine it follows the platform's state folder."""
        chosen = self.settings.jobs_dir
        if self.remote or chosen != TargetConfig().jobs_dir:
            return chosen
        return str(state_folder() / "jobs")

    def describe(self) -> str:
        """Where that is, in a few words: ``gpu-box, podman trainer``."""
        machine = self.settings.host or "this machine"
        if self.settings.launcher == TargetConfig().launcher:
            return machine
        return f"{machine}, {self.launcher.name} {self.launcher.inside(self)}".rstrip()

    def snapshot(self) -> dict[str, Any]:
        """The target as plain data for the record; values of ``env`` stay out of it."""
        names = {"env": sorted(self.settings.env)}
        return {"name": self.name, **plain_settings(self.settings), **names}


def plain_settings(settings: TargetConfig) -> dict[str, Any]:
    """A target's settings as JSON-ready data, as the file has them."""
    own = {key: plain(value) for key, value in vars(settings).items() if key != "tables"}
    return own | {name: plain(table) for name, table in settings.tables.items()}


_LAUNCHERS: Final[dict[str, Launcher]] = {}


def register(kind: Launcher) -> None:
    """Adds a launcher; one of the same name is replaced."""
    _LAUNCHERS[kind.name] = kind


@cache
def _discover() -> None:
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)


def launchers() -> list[Launcher]:
    """All launchers: those that ask for no settings first, then those that need none, by name."""
    _discover()

    def wanted(kind: Launcher) -> tuple[bool, bool, str]:
        return any(item.required for item in kind.fields), bool(kind.fields), kind.name

    return sorted(_LAUNCHERS.values(), key=wanted)


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
    yield HOST, ()
    users: dict[str, list[str]] = {}
    declared: dict[str, PlaceField] = {}
    for kind in launchers():
        for item in kind.fields:
            declared.setdefault(item.key, item)
            users.setdefault(item.key, []).append(kind.name)
    for key, item in declared.items():
        yield item, tuple(users[key])


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
    declared = {item.key: item for item, _ in all_fields() if item.table}
    settings = {key: item.default for key, item in declared.items()}
    for table, content in tables.items():
        keys = [item.name for item in declared.values() if item.table == table]
        if not keys:
            known = {item.table for item in declared.values()}
            raise unknown_key(f"{where}.{table}", known)
        for name, value in content.items():
            item = declared.get(f"{table}.{name}")
            if item is None:
                raise unknown_key(f"{where}.{table}.{name}", keys)
            try:
                settings[item.key] = item.parse(value)
            except ValueError as error:
                message = f"{where}.{item.key} must be {error}"
                raise ConfigError(message, f"it is {value!r}") from error
    return settings
