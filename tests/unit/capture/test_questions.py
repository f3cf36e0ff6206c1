"""What a capture is to find out, as options that the target has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsys_tui.capture.launchers import Target
from nsys_tui.capture.options.presets import added, changed, fitted, questions
from nsys_tui.capture.options.target_facts import Facts, OwnOption
from nsys_tui.capture.plan import make_plan

if TYPE_CHECKING:
    from nsys_tui.capture.options.presets import Preset
    from nsys_tui.config_values import OptionValue

ALL = {name: OwnOption() for one in questions() for name in one.options}


def test_every_question_has_a_cost_and_is_a_preset_without_errors() -> None:
    for one in questions():
        assert "≈" in one.cost
        plan = make_plan(Target("here"), ["true"], preset=one.name)
        assert [item.text for item in plan.advice() if item.severity == "error"] == []


def test_what_the_target_refuses_is_left_out_and_said() -> None:
    old = {name: own for name, own in ALL.items() if not name.startswith("python")}
    facts = Facts((2022, 4, 2), old | {"trace": OwnOption(values=("cuda", "nvtx"))}, paranoid=4)
    line = next(one for one in questions() if one.name == "which python line")
    fit = fitted(line.options, facts)
    assert fit.options == {"trace": ("cuda", "nvtx"), "sample": "none", "cpuctxsw": "none"}
    told = "; ".join(fit.lost)
    assert "nsys 2022.4.2 does not know --python-sampling" in told
    assert "perf_event_paranoid is 4 there" in told


@pytest.mark.parametrize("one", questions(), ids=lambda one: one.name)
def test_a_target_with_all_rights_and_options_loses_nothing(one: Preset) -> None:
    facts = Facts((2026, 1, 0), ALL, paranoid=1, gpu_admin_only=False)
    assert fitted(one.options, facts).lost == ()
    assert fitted(one.options, facts).options == one.options


def test_another_question_keeps_when_is_recorded() -> None:
    before: dict[str, OptionValue] = {
        "trace": ("mpi",),
        "delay": "5",
        "mpi-impl": "mpich",
        "sample": "none",
        "odd": "1",
    }
    kept: dict[str, OptionValue] = {"delay": "5", "mpi-impl": "mpich", "odd": "1"}
    assert changed(before, {"trace": ("cuda",)}) == kept | {"trace": ("cuda",)}


def test_what_a_finding_asks_for_is_added() -> None:
    line = "nsys profile --cpuctxsw=process-tree --trace=cuda,osrt"
    assert added({"trace": ("nvtx", "cuda")}, line) == {
        "trace": ("nvtx", "cuda", "osrt"),
        "cpuctxsw": "process-tree",
    }
    assert added({}, "--trace=mpi")["trace"] == ("cuda", "opengl", "nvtx", "osrt", "mpi")
    assert added({"delay": "1"}, "") == {"delay": "1"}
