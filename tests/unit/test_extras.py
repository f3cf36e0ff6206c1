"""The command that adds an extra's packages fits how the program runs."""

from __future__ import annotations

import shlex
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from nsys_tui import extras

REQUIRES = [
    "rich>=14.2",
    'mcp>=2; extra == "mcp"',
    "cryptography>=42; extra == 'slurm'",
    "dask[distributed]>=2025.4; extra == 'slurm'",
    "pytest>=8; extra == 'slurm-test'",
]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    place = tmp_path / "nsys-terminal"
    place.mkdir()
    monkeypatch.setattr(sys, "prefix", str(place))
    monkeypatch.setattr(sys, "executable", f"{place}/bin/python")
    monkeypatch.setattr(extras, "requires", lambda name: REQUIRES)
    return place


def test_an_environment_is_told_its_own_pip_and_the_packages_by_name(installed: Path) -> None:
    assert extras.adding("slurm") == (
        f"{installed}/bin/python -m pip install 'cryptography>=42' 'dask[distributed]>=2025.4'"
    )


def test_a_pipx_environment_is_told_pipx(installed: Path) -> None:
    (installed / "pipx_metadata.json").touch()
    assert extras.adding("mcp") == "pipx inject nsys-terminal 'mcp>=2'"


def test_an_environment_without_pip_is_told_uv(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert extras.adding("mcp") == f"uv pip install --python {installed}/bin/python 'mcp>=2'"


@pytest.mark.parametrize("error", [PackageNotFoundError(), None])
def test_a_program_that_was_not_installed_is_told_its_checkout(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    def requires(name: str) -> None:
        if error:
            raise error

    monkeypatch.setattr(extras, "requires", requires)
    assert extras.adding("web") == "pip install '.[web]' in the program's checkout"


@pytest.mark.parametrize("extra", ["cluster", "mcp", "parquet", "slurm", "web"])
def test_every_extra_of_the_program_has_packages(
    monkeypatch: pytest.MonkeyPatch, extra: str
) -> None:
    monkeypatch.undo()
    words = shlex.split(extras.adding(extra))
    assert words[:4] == [sys.executable, "-m", "pip", "install"]
    assert all(Requirement(word).marker is None for word in words[4:])
    assert words[4:]
