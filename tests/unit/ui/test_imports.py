from __future__ import annotations

import subprocess
import sys

import pytest


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_first_frame_needs_no_slow_package() -> None:
    modules = loaded_by("import nsys_tui.ui.app, nsys_tui.ui.screens.overview.screen")
    assert "textual.app" in modules
    assert not modules & {"pandas", "pyarrow", "pyperclip", "sqlite3", "dask"}


@pytest.mark.parametrize("module", ["nsys_tui.ui.terminal", "nsys_tui.ui.clipboard"])
def test_probing_needs_no_textual(module: str) -> None:
    assert "textual" not in loaded_by(f"import {module}")


def test_state_needs_no_reader_and_no_screen() -> None:
    modules = loaded_by("import nsys_tui.state")
    assert not modules & {"textual", "rich", "sqlite3", "pandas", "nsys_tui.reader"}
