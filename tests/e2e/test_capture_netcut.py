"""A real network link that goes down in mid-fetch and comes up again: a network namespace."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from capture_support import Recorder, make_place
from e2e.capture_lab import SSHD, make_key, need

from nsys_tui.capture.events import Progress, Reconnecting
from nsys_tui.capture.record import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.e2e
NAMESPACE = f"nt{os.getpid()}"
NEAR, FAR = f"nta{os.getpid()}", f"ntb{os.getpid()}"


def ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True, timeout=20)


@pytest.fixture
def far_box(tmp_path: Path) -> Iterator[Path]:
    """An sshd behind a link of its own; yields the ssh config that reaches it."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: a network namespace needs root")
    need("ip", package="iproute2")
    need("sshd", package="openssh-server")
    for name in ("host", "id"):
        make_key(tmp_path / name)
    key = (tmp_path / "host.pub").read_text().split()
    (tmp_path / "known").write_text(f"[10.77.9.2]:2222 {key[0]} {key[1]}\n")
    (tmp_path / "authorized").write_text((tmp_path / "id.pub").read_text())
    (tmp_path / "sshd").write_text(
        f"Port 2222\nListenAddress 10.77.9.2\nHostKey {tmp_path}/host\nStrictModes no\nUsePAM no\n"
        f"PidFile none\nAuthorizedKeysFile {tmp_path}/authorized\nPermitRootLogin yes\n"
    )
    (tmp_path / "config").write_text(
        f"Host far\n  HostName 10.77.9.2\n  Port 2222\n  IdentityFile {tmp_path}/id\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {tmp_path}/known\n  ConnectTimeout 2\n"
    )
    try:
        ip("netns", "add", NAMESPACE)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"NOT TESTED: no network namespace here: {error.stderr!r}")
    server = None
    try:
        ip("link", "add", NEAR, "type", "veth", "peer", "name", FAR)
        ip("link", "set", FAR, "netns", NAMESPACE)
        ip("addr", "add", "10.77.9.1/24", "dev", NEAR)
        ip("link", "set", NEAR, "up")
        for words in (["addr", "add", "10.77.9.2/24", "dev", FAR], ["link", "set", FAR, "up"]):
            ip("-n", NAMESPACE, *words)
        Path("/run/sshd").mkdir(exist_ok=True)
        command = ["ip", "netns", "exec", NAMESPACE, SSHD, "-D", "-e", "-f", str(tmp_path / "sshd")]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        yield tmp_path / "config"
    finally:
        if server is not None:
            server.terminate()
            server.wait(10)
        ip("link", "del", NEAR, check=False)
        ip("netns", "del", NAMESPACE, check=False)


async def wait_for(condition: Callable[[], object], seconds: float = 90) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def test_the_link_goes_down_in_mid_fetch(
    far_box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive = ("-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=2")
    monkeypatch.setattr("nsys_tui.capture.transport.ssh._ALIVE", alive)
    monkeypatch.setattr("nsys_tui.capture.transport.reconnecting.BACKOFF_S", (0.5,))
    heard = Recorder()
    size = 150_000_000
    place = make_place(tmp_path / "place", ssh=("ssh", "-F", str(far_box)), host="far")
    capture = place.fake(SIZE=str(size)).capture("true", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.state is State.FETCHING)
    await wait_for(lambda: 0 < heard.fetched < size or running.done())
    ip("link", "set", NEAR, "down")
    cut_at = heard.fetched
    assert cut_at < size, "the fetch was over before the link went down"
    await wait_for(lambda: heard.all(Reconnecting))
    ip("link", "set", NEAR, "up")
    with contextlib.suppress(subprocess.CalledProcessError):
        ip("addr", "add", "10.77.9.1/24", "dev", NEAR)
    record = await asyncio.wait_for(running, 120)
    cut = heard.events.index(heard.all(Reconnecting)[-1])
    after = [event.done for event in heard.events[cut:] if isinstance(event, Progress)]
    assert after[0] >= cut_at, "it began again at the first byte"
    assert record.state is State.DONE
    [report] = record.reports
    assert Path(report.local).read_bytes() == Path(report.path).read_bytes()
