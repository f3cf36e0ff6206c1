"""What a kind of place declares: its fields, how a program starts there, and what it needs.

Nothing here knows any kind; each stands in a file of its own beside this one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from nsys_tui import config_values as values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsys_tui.capture.askpass import PromptHandler
    from nsys_tui.capture.channel import Connector
    from nsys_tui.config import CaptureConfig, TargetConfig

SHELL: Final = ("sh", "-s")
HOST_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:%@\[\]-]{0,254}")
OBJECT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,254}")
"""What may stand in an argv as the name of a container, a pod, a user: never an option."""


class Place(Protocol):
    """What a launcher is told about a target."""

    @property
    def name(self) -> str:
        """Name of the target."""

    @property
    def settings(self) -> TargetConfig:
        """What the config says about it."""

    @property
    def own(self) -> Mapping[str, Any]:
        """Values of the launchers' fields by key, such as ``container.name``."""

    @property
    def launcher(self) -> Launcher:
        """What starts the program there."""

    def describe(self) -> str:
        """Where that is, in a few words."""


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


def name_field(key: str, label: str, hint: str, *, required: bool = False) -> PlaceField:
    """A field for the name of a container, a pod or a user, which ends in an argv."""
    return PlaceField(key, label, hint, pattern=OBJECT_NAME, required=required)


def words_field(key: str, label: str, hint: str) -> PlaceField:
    """A field for arguments."""
    return PlaceField(key, label, hint, parse=values.words, default=())


class QueueState(Protocol):
    """What a scheduler says about a job."""

    @property
    def job(self) -> str:
        """Its id there."""

    @property
    def nodes(self) -> str:
        """Where it runs; empty = nowhere yet."""

    @property
    def queued(self) -> bool:
        """Whether it waits, or waits again."""

    @property
    def running(self) -> bool:
        """Whether its program runs."""

    @property
    def failed(self) -> bool:
        """Whether it is over and did not end by itself."""

    def words(self) -> str:
        """The state and its reason for a reader."""


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

    def inside(self, place: Place) -> str:
        """The name of what the program runs in, such as a container; may be empty."""
        return ""

    def shell_argv(self, place: Place) -> list[str]:
        """The command that opens a shell in there, reading a script from stdin; empty = none."""
        return []

    def processes(self, place: Place) -> int:
        """How many nsys it starts."""
        return 1

    def command(self, place: Place, capture: str, argv: Sequence[str]) -> list[str]:
        """What the job runs: nsys with its arguments, and this launcher's words around them."""
        return list(argv)

    def batch_script(self, place: Place, body: str, *, once: bool) -> tuple[str, list[str]] | None:
        """A script to submit and its arguments; ``None`` = the job is started directly.

        Args:
            place: the target.
            body: its commands.
            once: whether the job cannot be run a second time.
        """
        return None

    def typed(self, place: Place, argv: Sequence[str], env: Sequence[str], cwd: str) -> list[str]:
        """The command as one types it by hand; ``cwd`` matters where it opens a shell inside."""
        return [*(["env", *env] if env else []), *argv]

    def faults(self, place: Place, needed_s: float) -> list[str]:
        """What this kind would pass over in silence, or find too late.

        Args:
            place: the target.
            needed_s: seconds that the capture takes at least; 0 = open.
        """
        return []

    def read_queue(self, line: str) -> QueueState:
        """Reads what the scheduler's ``queue`` function printed."""
        raise NotImplementedError(f"{self.name} has no queue")


class Way:
    """How another machine is reached, where the launcher then starts the program.

    Attributes:
        name: of this way.
        about: one line for the help.
        fields: settings that decide about it.
    """

    name: str
    about: ClassVar[str] = ""
    fields: ClassVar[tuple[PlaceField, ...]] = ()

    def takes(self, place: Place) -> bool:
        """Whether the place is reached this way."""
        raise NotImplementedError

    def machine(self, place: Place) -> str:
        """The machine's name for a reader."""
        raise NotImplementedError

    def typed(self, place: Place, line: str) -> list[str]:
        """The command as one types it by hand, to run a line of shell there."""
        raise NotImplementedError

    def connector(
        self, place: Place, settings: CaptureConfig, on_prompt: PromptHandler | None
    ) -> Connector:
        """What makes channels to it; nothing is connected yet."""
        raise NotImplementedError
