"""The one error hierarchy: every error says what happened, why, and what to do next.

Errors are raised with ``from`` where a cause exists and caught once at the edge: a bar or dialog in
the app, a line on stderr and an exit code on the command line.
"""

from __future__ import annotations

from typing import Final

OK = 0
GATE_HIT = 1
NOT_COMPARABLE = 2
INCONCLUSIVE = 3
USAGE = 64
UNREADABLE = 65
NO_DATA = 66
NSYS_MISSING = 69
CAPTURE_FAILED = 70
ELSEWHERE = 80
INTERRUPTED = 130
UNEXPECTED = 99

EXIT_CODES: Final = {
    OK: "All went well.",
    GATE_HIT: "A gate of compare or --fail-on of analyze was hit.",
    NOT_COMPARABLE: "What compare was given cannot be compared, or there is too little to judge.",
    INCONCLUSIVE: "compare cannot tell: the interval of the change reaches beyond the threshold.",
    ELSEWHERE: "A capture's report lies elsewhere than asked for: full disk, or taken name.",
    129: "SIGHUP ended it: the terminal was closed.",
    143: "SIGTERM ended it.",
    UNEXPECTED: "A fault of ours: NSYS_TUI_DEBUG=1 shows where; please report it.",
}
"""What statuses say for which no error stands; the others say it in the docstring of the error."""


class NsysTuiError(Exception):
    """Base of all errors that a user may see.

    Attributes:
        title: what happened, with the file or object named, in one line.
        message: the cause, in one or a few lines; may be empty.
        hint: the next step for the user; may be empty.
        exit_code: process exit status of a command that fails with it.
    """

    exit_code: int = CAPTURE_FAILED

    def __init__(self, title: str, message: str = "", hint: str = "") -> None:
        super().__init__(title)
        self.title = title
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return "\n".join(part for part in (self.title, self.message, self.hint) if part)

    @property
    def one_line(self) -> str:
        """All of it where there is but one line, such as below a text that is being typed."""
        return "; ".join(" ".join(line.split()) for line in str(self).splitlines())


class UsageError(NsysTuiError):
    """A command line or a value typed by the user that cannot be understood."""

    exit_code = USAGE


class ConfigError(UsageError):
    """A configuration or theme file that cannot be used; names the file and the key."""


class UnreadableReportError(NsysTuiError):
    """A file that is no usable report: missing, truncated, foreign, locked."""

    exit_code = UNREADABLE


class NoDataError(NsysTuiError):
    """The report is fine but holds no data of the kind that was asked for."""

    exit_code = NO_DATA


class EmptyAnswerError(NoDataError):
    """The same, where the verb has printed its answer already: nothing but its empty frame."""


class NsysMissingError(NsysTuiError):
    """An nsys executable is needed and none was found."""

    exit_code = NSYS_MISSING


class CancelledError(NsysTuiError):
    """The user cancelled a long operation."""

    exit_code = INTERRUPTED
