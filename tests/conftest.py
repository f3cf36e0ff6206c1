"""Shared fixtures: nothing a test does may touch the user's own cache, config or state folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Points every XDG folder at a fresh place and clears variables that change the terminal."""
    home = tmp_path_factory.mktemp("home")
    for name in ("CACHE", "CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    for name in ("NO_COLOR", "NSYS_TUI_CONFIG", "NSYS_TUI_CACHE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    return home
