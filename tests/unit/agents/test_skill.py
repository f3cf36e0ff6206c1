"""What is told to agents is tried: every command of the text runs on the demo report."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from typing import TYPE_CHECKING

import pytest
from paths import ROOT

from nsys_tui import cli
from nsys_tui.commands.explain import agents_text, exit_codes

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = re.findall(r"^ +(nsys-tui .*)$", agents_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("skill")
    assert cli.main(["demo", "-o", str(base / "report.sqlite")]) == 0
    for name in ("before", "after"):
        shutil.copy(base / "report.sqlite", base / f"{name}.sqlite")
    return base


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_run(
    command: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    assert cli.main(shlex.split(command)[1:]) == 0
    out = capsys.readouterr().out
    if command.endswith("--format json"):
        json.loads(out)
    assert len(out) > 200


def test_it_has_five_recipes_and_the_true_exit_codes() -> None:
    text = agents_text()
    assert len(re.findall(r"^\d\. ", text, re.MULTILINE)) == 5
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert told <= exit_codes().keys()


def test_explain_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "agents"]) == 0
    assert capsys.readouterr().out == agents_text()


def test_the_page_names_every_tool() -> None:
    pytest.importorskip("mcp", reason="pip install 'nsys-terminal[mcp]'")
    from nsys_tui.agents.roots import Roots
    from nsys_tui.agents.server import _Tools

    page = (ROOT / "docs/agents.md").read_text("utf-8")
    named = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert named == [tool.__name__ for tool in _Tools(Roots([ROOT])).all()]
