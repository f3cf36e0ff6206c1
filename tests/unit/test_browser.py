"""The browser that tests look through reports what goes wrong in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import browser

if TYPE_CHECKING:
    from pathlib import Path


async def test_what_fails_in_a_page_and_what_is_too_wide_is_seen(tmp_path: Path) -> None:
    browser.executable(package="chromium")
    page = tmp_path / "page.html"
    page.write_text(
        "<!DOCTYPE html><p style='width:500px'>wide</p><img src='absent.png'>"
        "<script>console.error('bad'); missing()</script>"
    )
    async with browser.opened(page, browser.PHONE, "dark") as seen:
        assert await seen.overflow() > 100
        assert "error: bad" in seen.faults
        assert any("missing is not defined" in fault for fault in seen.faults)
        assert any("absent.png" in fault for fault in seen.faults)
        assert await seen.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
