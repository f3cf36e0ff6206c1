"""Real machines on loopback for capture tests: sshds, keys, a jump host, a proxy that can be cut.

Everything lies in the test's own folder, keys are made afresh, and servers are ended by their pids.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
FAKE_NSYS = ROOT / "tests" / "fake_nsys"
SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


def need(program: str, *, package: str) -> None:
    """Skips loudly when a system program is absent, or installs it where that is wanted."""
    found = shutil.which(program) or (Path("/usr/sbin") / program).exists()
    if not found and os.environ.get("CI") and os.geteuid() == 0 and shutil.which("apt-get"):
        command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *package.split()]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, timeout=300)
        found = shutil.which(program) or (Path("/usr/sbin") / program).exists()
    if not found:
        pytest.skip(f"NOT TESTED: {program} is not installed (Debian: {package})")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def listening(port: int, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise TimeoutError(f"nothing listens on {port}")


@dataclass
class Sshd:
    """One sshd of our own on loopback."""

    folder: Path
    name: str
    extra: str = ""
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def key(self) -> Path:
        return self.folder / f"host_{self.name}"

    def start(self) -> None:
        if not self.key.exists():
            make_key(self.key)
        config = self.folder / f"sshd_{self.name}"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.key}\n"
            f"PidFile {self.folder}/{self.name}.pid\n"
            f"AuthorizedKeysFile {self.folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
            "PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"MaxStartups 100\n{self.extra}"
        )
        log = (self.folder / f"{self.name}.log").open("ab")
        Path("/run/sshd").mkdir(exist_ok=True) if os.geteuid() == 0 else None
        self.process = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", str(config)], stdout=log, stderr=log, start_new_session=True
        )
        log.close()
        listening(self.port)

    def stop(self) -> None:
        """Ends the server and every connection to it."""
        if self.process is not None:
            self.cut_connections()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(10)
            self.process = None

    def cut_connections(self) -> None:
        """Kills the servers of the present connections; the listener stays."""
        assert self.process is not None
        for child in children(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def make_key(path: Path, passphrase: str = "") -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)], check=True
    )


@dataclass
class Lab:
    """Two sshds, ``bastion`` and ``gpu-box``; ``jumped`` is gpu-box by way of bastion."""

    folder: Path
    bastion: Sshd
    box: Sshd

    @property
    def config(self) -> Path:
        return self.folder / "config"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def ssh(self) -> tuple[str, ...]:
        return ("ssh", "-F", str(self.config))

    def know(self, server: Sshd) -> None:
        key = server.key.with_suffix(".pub").read_text().split()
        with self.known_hosts.open("a") as file:
            file.write(f"[127.0.0.1]:{server.port} {key[0]} {key[1]}\n")

    def write_config(self, more: str = "") -> None:
        self.config.write_text(
            f"{more}\nHost *\n  HostName 127.0.0.1\n  IdentityFile {self.folder}/id\n"
            f"  IdentitiesOnly yes\n  UserKnownHostsFile {self.known_hosts}\n"
            "  GlobalKnownHostsFile /dev/null\n"
            f"Host bastion\n  Port {self.bastion.port}\n"
            f"Host gpu-box jumped\n  Port {self.box.port}\n"
            "Host jumped\n  ProxyJump bastion\n"
        )


@contextlib.contextmanager
def make_lab(folder: Path) -> Iterator[Lab]:
    need("sshd", package="openssh-server")
    need("ssh", package="openssh-client")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    make_key(folder / "id")
    (folder / "authorized_keys").write_text((folder / "id.pub").read_text())
    lab = Lab(folder, Sshd(folder, "bastion"), Sshd(folder, "box"))
    lab.known_hosts.touch()
    try:
        for server in (lab.bastion, lab.box):
            server.start()
            lab.know(server)
        lab.write_config()
        yield lab
    finally:
        for server in (lab.bastion, lab.box):
            server.stop()


class Proxy:
    """A TCP proxy on loopback that can freeze, cut and slow the traffic."""

    def __init__(self, target: int, bytes_per_s: float = 0) -> None:
        self.port = free_port()
        self.bytes_per_s = bytes_per_s
        self.carried = 0
        self._target = target
        self._frozen = threading.Event()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._frozen.is_set():
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self._target))
                self._pairs.append((near, far))
                threading.Thread(target=self._pump, args=(near, far), daemon=True).start()

    def _pump(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            while True:
                for ready in select.select([near, far], [], [], 0.2)[0]:
                    while self._frozen.is_set():
                        time.sleep(0.05)
                    data = ready.recv(65536)
                    if not data:
                        raise ConnectionError
                    (far if ready is near else near).sendall(data)
                    self.carried += len(data)
                    if self.bytes_per_s:
                        time.sleep(len(data) / self.bytes_per_s)
        for end in (near, far):
            end.close()

    def freeze(self) -> None:
        """Lets nothing through and refuses new connections, without closing the old ones."""
        self._frozen.set()

    def thaw(self) -> None:
        self._frozen.clear()

    def cut(self) -> None:
        """Closes every connection at once."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def close(self) -> None:
        self.thaw()
        self.cut()
        self._listener.close()


def nsys_tui(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line as a user does, without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "nsys_tui", *args],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        cwd=ROOT, env={**os.environ, **env},
    )  # fmt: skip
