from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from paths import ROOT
from synth import Synth
from tui.frames import rows, running, settled, text

from nsys_tui.capture.plan import Form
from nsys_tui.capture.record import Record, ReportFile, State, Store
from nsys_tui.config import Config, NsysConfig, TargetConfig, load_config
from nsys_tui.ui.screens.capture import form as forms
from nsys_tui.ui.screens.capture.running import Live
from nsys_tui.ui.screens.capture.screen import CaptureScreen, FormPane

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.pilot import Pilot


@pytest.fixture
def report(tmp_path: Path) -> Path:
    synth = Synth(tmp_path / "first.sqlite").process(1000).kernel("k", 0, 10)
    for name, value in (
        ("CAPTURE_EVENT_TYPE", "Cuda"),
        ("CAPTURE_EVENT_TYPE", "NvtxEvents"),
        ("PROCESS_0:COMMAND", "sh"),
        ("PROCESS_0:ARGUMENT_0", "-c"),
        ("PROCESS_0:ARGUMENT_1", "echo [red]hello"),
        ("PROCESS_0:ENVIRONMENT_VARIABLE", 'MODE="quick and hidden"'),
        ("PROCESS_0:ENVIRONMENT_VARIABLE", 'API_TOKEN="sesame"'),
    ):
        synth.add("META_DATA_CAPTURE", name=name, value=value)
    return synth.write()


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, report: Path) -> None:
    monkeypatch.setenv("PATH", str(ROOT / "tests" / "fake_nsys"), prepend=":")
    monkeypatch.setenv("FAKE_NSYS_REPORT", str(report))
    monkeypatch.setenv("FAKE_NSYS_SQLITE", str(report))
    monkeypatch.setenv("FAKE_NSYS_DUMP", str(tmp_path / "dump"))
    monkeypatch.chdir(tmp_path)


async def press(pilot: Pilot[int], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


def screen(pilot: Pilot[int]) -> CaptureScreen:
    front: Any = pilot.app
    assert isinstance(front.front, CaptureScreen)
    return front.front


async def until(pilot: Pilot[int], reached: Callable[[], bool]) -> None:
    """Waits for what comes of a capture, whose worker goes on."""
    async with asyncio.timeout(20):
        while not reached():
            await pilot.pause(0.05)


async def ask_to_stop(pilot: Pilot[int]) -> None:
    """Starts a capture that would last, and asks what to do with it."""
    await press(pilot, "p", "space", "ctrl+a", "ctrl+k", *"sleep 30", "enter")
    await pilot.press("enter")
    await until(pilot, lambda: Path("dump.started").exists() and "running" in text(pilot))
    await pilot.press("K")
    await until(pilot, lambda: "keep what was collected" in text(pilot))


async def test_profile_again_is_filled_in_from_the_report(report: Path) -> None:
    async with running(report, size=(100, 45)) as pilot:
        await press(pilot, "p")
        body = text(pilot)
        assert "[9 Cap" in body
        assert "sh -c 'echo [red]hello'" in body
        assert "--trace=cuda,nvtx" in body
        assert "sesame" not in body
        assert "quick and hidden" not in body
        await press(pilot, *["down"] * 30)
        body = text(pilot)
        assert "MODE" in body
        assert "looks like a secret" in body


async def test_capture_asks_what_to_find_out_and_sets_its_options(report: Path) -> None:
    async with running(report, size=(100, 45)) as pilot:
        await press(pilot, "9")
        body = text(pilot)
        assert "Why is the GPU idle?" in body
        assert "~ 1.4 MB per 10,000 launches" in body
        assert "K stop" not in rows(pilot)[-1], "nothing runs"
        assert "no program" not in body
        await press(pilot, "down", "enter")
        body = text(pilot)
        assert "sh -c 'echo [red]hello'" in body
        assert "--trace=cuda,nvtx --sample=none --cpuctxsw=none --cuda-graph-trace=node" in body
        await press(pilot, "a", "a")
        assert "--cuda-graph-trace=node" in text(pilot)


async def test_the_nsys_that_the_configuration_names_is_looked_at(report: Path) -> None:
    config = Config(nsys=NsysConfig(path=str(ROOT / "tests" / "fake_nsys" / "nsys")))
    async with running(report, size=(100, 45), config=config) as pilot:
        await press(pilot, "9")
        await until(pilot, lambda: "has all of it" in text(pilot) or "no nsys" in text(pilot))
        assert "target: nsys 2024.5.1" in text(pilot)


async def test_choices_cycle_and_text_is_typed(report: Path) -> None:
    async with running(report, size=(100, 45)) as pilot:
        await press(pilot, "p", *["down"] * 6, "space")
        assert screen(pilot).form.options["capture-range"] == "none"
        await press(pilot, "space")
        assert "--capture-range=cudaProfilerApi" in text(pilot)
        await press(pilot, "up", "space")
        for key in ("ctrl+a", "ctrl+k", *"cuda,osrt", "enter"):
            await pilot.press(key)
        await settled(pilot)
        assert "--trace=cuda,osrt" in text(pilot)


async def test_the_command_says_what_is_missing(report: Path) -> None:
    async with running(report, size=(80, 24)) as pilot:
        await press(pilot, "9", "a", "space", "ctrl+a", "ctrl+k", *'sh "open', "enter")
        assert "close the quote" in text(pilot)
        assert "needs" not in rows(pilot)[0]


async def test_a_capture_runs_and_its_report_opens(report: Path, stand_in: None) -> None:
    async with running(report, size=(100, 36)) as pilot:
        await press(pilot, "p", "enter")
        assert "came home" in text(pilot)
        await press(pilot, "o")
        app: Any = pilot.app
        assert len(app.sessions) == 2
        assert "[1 Over" in text(pilot)
        (record,) = Store().all()
        assert record.program == ("sh", "-c", "echo [red]hello")
        assert record.repeats
        await press(pilot, "9", "h")
        assert "local" in text(pilot)
        assert "local 1 report" in text(pilot)


async def test_stopping_asks_and_keeps(report: Path, stand_in: None) -> None:
    async with running(report, size=(100, 36)) as pilot:
        await ask_to_stop(pilot)
        assert "keep what was collected" in text(pilot)
        await pilot.press("k")
        await settled(pilot)
        assert "came home" in text(pilot)
        (record,) = Store().all()
        assert record.kept == "kept"


async def test_discarding_lists_what_goes_and_removes_it(report: Path, stand_in: None) -> None:
    async with running(report, size=(80, 24)) as pilot:
        await ask_to_stop(pilot)
        await press(pilot, "d")
        (record,) = Store().all()
        assert record.kept == "discarded"
        await until(pilot, lambda: "y remove" in text(pilot))
        assert "sleep.nsys-rep, " in text(pilot)
        assert Path(record.job_dir).is_dir()
        await press(pilot, "y")
        assert not Path(record.job_dir).exists()
        assert Store().all() == [record]


async def test_a_past_capture_is_deleted_here_and_there(report: Path, stand_in: None) -> None:
    async with running(report, size=(80, 24)) as pilot:
        await press(pilot, "p", "enter", "escape")
        (record,) = Store().all()
        await press(pilot, "h", "enter", "d")
        assert "its folder over there as well" in text(pilot)
        await press(pilot, "b")
        assert "sh.nsys-rep" in text(pilot)
        await press(pilot, "n")
        assert Store().all() == [record]
        assert Path(record.job_dir).is_dir()
        await press(pilot, "h", "enter", "d", "b", "y")
        assert Store().all() == []
        assert not Path(record.job_dir).exists()


async def test_the_next_start_offers_what_was_left_running(report: Path, stand_in: None) -> None:
    plan = {"target": {"name": "gpu-box"}, "program": ["sleep"]}
    Store().save(Record(id="20260101-000000-abcdef", plan=plan, state=State.RUNNING))
    async with running(report, size=(120, 30)) as pilot:
        assert "1 capture not finished on gpu-box" in text(pilot)


async def test_the_new_report_is_laid_beside_the_old_one(report: Path, stand_in: None) -> None:
    async with running(report, size=(100, 36)) as pilot:
        await press(pilot, "p", "enter", "c")
        app: Any = pilot.app
        assert app.session.path.name == "sh.sqlite"
        assert "[7 C" in text(pilot)
        assert "A: first.sqlite   B: sh.sqlite" in text(pilot)


async def test_advice_is_given_while_a_value_is_typed(report: Path) -> None:
    async with running(report, size=(100, 45)) as pilot:
        await press(pilot, "p", *["down"] * 7, "i", *"stop")
        assert "nsys refuses --capture-range-end without a range" in text(pilot)
        await press(pilot, "escape", "home", "space", "ctrl+a", "ctrl+k", *'sh "open')
        assert "close the quote" in text(pilot)


async def test_what_nsys_says_of_the_machine_is_in_the_advice(
    report: Path, stand_in: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NSYS_FAULTS", "perm")
    async with running(report, size=(120, 45)) as pilot:
        await press(pilot, "p")
        shown = screen(pilot)
        shown._set("--sample", "process-tree")
        await settled(pilot)
        assert "nsys status -e there: CPU profiling (process-tree) fails" in text(pilot)
        shown._set("--sample", "none")
        await settled(pilot)
        assert "status -e" not in text(pilot)
        await press(pilot, "c")
        assert "warning: nsys status: CPU Profiling Environment" in text(pilot)


async def test_functions_are_typed_and_their_file_is_made_and_checked(report: Path) -> None:
    async with running(report, size=(100, 45)) as pilot:
        await press(pilot, "9")
        shown = screen(pilot)
        shown._set("program", "python train.py")
        shown._set("functions_trace", "model.net:Net.forward train:step")
        await settled(pilot)
        body = text(pilot)
        assert "--python-functions-trace=JOB/functions.json" in body
        assert "train is the script itself" in body
        plan = shown._plan()
        assert '"Net.forward"' in plan.functions_json  # type: ignore[union-attr]
        shown._set("functions_trace", "__main__:step")
        await settled(pilot)
        assert "belongs to __main__" in text(pilot)


async def test_own_presets_are_saved_used_and_deleted(report: Path, tmp_path: Path) -> None:
    config = Config(path=tmp_path / "config.toml")
    async with running(report, size=(100, 36), config=config) as pilot:
        await press(pilot, "9")
        shown = screen(pilot)
        shown._set("--trace", "cuda,mpi")
        await press(pilot, "P", *"save the", "enter", *"mine", "enter")
        assert load_config(config.path).capture.presets["mine"] == {"trace": ("cuda", "mpi")}
        shown._set("--trace", "")
        await press(pilot, "P", *"mine", "enter", "u")
        assert shown.form.options == {"trace": ("cuda", "mpi")}
        await press(pilot, "P", *"mine", "enter", "d")
        assert load_config(config.path).capture.presets == {}


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_targets_are_added_checked_copied_and_deleted(
    report: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    config = Config(path=tmp_path / "config.toml")
    config.path.write_text("# mine\n")
    async with running(report, size=size, config=config) as pilot:
        await press(pilot, "9", "ctrl+e", "a")
        assert "the target needs a name" in text(pilot)
        await press(pilot, "enter", *"box", "enter", "down", "enter", *"-oProxy")
        assert "cannot be used" in text(pilot)
        await press(pilot, "ctrl+a", "ctrl+k", *"no-such-host.invalid", "enter", "c")
        assert "unknown host" in text(pilot)
        await press(pilot, "s")
        assert "saved box" in text(pilot)
        assert config.path.read_text() == '# mine\n\n[targets.box]\nhost = "no-such-host.invalid"\n'
        await press(pilot, "u", "s", "enter", "down", "down", "space", "space", "s")
        assert "sbatch" in text(pilot)
        assert load_config(config.path).targets["box-2"].launcher == "sbatch"
        await press(pilot, "d", "y", "asterisk")
        assert list(load_config(config.path).targets) == ["box"]
        await press(pilot, "escape")
        assert set(screen(pilot).app.config.targets) == {"box"}


async def test_reports_of_several_ranks_open_as_a_fleet(report: Path, tmp_path: Path) -> None:
    files = []
    for rank in range(2):
        path = tmp_path / f"r.{rank}.sqlite"
        Synth(path).process(1000).kernel("k", 0, 10 + rank).write()
        files.append(ReportFile(f"/there/r.{rank}.nsys-rep", 1, local=str(path)))
    plan = {"target": {"name": "cluster"}, "program": ["srun"]}
    ran = Record(id="20260101-000000-abcdef", plan=plan, state=State.DONE, reports=tuple(files))
    Store().save(ran)
    async with running(report, size=(100, 36)) as pilot:
        await press(pilot, "9", "h")
        assert "new" in text(pilot)
        assert "cluster 2 of 2 reports" in text(pilot)
        await press(pilot, "enter", "o")
        app: Any = pilot.app
        assert [s.path.name for s in app.sessions] == ["first.sqlite", "r.0.sqlite", "r.1.sqlite"]
        assert app.session.path.name == "r.0.sqlite"
        assert "[F7 Fleet]" in text(pilot)
        assert Store().load(ran.id).opened


async def test_one_key_attaches_to_what_was_left_running(report: Path, stand_in: None) -> None:
    async with running(report, size=(100, 36)) as pilot:
        await press(pilot, "9", "A")
        assert "no capture was left running" in text(pilot)
        shown = screen(pilot)
        shown._set("program", "sh -c 'sleep 1; echo late'")
        await pilot.press("enter")
        while not (shown.capture and shown.capture.record.state is State.RUNNING):
            await pilot.pause(0.05)
        shown.app.workers.cancel_group(shown.app, "capture")
        await settled(pilot)
        await press(pilot, "A")
        assert "came home" in text(pilot)
        assert "late" in "\n".join(shown.live.lines)


async def test_a_recorded_variable_is_shown_once_when_it_is_ticked(
    report: Path, stand_in: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_NSYS_DUMP", str(tmp_path / "dump"))
    monkeypatch.setenv("FAKE_NSYS_DUMP_ENV", "MODE,API_TOKEN")
    async with running(report, size=(100, 45)) as pilot:
        await press(pilot, "p")
        shown = screen(pilot)
        form = shown.query_one("#form", FormPane)
        keys = [entry.key for entry in form._choices]  # type: ignore[attr-defined]
        form.action_move(keys.index("replay:API_TOKEN"))
        await press(pilot, "space")
        assert shown.ticked == frozenset()
        form.action_move(keys.index("replay:MODE") - keys.index("replay:API_TOKEN"))
        await press(pilot, "space")
        assert "MODE=quick and hidden" in text(pilot)
        await press(pilot, "y")
        assert "quick and hidden" not in text(pilot)
        assert "[x] replay" in text(pilot)
        await press(pilot, "enter", "escape")
        assert "MODE=quick and hidden" in (tmp_path / "dump").read_text()
        (record,) = Store().all()
        kept = [path for path in Store().path(record.id).iterdir() if path.suffix != ".sqlite"]
        assert not any(b"quick and hidden" in path.read_bytes() for path in kept)


async def test_an_empty_form_shows_what_the_target_brings_along(
    report: Path, tmp_path: Path
) -> None:
    box = TargetConfig(command=("python", "a b.py"), cwd="~/llm")
    config = Config(path=tmp_path / "config.toml", targets={"box": box})
    config = replace(config, capture=replace(config.capture, default_target="box"))
    async with running(report, size=(80, 24), config=config) as pilot:
        await press(pilot, "9", "a")
        assert "(python 'a b.py')" in text(pilot)
        assert "(~/llm)" in text(pilot)
        assert "--output=JOB/a_b python 'a b.py'" in text(pilot)


def test_variables_are_typed_as_for_a_shell() -> None:
    typed = "A='two words' B= C=$(x) D=a=b"
    form = forms.changed(Form(), "env", typed)
    assert form.env == {"A": "two words", "B": "", "C": "$(x)", "D": "a=b"}
    (shown,) = [f.value for f in forms.fields(form, Config(), None, frozenset()) if f.key == "env"]
    assert forms.changed(Form(), "env", shown).env == form.env


def test_what_the_form_has_no_room_for_says_so() -> None:
    entries = forms.fields(Form(program="x" * 80, cwd="/y"), Config(), None, frozenset())
    program, _, folder, *_ = ["".join(t for t, _ in line) for line in forms.form_lines(entries, 40)]
    assert (len(program), program[-3:]) == (40, "xx~")
    assert folder.endswith("/y")


def test_advice_on_an_option_needs_no_program() -> None:
    said = forms.live_text(Form(), Config(), "extra", "--stop-on-range-end=true", None)
    assert "--stop-on-range-end is an old name" in said
    assert "no program to profile" in forms.live_text(Form(), Config(), "program", "", None)


def test_a_log_line_wider_than_the_pane_goes_on_below() -> None:
    live = Live()
    live.say("no nsys there; looked in many places")
    live.say("")
    live.say("日本語日本語")
    shown = ["".join(text for text, _ in line) for line in live.shown(11)]
    assert shown == ["no nsys the", "re; looked ", "in many pla", "ces", "", "日本語日本", "語"]
