"""What can go wrong in a capture, each with its own exit status (70 to 79) and next step."""

from __future__ import annotations

from nsys_tui.errors import CAPTURE_FAILED, NsysTuiError


class CaptureError(NsysTuiError):
    """A capture that failed in a way no other class names."""

    exit_code = CAPTURE_FAILED


class UnreachableError(CaptureError):
    """The host, container or pod does not answer."""

    exit_code = 71


class AuthenticationError(CaptureError):
    """The host answered and refused the user or the key."""

    exit_code = 72


class HostKeyError(CaptureError):
    """The host's key is unknown and was not accepted, or is not the known one."""

    exit_code = 73


class PreflightError(CaptureError):
    """Something is missing where the program should run; nothing was started."""

    exit_code = 74


class LockedError(CaptureError):
    """Another capture runs on this target."""

    exit_code = 75


class OutputTakenError(CaptureError):
    """A report of that name exists already; nothing was started."""

    exit_code = 76


class NoReportError(CaptureError):
    """The program ran and no report came of it."""

    exit_code = 77


class LostError(CaptureError):
    """The job vanished without an exit status: reboot, out of memory, killed from outside."""

    exit_code = 78


class FetchError(CaptureError):
    """The report exists over there and could not be brought home whole."""

    exit_code = 79


class KeepError(CaptureError):
    """This machine cannot write down what it learns; the job itself goes on."""


class ConnectionLostError(CaptureError):
    """The connection ended before the answer did; whatever runs there goes on.

    Attributes:
        status: exit status of the child that carried the connection, if known.
        stderr: what that child wrote to stderr, as it came.
    """

    exit_code = 71
    status: int | None = None
    stderr: str = ""
