"""Captures by NVIDIA's own nsys, laid out for the occasion, with all that it prints and leaves."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from capture_support import Place, Recorder, make_place
from real_nsys import laid_out

import nsys_tui
from nsys_tui.capture.capture import preflight
from nsys_tui.capture.failures import CaptureError
from nsys_tui.capture.record import State

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
    assert "libssh is missing there" in caught.value.message
    assert f"{crippled}/host-linux-x64/QdstrmImporter -i " in caught.value.hint
