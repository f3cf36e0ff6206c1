"""Shared fixtures: nothing a test does may touch the user's own cache, config or state folders."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import mkdtemp

import demo_making
import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no fault of what is tested.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-snapshots", action="store_true", help="write the frames of all screens again"
    )
    parser.addoption(
        "--all-columns",
        action="store_true",
        help="compare all verbs after every mutation of a column: half an hour",
    )


@pytest.fixture(scope="session")
def update_snapshots(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("update_snapshots"))


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(scope="session", autouse=True)
def demos(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each demo report is simulated once, not once by each of xdist's workers."""
    own = tmp_path_factory.getbasetemp()
    demo_making.keep_in((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "demos")


@pytest.fixture(autouse=True)
def own_folders(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Points every XDG folder at a fresh place and clears variables that change the terminal.

    By a random name: pytest's numbers need a look at all folders of the thousands of tests before.
    """
    home = Path(mkdtemp(dir=homes))
    for name in ("CACHE", "CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    for name in ("NO_COLOR", "NSYS_TUI_CONFIG", "NSYS_TUI_CACHE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What outlives a loss of power cannot be seen here; a busy disk takes 60 ms for each file."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
