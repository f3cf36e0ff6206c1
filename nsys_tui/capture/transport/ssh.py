"""The user's own OpenSSH as the way to another machine.

Whatever works with ``ssh HOST`` works here: the user's config, agents, jump hosts, certificates,
second factors. One connection is opened and shared; questions come through :mod:`.askpass`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nsys_tui.capture.failures import (
    AuthenticationError,
    CaptureError,
    ConnectionLostError,
    HostKeyError,
    UnreachableError,
)
from nsys_tui.capture.launchers import Target
from nsys_tui.capture.quoting import printable
from nsys_tui.capture.supervisor import request
from nsys_tui.capture.targets import check_host
from nsys_tui.capture.transport.askpass import AskpassServer, PromptHandler, PromptKind
from nsys_tui.capture.transport.channel import Channel, Connector, release
from nsys_tui.capture.transport.reconnecting import LocalConnector, explain_container, through
from nsys_tui.config import CaptureConfig
from nsys_tui.errors import UsageError

COMMAND: Final = "exec sh -s"
"""The only string that a remote shell is ever given as a command."""

PATH_LIMIT: Final = 90
"""Longest control path: ssh adds 17 characters while it binds, and sockets end at 108."""

SWIFT_CIPHER: Final = "aes128-gcm@openssh.com"

_CONNECT_S: Final = 15
_PROMPT_S: Final = 300
_SHARED_S: Final = 10
"""A shared connection is open already: it answers soon, or it is dead."""
_ALIVE: Final = ("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")


class SshConnector:
    """Connects to a host, and from there on into a container if the target has one."""

    def __init__(self, target: Target, ssh: Sequence[str], on_prompt: PromptHandler | None) -> None:
        self._target = target
        self._ssh = list(ssh)
        self._host = check_host(target.settings.host)
        self._on_prompt = on_prompt
        self._folder: Path | None = None
        self._askpass: AskpassServer | None = None
        self._own_master = False
        self._theirs = self._avoids_theirs = False
        self._env: dict[str, str] | None = None
        self._options: list[str] | None = None
        self._jump = ""

    async def connect(self) -> Channel:
        """A channel over a shared connection; see ``channel.Connector``."""
        if self._options is None:
            self._options = await self._prepare()
        argv = [*self._ssh, "-T", "-o", "RemoteCommand=none", *_ALIVE, *self._options]
        channel = Channel([*argv, "--", self._host, COMMAND], env=self._env, standing=True)
        try:
            await channel.ask(request("hello"), self._patience_s)
        except ConnectionLostError as error:
            if self._theirs and error.status is None:
                await self._leave_theirs()
                return await self.connect()
            raise self._explain_ssh(error) from error
        except FileNotFoundError as error:
            raise CaptureError(
                f"there is no {self._ssh[0]} on this machine", "", "install the OpenSSH client"
            ) from error
        return through(channel, self._target)

    @property
    def _patience_s(self) -> float:
        if self._theirs:
            return _SHARED_S
        return _PROMPT_S if self._on_prompt else _CONNECT_S * 2

    async def _leave_theirs(self) -> None:
        """The user's shared connection is dead, as after a change of network: we make our own."""
        await self.close()
        self._avoids_theirs = True

    async def close(self) -> None:
        """Ends our own master connection and removes its folder."""
        if self._own_master and self._options is not None:
            await self._run("-O", "exit", *self._options)
        if self._askpass is not None:
            await self._askpass.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = self._askpass = self._options = None

    async def _prepare(self) -> list[str]:
        """Options for the shared connection and for questions."""
        settings, usual = await asyncio.gather(self._settings(), self._settings("-F", "none"))
        self._jump = settings.get("proxyjump", "").removeprefix("none")
        options: list[str] = []
        if settings.get("connecttimeout", "none") == "none":
            options += ["-o", f"ConnectTimeout={_CONNECT_S}"]
        self._folder = _private_folder()
        if self._on_prompt is None:
            options += ["-o", "BatchMode=yes"]
        else:
            self._askpass = AskpassServer(self._folder, self._target.name, self._on_prompt)
            self._env = dict(os.environ) | await self._askpass.start()
        self._theirs = not self._avoids_theirs and await self._users_master(settings)
        if not self._theirs:
            options += [*self._share(self._folder), *_swift_ciphers(settings, usual)]
        return options

    def _share(self, folder: Path) -> list[str]:
        """Options for a shared connection of our own, where its socket's path is short enough."""
        self._own_master = len(str(folder)) + 41 <= PATH_LIMIT
        if not self._own_master:
            return ["-o", "ControlPath=none"]
        options = ("ControlMaster=auto", "ControlPersist=60", f"ControlPath={folder / '%C'}")
        return [word for option in options for word in ("-o", option)]

    async def _settings(self, *options: str) -> dict[str, str]:
        """What the user's config says about the host, as ``ssh -G`` resolves it."""
        _, output = await self._run(*options, "-G")
        pairs = (line.partition(" ") for line in output.splitlines())
        return {key: value for key, _, value in pairs}

    async def _users_master(self, settings: dict[str, str]) -> bool:
        """Whether the user has a shared connection of their own that answers."""
        if settings.get("controlpath", "none") in ("none", ""):
            return False
        status, _ = await self._run("-O", "check")
        return status == 0

    async def _run(self, *args: str) -> tuple[int, str]:
        """Runs a local command of ssh that needs no connection."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._ssh, *args, "--", self._host,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except OSError:
            return 255, ""
        try:
            async with asyncio.timeout(10):
                output, _ = await process.communicate()
        except TimeoutError:
            return 255, ""
        finally:
            release(process)  # which ends one that hangs
        return process.returncode or 0, output.decode("utf-8", "replace")

    def explain(self, error: ConnectionLostError) -> CaptureError:
        """A lost connection in ssh's own last words, with the next step."""
        ours = error.status == 255 or not self._target.launcher.shell_argv(self._target)
        return self._explain_ssh(error) if ours else explain_container(self._target, error)

    def _explain_ssh(self, error: ConnectionLostError) -> CaptureError:
        text = error.stderr.replace("\r", "")
        lines = [printable(line) for line in text.splitlines() if line.strip()]
        said = lines[-1] if lines else error.title
        name, by_hand = self._target.name, self._by_hand(self._host)
        name += f" ({self._host})" if self._host != name else ""
        if "HOST IDENTIFICATION HAS CHANGED" in text or "host key has changed" in text.lower():
            return HostKeyError(
                f"{name}: the host key is not the known one",
                _offending(text) or said,
                "ask its administrator; if it was reinstalled, remove that line of known_hosts",
            )
        if "Host key verification failed" in text:
            asked = self._askpass is not None and PromptKind.HOST_KEY in self._askpass.asked
            return HostKeyError(
                f"{name}: the host key was not accepted" if asked else f"{name}: unknown host key",
                said,
                "compare its fingerprint, then accept it"
                if asked
                else f"run `{by_hand}` once, compare the fingerprint and accept it",
            )
        if "Permission denied" in text or "Too many authentication failures" in text:
            said = next((line for line in lines if "Permission denied" in line), said)
            return AuthenticationError(f"{name}: permission denied", said, self._way_in(said))
        if "Could not resolve hostname" in text:
            return UnreachableError(
                f"{name}: unknown host", said, "correct the host's name, or add it to ~/.ssh/config"
            )
        first = self._jump.split(",")[0]
        first = f"ssh://{first}" if ":" in first else first
        if first and "UNKNOWN port" in text:  # with a shared connection ssh hides its words
            return UnreachableError(
                f"{name}: the way over {self._jump} is closed",
                said,
                f"`{self._by_hand(first)}` tells why",
            )
        return UnreachableError(
            f"{name} cannot be reached", said, f"try `{by_hand}`; see its own words above"
        )

    def _by_hand(self, host: str) -> str:
        """The command to try on a terminal."""
        return shlex.join([*self._ssh, host])

    def _way_in(self, said: str) -> str:
        if self._on_prompt is None and re.search(r"password|keyboard-interactive", said):
            return "it wants a password or code; run this in a terminal, or use a key or an agent"
        return "check the user name, and that your key is loaded (ssh-add -l) and known there"


def _swift_ciphers(settings: dict[str, str], usual: dict[str, str]) -> list[str]:
    """Puts AES-GCM first where the user has no wish of their own and the processor has AES.

    One core of a server moves 40 % more a second with it than with ssh's default, ChaCha20.
    """
    ciphers = settings.get("ciphers", "")
    if SWIFT_CIPHER not in ciphers or ciphers != usual.get("ciphers") or not _has_aes():
        return []
    others = [cipher for cipher in ciphers.split(",") if cipher != SWIFT_CIPHER]
    return ["-o", "Ciphers=" + ",".join([SWIFT_CIPHER, *others])]


def _offending(text: str) -> str:
    match = re.search(r"Offending .* key in (\S+:\d+)", text)
    return f"the known key is in {match[1]}" if match else ""


def _has_aes() -> bool:
    """Whether the processor says that it has instructions for AES; false where it says nothing."""
    with contextlib.suppress(OSError):
        words = Path("/proc/cpuinfo").read_text(errors="replace").split()
        return "aes" in words
    return False


def _private_folder() -> Path:
    """A fresh 0700 folder with a short path; folders of processes that are gone are removed."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    base = Path(runtime) / "nsys-tui" if runtime and len(runtime) < 30 else None
    if base is None or not _make(base):
        base = Path("/tmp") / f"nsys-tui-{os.getuid()}"
        if not _make(base):
            base = Path(tempfile.mkdtemp(prefix="nsys-tui-"))
    for old in base.iterdir():
        pid = old.name.partition("-")[0]
        if pid.isdigit() and not _exists(int(pid)):
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=base))


def _make(folder: Path) -> bool:
    """Whether the folder is there and is ours alone."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and status.st_mode & 0o077 == 0 and not folder.is_symlink()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def connector_for(
    target: Target, settings: CaptureConfig, on_prompt: PromptHandler | None
) -> Connector:
    """The connector for a target; nothing is connected yet.

    Args:
        target: where to.
        settings: the ssh command.
        on_prompt: answers ssh's questions; ``None`` = a question is an error.
    """
    if os.name != "posix":
        raise UsageError(
            "captures need Linux or macOS on this side", "there is no POSIX shell to drive them",
            "run nsys-tui on the machine itself, or in WSL",
        )  # fmt: skip
    if not target.settings.host:
        return LocalConnector(target)
    return SshConnector(target, settings.ssh, on_prompt)
