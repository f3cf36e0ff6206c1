"""What is published, installed where nothing of the checkout is: from wheel and sdist."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT

pytest.importorskip("hatchling", reason="needs hatchling: pip install -e '.[test]'")
pytestmark = pytest.mark.e2e
PRINTED = ("--print", "overview")


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    known = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    done = subprocess.run(
        command, cwd=cwd, env=known | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


def built(source: Path, folder: Path, kind: str) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder, cwd=source)
    (made,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from the sdist, as an index would have it."""
    folder = tmp_path_factory.mktemp("package")
    sdist = built(ROOT, folder / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = (path for path in folder.iterdir() if (path / "pyproject.toml").is_file())
    return built(source, folder / "wheel", "wheel")


@pytest.fixture(scope="module")
def clean(wheel: Path) -> Path:
    """The bin folder of an environment with the wheel, and the packages that it needs."""
    folder = wheel.parents[1] / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=wheel.parent)
    own: list[str | Path] = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    run(*own, "install", "--no-deps", "--no-index", wheel, cwd=wheel.parent)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "needed.pth").write_text(str(Path(np.__file__).parents[1]))
    return folder / "bin"


def test_the_wheel_holds_what_the_program_reads(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    for path in (ROOT / "nsys_tui").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert str(path.relative_to(ROOT)) in held
    assert {f"nsys_tui/themes/{path.name}" for path in (ROOT / "themes").glob("*.toml")} <= held
    assert not any(name.startswith(("tests/", "docs/", "demo/")) for name in held)


def test_it_runs_where_nothing_of_the_checkout_is(clean: Path, tmp_path: Path) -> None:
    places = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    where = run(clean / "python", "-c", "import nsys_tui; print(nsys_tui.__file__)", cwd=tmp_path)
    assert Path(where).is_relative_to(clean.parent)
    version = run(clean / "python", "-m", "nsys_tui", "--version", cwd=tmp_path)
    assert run(clean / "nsys-tui", "demo", cwd=tmp_path, **places) == "demo.sqlite\n"
    overview = run(clean / "nsys-tui", "overview", "demo.sqlite", cwd=tmp_path, **places)
    assert "A100" in overview
    screen = run(clean / "nsys-tui", "open", "demo.sqlite", *PRINTED, cwd=tmp_path, **places)
    assert "Findings" in screen
    assert "dark" in run(clean / "nsys-tui", "doctor", cwd=tmp_path, **places)
    (info,) = (clean.parent / "lib").glob("python*/site-packages/nsys_terminal-*.dist-info")
    about = PathDistribution(info)
    assert version == f"nsys-tui {about.version}\n"
    assert [entry.name for entry in about.entry_points] == ["nsys-tui"]


def test_the_man_page_is_installed_and_well_formed(clean: Path, tmp_path: Path) -> None:
    page = clean.parent / "share" / "man" / "man1" / "nsys-tui.1"
    assert page.is_file()
    try:
        shown = subprocess.run(
            ["man", "--warnings", "-l", page], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("needs man, which is not here: apt-get install man-db groff")
    assert shown.returncode == 0
    assert shown.stderr == ""
    assert "EXIT STATUS" in shown.stdout
