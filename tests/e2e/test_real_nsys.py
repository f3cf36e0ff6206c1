"""Captures by NVIDIA's own nsys, laid out for the occasion, with all that it prints and leaves."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from capture_support import Place, Recorder, looking_often, make_place
from e2e.capture_lab import make_lab, need
from e2e.slurm_lab import make_slurm
from oracle import real_nsys as oracle
from real_nsys import laid_out

import nsys_tui
from nsys_tui.capture.capture import preflight
from nsys_tui.capture.failures import CaptureError
from nsys_tui.capture.record import State
from nsys_tui.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_tui.capture.record import Record

pytestmark = pytest.mark.e2e

RELEASE = "2023.4"


@pytest.fixture(scope="module")
def nsys() -> Path:
    path = laid_out(RELEASE)
    if not (path.parents[1] / "host-linux-x64" / "libssh.so").exists():
        pytest.skip("NOT TESTED: the importer of nsys needs libssh (Debian: libssh-4)")
    return path


@pytest.fixture
def place(tmp_path: Path, nsys: Path) -> Place:
    if shutil.which("ldconfig") is None:
        pytest.skip("needs ldconfig")
    return make_place(tmp_path, nsys=str(nsys), export="auto")


@pytest.fixture
def heard() -> Recorder:
    return Recorder()


async def run(place: Place, heard: Recorder, *program: str, **options: str) -> Record:
    chosen = {name.replace("_", "-"): value for name, value in options.items()}
    capture = place.capture(*program, recorder=heard, options=chosen)
    async with asyncio.timeout(120):
        return await capture.run()


def events_in(path: str) -> int:
    return len(nsys_tui.open(path).osrt)


async def test_a_program_is_captured_and_its_report_opens(place: Place, heard: Recorder) -> None:
    record = await run(place, heard, "sh", "-c", "echo out; ls / > /dev/null; exit 3", trace="osrt")
    assert (record.state, record.program_exit) == (State.DONE, 3)
    assert "out" in heard.log
    (report,) = record.reports
    assert events_in(report.sqlite) > 0
    assert [path.name for path in place.jobs.iterdir()] == [record.id]


async def test_every_range_comes_home_as_a_report_of_its_own(place: Place, heard: Recorder) -> None:
    if importlib.util.find_spec("nvtx") is None:
        pytest.skip("needs the package nvtx")
    script = place.cwd / "steps.py"
    script.write_text(
        "import nvtx, time\n"
        "for _ in range(3):\n"
        "    with nvtx.annotate('step'):\n"
        "        time.sleep(0.05)\n"
    )
    env = {**place.target.settings.env, "NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    chosen = {"trace": "nvtx", "capture_range": "nvtx", "nvtx_capture": "step@*"}
    chosen["capture_range_end"] = "repeat:2"
    record = await run(place.setting(env=env), heard, sys.executable, str(script), **chosen)
    assert record.state is State.DONE
    assert [Path(report.local).name for report in record.reports] == [
        "steps.1.nsys-rep",
        "steps.2.nsys-rep",
    ]
    assert [len(nsys_tui.open(report.sqlite).ranges) for report in record.reports] == [1, 1]
    assert [path.name for path in place.jobs.iterdir()] == [record.id]


@pytest.mark.parametrize(
    ("program", "options", "said"),
    [
        (("/no/such/program",), {}, "was not found"),
        (("true",), {"capture_range": "nvtx", "nvtx_capture": "step@*"}, "step@* never opened"),
        (("true",), {"delay": "60"}, "ended before the delay of 60 s"),
        (("true",), {"output": "/no/such/folder/report"}, "/no/such/folder"),
    ],
)
async def test_what_went_wrong_is_said_in_words(
    place: Place, heard: Recorder, program: tuple[str, ...], options: dict[str, str], said: str
) -> None:
    with pytest.raises(CaptureError) as caught:
        await run(place, heard, *program, trace="nvtx,osrt", **options)
    assert said in str(caught.value)


@pytest.mark.parametrize("release", ["2022.4", "2023.4"])
async def test_its_own_table_of_options_says_what_it_says_itself(
    tmp_path: Path, release: str
) -> None:
    nsys = laid_out(release)
    place = make_place(tmp_path, nsys=str(nsys))
    facts = (await preflight(place.plan("true"), place.config)).facts
    assert facts.options["backtrace"].default == "lbr"
    assert facts.options["trace"].default == "cuda,nvtx,osrt,opengl"
    assert {"gpu-metrics-device", "nvtx-domain-include"} <= set(facts.options)
    for name in ("backtrace", "sample", "cpuctxsw", "wait", "trace", "stats"):
        done = subprocess.run(
            [nsys, "profile", f"--{name}=bogus", "true"],
            capture_output=True, text=True, timeout=20, cwd=tmp_path,
        )  # fmt: skip
        listed = (done.stdout + done.stderr).partition("values are")[2].partition("usage")[0]
        taken, known = set(re.findall("'([^']+)'", listed)), set(facts.options[name].values)
        assert taken, name
        assert taken == known - {"python-gil"}, name  # which its own refusal forgets


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """An nsys that hangs is noticed after a moment."""
    monkeypatch.setattr("nsys_tui.capture.follow.IDLE_S", 1.5)
    monkeypatch.setattr("nsys_tui.capture.stop.DISCARD_GRACE_S", 1.0)
    monkeypatch.setattr("nsys_tui.capture.supervisor.shell_text", looking_often)


async def halt(line: str, after: Path | None = None) -> None:
    """Stops the processes of nsys that such a line started, once there is one, and a file."""
    async with asyncio.timeout(60):
        while not (found := pgrep(line)) or (after and not after.exists()):
            await asyncio.sleep(0.01)
    for pid in found:
        os.kill(int(pid), signal.SIGSTOP)


@pytest.mark.usefixtures("soon")
async def test_an_importer_that_hangs_is_ended_and_started_once_more(
    place: Place, heard: Recorder
) -> None:
    running = asyncio.create_task(run(place, heard, "sh", "-c", "ls / > /dev/null", trace="osrt"))
    await halt(r"QdstrmImporter --input-file .*")
    record = await running
    assert record.state is State.DONE
    assert "nsys hangs" in heard.remarks
    assert "the importer made the report when it was started once more" in heard.remarks
    assert events_in(record.reports[0].sqlite) > 0
    assert [path.name for path in place.jobs.iterdir()] == [record.id]


@pytest.mark.usefixtures("soon")
async def test_an_nsys_that_hangs_after_its_program_runs_it_no_second_time(
    place: Place, heard: Recorder
) -> None:
    program = "echo once >> ran; sleep 0.1"
    capture = place.capture("sh", "-c", program, recorder=heard, options={"trace": "osrt"})
    running = asyncio.create_task(capture.run())
    await halt(rf"nsys profile .*{capture.record.id}/sh sh -c .*", place.cwd / "ran")
    async with asyncio.timeout(60):
        while "stop it, which ends it" not in str(capture.record.notes):
            await asyncio.sleep(0.1)
        await capture.stop(keep=True)
        with contextlib.suppress(CaptureError):  # its agent may have made the report by itself
            await running
    assert "started once more" not in str(capture.record.notes)
    assert (place.cwd / "ran").read_text() == "once\n"
    assert pgrep(rf"nsys .*{capture.record.id}.*") == []


async def test_a_stop_while_nsys_ends_by_itself_loses_nothing(
    place: Place, heard: Recorder
) -> None:
    program = "ls / > /dev/null; touch ran"
    capture = place.capture("sh", "-c", program, recorder=heard, options={"trace": "osrt"})
    running = asyncio.create_task(capture.run())
    async with asyncio.timeout(60):
        while not (place.cwd / "ran").exists() or pgrep(f"sh -c {program}"):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        await capture.stop(keep=True)
        record = await running
    assert (record.state, record.kept) == (State.CANCELLED, "kept")
    assert events_in(record.reports[0].sqlite) > 0


async def test_over_ssh_the_report_comes_home_with_its_export(
    tmp_path: Path, nsys: Path, heard: Recorder
) -> None:
    settings = {"host": "gpu-box", "nsys": str(nsys), "export": "auto"}
    with make_lab(tmp_path / "ssh") as lab:
        place = make_place(tmp_path / "place", ssh=lab.ssh, **settings)
        record = await run(place, heard, "sh", "-c", "ls / > /dev/null; exit 4", trace="osrt")
    assert (record.state, record.program_exit) == (State.DONE, 4)
    (report,) = record.reports
    assert Path(report.sqlite).parent == place.store.path(record.id)
    assert events_in(report.sqlite) > 0


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with make_slurm(tmp_path_factory.mktemp("slurm")) as config:
        yield config


@pytest.fixture
def cluster(tmp_path: Path, nsys: Path, slurm: Path) -> Place:
    """A target whose Slurm is known after its preamble alone."""
    return make_place(
        tmp_path, nsys=str(nsys), export="auto", launcher="sbatch",
        preamble=f"export SLURM_CONF={slurm}", tables={"slurm": {"args": ("--time=5",)}},
    )  # fmt: skip


async def test_a_batch_job_on_two_nodes_brings_its_reports_home(
    cluster: Place, heard: Recorder
) -> None:
    place = cluster.setting(tables={"slurm": {"args": ("--time=5", "--nodes=2")}})
    script = "ls / > /dev/null; echo on $SLURMD_NODENAME"
    record = await run(place, heard, "sh", "-c", script, trace="osrt")
    assert record.state is State.DONE
    assert {"on node1", "on node2"} <= set(heard.log)
    assert len(record.reports) == 2
    assert all(events_in(report.sqlite) > 0 for report in record.reports)


async def test_a_batch_job_that_is_stopped_keeps_its_report(
    cluster: Place, heard: Recorder
) -> None:
    cluster.config = replace(
        cluster.config, capture=replace(cluster.config.capture, grace=60 * 10**9)
    )
    options = {"trace": "osrt", "sample": "none", "cpuctxsw": "none"}
    capture = cluster.capture("sleep", "4716", recorder=heard, options=options)
    running = asyncio.create_task(capture.run())
    async with asyncio.timeout(40):
        while not pgrep("sleep 4716"):
            await asyncio.sleep(0.2)
        await asyncio.sleep(1)
        await capture.stop(keep=True)
        record = await running
    assert (record.state, record.kept) == (State.CANCELLED, "kept")
    assert nsys_tui.open(record.reports[0].sqlite).report.name == "sleep.sqlite"
    assert pgrep("sleep 4716") == []


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("launcher", ["srun", "sbatch"])
async def test_an_nsys_that_hangs_in_a_job_is_told_and_can_be_stopped(
    cluster: Place, heard: Recorder, launcher: str
) -> None:
    place = cluster.setting(launcher=launcher)
    capture = place.capture("touch", "ran", recorder=heard, options={"trace": "osrt"})
    running = asyncio.create_task(capture.run())
    await halt(rf"nsys profile .*{capture.record.id}/touch touch ran", place.cwd / "ran")
    async with asyncio.timeout(90):
        while "stop it, which ends it" not in str(capture.record.notes):
            await asyncio.sleep(0.1)
        await capture.stop(keep=True)
        with contextlib.suppress(CaptureError):  # its agent may have made the report by itself
            await running
    assert capture.record.state.over
    assert pgrep(rf"nsys .*{capture.record.id}.*") == []


def pgrep(line: str) -> list[str]:
    done = subprocess.run(
        ["pgrep", "-fx", f"(/[^ ]*/)?{line}"], capture_output=True, text=True, check=False
    )
    return done.stdout.split()


async def test_mpirun_inside_nsys_is_one_report_of_all_ranks(place: Place, heard: Recorder) -> None:
    need("mpirun", package="mpich")
    script = "ls / > /dev/null; echo rank $PMI_RANK"
    record = await run(place, heard, "mpirun", "-n", "2", "sh", "-c", script, trace="osrt,mpi")
    assert record.state is State.DONE
    assert {"rank 0", "rank 1"} <= set(heard.log)
    (report,) = record.reports
    assert nsys_tui.open(report.sqlite).osrt["pid"].nunique() > 2


MPI_PROGRAM = """
#include <mpi.h>
int main(int count, char **words) {
    double a[1000] = {0}, b[1000];
    int rank;
    MPI_Request request;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(a, b, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Isend(a, 500, MPI_DOUBLE, 1 - rank, 7, MPI_COMM_WORLD, &request);
    MPI_Recv(b, 500, MPI_DOUBLE, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Bcast(a, 100, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
"""


async def test_mpi_calls_have_nsys_s_rows_and_no_note(
    place: Place, nsys: Path, heard: Recorder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need("mpicc", package="mpich libmpich-dev")
    need("gcc", package="gcc")
    source, program = tmp_path / "calls.c", str(tmp_path / "calls")
    source.write_text(MPI_PROGRAM)
    subprocess.run(["mpicc", str(source), "-o", program], check=True, timeout=60)
    chosen = {"trace": "mpi", "mpi_impl": "mpich", "sample": "none", "cpuctxsw": "none"}
    record = await run(place, heard, "mpirun", "-n", "2", program, **chosen)
    (report,) = record.reports
    asked = ("-r", "mpi_event_trace", "-f", "csv", "-o")
    oracle.run(str(nsys), "stats", *asked, str(tmp_path / "theirs"), report.sqlite)
    main(["stats", *asked, str(tmp_path / "ours"), report.sqlite])
    theirs, ours = (
        oracle.rows(tmp_path / f"{who}_mpi_event_trace.csv") for who in ("theirs", "ours")
    )
    assert len(theirs) > 2 * 7
    assert theirs == ours
    assert "NULL" not in capsys.readouterr().err


async def test_nsys_inside_mpirun_is_a_report_of_each_rank(place: Place, heard: Recorder) -> None:
    need("mpirun", package="mpich")
    place = place.setting(launcher="mpirun", tables={"mpi": {"args": ("-n", "4")}})
    options = {"trace": "osrt", "sample": "none", "cpuctxsw": "none"}
    record = await run(place, heard, "sh", "-c", "ls / > /dev/null", **options)
    assert record.state is State.DONE
    names = [Path(report.local).name for report in record.reports]
    assert names == [f"sh.{rank}.nsys-rep" for rank in range(4)]
    assert all(events_in(report.sqlite) > 0 for report in record.reports)


async def test_a_range_that_never_opened_is_told_with_those_that_were_seen(
    place: Place, heard: Recorder
) -> None:
    if importlib.util.find_spec("nvtx") is None:
        pytest.skip("needs the package nvtx")
    script = place.cwd / "steps.py"
    script.write_text("import nvtx\nfor n in range(3):\n    nvtx.mark('m')\n"
                      "    nvtx.end_range(nvtx.start_range(f'step {n}'))\n")  # fmt: skip
    env = {**place.target.settings.env, "NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    place, program = place.setting(env=env), (sys.executable, str(script))
    await run(place, heard, *program, trace="nvtx")
    ranged = {"trace": "nvtx", "capture_range": "nvtx", "nvtx_capture": "step@*"}
    with pytest.raises(CaptureError, match=r"step@\* never opened") as caught:
        await run(place, heard, *program, **ranged)
    assert "ranges seen in steps.sqlite: step 0, step 1, step 2" in str(caught.value)


@pytest.fixture
def crippled(nsys: Path) -> Iterator[Path]:
    """The same nsys, on the same disk, whose importer has no libssh."""
    with tempfile.TemporaryDirectory(dir=nsys.parents[2]) as folder:
        for part in ("target-linux-x64", "host-linux-x64"):
            whole = nsys.parents[1] / part
            shutil.copytree(whole, Path(folder, part), symlinks=True, copy_function=os.link)
        Path(folder, "host-linux-x64", "libssh.so").unlink()
        yield Path(folder)


async def test_without_its_library_the_importer_is_named(
    place: Place, heard: Recorder, crippled: Path
) -> None:
    place = place.setting(nsys=str(crippled / "target-linux-x64" / "nsys"))
    with pytest.raises(CaptureError) as caught:
        await run(place, heard, "true", trace="osrt")
    assert "libssh.so is missing there" in caught.value.message
    assert f"{crippled}/host-linux-x64/QdstrmImporter -i " in caught.value.hint
