"""A new kind of place is one file: everything else goes by what it declares."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from capture_support import make_place

from nsys_tui.capture import launchers
from nsys_tui.capture.record import State
from nsys_tui.capture.scripts import typed_command
from nsys_tui.cli import main
from nsys_tui.config import Config, TargetConfig
from nsys_tui.errors import NSYS_MISSING
from nsys_tui.ui.screens.capture import target_form

if TYPE_CHECKING:
    from collections.abc import Iterator

KIND = """
from nsys_tui.capture.launchers import register
from nsys_tui.capture.launchers import SHELL, Launcher, name_field

class Toy(Launcher):
    name = "toy"
    fields = (name_field("toybox.room", "room", "which box to play in", required=True),)
    tools = ("toyenter",)
    variable = "TOYBOX"

    def inside(self, place):
        return place.own["toybox.room"]

    def shell_argv(self, place):
        return ["toyenter", self.inside(place), *SHELL]

    def typed(self, place, argv, env, cwd):
        return ["toyenter", self.inside(place), *super().typed(place, argv, env, cwd)]

register(Toy())
"""
SETTINGS = """
[targets.play]
launcher = "toy"
command = ["sh", "-c", "exit 3"]
toybox = {{ room = "{room}" }}
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A kind in a file of its own, and the program that it starts; gives that program's calls."""
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / "toy.py").write_text(KIND)
    tool = tmp_path / "bin" / "toyenter"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$*" >> "{tmp_path}/calls"\nshift\nexec "$@"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(launchers, "__path__", [*launchers.__path__, str(tmp_path / "kinds")])
    _look_again()
    launchers.launchers()
    yield tmp_path / "calls"
    del launchers._LAUNCHERS["toy"], sys.modules["nsys_tui.capture.launchers.toy"]
    _look_again()


def _look_again() -> None:
    launchers._discover.cache_clear()
    target_form.all_target_fields.cache_clear()


async def test_a_capture_goes_through_it(toy: Path, tmp_path: Path) -> None:
    place = make_place(tmp_path, launcher="toy", tables={"toybox": {"room": "red"}})
    record = await place.capture("sh", "-c", "exit 4", "it's", "$(x)").run()
    assert record.state is State.DONE
    assert record.program_exit == 4
    [report] = record.reports
    assert Path(report.local).parent == place.store.path(record.id)  # fetched: it was elsewhere
    assert set(toy.read_text().splitlines()) == {"red sh -s"}
    assert record.plan["target"]["toybox"] == {"room": "red"}
    again = place.attach(record.id)
    assert again.job.plan.target.describe() == "this machine, toy red"
    assert typed_command(place.plan("true")).startswith("toyenter red env ")


def test_the_form_has_its_fields(toy: Path) -> None:
    texts = {**target_form.texts_of("play", TargetConfig()), "launcher": "toy"}
    shown = {field.key: field for field in target_form.shown_fields(texts)}
    assert "toy" in shown["launcher"].choices
    assert shown["toybox.room"].hint == "which box to play in"
    assert "slurm.args" not in shown
    assert "toybox.room is missing" in str(target_form.remarks(texts, Config(), "play"))
    texts["toybox.room"] = "red"
    assert target_form.settings_of(texts) == {"launcher": "toy", "toybox": {"room": "red"}}
    assert target_form.remarks(texts, Config(), "play") == []


def test_targets_lists_checks_and_explains_it(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.toml"
    words = ["targets", "list", "--config", str(config)]
    config.write_text(SETTINGS.format(room="red"))
    assert main(words) == 0
    assert "this machine, toy red" in capsys.readouterr().out
    check = ["targets", "check", "play", "--config", str(config)]
    assert main(check) == NSYS_MISSING
    printed = capsys.readouterr().out
    assert "host:" in printed
    assert "toyenter" not in printed
    config.write_text(SETTINGS.format(room="--red"))
    assert main(words) == 64
    assert "toybox.room: '--red' cannot be used as a name" in capsys.readouterr().err
    config.write_text(SETTINGS.format(room="red").replace("room", "rom"))
    assert main(words) == 64
    assert "unknown key targets.play.toybox.rom\ndid you mean room?" in capsys.readouterr().err
    assert main(["targets", "--help"]) == 0
    assert "toybox.room" in capsys.readouterr().out


def test_a_tool_that_it_needs_and_does_not_find_is_named(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = launchers._LAUNCHERS["toy"]
    type(kind).tools = ("toyenter", "no-such-toy")
    config = tmp_path / "config.toml"
    config.write_text(SETTINGS.format(room="red"))
    main(["targets", "check", "play", "--config", str(config)])
    assert "toy: not found there: no-such-toy" in capsys.readouterr().out


def test_no_other_code_knows_the_kinds_by_name() -> None:
    package = Path(launchers.__file__).parents[2]
    names = [f'"{kind.name}"' for kind in launchers.launchers() if kind.fields]
    assert '"sbatch"' in names
    fleet = package / "fleet/slurm.py"  # runs Slurm's own programs
    for path in package.rglob("*.py"):
        if path.parent != Path(launchers.__file__).parent and path != fleet:
            text = re.sub(r"(?m)^#.*", "", path.read_text("utf-8"))
            assert [name for name in names if name in text] == [], path
