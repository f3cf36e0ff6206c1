"""Bringing a file home, over a local shell that can be made to fail at any byte."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from nsys_tui.capture.events import Progress, Remark
from nsys_tui.capture.failures import (
    CaptureError,
    ConnectionLostError,
    FetchError,
    UnreachableError,
)
from nsys_tui.capture.supervisor import request, shell_text
from nsys_tui.capture.transport.channel import Channel
from nsys_tui.capture.transport.fetch import Fetch, RemoteFile
from nsys_tui.capture.transport.reconnecting import Link
from nsys_tui.capture.transport.transfer import Transfer

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 3_000_000


class Connector:
    """Hands out a channel; each entry of ``limits`` cuts one transfer after so many bytes."""

    def __init__(self, *limits: int) -> None:
        self.limits = list(limits)
        self.made = 0

    async def connect(self) -> Channel:
        self.made += 1
        if not self.limits:
            return Channel(["sh", "-s"])
        limit = self.limits.pop(0)
        return Channel(["sh", "-c", f"sh -s | head -c {limit}"])

    def explain(self, error: ConnectionLostError) -> CaptureError:
        return UnreachableError("gone", error.title)

    async def close(self) -> None:
        pass


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "there" / "big 'rep'.nsys-rep"
    path.parent.mkdir()
    path.write_bytes(os.urandom(SIZE))
    return path


def described(path: Path) -> RemoteFile:
    status = path.stat()
    return RemoteFile(str(path), status.st_size, int(status.st_mtime))


def fetching(
    source: Path, target: Path, *limits: int, heard: list[Progress | Remark] | None = None
) -> tuple[Fetch, Connector]:
    connector = Connector(*limits)
    link = Link(connector, lambda *_: None)
    link.patient = True
    told = heard.append if heard is not None else lambda _: None
    return Fetch(link, {}, described(source), target, told), connector


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsys_tui.capture.transport.reconnecting.BACKOFF_S", (0.01,))


async def test_a_file_arrives_whole_with_its_hash(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "here" / "a.nsys-rep"
    heard: list[Progress | Remark] = []
    fetch, _ = fetching(source, target, heard=heard)
    digest = await fetch.run()
    assert target.read_bytes() == source.read_bytes()
    assert digest == hashlib.sha256(source.read_bytes()).hexdigest()
    last = heard[-1]
    assert isinstance(last, Progress)
    assert last.done == last.total == SIZE
    assert last.line().startswith("fetching a.nsys-rep: 100.0%")
    assert sorted(path.name for path in target.parent.iterdir()) == ["a.nsys-rep"]


async def test_without_splice_the_bytes_are_copied(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("os.splice")
    fetch, _ = fetching(source, tmp_path / "a.nsys-rep")
    await fetch.run()
    assert (tmp_path / "a.nsys-rep").read_bytes() == source.read_bytes()


async def test_a_banner_of_the_login_shell_is_no_part_of_the_file(
    source: Path, tmp_path: Path
) -> None:
    fetch, connector = fetching(source, tmp_path / "a.nsys-rep")

    async def noisy() -> Channel:
        return Channel(["sh", "-c", "echo Welcome to the machine; exec sh -s"])

    connector.connect = noisy  # type: ignore[method-assign]
    await fetch.run()
    assert (tmp_path / "a.nsys-rep").read_bytes() == source.read_bytes()


async def test_one_log_in_sends_several_files(source: Path, tmp_path: Path) -> None:
    logins = tmp_path / "logins"
    fetch, connector = fetching(source, tmp_path / "a.nsys-rep")
    log_in = f"echo in >> '{logins}'; exec sh -s"
    channel = Channel(["sh", "-c", log_in], standing=True)

    async def standing() -> Channel:
        return channel

    connector.connect = standing  # type: ignore[method-assign]
    channel.expect_files()
    await fetch.run()
    again = Fetch(fetch._link, {}, described(source), tmp_path / "b.nsys-rep", lambda _: None)
    await again.run()
    assert (tmp_path / "b.nsys-rep").read_bytes() == source.read_bytes()
    assert logins.read_text() == "in\n"
    await fetch._link.close()
    assert channel.senders == []


async def test_an_empty_rest_and_an_empty_file(source: Path, tmp_path: Path) -> None:
    source.write_bytes(b"")
    fetch, _ = fetching(source, tmp_path / "a.nsys-rep")
    await fetch.run()
    assert (tmp_path / "a.nsys-rep").read_bytes() == b""


async def test_cuts_are_resumed_where_they_happened(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.nsys-rep"
    fetch, connector = fetching(source, target, 1_000_000, 30, 700_000)
    await fetch.run()
    assert target.read_bytes() == source.read_bytes()
    assert connector.made >= 3


async def test_a_part_of_an_earlier_process_is_used(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.nsys-rep"
    first, _ = fetching(source, target, 1_000_000)
    first._link.patient = False
    with pytest.raises(CaptureError):
        await first.run()
    kept = (tmp_path / "a.nsys-rep.part").stat().st_size
    assert 500_000 < kept < SIZE
    heard: list[Progress | Remark] = []
    second, _ = fetching(source, target, heard=heard)
    await second.run()
    assert isinstance(heard[0], Progress)
    assert heard[0].done >= kept
    assert target.read_bytes() == source.read_bytes()


async def test_a_part_of_another_version_is_not_used(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.nsys-rep"
    first, _ = fetching(source, target, 1_000_000)
    first._link.patient = False
    with pytest.raises(CaptureError):
        await first.run()
    source.write_bytes(os.urandom(SIZE))
    os.utime(source, (1, 1))
    second, _ = fetching(source, target)
    await second.run()
    assert target.read_bytes() == source.read_bytes()


async def test_an_altered_part_is_found_by_the_hash_and_fetched_again(
    source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "a.nsys-rep"
    first, _ = fetching(source, target, 1_000_000)
    first._link.patient = False
    with pytest.raises(CaptureError):
        await first.run()
    part = tmp_path / "a.nsys-rep.part"
    part.write_bytes(b"x" + part.read_bytes()[1:])
    told: list[Progress | Remark] = []
    second, _ = fetching(source, target, heard=told)
    await second.run()
    assert target.read_bytes() == source.read_bytes()
    assert [item.severity for item in told if isinstance(item, Remark)] == ["warning"]
    assert not (tmp_path / "a.nsys-rep.bad").exists()


async def test_a_file_that_differs_twice_is_an_error_with_both_hashes(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = shell_text("supervisor.sh").replace('nt_hash "$NT_PATHS"', f"echo {'0' * 64}")
    monkeypatch.setattr("nsys_tui.capture.supervisor.shell_text", lambda _: script)
    fetch, _ = fetching(source, tmp_path / "a.nsys-rep")
    with pytest.raises(FetchError) as caught:
        await fetch.run()
    assert "0" * 64 in caught.value.message
    assert hashlib.sha256(source.read_bytes()).hexdigest() in caught.value.message
    assert not (tmp_path / "a.nsys-rep").exists()


async def test_a_file_that_changes_meanwhile_is_fetched_again(source: Path, tmp_path: Path) -> None:
    fetch, _ = fetching(source, tmp_path / "a.nsys-rep")
    source.write_bytes(os.urandom(SIZE + 5))
    os.utime(source, (5, 5))
    await fetch.run()
    assert (tmp_path / "a.nsys-rep").read_bytes() == source.read_bytes()


async def test_a_file_that_is_gone_is_said_so(source: Path, tmp_path: Path) -> None:
    fetch, _ = fetching(source, tmp_path / "a.nsys-rep")
    source.unlink()
    with pytest.raises(FetchError, match="gone over there"):
        await fetch.run()


async def test_no_room_stops_before_the_first_byte(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        f_bavail, f_frsize = 10, 512

    monkeypatch.setattr("nsys_tui.capture.transport.fetch.os.statvfs", lambda _: Full)
    fetch, connector = fetching(source, tmp_path / "a.nsys-rep")
    with pytest.raises(FetchError) as caught:
        await fetch.run()
    assert "5.12 kB are free" in caught.value.message
    assert "3.00 MB" in caught.value.message
    assert connector.made == 0


async def test_a_disk_that_fills_up_keeps_the_part(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, written = os.splice, 0

    def splice(source: int, target: int, count: int) -> int:
        nonlocal written
        if written > 1_000_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        written += (moved := real(source, target, count))
        return moved

    monkeypatch.setattr("os.splice", splice)
    fetch, _ = fetching(source, tmp_path / "a.nsys-rep")
    with pytest.raises(FetchError, match="disk of this machine is full"):
        await fetch.run()
    monkeypatch.setattr("os.splice", real)
    kept = (tmp_path / "a.nsys-rep.part").stat().st_size
    assert 0 < kept < SIZE
    heard: list[Progress | Remark] = []
    again, _ = fetching(source, tmp_path / "a.nsys-rep", heard=heard)
    await again.run()
    assert isinstance(heard[0], Progress)
    assert heard[0].done >= kept


async def test_two_processes_never_write_one_part(source: Path, tmp_path: Path) -> None:
    with (tmp_path / "a.nsys-rep.part").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        fetch, _ = fetching(source, tmp_path / "a.nsys-rep")
        fetch._seen.write_text(
            f'{{"path": "{source}", "size": {SIZE}, "mtime": {fetch.file.mtime}}}'
        )
        with pytest.raises(FetchError, match="another process is fetching"):
            await fetch.run()


async def test_leaving_ends_the_child_and_keeps_the_part(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.nsys-rep"
    fetch, connector = fetching(source, target)

    async def slow() -> Channel:
        return Channel(["sh", "-c", "sh -s | (head -c 500000; sleep 60)"])

    connector.connect = slow  # type: ignore[method-assign]
    running = asyncio.create_task(fetch.run())
    async with asyncio.timeout(10):
        while not (tmp_path / "a.nsys-rep.part").exists():
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 10)
    assert (tmp_path / "a.nsys-rep.part").stat().st_size > 400_000


async def test_the_event_loop_stays_free(source: Path, tmp_path: Path) -> None:
    source.write_bytes(os.urandom(30_000_000))
    fetch, _ = fetching(source, tmp_path / "a.nsys-rep")
    running = asyncio.create_task(fetch.run())
    late: list[float] = []
    loop = asyncio.get_running_loop()
    while not running.done():
        began = loop.time()
        await asyncio.sleep(0.005)
        late.append(loop.time() - began - 0.005)
    await running
    assert sorted(late)[len(late) // 2] < 0.05


async def test_what_a_login_shell_says_is_no_cause_of_a_cut(source: Path, tmp_path: Path) -> None:
    chatty = "echo chatter >&2; sleep 0.2; sh -s | head -c 1000; echo the cause >&2"
    reasons: list[str] = []

    class Chatty(Connector):
        async def connect(self) -> Channel:
            self.made += 1
            chosen = chatty if self.made == 1 else "exec sh -s"
            return Channel(["sh", "-c", chosen])

        def explain(self, error: ConnectionLostError) -> CaptureError:
            return UnreachableError("gone", error.stderr)

    link = Link(Chatty(), lambda _n, _s, reason: reasons.append(reason))
    link.patient = True
    await Fetch(link, {}, described(source), tmp_path / "a.nsys-rep", lambda _: None).run()
    assert [reason.strip() for reason in reasons] == ["the cause"]


async def test_a_way_that_stays_closed_for_a_while_is_tried_again(
    source: Path, tmp_path: Path
) -> None:
    fetch, connector = fetching(source, tmp_path / "a.nsys-rep", 50_000)
    connect = connector.connect

    async def closed_at_first() -> Channel:
        channel = await connect()
        if connector.made in (2, 3):
            raise UnreachableError("no route to it")
        return channel

    connector.connect = closed_at_first  # type: ignore[method-assign]
    await fetch.run()
    assert connector.made == 4
    assert (tmp_path / "a.nsys-rep").read_bytes() == source.read_bytes()


async def test_a_connection_that_is_closed_keeps_and_gives_out_no_child(
    source: Path, tmp_path: Path
) -> None:
    channel = Channel(["sh", "-s"], standing=True)
    channel.expect_files()
    [waiting] = channel.senders
    transfer = Transfer(channel, request("send", PATHS=str(source), OFF="0"), tmp_path / "a")
    closing = asyncio.create_task(channel.close())
    await asyncio.to_thread(transfer.run)
    await closing
    assert waiting.child.returncode is not None
    assert (tmp_path / "a").read_bytes() == source.read_bytes()
    assert channel.senders == []
