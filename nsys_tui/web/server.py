"""Serves the app to a browser on this machine; ends with the last tab, or after a time unused.

textual-serve brings the terminal for the page and the protocol that it speaks with an app; its own
server has no token, looks at no header, loads a font from elsewhere and goes on for ever.

Whoever drives the app can read files and start captures as the user. Other users of this machine
reach the port too, and a page elsewhere can send a browser there under a name of its own (DNS
rebinding). So all of it lies below a random token, under names of this machine alone, and no
request from a page that is not ours is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import html
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import textual_serve
from aiohttp import WSCloseCode, WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from nsys_tui.errors import UsageError

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

RELOAD: Final = 5.0
"""Seconds that a closed tab has to come back, as when it is reloaded."""
LOOK: Final = 0.25
"""Seconds between looks at the clock."""
TABS: Final = 4
"""Tabs at once: each is an app with its own memory."""
LEAVING: Final = 5.0
"""Seconds that an app has to end."""
FONT: Final = (8, 40)
_SMALLEST, _LARGEST = (20, 10), (500, 200)

NAMES: Final = ("127.0.0.1", "localhost", "::1")
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline';"
        " connect-src 'self' ws://{host};"
        " frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Nothing is loaded from elsewhere, kept, framed or told to another page."""


class Child(AppService):
    """One app: started without a shell, and never left behind."""

    words: Sequence[str] = ()
    environment: Mapping[str, str] = {}

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Any:
        environment = {**self._build_environment(width, height), **self.environment}
        self._process = process = await asyncio.create_subprocess_exec(
            *self.words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
        self._stdin = process.stdin
        return process

    async def stop(self) -> None:
        """Ends the app, by force where it does not leave."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVING):
                await super().stop()
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


class Server:
    """The page, its websocket, and when to end.

    Args:
        words: the command line of the app.
        title: of the page.
        idle: seconds without a key or the mouse after which all ends.
    """

    def __init__(self, words: Sequence[str], title: str, idle: float) -> None:
        self.words, self.title, self.idle = words, title, idle
        self.token = secrets.token_urlsafe(24)
        self.ended_by = ""
        self._sockets: set[web.WebSocketResponse] = set()
        self._downloads = DownloadManager()
        self._left: float | None = None
        """When the last tab closed; None while one is open, or before there was any."""
        self._used = 0.0
        """When the user last did something."""

    async def run(self, port: int, tell: Callable[[str], None]) -> None:
        """Serves until there is nobody to serve.

        Args:
            port: to listen on; 0 for any that is free.
            tell: called with the address once it works.

        Raises:
            UsageError: the port is taken.
        """
        self._used = self._now()
        runner = web.AppRunner(self._app(), access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", port)
            try:
                await site.start()
            except OSError as error:
                told = f"cannot listen on port {port}: {error.strerror or error}"
                raise UsageError(told, hint="--port 0 takes any that is free") from error
            tell(f"http://127.0.0.1:{runner.addresses[0][1]}/{self.token}/")
            self.ended_by = await self._ended()
        finally:
            await runner.cleanup()

    async def _ended(self) -> str:
        """Waits for a reason to end: what is looked at is the clock."""
        while not (why := self._reason_to_end()):  # noqa: ASYNC110
            await asyncio.sleep(LOOK)
        return why

    def _reason_to_end(self) -> str:
        now = self._now()
        if not self._sockets and self._left is not None and now - self._left > RELOAD:
            return "its tab was closed"
        return "nobody used it" if now - self._used > self.idle else ""

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    def _app(self) -> web.Application:
        inside = web.Application()
        inside.add_routes(
            [
                web.get("/", self._page),
                web.get("/page.js", _script),
                web.get("/ws", self._websocket),
                web.static("/static", files(textual_serve) / "static"),  # type: ignore[arg-type]
            ]
        )
        app = web.Application(middlewares=[guarded(self.token)])
        app.add_subapp(f"/{self.token}", inside)
        app.on_shutdown.append(self._close_all)
        return app

    async def _close_all(self, _: web.Application) -> None:
        for socket in tuple(self._sockets):
            await socket.close(code=WSCloseCode.GOING_AWAY)

    async def _page(self, request: web.Request) -> web.Response:
        page = files("nsys_tui.web").joinpath("page.html").read_text("utf-8")
        text = Template(page).substitute(
            title=html.escape(self.title),
            host=html.escape(request.host),
            token=self.token,
            font_size=_number(request.query.get("fontsize"), 16, *FONT),
        )
        return web.Response(text=text, content_type="text/html")

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        if len(self._sockets) >= TABS:
            return web.Response(status=503, text=f"{TABS} tabs are open already\n")
        socket = web.WebSocketResponse(heartbeat=15)
        self._sockets.add(socket)
        try:
            await socket.prepare(request)
            await self._converse(socket, request)
        finally:
            self._sockets.discard(socket)
            self._left = None if self._sockets else self._now()
        return socket

    async def _converse(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        child = Child(
            "",
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=socket.close,  # type: ignore[arg-type]
            download_manager=self._downloads,
        )
        child.words, child.environment = self.words, _environment()
        width = _number(request.query.get("width"), 80, _SMALLEST[0], _LARGEST[0])
        height = _number(request.query.get("height"), 24, _SMALLEST[1], _LARGEST[1])
        try:
            await child.start(width, height)
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    await self._pass_on(message.json(), child, socket)
        except (ConnectionError, ValueError, TypeError, KeyError):
            await socket.close(code=WSCloseCode.PROTOCOL_ERROR)
        finally:
            await child.stop()

    async def _pass_on(self, message: Any, child: Child, socket: web.WebSocketResponse) -> None:
        kind, *rest = message
        if kind == "stdin":
            self._used = self._now()
            await child.send_bytes(str(rest[0]).encode("utf-8", "replace"))
        elif kind == "resize":
            width = _number(rest[0]["width"], 80, _SMALLEST[0], _LARGEST[0])
            height = _number(rest[0]["height"], 24, _SMALLEST[1], _LARGEST[1])
            await child.set_terminal_size(width, height)
        elif kind == "ping":
            await socket.send_json(["pong", rest[0]])
        elif kind in ("focus", "blur"):
            await (child.focus() if kind == "focus" else child.blur())


def reason_to_refuse(path: str, host: str, origin: str | None, token: str) -> str:
    """Why a request is not answered; empty where it is.

    Args:
        path: of the request.
        host: its ``Host`` header.
        origin: its ``Origin`` header, which browsers send with a websocket.
        token: the first part of every path that is answered.
    """
    if _name(f"//{host}") not in NAMES:
        return "this machine is not called so"
    if origin is not None and origin != f"http://{host}":
        return "asked by another page"
    given = path.removeprefix("/").partition("/")[0]
    if not hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
        return "no token, or another one: take the address that nsys-tui serve printed"
    return ""


def _name(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def guarded(token: str) -> Callable[..., Awaitable[web.StreamResponse]]:
    """A middleware that refuses what has no business here, and says so in one line."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = request.headers.get("Host", "")
        origin = request.headers.get("Origin")
        if why := reason_to_refuse(request.path, host, origin, token):
            return web.Response(status=403, text=f"refused: {why}\n")
        response = await handler(request)
        if not response.prepared:
            response.headers.update({k: v.format(host=host) for k, v in HEADERS.items()})
        return response

    return guard


async def _script(_: web.Request) -> web.Response:
    text = files("nsys_tui.web").joinpath("page.js").read_text("utf-8")
    return web.Response(text=text, content_type="text/javascript")


def _environment() -> dict[str, str]:
    """What the page's terminal can do, whatever the one that the server was started in can."""
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG", "")
    plain = "UTF" not in locale.upper()
    colours = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TMUX": "", "STY": ""}
    return colours | ({"LC_ALL": "C.UTF-8"} if plain else {})


def _number(given: Any, otherwise: int, least: int, most: int) -> int:
    try:
        return min(max(int(given), least), most)
    except (TypeError, ValueError):
        return otherwise
