"""Headless Chromium for tests that look at what a browser shows.

Asynchronous: playwright's synchronous interface leaves an event loop behind in which no other
asynchronous test can run.
"""

from __future__ import annotations

import os
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from playwright.async_api import Page

WIDE: Final = (1280, 900)
PHONE: Final = (360, 740)
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")

Scheme = Literal["light", "dark"]


@dataclass
class Tab:
    """A page, and what went wrong in it."""

    page: Page
    faults: list[str] = field(default_factory=list)
    """Errors and warnings of the console, exceptions and requests that failed."""
    requests: list[str] = field(default_factory=list)
    """All addresses that were asked for."""

    async def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(await self.page.evaluate(script))


def executable(*, package: str) -> str:
    """Where Chromium is; what needs it skips and names the Debian package where there is none."""
    pytest.importorskip("playwright", reason="NOT TESTED: playwright is not installed (extra test)")
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip(f"NOT TESTED: no Chromium is installed (Debian: {package})")
    return found


@asynccontextmanager
async def tab(size: tuple[int, int] = WIDE, scheme: Scheme = "light") -> AsyncIterator[Tab]:
    """An empty tab of a Chromium that ends with it.

    Args:
        size: of the window in CSS pixels.
        scheme: light or dark, as the system prefers it.
    """
    path = executable(package="chromium")
    from playwright.async_api import async_playwright

    # As root, in a container, Chromium's own sandbox cannot start.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path, args=options)
        try:
            width, height = size
            page = await browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            opened = Tab(page)
            _listen(opened)
            yield opened
        finally:
            await browser.close()


def _listen(seen: Tab) -> None:
    page = seen.page
    page.on("pageerror", lambda error: seen.faults.append(f"exception: {error}"))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("requestfailed", lambda request: seen.faults.append(f"failed: {request.url}"))
    page.on(
        "console",
        lambda line: (
            seen.faults.append(f"{line.type}: {line.text}")
            if line.type in ("error", "warning")
            else None
        ),
    )


@asynccontextmanager
async def opened(
    file: Path, size: tuple[int, int] = WIDE, scheme: Scheme = "light"
) -> AsyncIterator[Tab]:
    """A tab with a file in it."""
    async with tab(size, scheme) as seen:
        await seen.page.goto(file.resolve().as_uri())
        yield seen
