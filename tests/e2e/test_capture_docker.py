"""Captures in a container of a real docker daemon, with an image that is made on the spot."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from capture_support import Place, Recorder, make_place
from e2e.capture_lab import need

from nsys_tui.capture.failures import LostError
from nsys_tui.capture.record import State

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).resolve().parents[2]
MERGED = ("bin", "sbin", "lib", "lib64")
NASTY = ("a b", "$(x)", "it's", "new\nline", "", "--x", "-", "\udcff", "%q{HOME}", "!!", "~")


def image() -> bytes:
    """A root file system of links into ``/usr``, which is mounted from this machine."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name in MERGED:
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
        for name, mode in (("tmp", 0o1777), ("home", 0o777), ("usr", 0o755), ("etc", 0o755)):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            tar.addfile(folder)
    return made.getvalue()


class Docker:
    """A daemon with socket and storage of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = f"unix://{folder}/d.sock"
        with (folder / "log").open("wb") as log:
            self.daemon = subprocess.Popen(
                ["dockerd", "--iptables=false", "--bridge=none", "--storage-driver=vfs",
                 "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec",
                 "--pidfile", f"{folder}/pid", "-H", self.socket],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def run(self, *args: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = ["docker", "-H", self.socket, *args]
        return subprocess.run(command, input=data, capture_output=True, timeout=90, check=False)

    def wait(self) -> None:
        end = time.monotonic() + 30
        while self.run("info").returncode:
            if self.daemon.poll() is not None or time.monotonic() > end:
                said = (self.folder / "log").read_text("utf-8", "replace")
                pytest.skip(f"NOT TESTED: dockerd does not start here: {said[-300:]}")
            time.sleep(0.1)

    def start(self, *mounted: Path) -> None:
        """The container; it sees the given folders of this machine, and may write the last one."""
        self.run("import", "-", "nt", data=image())
        folders = dict.fromkeys(str(path) for path in (Path("/usr"), Path("/etc"), *mounted))
        last = str(mounted[-1])
        mounts = [
            word
            for path in folders
            for word in ("-v", f"{path}:{path}" + ("" if path == last else ":ro"))
        ]
        made = self.run("run", "-d", "--name", "trainer", "--network", "host", *mounts, "nt",
                        "sleep", "900")  # fmt: skip
        if made.returncode:
            pytest.skip(f"NOT TESTED: docker starts no container here: {made.stderr[-300:]!r}")

    def stop(self) -> None:
        self.run("rm", "-f", "trainer")
        self.daemon.terminate()
        self.daemon.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Place, Docker]]:
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: dockerd needs root here")
    need("dockerd", package="docker.io")
    place = make_place(
        tmp_path,
        launcher="docker",
        tables={"container": {"name": "trainer", "user": "0"}},
        cwd="/home",
        jobs_dir="/tmp/jobs",
    )
    docker = Docker(Path(tempfile.mkdtemp(prefix="nt-docker-")))  # a path of a socket is short
    monkeypatch.setenv("DOCKER_HOST", docker.socket)
    try:
        docker.wait()
        docker.start(ROOT, Path(sys.prefix), Path(sys.base_prefix), tmp_path)
        yield place, docker
    finally:
        docker.stop()


async def test_nasty_words_a_stop_and_then_it_is_gone(box: tuple[Place, Docker]) -> None:
    place, docker = box
    heard = Recorder()
    program = ("sh", "-c", 'id -u; umask; printf "<%s>" "$@"; exit 3', "sh", *NASTY)
    record = await place.capture(*program, recorder=heard).run()
    assert (record.state, record.program_exit) == (State.DONE, 3)
    assert heard.log[:2] == ["0", "0022"]
    seen = place.seen()[0]
    assert seen[: len(record.argv) - 1] == list(record.argv[1:])
    assert seen[len(record.argv) - 1 - len(NASTY) : len(record.argv) - 1] == list(NASTY)
    assert Path(record.reports[0].local).stat().st_size == 100_000
    assert not Path(record.reports[0].path).exists(), "it should lie in the container only"

    capture = place.capture("sleep", "600", recorder=heard)
    running = asyncio.create_task(capture.run())
    await reached(capture.record.id, place, State.RUNNING)
    await capture.stop(keep=True)
    kept = await asyncio.wait_for(running, 60)
    assert (kept.state, kept.kept) == (State.CANCELLED, "kept")
    assert Path(kept.reports[0].local).is_file()

    capture = place.capture("sleep", "600")
    running = asyncio.create_task(capture.run())
    await reached(capture.record.id, place, State.RUNNING)
    docker.run("rm", "-f", "trainer")
    with pytest.raises(LostError, match="is gone"):
        await asyncio.wait_for(running, 60)


async def reached(capture: str, place: Place, state: State) -> None:
    async with asyncio.timeout(30):
        while place.store.load(capture).state is not state:
            await asyncio.sleep(0.05)
