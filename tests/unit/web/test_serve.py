"""The served app as a client without a browser meets it."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from synth import Synth

from nsys_tui import cli
from nsys_tui.errors import UNREADABLE, USAGE

aiohttp = pytest.importorskip("aiohttp", reason="pip install 'nsys-terminal[web]'")
pytest.importorskip("textual_serve", reason="pip install 'nsys-terminal[web]'")

from nsys_tui.web.server import Server, reason_to_refuse  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TOKEN = "t" * 32


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    synth = Synth(tmp_path_factory.mktemp("serve") / "a <b>&.sqlite").gpu(0, "Test GPU")
    synth.process(7, "train").cuda_device(7, 0, 0)
    synth.launch("gemm", (0, 1_000), (5_000, 15_000), device=0)
    return synth.write()


@asynccontextmanager
async def served(report: Path, *options: str) -> AsyncIterator[tuple[str, Any]]:
    """The address of a server, and its process, which ends with the block."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nsys_tui", "serve", *options, str(report)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip(), process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        await process.wait()


async def until(socket: Any, text: bytes) -> bytes:
    """What the app draws, up to a text."""
    drawn = b""
    while text not in drawn:
        message = await socket.receive(timeout=60)
        assert message.type == aiohttp.WSMsgType.BINARY, message
        drawn += message.data
    return drawn


async def use(socket: Any) -> None:
    """Types nothing, again and again: a busy machine starts the app for longer than it may idle."""
    while True:
        await socket.send_str(json.dumps(["stdin", ""]))
        await asyncio.sleep(0.5)


@pytest.mark.parametrize(
    ("path", "host", "origin", "refused"),
    [
        (f"/{TOKEN}/", "127.0.0.1:8000", None, False),
        (f"/{TOKEN}/ws", "localhost:9", "http://localhost:9", False),
        (f"/{TOKEN}/ws", "[::1]:8000", "http://[::1]:8000", False),
        ("/", "127.0.0.1:8000", None, True),
        ("/ws", "127.0.0.1:8000", "http://127.0.0.1:8000", True),
        (f"/{TOKEN}x/ws", "127.0.0.1:8000", None, True),
        (f"/x/{TOKEN}/ws", "127.0.0.1:8000", None, True),
        (f"/{TOKEN}/ws", "evil.example:8000", "http://evil.example:8000", True),
        (f"/{TOKEN}/ws", "127.0.0.1.evil.example", None, True),
        (f"/{TOKEN}/ws", "127.0.0.1@evil.example", None, True),
        (f"/{TOKEN}/ws", "[::1", None, True),
        (f"/{TOKEN}/ws", "", None, True),
        (f"/{TOKEN}/ws", "127.0.0.1:8000", "http://evil.example", True),
        (f"/{TOKEN}/ws", "127.0.0.1:8000", "http://127.0.0.1:8001", True),
        (f"/{TOKEN}/ws", "127.0.0.1:8000", "https://127.0.0.1:8000", True),
        (f"/{TOKEN}/ws", "127.0.0.1:8000", "null", True),
    ],
)
def test_who_is_refused(path: str, host: str, origin: str | None, refused: bool) -> None:
    assert bool(reason_to_refuse(path, host, origin, TOKEN)) is refused


def test_no_two_tokens_are_alike() -> None:
    tokens = {Server([], "", 1).token for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 32


async def test_only_who_has_the_address_reaches_the_app(report: Path) -> None:
    async with served(report) as (address, process), aiohttp.ClientSession() as client:
        root = address.removesuffix(urlsplit(address).path)
        assert root.startswith("http://127.0.0.1:")
        async with client.get(address) as page:
            text = await page.text()
            assert "a &lt;b&gt;&amp;.sqlite" in text
            assert "https://" not in text
            assert "default-src 'self'" in page.headers["Content-Security-Policy"]
            assert page.headers["Referrer-Policy"] == "no-referrer"
        for path in ("/", "/ws", "/static/js/textual.js"):
            async with client.get(root + path) as refused:
                assert refused.status == 403
        async with client.get(address, headers={"Host": "evil.example"}) as refused:
            assert refused.status == 403
        for origin in ("http://evil.example", "null"):
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await client.ws_connect(f"{address}ws", origin=origin)
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await client.ws_connect(f"{root}/ws", origin=root)
        async with client.ws_connect(f"{address}ws?width=100&height=30", origin=root) as socket:
            await until(socket, b"Test GPU")
            await socket.send_str(json.dumps(["stdin", "2"]))
            await until(socket, b"lane ")
            await socket.send_str("no list")
            assert (await until_closed(socket)) == aiohttp.WSCloseCode.PROTOCOL_ERROR
        assert await asyncio.wait_for(process.wait(), 60) == 0
        said = (await process.stderr.read()).decode()
        assert "its tab was closed" in said


async def until_closed(socket: Any) -> int:
    while not socket.closed:
        await socket.receive(timeout=60)
    return int(socket.close_code)


async def test_it_ends_when_nobody_uses_it_and_takes_the_app_with_it(report: Path) -> None:
    async with served(report, "--idle", "6s") as (address, process):
        async with aiohttp.ClientSession() as client, client.ws_connect(f"{address}ws") as socket:
            using = asyncio.create_task(use(socket))
            await until(socket, b"Test GPU")
            using.cancel()
            apps = children(process.pid)
            assert len(apps) == 1
            assert await until_closed(socket) == aiohttp.WSCloseCode.GOING_AWAY
        assert await asyncio.wait_for(process.wait(), 60) == 0
        assert "nobody used it" in (await process.stderr.read()).decode()
    assert not any(map(runs, apps))


async def test_an_app_whose_server_was_killed_leaves(report: Path) -> None:
    async with served(report) as (address, process), aiohttp.ClientSession() as client:
        socket = await client.ws_connect(f"{address}ws")
        await until(socket, b"Test GPU")
        (app,) = children(process.pid)
        process.kill()
        await process.wait()
        for _ in range(600):
            if not runs(app):
                break
            await asyncio.sleep(0.05)
        assert not runs(app)


def children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie that nobody has asked for."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("words", "said", "status"),
    [
        (("/no/such.sqlite",), "there is no such file", UNREADABLE),
        ((__file__,), "it is text, not a SQLite export", UNREADABLE),
        (("--port", "70000", "x.sqlite"), "0 to 65535 is wanted, not '70000'", USAGE),
        (("--idle", "0s", "x.sqlite"), "not a time", USAGE),
    ],
)
def test_what_cannot_be_served_is_said(
    words: tuple[str, ...], said: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["serve", *words]) == status
    out, err = capsys.readouterr()
    assert said in err
    assert not out, "no address of a server"


def test_a_port_that_is_taken_is_said(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert cli.main(["serve", "--port", port, str(report)]) == USAGE
    assert f"cannot listen on port {port}" in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("nsys_tui.commands.serve.find_spec", lambda name: None)
    assert cli.main(["serve", "x.sqlite"]) == USAGE
    assert "needs its extra web" in capsys.readouterr().err
