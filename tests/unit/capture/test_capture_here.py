"""Whole captures on this machine against the stand-in nsys: the happy way and every fault."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import re
import shlex
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from capture_support import Place, Recorder, looking_often, make_place

from nsys_tui.capture import submit
from nsys_tui.capture.capture import preflight
from nsys_tui.capture.events import StopStuck
from nsys_tui.capture.failures import (
    CaptureError,
    KeepError,
    LockedError,
    LostError,
    NoReportError,
    OutputTakenError,
    PreflightError,
)
from nsys_tui.capture.follow import Follower
from nsys_tui.capture.preflight import checks
from nsys_tui.capture.record import State
from nsys_tui.capture.submit import probe
from nsys_tui.capture.supervisor import VALUES, Answer, shell_text
from nsys_tui.errors import UsageError
from nsys_tui.reader.nsys import ensure_sqlite

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from nsys_tui.capture.job import Job
    from nsys_tui.capture.preflight import Preflight
    from nsys_tui.capture.transport.channel import Stream


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


@pytest.fixture
def heard() -> Recorder:
    return Recorder()


async def wait_for(condition: object, seconds: float = 15) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.02)


def sha256(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


async def test_from_plan_to_report(place: Place, heard: Recorder) -> None:
    place = place.setting(export="auto")
    capture = place.capture("sh", "-c", "echo one; echo two; exit 3", recorder=heard)
    record = await capture.run()
    assert heard.states == [
        State.CONNECTING, State.CHECKING, State.SUBMITTING, State.RUNNING, State.IMPORTING,
        State.EXPORTING, State.VERIFYING, State.DONE,
    ]  # fmt: skip
    [report] = record.reports
    assert Path(report.local).stat().st_size == report.size == 100_000
    assert report.sha256 == sha256(report.local)
    assert Path(report.sqlite).read_bytes()[:6] == b"SQLite"
    assert Path(report.sqlite) == Path(report.local).with_suffix(".sqlite")
    assert record.program_exit == 3
    assert record.nsys_version == "2024.5.1"
    assert {"one", "two", "Generated:"} <= set(heard.log)
    log = place.store.log_path(record.id).read_bytes()
    assert log == (Path(record.job_dir) / "log").read_bytes()
    assert place.store.load(record.id) == record
    assert place.store.find_report(report.report_id) == record
    assert place.store.find_report(report.sqlite_id) == record


NASTY = (
    "a b", "it's", '"double"', "$(touch pwned)", "`touch pwned`", "$HOME", "*", "new\nline", "",
    "\\", "--leading", "-o", "tab\there", "é", "\udcff", "!history", "#no comment", "a;b&c|d",
    "%q{HOME}",
)  # fmt: skip

ODD = "v '$(x)' \n\"w"


async def test_nasty_words_arrive_byte_for_byte(place: Place, tmp_path: Path) -> None:
    nasty_cwd = tmp_path / 'c w\'d $(x) "q"'
    nasty_cwd.mkdir()
    place = place.setting(
        cwd=str(nasty_cwd), env={**place.target.settings.env, "ODD": "v '$(x)' \n\"w"}
    )
    place = place.fake(DUMP_ENV="ODD")
    seen_by_program = tmp_path / "argv"
    dump = "import sys,os;open(sys.argv[1],'wb').write(b'\\0'.join(map(os.fsencode,sys.argv[2:])))"
    capture = place.capture(
        sys.executable, "-c", dump, str(seen_by_program), *NASTY, output="re port $(x)'s"
    )
    record = await capture.run()
    assert seen_by_program.read_bytes() == b"\0".join(os.fsencode(word) for word in NASTY)
    call = place.seen()[0]
    assert tuple(call[: call.index("") if "" in call else None])[:1] == ("profile",)
    assert call[: len(record.argv) - 1] == list(record.argv[1:])
    assert str(nasty_cwd) in call
    assert f"ODD={ODD}" in call
    assert record.reports[0].path == f"{nasty_cwd}/re port $(x)'s.nsys-rep"
    assert not list(tmp_path.rglob("pwned"))


async def test_odd_characters_in_every_folder_and_name(place: Place, tmp_path: Path) -> None:
    odd = tmp_path / 'it\'s $(touch pwned) "x" * -é'
    odd.mkdir()
    (odd / "nsys").write_text(Path(place.target.settings.nsys).read_text())
    (odd / "nsys").chmod(0o755)
    place = place.setting(
        jobs_dir=f"{odd}/jobs", nsys=f"{odd}/nsys",
        preamble=f"cd {shlex.quote(str(odd))} && : 'it''s'",
    )  # fmt: skip
    options = {"nvtx-capture": "a 'b' $(x)@*", "capture-range": "nvtx", "trace": ("nvtx", "cuda")}
    record = await place.capture("true", options=options).run()
    assert Path(record.reports[0].local).is_file()
    assert f"--nvtx-capture={options['nvtx-capture']}" in place.seen()[0]
    assert not list(tmp_path.rglob("pwned"))


async def test_rank_patterns_and_host_are_resolved_by_nsys(place: Place) -> None:
    record = await place.capture("true", output="r.%h.%q{FAKE_NSYS_SECONDS}").run()
    assert record.reports[0].path == f"{place.cwd}/r.{os.uname().nodename}.0.05.nsys-rep"


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        ("import", NoReportError, "collected, and not imported"),
        ("noimporter", NoReportError, "collected, and not imported"),
        ("disk", NoReportError, "the disk there is full"),
        ("crash", NoReportError, "killed by signal 11"),
        ("norange", NoReportError, "the range step@* never opened"),
    ],
)
async def test_faults_of_nsys_are_told_and_kept(
    place: Place, fault: str, error: type[CaptureError], says: str
) -> None:
    options = {"capture-range": "nvtx", "nvtx-capture": "step@*"} if fault == "norange" else {}
    capture = place.fake(FAULTS=fault).capture("sh", "-c", "echo x; exit 0", options=options)
    with pytest.raises(error) as caught:
        await capture.run()
    assert says in str(caught.value)
    record = place.store.load(capture.record.id)
    assert record.state is State.FAILED
    assert record.failure is not None
    assert record.failure.exit_code == 77
    if "import" in fault:
        assert [Path(raw.path).read_bytes() for raw in record.raw] == [b"QDSTRM"]
        assert record.program_exit == 0


async def test_a_program_that_crashes_still_leaves_its_report(place: Place) -> None:
    record = await place.capture("sh", "-c", "kill -SEGV $$").run()
    assert record.state is State.DONE
    assert record.program_exit == 139


async def test_permission_warning_is_a_remark(place: Place, heard: Recorder) -> None:
    record = await place.fake(FAULTS="perm").capture("true", recorder=heard).run()
    assert record.state is State.DONE
    assert "no CPU samples" in heard.remarks


@pytest.mark.parametrize(("idle", "said"), [(0.0, "or processor time"), (900.0, "does not run")])
async def test_an_nsys_that_hangs_is_told_ended_and_leaves_nothing(
    place: Place, heard: Recorder, idle: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.capture.follow.IDLE_S", idle)
    monkeypatch.setattr("nsys_tui.capture.follow.MUTE_S", 0.0 if idle else 900.0)
    monkeypatch.setattr("nsys_tui.capture.supervisor.shell_text", looking_often)
    place = place.fake(FAULTS="hang")
    capture = place.capture("true", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: "stop it, which ends it" in str(capture.record.notes))
    assert said in heard.remarks
    await capture.kill()
    assert (await running).kept == "killed"
    remover = place.attach(capture.record.id)
    assert [a.key for a in await remover.job.ask("left")] == []
    await remover.close()


async def test_an_nsys_that_a_signal_has_stopped_is_told_with_its_number(
    place: Place, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.capture.supervisor.shell_text", looking_often)
    talking = ("sh", "-c", "while [ ! -e enough ]; do echo word; sleep 0.1; done")
    capture = place.capture(*talking, recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: place.running and heard.log.count("word") > 20)
    assert "stopped by a signal" not in heard.remarks
    for answer in await capture.job.ask("left"):
        pid, _, name = answer.value.partition(" ")
        if answer.key == "left" and name == "nsys":
            os.kill(int(pid), signal.SIGSTOP)
            break
    await wait_for(lambda: "stopped by a signal" in heard.remarks)
    assert heard.remarks.endswith(f"its process {pid}")
    (place.cwd / "enough").touch()
    os.kill(int(pid), signal.SIGCONT)
    assert (await asyncio.wait_for(running, 20)).state is State.DONE


async def test_an_export_that_hangs_is_tried_once_more(
    place: Place, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.capture.follow.IDLE_S", 1.5)
    monkeypatch.setattr("nsys_tui.capture.supervisor.shell_text", looking_often)
    place = place.fake(FAULTS="hangexport").setting(export="remote")
    record = await place.capture("true", recorder=heard).run()
    assert record.state is State.DONE
    assert Path(record.reports[0].sqlite).is_file()
    assert "nsys hangs exporting" in heard.remarks
    assert [path.name for path in place.jobs.iterdir()] == [record.id]


async def test_an_nsys_that_hangs_at_its_start_is_started_once_more(
    place: Place, heard: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.capture.follow.IDLE_S", 1.5)
    monkeypatch.setattr("nsys_tui.capture.supervisor.shell_text", looking_often)
    ran = tmp_path / "ran"
    place = place.fake(FAULTS="hangstart")
    capture = place.capture("sh", "-c", f"echo once >> {ran}", recorder=heard)
    record = await asyncio.wait_for(capture.run(), 60)
    assert record.state is State.DONE
    assert ran.read_text() == "once\n"
    assert "started once more" in str(record.notes)
    log = place.store.log_path(record.id).read_bytes()
    assert log == (Path(record.job_dir) / "log").read_bytes()
    assert [path.name for path in place.jobs.iterdir()] == [record.id]


async def test_a_program_that_is_silent_is_no_nsys_that_hangs(
    place: Place, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Answer] = []
    monkeypatch.setattr("nsys_tui.capture.supervisor.shell_text", looking_often)
    taken = Follower._take

    async def take(self: Follower, answer: Answer, stream: Stream) -> None:
        told.append(answer)
        await taken(self, answer, stream)

    monkeypatch.setattr(Follower, "_take", take)
    capture = place.capture("sh", "-c", "while :; do sleep 60; done", recorder=heard)
    running = asyncio.create_task(capture.run())

    def running_alone() -> int:
        return sum(a.key == "still" and a.value.split()[1] != "0" for a in told)

    await wait_for(running_alone)
    monkeypatch.setattr("nsys_tui.capture.follow.IDLE_S", 0.0)
    await wait_for(lambda: running_alone() > 2)
    assert "nsys hangs" not in heard.remarks
    await capture.stop(keep=True)
    assert (await running).state is State.CANCELLED


async def test_a_version_that_does_not_come_is_a_failed_check(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shell_text("find_nsys.sh").replace("timeout -k 1 10", "timeout -k 1 1")
    whole = {"find_nsys.sh": text, "supervisor.sh": shell_text("supervisor.sh")}
    monkeypatch.setattr("nsys_tui.capture.scripts.shell_text", whole.__getitem__)
    found = await preflight(place.fake(FAULTS="mute").plan("true"), place.config)
    lines = {line.name: line for line in checks(found, place.target)}
    assert lines["nsys --version"].severity == "error"
    assert "hangs: no version" in lines["nsys --version"].text
    assert "clock" not in lines
    found = await preflight(place.fake(FAULTS="mutestatus").plan("true"), place.config)
    lines = {line.name: line for line in checks(found, place.target)}
    assert lines["nsys"].severity == "ok"
    assert lines["nsys status -e"].text == "no answer within 10 s"


async def test_a_folder_that_is_not_there_is_refused_before_the_start(place: Place) -> None:
    for output in ("/no/such/folder/x", "nor/this/x.%p"):
        with pytest.raises(PreflightError, match="no folder that can be written"):
            await place.capture("true", output=output).run()
    assert not place.dump.exists() or all(seen[0] != "profile" for seen in place.seen())


async def test_each_range_comes_home_as_a_report_with_its_export(
    place: Place, heard: Recorder
) -> None:
    place = place.setting(export="auto")
    options = {"capture-range": "cudaProfilerApi", "capture-range-end": "repeat:3"}
    capture = place.capture("true", recorder=heard, options=options)
    record = await capture.run()
    assert record.state is State.DONE
    assert [Path(report.sqlite).name for report in record.reports] == [
        "true.1.sqlite",
        "true.2.sqlite",
        "true.3.sqlite",
    ]
    assert [path.name for path in place.jobs.iterdir()] == [record.id]
    again = await place.attach(record.id).run()
    assert again == record
    remover = place.attach(record.id)
    assert len(await remover.leftovers()) >= 6
    await remover.remove_remote()
    await remover.close()
    assert [*place.jobs.iterdir()] == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [("export", "Exporting failed."), ("fullexport", "database or disk is full")],
)
async def test_export_failure_is_a_remark(
    place: Place, heard: Recorder, fault: str, said: str
) -> None:
    place = place.setting(export="auto").fake(FAULTS=fault)
    record = await place.capture("true", recorder=heard).run()
    assert record.state is State.DONE
    assert record.reports[0].sqlite == ""
    assert f"could not export the report there: {said}" in heard.remarks
    assert "Exporting failed." not in heard.log
    assert [path.name for path in place.jobs.iterdir()] == [record.id]


async def test_taken_name_is_refused_before_the_start(place: Place) -> None:
    (place.cwd / "mine.nsys-rep").write_text("precious")
    capture = place.capture("true", output="mine")
    with pytest.raises(OutputTakenError, match=r"mine\.nsys-rep exists already"):
        await capture.run()
    assert (place.cwd / "mine.nsys-rep").read_text() == "precious"
    assert not place.dump.exists()


async def test_a_report_may_be_called_as_its_program(place: Place) -> None:
    (place.cwd / "mine").write_text("a program")
    record = await place.capture("true", output="mine").run()
    assert Path(record.reports[0].local).name == "mine.nsys-rep"
    assert (place.cwd / "mine").read_text() == "a program"


async def test_a_report_of_a_chosen_name_opens_by_it_without_another_export(place: Place) -> None:
    record = await place.setting(export="auto").capture("true", output="mine").run()
    (report,) = record.reports
    assert Path(report.local).parent == place.cwd
    assert ensure_sqlite(Path(report.local), "/no/nsys").path.samefile(report.sqlite)


async def test_name_taken_meanwhile_follows_generated(place: Place, heard: Recorder) -> None:
    program = f"touch '{place.cwd}/late.nsys-rep'"
    record = await place.capture("sh", "-c", program, output="late", recorder=heard).run()
    [report] = record.reports
    assert record.state is State.ELSEWHERE
    assert report.path.startswith(f"{place.folder}/tmp/nsys-report-")
    assert "under another name" in heard.remarks
    assert f"not where it was asked for: {report.path}" in heard.remarks
    assert (place.cwd / "late.nsys-rep").read_bytes() == b""


@pytest.mark.parametrize(
    ("settings", "options", "code", "says"),
    [
        ({"cwd": "/no/such/folder"}, {}, 74, "no such folder there: /no/such/folder"),
        ({"nsys": "/no/such/nsys"}, {}, 69, "no nsys there; looked in /no/such/nsys"),
        ({"preamble": "exit 4"}, {}, 74, "the preamble did not come to its end"),
        ({"preamble": "false"}, {}, 74, "the preamble ended with status 1"),
        ({"jobs_dir": "/dev/null/x"}, {}, 74, "/dev/null/x cannot be made"),
        ({}, {"trace": "cuda", "capture-range": "nvtx"}, 74, "needs the name of the range"),
    ],
)
async def test_what_cannot_work_is_refused_before_the_start(
    place: Place, settings: dict[str, str], options: dict[str, str], code: int, says: str
) -> None:
    capture = place.setting(**settings).capture("true", options=options)
    with pytest.raises(PreflightError) as caught:
        await capture.run()
    assert says in str(caught.value)
    assert caught.value.exit_code == code
    assert not place.dump.exists()
    assert place.store.load(capture.record.id).state is State.FAILED


async def test_an_nsys_without_an_option_is_refused_with_the_version(place: Place) -> None:
    old = place.fake(LACKS="nccl-trace,gpu-metrics-devices", VERSION="2023.1.2.43")
    with pytest.raises(PreflightError) as caught:
        await old.capture("true", options={"nccl-trace": "all"}).run()
    assert "nsys 2023.1.2 does not know --nccl-trace" in str(caught.value)
    assert "an nsys newer than 2023.4 has it" in str(caught.value)


async def test_two_captures_on_one_target(
    place: Place, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.capture.capture.LOCK_WAIT_S", 0.2)
    first = place.capture("sleep", "30")
    running = asyncio.create_task(first.run())
    await wait_for(lambda: first.record.state is State.RUNNING)
    second = place.capture("true")
    with pytest.raises(LockedError) as caught:
        await second.run()
    assert first.record.id in caught.value.message
    assert " from " in caught.value.message
    third = await place.capture("true").run(anyway=True)
    assert third.state is State.DONE
    fourth = asyncio.create_task(place.capture("true", recorder=heard).run(wait=True))
    await wait_for(lambda: any("waiting" in getattr(e, "detail", "") for e in heard.events))
    await first.stop(keep=False)
    await running
    assert (await fourth).state is State.DONE


async def test_stop_keeps_the_report(place: Place, heard: Recorder) -> None:
    capture = place.capture("sleep", "600", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: place.running)
    await capture.stop(keep=True)
    record = await asyncio.wait_for(running, 20)
    assert (record.state, record.kept) == (State.CANCELLED, "kept")
    assert Path(record.reports[0].local).stat().st_size == 100_000
    assert record.signals[0].startswith("INT ")


async def test_stop_that_is_not_heard_goes_on_to_term_and_asks_before_kill(
    place: Place, heard: Recorder
) -> None:
    deaf = "import signal as s,time;s.signal(15,s.SIG_IGN);s.signal(2,s.SIG_IGN);time.sleep(600)"
    place.config = type(place.config)(
        capture=type(place.config.capture)(grace=800_000_000), path=place.config.path
    )
    capture = place.capture(sys.executable, "-c", deaf, recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: place.running)
    await asyncio.sleep(0.3)
    await capture.stop(keep=True)
    await wait_for(lambda: heard.all(StopStuck))
    assert [signal_.split()[0] for signal_ in capture.record.signals] == ["INT", "TERM"]
    await capture.kill()
    record = await asyncio.wait_for(running, 20)
    assert (record.state, record.stop, record.kept) == (State.CANCELLED, "kill", "killed")
    assert record.failure is None


async def test_a_kill_before_the_job_has_begun_is_one(
    place: Place, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.capture.stop.DISCARD_GRACE_S", 0.5)
    capture = place.capture("sleep", "600", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.state is State.SUBMITTING)
    await capture.kill()
    record = await asyncio.wait_for(running, 30)
    assert (record.state, record.stop, record.kept) == (State.CANCELLED, "kill", "killed")


async def test_a_program_that_outlives_nsys_is_killed_after_a_stop(
    place: Place, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.capture.stop.PROGRAM_S", 0.5)
    deaf = ("setsid", "sh", "-c", "trap '' TERM; touch deaf; while :; do sleep 0.1; done")
    script = shlex.join(deaf) + " & wait"
    capture = place.capture("sh", "-c", script, recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for((place.cwd / "deaf").exists)
    await capture.stop(keep=True)
    record = await asyncio.wait_for(running, 30)
    assert (record.state, record.kept) == (State.CANCELLED, "kept")
    assert "still running after the stop" in heard.remarks
    assert "left behind, and killed" in heard.remarks
    assert await place.attach(record.id).kill_left() == []


async def test_words_of_nsys_that_nobody_knows_are_told(place: Place) -> None:
    with pytest.raises(
        NoReportError, match="ended with status 1\nthe log ends: Connection refused"
    ):
        await place.fake(FAULTS="refused").capture("echo", "out").run()


async def test_what_nsys_leaves_beside_the_program_is_named_with_it(
    place: Place, heard: Recorder
) -> None:
    (place.cwd / "nsys-tee").symlink_to(shutil.which("sleep") or "")
    script = "setsid ./nsys-tee 600 & setsid sleep 600 & setsid ./nsys-tee 0.5 & sleep 0.1"
    record = await place.capture("sh", "-c", script, recorder=heard).run()
    (told,) = [note for note in record.notes if "still running after the end" in note]
    assert sorted(re.findall("[0-9]+ ([a-z][a-z-]*)[ ,]", told)) == ["nsys-tee", "sleep"]
    await place.attach(record.id).kill_left()


async def test_a_temporary_folder_that_was_full_is_named_where_no_report_came(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.capture.preflight.LITTLE_TEMPORARY", 1 << 60)
    with pytest.raises(NoReportError, match=r"temporary folder: .* free: nsys may hang") as told:
        await place.fake(FAULTS="crash").capture("true").run()
    assert told.value.hint.startswith("set TMPDIR to a folder with room, as by --env TMPDIR=")
    monkeypatch.undo()
    with pytest.raises(NoReportError) as otherwise:
        await place.fake(FAULTS="crash").capture("true").run()
    assert "TMPDIR" not in otherwise.value.hint


async def test_a_program_whose_nsys_died_is_told_and_can_be_killed(
    place: Place, heard: Recorder
) -> None:
    capture = place.fake(FAULTS="crash").capture(
        "sh", "-c", "setsid sleep 600 & sleep 0.2", recorder=heard
    )
    with pytest.raises(NoReportError):
        await asyncio.wait_for(capture.run(), 30)
    assert f"captures stop {capture.record.id} --kill ends it" in str(capture.record.notes)
    (killed,) = await place.attach(capture.record.id).kill_left()
    assert killed.endswith(" sleep")
    assert await place.attach(capture.record.id).kill_left() == []


async def test_discard_lists_before_it_removes(place: Place, heard: Recorder) -> None:
    capture = place.capture("sleep", "600", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: place.running)
    await capture.stop(keep=False)
    record = await asyncio.wait_for(running, 30)
    assert (record.state, record.kept) == (State.CANCELLED, "discarded")
    listed = [Path(file.path).name for file in await capture.leftovers()]
    assert {"run.sh", "log"} <= set(listed)
    assert Path(record.job_dir).exists()
    assert await capture.remove_remote() == [record.job_dir]
    assert not Path(record.job_dir).exists()


async def test_discarding_on_the_way_home_keeps_nothing(
    place: Place, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(job: Job, _exports: object) -> None:
        job.reach(State.FETCHING)
        (job.store.path(job.record.id) / "x.nsys-rep.part").write_bytes(b"some")
        await asyncio.sleep(600)

    monkeypatch.setattr("nsys_tui.capture.bring_home.fetch_all", slow)
    capture = place.capture("true", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.state is State.FETCHING)
    await asyncio.sleep(0.05)
    await capture.stop(keep=True)  # the job is over: there is nothing to stop
    await asyncio.sleep(0.05)
    assert not running.done()
    await capture.stop(keep=False)
    record = await running
    assert (record.state, record.kept) == (State.CANCELLED, "discarded")
    assert not list(place.store.path(record.id).glob("*.part"))


async def test_an_nsys_that_hangs_in_import_is_ended_and_its_qdstrm_named(
    place: Place, heard: Recorder
) -> None:
    capture = place.fake(FAULTS="hang").capture("true", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.state is State.IMPORTING)
    await capture.stop(keep=True)
    with pytest.raises(NoReportError, match="not imported"):
        await asyncio.wait_for(running, 30)
    [raw] = capture.record.raw
    assert Path(raw.path).read_bytes() == b"QDSTRM"


async def test_kill_of_the_job_is_lost_and_says_so(place: Place, heard: Recorder) -> None:
    capture = place.capture("sleep", "600", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.pid and place.running)
    keeper = next(
        int(stat.parent.name)
        for stat in Path("/proc").glob("[0-9]*/cmdline")
        if _reads(stat).endswith(b"keep\0sh\0") and capture.record.id.encode() in _reads(stat)
    )
    os.killpg(keeper, signal.SIGKILL)
    os.killpg(capture.record.pid, signal.SIGKILL)
    with pytest.raises(LostError, match="vanished"):
        await asyncio.wait_for(running, 30)
    assert place.store.load(capture.record.id).state is State.LOST


def _reads(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def test_secrets_reach_the_program_and_nothing_else(
    place: Place, heard: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "s3cr3t-'$(x)'-value"
    monkeypatch.setenv("MY_TOKEN", secret)
    place = place.fake(DUMP_ENV="MY_TOKEN")
    capture = place.capture("sleep", "0.6", env_from=["MY_TOKEN"], recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: place.running)
    assert not (Path(capture.record.job_dir) / "env").exists()
    lines = [_reads(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not [line for line in lines if secret.encode() in line]
    await running
    assert f"MY_TOKEN={secret}" in place.seen()[0]
    place.dump.unlink()
    holding = [
        p for p in place.folder.rglob("*") if p.is_file() and secret.encode() in p.read_bytes()
    ]
    assert holding == []
    assert secret not in repr(heard.events)


async def test_the_program_finds_the_environment_it_has_without_us(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = ["STAGE", "RUN", "D", "J", "T", "CWD", "OUT_DIR", "SECRETS", "MODE", "STATE", "size"]
    exported = {name: f"the user's {name}" for name in (*usual, *VALUES)}
    for name, value in exported.items():
        monkeypatch.setenv(name, value)
    script = (
        'import os,sys; open(sys.argv[1], "w").write("\\0".join(map("=".join, os.environ.items())))'
    )
    seen = tmp_path / "environ"
    await place.capture(sys.executable, "-c", script, str(seen)).run()
    found = dict(item.split("=", 1) for item in seen.read_text().split("\0"))
    assert {name: found.get(name) for name in exported} == exported
    assert not [name for name in found if name.startswith(("NT_", "nt_"))]


async def test_the_program_writes_files_with_its_users_permissions(
    place: Place, tmp_path: Path
) -> None:
    before = os.umask(0o027)
    try:
        await place.capture("sh", "-c", 'umask; : > "$0"', str(tmp_path / "checkpoint")).run()
    finally:
        os.umask(before)
    assert (tmp_path / "checkpoint").stat().st_mode & 0o777 == 0o640


def test_a_secret_that_is_not_set_is_refused(place: Place) -> None:
    with pytest.raises(UsageError, match="NOT_SET_ANYWHERE is not set here"):
        place.capture("true", env_from=["NOT_SET_ANYWHERE"])


async def test_the_files_of_a_job_are_for_its_owner_only(place: Place) -> None:
    record = await place.capture("true").run()
    folder = Path(record.job_dir)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "run.sh").stat().st_mode & 0o077 == 0
    kept = place.store.path(record.id)
    assert kept.stat().st_mode & 0o777 == 0o700
    assert (kept / "record.json").stat().st_mode & 0o777 == 0o600


STATES = (State.RUNNING, State.IMPORTING, State.EXPORTING)


@pytest.mark.parametrize("state", STATES)
async def test_leaving_and_coming_back_loses_nothing(place: Place, state: State) -> None:
    slow = place.fake(SECONDS="0.5").setting(export="auto")
    capture = slow.capture(
        "sh", "-c", "for i in 1 2 3 4 5; do echo line $i; sleep 0.1; done; exit 6"
    )
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.state is state)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    left = place.store.load(capture.record.id)
    assert left.state is state
    assert left.id in [record.id for record in place.store.unfinished()]
    heard = Recorder()
    record = await slow.attach(left.id, heard).run()
    assert record.state is State.DONE
    assert record.program_exit == 6
    assert [line for line in heard.log if line.startswith("line")] in (
        [f"line {n}" for n in range(1, 6)], [],
    )  # fmt: skip
    log = place.store.log_path(record.id).read_bytes()
    assert log == (Path(record.job_dir) / "log").read_bytes()
    calls = [call[0] for call in place.seen()]
    assert calls == ["profile", "export"]


async def test_a_crash_before_the_start_arrived_is_told(place: Place) -> None:
    capture = place.capture("true")
    record = capture.record.reached(State.SUBMITTING)
    place.store.save(record)
    with pytest.raises(CaptureError, match="was never started") as caught:
        await place.attach(record.id).run()
    assert f"--repeat {record.id}" in caught.value.hint


async def test_a_crash_between_the_start_and_its_answer_finds_the_job_again(place: Place) -> None:
    capture = place.capture("sh", "-c", "sleep 0.5; exit 4")
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.state is State.RUNNING)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    place.store.save(replace(capture.record, state=State.SUBMITTING, pid=0))
    record = await place.attach(capture.record.id).run()
    assert record.program_exit == 4
    assert [call[0] for call in place.seen()] == ["profile"]


async def test_the_lock_of_a_job_that_ended_is_taken_over(place: Place, heard: Recorder) -> None:
    (place.jobs / "lock.here").write_text("20200101-000000-aaaaaa\n")
    record = await place.capture("true", recorder=heard).run()
    assert record.state is State.DONE
    assert "took over the lock of 20200101-000000-aaaaaa" in heard.remarks
    assert not (place.jobs / "lock.here").exists()


async def test_functions_trace_travels_with_the_job(place: Place, tmp_path: Path) -> None:
    text = '[{"module": "pkg.mod", "functions": ["f"]}]'
    (tmp_path / "f.json").write_text(text)
    capture = place.capture("true", functions_trace_file=str(tmp_path / "f.json"))
    record = await capture.run()
    assert f"--python-functions-trace={record.job_dir}/functions.json" in place.seen()[0]
    assert (Path(record.job_dir) / "functions.json").read_text() == text


async def test_output_beyond_the_limit_is_cut_and_counted(place: Place) -> None:
    limited = type(place.config.capture)(log_limit=5000, grace=3 * 10**9)
    place.config = type(place.config)(capture=limited, path=place.config.path)
    record = await place.capture("sh", "-c", "seq 1 20000").run()
    log = place.store.log_path(record.id)
    assert log.stat().st_size == 5000
    whole = (Path(record.job_dir) / "log").stat().st_size
    assert record.log_gap == whole - 5000
    assert record.state is State.DONE


async def test_git_commit_of_the_working_directory_is_remembered(place: Place) -> None:
    import subprocess

    if shutil.which("git") is None:
        pytest.skip("NOT TESTED: git is not installed")
    run = ["git", "-C", str(place.cwd), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*run, "init", "-q"], check=True)
    subprocess.run([*run, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    head = subprocess.run([*run, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    record = await place.capture("true").run()
    assert record.git_commit == head.stdout.strip()
    assert record.git_dirty is False


async def test_giving_up_before_the_start_is_a_cancelled_capture(place: Place) -> None:
    capture = place.setting(preamble="sleep 20").capture("true")
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.state is State.CHECKING)
    await capture.stop()
    record = await asyncio.wait_for(running, 10)
    assert record.state is State.CANCELLED
    assert not place.dump.exists()


async def test_a_full_disk_here_ends_the_watching_and_not_the_job(
    place: Place, monkeypatch: pytest.MonkeyPatch, heard: Recorder
) -> None:
    capture = place.capture("sh", "-c", "sleep 0.5; echo late; exit 3", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.state is State.RUNNING)
    real = Path.open

    def full(path: Path, mode: str = "r", *rest: object, **more: object) -> object:
        if mode == "ab":
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, mode, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(KeepError, match="cannot be written") as caught:
        await running
    assert "No space left" in caught.value.message
    monkeypatch.undo()
    assert place.store.load(capture.record.id).state.started
    record = await place.attach(capture.record.id).run()
    assert (record.state, record.program_exit) == (State.DONE, 3)


@pytest.fixture
def tiny_disk(place: Place) -> Iterator[Path]:
    """A folder of jobs on a disk of half a megabyte."""
    import subprocess

    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place.jobs)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("NOT TESTED: mounting a small disk needs root")
    yield place.jobs
    subprocess.run(["umount", "-l", str(place.jobs)], check=True)


async def test_a_full_disk_there_before_the_start(place: Place, tiny_disk: Path) -> None:
    with contextlib.suppress(OSError), (tiny_disk / "filler").open("wb") as file:
        file.write(b"x" * 600_000)
    with pytest.raises(PreflightError, match="cannot be made or written, 0 B free"):
        await place.capture("true").run()
    assert [path.name for path in tiny_disk.iterdir()] == ["filler"]


async def test_a_disk_there_that_fills_up_still_tells_the_exit(
    place: Place, tiny_disk: Path
) -> None:
    capture = place.fake(FAULTS="disk").capture(
        "sh", "-c", f"echo on; head -c 900000 /dev/zero > {tiny_disk}/filler; exit 0"
    )
    with pytest.raises(NoReportError) as caught:
        await asyncio.wait_for(capture.run(), 30)
    record = place.store.load(capture.record.id)
    assert record.program_exit == 1
    assert caught.value.exit_code == 77


async def test_a_target_is_asked_once_a_minute(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def counted(job: Job, *, thorough: bool = False) -> Preflight:
        asked.append(thorough)
        return await probe(job, thorough=thorough)

    monkeypatch.setattr(submit, "probe", counted)
    await preflight(place.plan("true"), place.config)
    record = await place.capture("true").run()
    assert record.state is State.DONE
    assert asked == [True]
    await place.fake(SIZE="7").capture("true").run()
    monkeypatch.setattr(submit, "_FRESH_S", 0.0)
    await place.capture("true").run()
    assert asked == [True, False, False]


async def test_what_could_not_work_is_asked_again(place: Place) -> None:
    place.cwd.rmdir()
    with pytest.raises(PreflightError):
        await place.capture("true").run()
    place.cwd.mkdir()
    assert (await place.capture("true").run()).state is State.DONE


class Beating:
    """Answers with one heartbeat when told to, and is silent afterwards."""

    def __init__(self) -> None:
        self.beat = asyncio.Event()

    async def answers(self) -> AsyncIterator[Answer]:
        await self.beat.wait()
        yield Answer("hb", "")
        await asyncio.Event().wait()


@pytest.mark.parametrize("turns", range(6))
async def test_leaving_in_the_moment_of_an_answer_is_not_lost(place: Place, turns: int) -> None:
    capture, stream = place.capture("true"), Beating()
    watching = asyncio.create_task(Follower(capture.job)._watch(cast("Stream", stream)))
    await asyncio.sleep(0.01)
    stream.beat.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    watching.cancel()
    done, _ = await asyncio.wait({watching}, timeout=1)
    assert done
    assert watching.cancelled()
