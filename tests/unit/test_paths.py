from __future__ import annotations

from pathlib import Path

import pytest

from nsys_tui.paths import given_path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("run 1.sqlite", "run 1.sqlite"),
        ("'/tmp/run 1.sqlite' ", "/tmp/run 1.sqlite"),
        ('"/tmp/a.sqlite"', "/tmp/a.sqlite"),
        ("file:///tmp/run%201.sqlite", "/tmp/run 1.sqlite"),
        ("file://localhost/tmp/a.sqlite", "/tmp/a.sqlite"),
        ("'", "'"),
        ("it's.sqlite", "it's.sqlite"),
        ("~/a.sqlite", str(Path.home() / "a.sqlite")),
    ],
)
def test_dropped_files_are_understood(text: str, path: str) -> None:
    assert given_path(text) == Path(path)
