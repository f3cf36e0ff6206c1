"""Who may talk to the served app: a browser here that was given the address, and nobody else.

Whoever drives the app can read files and start captures as the user. Other users of this machine
reach the port too, and a page elsewhere can send a browser there under a name of its own (DNS
rebinding). So all of it lies below a random token, under names of this machine alone, and no
request from a page that is not ours is answered.
"""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

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


def new_token() -> str:
    """192 random bits for an address."""
    return secrets.token_urlsafe(24)


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
