"""JSON on stdout is JSON also where there is nothing to tell: scripts read it before the status."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui import cli
from nsys_tui.errors import NO_DATA

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "words",
    [
        ("stats",),
        ("stalls",),
        ("stacks",),
        ("iterations",),
        ("collectives",),
        ("fleet",),
        ("export", "--table", "operations"),
    ],
    ids=lambda words: words[0],
)
def test_no_data_is_json_and_status_66(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    report = Synth(tmp_path / "empty.sqlite").process(7, "idle").write()
    verb, *rest = words
    assert cli.main([verb, str(report), *rest, "--format", "json"]) == NO_DATA
    json.loads(capsys.readouterr().out)


def test_doctor_speaks_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"Terminal", "Clipboard", "nsys", "Cache"} <= found.keys()
    assert "80x24" in found["Terminal"]["size"][0]
