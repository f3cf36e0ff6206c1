"""The verbs as a user types them, against the stand-in nsys on this machine."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from capture_support import stand_in
from jsonschema import Draft202012Validator

from nsys_tui.capture.failures import NoReportError
from nsys_tui.capture.record import Record, State, Store, new_id
from nsys_tui.cli import main
from nsys_tui.commands.capture_console import finish

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in first in PATH, a folder to work in, an ssh that must not be used."""
    stand_in(tmp_path / "bin")
    (tmp_path / "work").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_NSYS_SECONDS", "0.05")
    monkeypatch.setenv("FAKE_NSYS_DUMP", str(tmp_path / "dump"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


SLEEPING = ("sh", "-c", "echo going on; exec sleep 600")


@contextmanager
def following(*words: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The command in a session of its own once the program runs, and what it has said so far."""
    with subprocess.Popen(
        [sys.executable, "-m", "nsys_tui", *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}, start_new_session=True,
    ) as app:  # fmt: skip
        assert app.stderr is not None
        heard: list[str] = []
        for line in app.stderr:
            heard.append(line)
            if line.strip() == "| going on":
                break
        yield app, heard


def test_stdout_is_the_path_and_stderr_the_story(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["capture", "--trace=cuda,nvtx", "--", "sh", "-c", "echo from it; exit 3"])
    out, err = capsys.readouterr()
    assert code == 0
    path = Path(out.strip())
    assert path.is_file()
    assert path.name == "sh.nsys-rep"
    assert "| from it" in err
    assert "--trace=cuda,nvtx" in err
    assert "the program exited 3" in err
    [record] = Store().all()
    assert record.cwd == os.getcwd()
    assert record.reports[0].local == str(path)


@pytest.mark.parametrize("chosen_by", ["flag", "environment", "config", "flag over environment"])
def test_the_named_nsys_is_the_one_that_runs(
    place: Path, monkeypatch: pytest.MonkeyPatch, chosen_by: str
) -> None:
    other = place / "other" / "bin"
    stand_in(other)
    words = []
    if "environment" in chosen_by:
        named = "/no/such/nsys" if "flag" in chosen_by else str(other.parent)
        monkeypatch.setenv("NSYS_TUI_NSYS", named)
    if "flag" in chosen_by:
        words = ["--nsys", "../other"]
    if chosen_by == "config":
        (place / "config.toml").write_text(f'[nsys]\npath = "{other}/nsys"\n')
        words = [f"--config={place}/config.toml"]
    assert main(["capture", *words, "--", "true"]) == 0
    [record] = Store().all()
    assert record.nsys_path == str(other / "nsys")
    assert record.argv[0] == str(other / "nsys")


def test_options_may_stand_on_either_side_of_the_target(place: Path) -> None:
    for words in (["local", "--trace=cuda"], ["--trace=cuda", "local"]):
        assert main(["capture", *words, "--nsys-option=--isr=true", "--", "true", "--trace=x"]) == 0
    calls = (place / "dump").read_bytes().split(b"\0\n")
    for call in (calls[0], calls[2]):
        given = call.split(b"\0")
        assert given[:3] == [b"profile", b"--trace=cuda", b"--isr=true"]
        assert given[4:6] == [b"true", b"--trace=x"]


def test_propagate_returns_the_programs_own_status() -> None:
    assert main(["capture", "--propagate", "--", "sh", "-c", "exit 9"]) == 9


def test_json_events_one_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "--json", "--", "true"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert events[0] == {"event": "StateChanged", "state": "connecting", "detail": ""}
    assert events[-1]["event"] == "Finished"
    assert events[-1]["record"]["state"] == "done"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["capture"], 64, "no program to profile"),
        (["capture", "nowhere", "--", "true"], 64, "no target is called 'nowhere'"),
        (["capture", "python", "x.py"], 64, "write -- before the program"),
        (["capture", "--tarce=cuda", "--", "true"], 64, "--tarce"),
        (["capture", "--capture-range=nvtx", "--", "true"], 64, "needs the name of the range"),
        (["capture", "--preset", "x", "--", "true"], 64, "no preset is called 'x'"),
        (["capture", "--env", "A", "--", "true"], 64, "--env A: no value\nwrite NAME=VALUE"),
        (["capture", "--env", "MY_KEY=1", "--", "true"], 64, "a secret cannot be given"),
        (["capture", "--env-from", "NOT_SET_X", "--", "true"], 64, "NOT_SET_X is not set here"),
        (["capture", "--repeat", "zzz"], 64, "no capture is called 'zzz'"),
        (["capture", "--again", "a", "--repeat", "b"], 64, "cannot stand together"),
        (["capture", "--replay", "A", "--", "true"], 64, "--replay needs --again"),
        (["capture", "--cwd", "/no/such", "--", "true"], 74, "no such folder there"),
        (["captures", "show", "zzz"], 64, "no capture is called 'zzz'"),
        (["captures", "attach", "../x"], 64, "no capture is called"),
        (["targets", "check", "nowhere"], 64, "no target is called"),
        (["targets", "edit"], 64, "no terminal to edit"),
    ],
)
def test_mistakes_are_told(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    assert main(words) == code
    err = capsys.readouterr().err
    assert says in err
    assert "Traceback" not in err


def test_a_host_that_is_an_option_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = place / "config.toml"
    config.write_text(f'[targets.x]\nhost = "-oProxyCommand=touch {place}/pwned"\n')
    assert main(["capture", "--config", str(config), "x", "--", "true"]) == 64
    assert "targets.x.host" in capsys.readouterr().err
    assert not (place / "pwned").exists()


def test_print_shows_the_command_and_runs_nothing(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["capture", "--print", "-o", "r", "--sample=none", "--", "a b", "$(x)"]) == 0
    assert capsys.readouterr().out == "nsys profile --sample=none --output=r 'a b' '$(x)'\n"
    assert not (place / "dump").exists()


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ('launcher = "docker"\ncontainer = { name = "box" }',
         "docker exec -i -w /w box nsys profile --output=r ./a"),
        ('launcher = "kubectl"\nkubernetes = { pod = "p" }', "kubectl exec -i p -- sh -c 'cd"),
        ('launcher = "srun"\nslurm = { args = ["-N1"] }\npreamble = "module load x"',
         "cd /w && module load x && srun -N1 nsys profile --output=r ./a"),
        ('nsys = "/opt/n/nsys"', "cd /w && /opt/n/nsys profile --output=r ./a"),
        ('host = "box"\npreamble = "module load x"',
         "ssh box 'cd /w && module load x && nsys profile --output=r ./a'"),
    ],
)  # fmt: skip
def test_print_shows_what_the_target_puts_around_it(
    place: Path, capsys: pytest.CaptureFixture[str], settings: str, line: str
) -> None:
    config = place / "config.toml"
    config.write_text(f'[targets.c]\ncwd = "/w"\n{settings}\n')
    words = ["capture", "--config", str(config), "--print", "-o", "r", "c", "--", "./a"]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith(line)


def test_the_program_reads_the_file_that_is_named(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "work" / "in put").write_text("from the file\n")
    assert main(["capture", "--stdin", "in put", "--", "cat"]) == 0
    assert "| from the file" in capsys.readouterr().err
    [record] = Store().all()
    assert main(["capture", "--repeat", record.id]) == 0
    assert "| from the file" in capsys.readouterr().err
    assert main(["capture", "--stdin", "absent", "--", "cat"]) == 77
    assert "the file for the program's stdin cannot be read there" in capsys.readouterr().err


def test_a_report_that_lies_elsewhere_is_named_and_opens_and_is_not_done(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = ("sh", "-c", "touch late.nsys-rep")
    code = main(["capture", "--trace=cuda", "--output=late", "--", *program])
    out, err = capsys.readouterr()
    assert (code, Store().all()[0].state) == (80, State.ELSEWHERE)
    assert f"error: not where it was asked for: {out.strip()} (" in err
    assert Path(out.strip()).parent == place / "tmp"
    assert main(["captures", "attach", "latest"]) == 80
    attached = capsys.readouterr()
    assert attached.out == out
    assert f"not where it was asked for: {out.strip()}" in attached.err
    assert main(["captures", "open", "latest"]) == 0
    assert Path(capsys.readouterr().out.strip()).exists()


def test_attaching_to_what_is_over_says_how_it_ended(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NSYS_FAULTS", "crash")
    assert main(["capture", "--", "true"]) == 77
    capsys.readouterr()
    assert main(["captures", "attach", "latest"]) == NoReportError.exit_code
    assert "is over: this machine: no report" in capsys.readouterr().err


def test_print_of_a_batch_target_is_a_job_script(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = place / "config.toml"
    config.write_text(
        '[targets.c]\nlauncher = "sbatch"\n'
        'slurm = { args = ["--partition=gpu", "--ntasks=2", "--time=1"] }\n'
    )
    words = ["--delay=30", "--duration=60", "--kill=none", "--", "./a.out"]
    assert main(["capture", "--config", str(config), "--print", "c", *words]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:4] == [
        "#!/bin/sh", "#SBATCH --partition=gpu", "#SBATCH --ntasks=2", "#SBATCH --time=1",
    ]  # fmt: skip
    assert "srun --unbuffered" in out
    assert "a.out.%q{SLURM_PROCID}" in out
    assert "a time limit of 60 s, and the capture needs 210 s" in err


def test_print_of_a_batch_target_elsewhere_is_a_line_that_submits_it(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = place / "config.toml"
    settings = 'launcher = "sbatch"\nslurm = { args = ["--comment=a b"] }\npreamble = "true"\n'
    config.write_text(f'[targets.c]\nhost = "box"\n{settings}')
    words = ["capture", "--config", str(config), "--print", "c", "--", "echo", "END"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    (place / "ssh").write_text('#!/bin/sh\n[ "$1" = box ] && exec sh -c "$2"\n')
    (place / "sbatch").write_text('#!/bin/sh\nprintf "%s\\n" "$*"\nexec cat\n')
    for name in ("ssh", "sbatch"):
        (place / name).chmod(0o755)
    env = {"PATH": f"{place}:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-c", printed], capture_output=True, text=True, check=True, env=env
    )
    args, script = done.stdout.split("\n", 1)
    assert args == "--comment=a b"
    assert script.startswith("#!/bin/sh\n")
    assert script.endswith(" echo END\n")


def test_check_says_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "--check", "--", "true"]) == 0
    assert "nsys: 2024.5.1 at" in capsys.readouterr().out
    assert main(["targets", "check", "--json"]) == 0
    names = [line["name"] for line in json.loads(capsys.readouterr().out)]
    assert {"host", "shell", "cwd", "nsys", "disk"} <= set(names)


def test_json_is_what_the_schema_of_the_action_says(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = place / "config.toml"
    config.write_text(
        '[targets.box]\nhost = "box"\noptions = { trace = ["cuda", "nvtx"] }\nenv = { A = "1" }\n'
        '[targets.job]\nlauncher = "srun"\nslurm = { args = ["--ntasks=2"] }\n'
    )
    assert main(["capture", "--trace=cuda", "--", "sh", "-c", "exit 3"]) == 0
    assert main(["capture", "--", "no-such-program"]) != 0
    for words in (
        ["targets", "list", "--config", str(config)],
        ["targets", "check"],
        ["captures", "list"],
        ["captures", "show", "latest"],
    ):
        capsys.readouterr()
        assert main([*words, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found
        assert main([*words, "--format", "json-schema"]) == 0
        schema = Draft202012Validator(json.loads(capsys.readouterr().out))
        schema.validate(found)
        first = found[0] if isinstance(found, list) else found
        for wrong in (first | {"more": 1}, dict([*first.items()][1:])):
            assert not schema.is_valid([wrong] if isinstance(found, list) else wrong)


def test_check_without_nsys_has_its_own_status(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = place / "config.toml"
    config.write_text('[targets.t]\nnsys = "/no/such/nsys"\n')
    assert main(["targets", "check", "t", "--config", str(config)]) == 69
    assert "looked in /no/such/nsys" in capsys.readouterr().out


def test_targets_are_listed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = place / "config.toml"
    config.write_text('[targets.box]\nhost = "gpu-box"\ncommand = ["python", "x.py"]\n')
    assert main(["targets", "list", "--config", str(config)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].startswith("* local")
    assert "gpu-box" in out
    assert "python x.py" in out


def test_scripts_are_linted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = place / "job.sh"
    script.write_text("#!/bin/bash\n#SABTCH --time=10\necho\n")
    assert main(["targets", "lint", str(script)]) == 1
    assert "line 2: #SABTCH is not #SBATCH" in capsys.readouterr().out


def test_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "--list-presets"]) == 0
    out = capsys.readouterr().out
    assert "low overhead" in out
    assert "NSYS_NVTX_PROFILER_REGISTER_ONLY=0" in out


def test_a_terminal_shows_no_escaped_end_of_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["capture", "--print", "--trace=cuda", "--", "a\x1bb"]) == 0
    assert capsys.readouterr().out == "nsys profile --trace=cuda --output=./a_b 'a\\x1bb'\n"


def test_captures_are_listed_in_columns_with_why_there_is_no_report(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["capture", "--", "no-such-program"]) == 77
    assert main(["capture", "--", "true"]) == 0
    capsys.readouterr()
    assert main(["captures", "list"]) == 0
    first, _, second, why = capsys.readouterr().out.splitlines()
    assert first.rpartition("  ")[2] == "true"
    assert len(first.rpartition("  ")[0]) == len(second.rpartition("  ")[0])
    assert why.startswith("    this machine: no report (nsys ended with status ")
    assert why.endswith("a command was not found)")


def test_leave_list_attach_log_and_remove(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "--detach", "--", "sh", "-c", "sleep 0.3; echo late"]) == 0
    capture = capsys.readouterr().out.strip()
    assert main(["captures", "list"]) == 0
    listed = capsys.readouterr().out
    assert capture in listed
    assert "not finished" in listed
    assert main(["captures", "attach", capture]) == 0
    report = Path(capsys.readouterr().out.strip())
    assert report.is_file()
    assert main(["captures", "log", capture]) == 0
    assert "late" in capsys.readouterr().out.splitlines()
    assert main(["captures", "show", "latest"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "done"
    assert main(["captures", "rm", capture]) == 64
    assert report.exists()
    assert main(["captures", "rm", capture, "--yes"]) == 0
    out = capsys.readouterr().out
    assert str(report) in out
    assert not report.exists()
    assert Store().all() == []


def test_a_report_outside_of_our_folders_is_never_removed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["capture", "-o", "mine", "--", "true"]) == 0
    report = place / "work" / "mine.nsys-rep"
    assert capsys.readouterr().out.strip() == str(report)
    assert main(["captures", "rm", "latest", "--yes"]) == 0
    assert f"stays: {report}" in capsys.readouterr().out
    assert report.exists()


def test_a_raw_file_outside_of_our_folders_is_named_and_stays(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NSYS_FAULTS", "import")
    assert main(["capture", "-o", "mine", "--", "true"]) == NoReportError.exit_code
    (raw,) = Store().all()[0].raw
    assert main(["captures", "rm", "latest", "--yes"]) == 0
    assert f"stays: {raw.path}" in capsys.readouterr().out
    assert Path(raw.path).exists()


def test_what_a_flood_of_output_costs_is_said_with_what_to_do(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def importer(job: object) -> tuple[str, str]:
        return "", "false"

    monkeypatch.setattr("nsys_tui.capture.find_reports._importer", importer)
    monkeypatch.setenv("FAKE_NSYS_FAULTS", "import,texts")
    assert main(["capture", "--", "true"]) == NoReportError.exit_code
    said = capsys.readouterr().err
    assert "no more than 2 GB of text, what the program prints included" in said
    assert "send the program's output to a file there" in said.splitlines()[-1]
    assert "kept there: " in said


def test_stop_from_another_process(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "--detach", "--", "sleep", "600"]) == 0
    capture = capsys.readouterr().out.strip()
    assert main(["captures", "stop", capture]) == 0
    assert Path(capsys.readouterr().out.strip()).is_file()
    assert Store().load(capture).kept == "kept"
    assert main(["captures", "stop", capture]) == 64


def test_kill_does_what_it_was_asked_for_and_says_so(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["capture", "--detach", "--", "sleep", "600"]) == 0
    capture = capsys.readouterr().out.strip()
    assert main(["captures", "stop", capture, "--kill"]) == 0
    assert "killed; what it collected is lost" in capsys.readouterr().err
    assert Store().load(capture).kept == "killed"
    assert main(["captures", "stop", capture, "--kill"]) == 64
    assert "has ended, and nothing of it runs there" in capsys.readouterr().err


def test_killing_what_outlived_a_capture_is_no_failure(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NSYS_FAULTS", "crash")
    main(["capture", "--", "sh", "-c", "setsid sleep 600 & sleep 0.2"])
    assert main(["captures", "stop", "latest", "--kill"]) == 0
    assert "killed what outlived it: " in capsys.readouterr().err
    assert main(["captures", "stop", "latest", "--kill"]) == 64


def test_attach_exports_with_the_nsys_that_it_is_told(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = stand_in(tmp_path / "other")
    with following("capture", "--", "sh", "-c", "echo on; sleep 2") as (app, _):
        app.send_signal(signal.SIGHUP)
        app.communicate(timeout=30)
    assert main(["captures", "attach", "latest", "--nsys", str(other)]) == 0
    assert Store().all()[0].nsys_path == str(other)
    assert capsys.readouterr().out


def test_stop_and_discard_shows_what_goes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "--detach", "--", "sleep", "600"]) == 0
    capture = capsys.readouterr().out.strip()
    assert main(["captures", "stop", capture, "--discard", "--yes"]) == 0
    assert "run.sh" in capsys.readouterr().out
    record = Store().load(capture)
    assert record.kept == "discarded"
    assert not Path(record.job_dir).exists()


def test_repeat_takes_the_plan_of_a_record(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "--trace=cuda", "--env", "A=1", "--", "sh", "-c", "exit 2"]) == 0
    first = Store().all()[0]
    assert main(["capture", "--repeat", first.id, "--sample=none"]) == 0
    second = Store().all()[0]
    assert second.repeats == first.id
    assert second.program == ("sh", "-c", "exit 2")
    assert second.plan["options"] == {"trace": "cuda", "sample": "none"}
    assert second.plan["env"] == {"A": "1"}


def test_ctrl_c_stops_and_keeps(place: Path) -> None:
    with following("capture", "--", *SLEEPING) as (app, _):
        app.send_signal(signal.SIGINT)
        out, err = app.communicate(timeout=30)
    assert app.returncode == 0, err
    assert Path(out.strip()).is_file()
    assert "stopping, keeping what was collected" in err


@pytest.mark.parametrize(
    ("state", "stop", "now"),
    [
        (State.RUNNING, "", "the job goes on"),
        (State.RUNNING, "keep", "it was asked to stop"),
        (State.EXPORTING, "", "the export goes on"),
        (State.FETCHING, "", "what has arrived is kept"),
    ],
)
def test_what_becomes_of_what_is_left(
    state: State, stop: str, now: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Record(id=new_id(), plan={}, state=state, stop=stop)
    assert finish(record, argparse.Namespace(json=True)) == 130
    assert capsys.readouterr().err.startswith(f"left: {now}; follow it with: nsys-tui captures at")


@pytest.mark.parametrize("how", ["keep", "discard"])
def test_stop_asks_the_process_that_follows(
    place: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    with following("capture", "--", *SLEEPING) as (app, _):
        words = ["--discard", "--yes"] if how == "discard" else []
        assert main(["captures", "stop", "latest", *words]) == 0
        out, err = app.communicate(timeout=30)
    said = capsys.readouterr()
    record = Store().all()[0]
    assert f"is being followed by process {app.pid}; it is asked to stop it" in said.err
    assert (record.state, record.stop) == ("cancelled", how)
    if how == "keep":
        assert out == said.out == f"{record.reports[0].local}\n"
        assert Path(record.reports[0].local).is_file()
    else:
        assert out == ""
        assert "run.sh" in said.out
        assert not Path(record.job_dir).exists()
        assert "fetching" not in err


def test_stop_goes_on_by_itself_when_the_process_that_follows_dies(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with following("capture", "--", *SLEEPING) as (app, _):
        app.send_signal(signal.SIGSTOP)
        dying = threading.Timer(1, app.kill)
        dying.start()
        assert main(["captures", "stop", "latest"]) == 0
        dying.join()
    assert Path(capsys.readouterr().out.strip()).is_file()


def test_hang_up_leaves_the_job_running(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with following("capture", "--", "sh", "-c", "echo going on; sleep 1; echo late") as (app, _):
        app.send_signal(signal.SIGHUP)
        app.communicate(timeout=30)
    assert app.returncode == 130
    time.sleep(0.1)
    assert main(["captures", "attach", "latest"]) == 0
    assert Path(capsys.readouterr().out.strip()).is_file()


def test_ctrl_c_on_attach_leaves_the_job_running(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["capture", "--detach", "--", "sh", "-c", "echo going on; sleep 2; echo late; exit 5"])
        == 0
    )
    capture = capsys.readouterr().out.strip()
    with following("captures", "attach", capture) as (app, heard):
        app.send_signal(signal.SIGINT)
        heard += app.communicate(timeout=30)
    assert app.returncode == 130, heard
    assert main(["captures", "attach", capture, "--propagate"]) == 5


def test_again_repeats_a_report(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import sqlite3
    from contextlib import closing

    report = place / "old.sqlite"
    rows = [
        ("PROCESS_0:COMMAND", "sh"), ("PROCESS_0:ARGUMENT_0", "-c"),
        ("PROCESS_0:ARGUMENT_1", "exit 6"), ("PROCESS_0:WORKING_DIR", str(place / "work")),
        ("CAPTURE_EVENT_TYPE", "Cuda"), ("PROCESS_0:ENVIRONMENT_VARIABLE", 'TICKED="v 1"'),
        ("PROCESS_0:ENVIRONMENT_VARIABLE", 'NOT_TICKED="hidden-value"'),
    ]  # fmt: skip
    with closing(sqlite3.connect(report)) as database:
        database.execute("CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT)")
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER)")
        database.executemany("INSERT INTO META_DATA_CAPTURE VALUES (?, ?)", rows)
        database.commit()
    os.environ["FAKE_NSYS_DUMP_ENV"] = "TICKED,NOT_TICKED"
    try:
        assert main(["capture", "--again", str(report), "--replay", "TICKED", "--propagate"]) == 6
    finally:
        del os.environ["FAKE_NSYS_DUMP_ENV"]
    call = (place / "dump").read_bytes().split(b"\0\n")[0].split(b"\0")
    assert b"TICKED=v 1" in call
    assert b"NOT_TICKED=" in call
    assert b"--trace=cuda" in call
    out, err = capsys.readouterr()
    assert "v 1" not in out + err
    assert "v 1" not in json.dumps(Store().all()[0].to_json())


def test_again_exports_with_the_named_nsys(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["capture", "--", "true"]) == 0
    report = capsys.readouterr().out.strip()
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    named = str(place / "bin" / "nsys")
    Path(report).with_suffix(".sqlite").unlink(missing_ok=True)
    before = (place / "dump").read_bytes()
    main(["capture", "--again", report, "--nsys", named, "--print"])
    assert "must be exported" not in capsys.readouterr().err
    assert b"export" in (place / "dump").read_bytes().removeprefix(before)


def test_nothing_typed_or_recorded_sends_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "--", "sh", "-c", "printf 'a\\033[31mb\\007'", "x\x1b]0;y\x07"]) == 0
    assert main(["captures", "list"]) == 0
    assert main(["captures", "log", "latest"]) == 0
    out, err = capsys.readouterr()
    assert "ab\\x07" in out + err
    assert not {"\x1b", "\x07"} & set(out + err)


def test_the_reports_of_several_ranks_are_listed_and_opened_as_a_set(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from nsys_tui.capture.record import Record, ReportFile, State, Store

    home = [place / f"r.{rank}.nsys-rep" for rank in range(3)]
    for path in home[:2]:
        path.write_text("x")
    files = tuple(
        ReportFile(f"/there/{path.name}", 1, local=str(path) if path.exists() else "")
        for path in home
    )
    made = Record(id="20260101-000000-abcdef", plan={}, state=State.DONE, reports=files)
    Store().save(made)
    assert main(["captures", "list"]) == 0
    out = capsys.readouterr().out
    assert f"2 of 3 reports in {place}: r.0.nsys-rep, r.1.nsys-rep" in out
    assert main(["captures", "open", "latest"]) == 0
    assert capsys.readouterr().out.split() == [str(path) for path in home[:2]]
    assert Store().load(made.id).opened


def test_targets_are_edited_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "edit", "box"]) == 64
    assert "no terminal" in capsys.readouterr().err


def test_the_programs_output_can_be_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--nsys-option=--show-output=false", "--", "sh", "-c", "echo spoken"]
    assert main(["capture", *words]) == 0
    assert "| spoken" not in capfd.readouterr().err
    assert main(["capture", *words[1:]]) == 0
    assert "| spoken" in capfd.readouterr().err
