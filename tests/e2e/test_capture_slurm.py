"""Captures in a real Slurm of two nodes: srun and sbatch, ranks, queue, cancel, time limit."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from capture_support import Place, Recorder, make_place
from e2e.slurm_lab import make_slurm

from nsys_tui.capture.failures import CaptureError, NoReportError, PreflightError
from nsys_tui.capture.record import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with make_slurm(tmp_path_factory.mktemp("slurm")) as config:
        yield config


@pytest.fixture
def heard() -> Recorder:
    return Recorder()


@pytest.fixture(autouse=True)
def conf(slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm))


def at(folder: Path, launcher: str, *args: str) -> Place:
    return make_place(folder, launcher=launcher, tables={"slurm": {"args": args}})


async def wait_for(condition: Callable[[], object], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.05)


def queue(*args: str) -> str:
    return subprocess.run(["squeue", "-h", *args], capture_output=True, text=True).stdout.strip()


BOTH = pytest.mark.parametrize("launcher", ["srun", "sbatch"])


@BOTH
async def test_a_report_of_a_job(tmp_path: Path, heard: Recorder, launcher: str) -> None:
    place = at(tmp_path, launcher, "--time=5")
    nasty = ("a b", "$(x)", "it's", "--x", "\udcff")
    capture = place.capture("sh", "-c", "echo from the job; exit 5", *nasty, recorder=heard)
    record = await asyncio.wait_for(capture.run(), 60)
    assert record.state is State.DONE
    assert record.program_exit == 5
    assert int(record.slurm_job) > 0
    assert "from the job" in heard.log
    assert Path(record.reports[0].local).stat().st_size == 100_000
    assert place.seen()[0][: len(record.argv) - 1] == list(record.argv[1:])
    assert queue() == ""


@BOTH
async def test_one_report_per_rank(tmp_path: Path, launcher: str) -> None:
    place = at(tmp_path, launcher, "--nodes=2", "--ntasks=3", "--overcommit", "--time=5")
    record = await asyncio.wait_for(place.capture("true").run(), 60)
    names = sorted(Path(report.local).name for report in record.reports)
    assert names == [f"true.{rank}.nsys-rep" for rank in range(3)]


async def test_a_missing_rank_is_named(tmp_path: Path, heard: Recorder) -> None:
    place = at(tmp_path, "srun", "--ntasks=3", "--overcommit")
    fake = Path(place.target.settings.nsys)
    fake.write_text(
        fake.read_text().replace("exec", '[ "$1:$SLURM_PROCID" = profile:1 ] && exit 1\nexec', 1)
    )
    record = await asyncio.wait_for(place.capture("true", recorder=heard).run(), 60)
    assert len(record.reports) == 2
    assert "no report of rank 1" in heard.remarks


@BOTH
async def test_stop_by_scancel_keeps_the_report(
    tmp_path: Path, heard: Recorder, launcher: str
) -> None:
    place = at(tmp_path, launcher)
    capture = place.capture("sleep", "4712", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: place.running)
    await capture.stop(keep=True)
    record = await asyncio.wait_for(running, 60)
    assert (record.state, record.kept) == (State.CANCELLED, "kept")
    assert Path(record.reports[0].local).stat().st_size == 100_000
    await wait_for(lambda: queue() == "")
    left = subprocess.run(["pgrep", "-fx", "sleep 4712"], capture_output=True, check=False)
    assert left.stdout == b""


@pytest.fixture
def module(slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Slurm as it is where ``module load slurm`` brings it; gives that preamble."""
    monkeypatch.delenv("SLURM_CONF")
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    for folder in (outside, inside):
        folder.mkdir()
    for tool in ("sbatch", "srun", "squeue", "scancel", "scontrol"):
        (outside / tool).write_text("#!/bin/sh\necho 'load the module first' >&2\nexit 1\n")
        (outside / tool).chmod(0o755)
        (inside / tool).symlink_to(shutil.which(tool) or "")
    monkeypatch.setenv("PATH", f"{outside}:{os.environ['PATH']}")
    return f"export SLURM_CONF={slurm}\nexport PATH={inside}:$PATH\necho the module is loaded"


def sleeping(seconds: str) -> bool:
    return subprocess.run(["pgrep", "-fx", f"sleep {seconds}"], stdout=-3).returncode == 0


@BOTH
async def test_submit_queue_and_stop_run_inside_the_preamble(
    tmp_path: Path, heard: Recorder, module: str, launcher: str
) -> None:
    place = at(tmp_path, launcher).setting(preamble=module)
    capture = place.capture("sleep", "4713", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: place.running and capture.record.slurm_job)
    await capture.stop(keep=True)
    record = await asyncio.wait_for(running, 60)
    assert (record.state, record.kept) == (State.CANCELLED, "kept")
    assert [signal.split()[0] for signal in record.signals] == ["INT"]
    assert not sleeping("4713")
    assert "did not take" not in heard.remarks


async def test_a_stop_that_slurm_does_not_take_is_told_and_never_called_cancelled(
    tmp_path: Path, heard: Recorder, module: str
) -> None:
    place = at(tmp_path, "sbatch").setting(preamble=module)
    place.config = replace(place.config, capture=replace(place.config.capture, grace=10**9))
    capture = place.capture("sleep", "4714", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: place.running and capture.record.slurm_job)
    scancel = tmp_path / "inside" / "scancel"
    right = scancel.readlink()
    scancel.unlink()
    scancel.write_text("#!/bin/sh\necho 'scancel: error: no controller' >&2\nexit 1\n")
    scancel.chmod(0o755)
    await capture.stop(keep=True)
    await wait_for(lambda: "still runs" in heard.remarks)
    assert "Slurm did not take the stop, and the program runs on" in heard.remarks
    assert "was sent" not in heard.remarks
    assert f"Slurm job {capture.record.slurm_job} still runs" in heard.remarks
    assert sleeping("4714")
    assert not capture.record.state.over
    scancel.unlink()
    scancel.symlink_to(right)
    await capture.stop(keep=True)
    record = await asyncio.wait_for(running, 60)
    assert (record.state, record.kept) == (State.CANCELLED, "kept")
    assert not sleeping("4714")


@BOTH
async def test_a_missing_output_folder_is_refused_before(tmp_path: Path, launcher: str) -> None:
    capture = at(tmp_path, launcher).capture("true", output="/no/such/folder/report")
    with pytest.raises(PreflightError, match="/no/such/folder is no folder"):
        await capture.run()
    assert queue("-t", "all", "-n", f"nt-{capture.record.id}") == ""


async def test_a_held_job_says_why_and_is_cancelled_in_the_queue(
    tmp_path: Path, heard: Recorder
) -> None:
    place = at(tmp_path, "sbatch", "--hold")
    capture = place.capture("true", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.state is State.QUEUED)
    details = {getattr(event, "detail", "") for event in heard.events}
    assert any("held by the user" in detail for detail in details)
    await capture.stop(keep=True)
    with pytest.raises(CaptureError):
        await asyncio.wait_for(running, 60)
    assert queue() == ""
    assert not place.dump.exists()
    assert "the job was cancelled" in heard.remarks


async def test_a_held_job_runs_once_it_is_released(tmp_path: Path, heard: Recorder) -> None:
    capture = at(tmp_path, "sbatch", "--hold").capture("true", recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.state is State.QUEUED)
    subprocess.run(["scontrol", "release", capture.record.slurm_job], check=True)
    record = await asyncio.wait_for(running, 60)
    assert record.state is State.DONE


@BOTH
async def test_a_plain_scancel_by_somebody_else_is_told(
    tmp_path: Path, heard: Recorder, launcher: str
) -> None:
    deaf = "import signal as s,time;s.signal(15,s.SIG_IGN);time.sleep(600)"
    place = at(tmp_path, launcher).fake(FAULTS="hang")
    capture = place.capture(sys.executable, "-c", deaf, recorder=heard)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: place.running and capture.record.slurm_job)
    subprocess.run(["scancel", capture.record.slurm_job], check=True)
    with pytest.raises(CaptureError) as caught:
        await asyncio.wait_for(running, 60)
    assert isinstance(caught.value, CaptureError)
    assert "cancelled" in (heard.remarks + str(caught.value)).lower()
    assert place.store.load(capture.record.id).state in (State.FAILED, State.LOST)


async def test_a_rejected_job_leaves_nothing_behind(tmp_path: Path) -> None:
    place = at(tmp_path, "sbatch", "--partition=nowhere")
    capture = place.capture("true")
    with pytest.raises(CaptureError) as caught:
        await capture.run()
    assert "Slurm did not take the job" in caught.value.title
    assert "partition" in caught.value.message
    assert list(place.jobs.iterdir()) == []


async def test_srun_that_cannot_start_says_so(tmp_path: Path, heard: Recorder) -> None:
    place = at(tmp_path, "srun", "--mem=999999")
    with pytest.raises(NoReportError):
        await place.capture("true", recorder=heard).run()
    assert any("memory" in line.lower() for line in heard.log)


@BOTH
async def test_leaving_and_coming_back(tmp_path: Path, launcher: str) -> None:
    place = at(tmp_path, launcher)
    script = "echo line 1; echo line 2; until [ -e on ]; do sleep 0.1; done; echo line 3"
    capture = place.capture("sh", "-c", script)
    running = asyncio.create_task(capture.run())
    await wait_for(lambda: capture.record.state is State.RUNNING and capture.record.slurm_job)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (place.cwd / "on").touch()
    heard = Recorder()
    record = await asyncio.wait_for(place.attach(capture.record.id, heard).run(), 60)
    assert record.state is State.DONE
    assert [line for line in heard.log if line.startswith("line")] == ["line 1", "line 2", "line 3"]
    assert [call[0] for call in place.seen()] == ["profile"]


async def test_secrets_reach_a_batch_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cr3t-in-slurm")
    place = at(tmp_path, "sbatch", "--export=NONE").fake(DUMP_ENV="MY_TOKEN")
    record = await asyncio.wait_for(place.capture("true", env_from=["MY_TOKEN"]).run(), 60)
    assert "MY_TOKEN=s3cr3t-in-slurm" in place.seen()[0]
    shown = subprocess.run(
        ["scontrol", "show", "job", "-o", record.slurm_job], capture_output=True, text=True
    ).stdout
    assert "s3cr3t" not in shown
    assert "Requeue=0" in shown
