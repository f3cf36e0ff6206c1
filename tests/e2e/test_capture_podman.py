"""Captures in a real container of podman, from here and by way of ssh."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from capture_support import Place, Recorder, make_place
from e2e.capture_lab import make_lab, need
from real_nsys import laid_out

from nsys_tui.capture.failures import CaptureError, LostError
from nsys_tui.capture.record import State

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.e2e
NAME = f"nsys-tui-test-{os.getpid()}"


class Podman:
    """podman with storage of its own; its root file system is this machine's, copied on write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        real = shutil.which("podman") or "podman"
        self.command = [
            real, "--root", f"{folder}/st", "--runroot", f"{folder}/rr", "--storage-driver", "vfs",
            "--cgroup-manager", "cgroupfs", "--events-backend", "none",
            "--runtime", "runc" if shutil.which("runc") else "crun",
        ]  # fmt: skip

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *args], capture_output=True, text=True, timeout=90, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self) -> None:
        started = self.run(
            "run", "-d", "--name", NAME, "--ulimit", "nofile=20000:20000",
            "--ulimit", "nproc=1000:1000", "--network", "host", "--tmpfs", "/small:size=128k",
            "--rootfs", "/:O", "sleep", "900",
        )  # fmt: skip
        if started.returncode:
            pytest.skip(f"NOT TESTED: podman starts no container here: {started.stderr[-300:]}")

    def stop(self) -> None:
        self.run("rm", "-f", "-t", "0", NAME)

    def wrapper(self, folder: Path) -> None:
        """A ``podman`` for PATH that uses this storage."""
        words = " ".join(self.command)
        (folder / "podman").write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (folder / "podman").chmod(0o755)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Place, Podman]]:
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: podman needs root here")
    need("podman", package="podman runc")
    place = make_place(tmp_path, launcher="podman", tables={"container": {"name": NAME}})
    podman = Podman(Path("/tmp") / f"nt-pod-{os.getpid()}")
    podman.wrapper(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    try:
        podman.start()
        yield place, podman
    finally:
        podman.stop()
        shutil.rmtree(podman.folder, ignore_errors=True)


async def test_the_real_nsys_in_a_container_and_its_full_temporary_folder(
    box: tuple[Place, Podman], tmp_path: Path
) -> None:
    program = ("sh", "-c", "ls / > /dev/null; sleep 1")
    tables = {"container": {"name": NAME}}
    nsys = str(laid_out("2023.4"))
    place = make_place(tmp_path / "real", launcher="podman", tables=tables, nsys=nsys)
    record = await place.capture(*program).run()
    assert record.state is State.DONE
    assert Path(record.reports[0].local).read_bytes().startswith(b"NVIDIA")

    env = {"TMPDIR": "/small"}
    place = make_place(tmp_path / "full", launcher="podman", tables=tables, nsys=nsys, env=env)
    with pytest.raises(CaptureError, match="temporary folder may be full"):
        await place.capture(*program).run()


async def test_from_here_and_through_ssh_and_then_it_is_gone(
    box: tuple[Place, Podman], tmp_path: Path
) -> None:
    place, podman = box
    heard = Recorder()
    record = await place.capture("sh", "-c", "echo inside; exit 3", recorder=heard).run()
    assert record.state is State.DONE
    assert record.program_exit == 3
    assert "inside" in heard.log
    [report] = record.reports
    assert not Path(report.path).exists(), "it should lie in the container only"
    assert hashlib.sha256(Path(report.local).read_bytes()).hexdigest() == report.sha256

    with make_lab(tmp_path / "ssh") as lab:
        lab.box.stop()
        lab.box.extra = f"SetEnv PATH={tmp_path}/bin:{os.environ['PATH']}\n"
        lab.box.start()
        far = make_place(
            tmp_path / "far", ssh=lab.ssh, host="gpu-box", launcher="podman",
            tables={"container": {"name": NAME}}, cwd="/tmp", jobs_dir="/tmp/nt-jobs",
            nsys=place.target.settings.nsys, env={"FAKE_NSYS_SECONDS": "0.05"},
        )  # fmt: skip
        again = await far.capture("true").run()
        assert again.state is State.DONE
        assert Path(again.reports[0].local).stat().st_size == 100_000

    capture = place.capture("sleep", "600")
    running = asyncio.create_task(capture.run())
    async with asyncio.timeout(20):
        while capture.record.state is not State.RUNNING:
            await asyncio.sleep(0.05)
    podman.stop()
    with pytest.raises(LostError, match="is gone"):
        await asyncio.wait_for(running, 60)
