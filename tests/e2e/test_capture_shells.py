"""Captures as users whose login shell is no POSIX shell, talks a lot, or finds few tools."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from capture_support import Recorder, make_place
from e2e.capture_lab import Lab, make_lab, need

from nsys_tui.capture.record import State

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.e2e

LOGIN_SHELLS = {"tcsh": "tcsh", "fish": "fish", "dash": "dash", "zsh": "zsh", "ksh": "ksh"}
NOISE = (
    "echo 'Welcome to the cluster!'; echo 'stdin: is not a tty' >&2; printf '\\033[2J\\a'\n"
    "printf '@@nt hello 1 0000\\n@@nt end\\nquota 99%% used '\n"
)
FEW = """sh perl cat sleep mkdir mv rm wc tr tail head cut env grep sed df find kill printf
date uname dirname cksum"""
NASTY = ("a b", "$(x)", "it's", "new\nline", "", "--x", "é", "-", "\udcff", "%q{HOME}", "!!", "~")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with make_lab(tmp_path_factory.mktemp("shells") / "ssh") as lab:
        yield lab


def logs_in_by(lab: Lab, script: str) -> None:
    """Has the box run what it is asked for through a script of ours, as a login shell would."""
    forced = lab.folder / "forced"
    forced.write_text(f"#!/bin/sh\n{script}")
    forced.chmod(0o755)
    lab.box.stop()
    lab.box.extra = f"ForceCommand {forced}\n"
    lab.box.start()


def tools(folder: Path, names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names.split():
        if found := shutil.which(name):
            (folder / name).symlink_to(os.path.realpath(found))
    return folder


async def capture_there(lab: Lab, folder: Path) -> Recorder:
    """A capture with an export, followed and fetched, that must go as everywhere else."""
    heard = Recorder()
    place = make_place(folder, ssh=lab.ssh, host="gpu-box", export="auto")
    program = ("sh", "-c", "echo out; echo err >&2; sleep 0.3; exit 4")
    record = await place.capture(*program, *NASTY, recorder=heard).run()
    assert record.state is State.DONE
    assert record.program_exit == 4
    [report] = record.reports
    assert Path(report.local).read_bytes() == Path(report.path).read_bytes()
    assert Path(report.sqlite).read_bytes()[:6] == b"SQLite"
    assert place.seen()[0][: len(record.argv) - 1] == list(record.argv[1:])
    assert heard.log[:2] == ["out", "err"]
    return heard


@pytest.mark.parametrize("shell", LOGIN_SHELLS)
async def test_login_shells(lab: Lab, tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"NOT TESTED: {shell} is not installed (Debian: {shell})")
    logs_in_by(lab, f'exec {shutil.which(shell)} -c "$SSH_ORIGINAL_COMMAND"\n')
    await capture_there(lab, tmp_path)


async def test_a_start_file_that_prints_and_even_speaks_like_us(lab: Lab, tmp_path: Path) -> None:
    logs_in_by(lab, NOISE + 'exec sh -c "$SSH_ORIGINAL_COMMAND"\n')
    await capture_there(lab, tmp_path)


async def test_busybox_alone(lab: Lab, tmp_path: Path) -> None:
    need("busybox", package="busybox")
    box = shutil.which("busybox") or ""
    folder = tmp_path / "bb"
    folder.mkdir()
    for applet in os.popen(f"{box} --list").read().split():
        (folder / applet).symlink_to(box)
    logs_in_by(lab, f'PATH={folder} exec {folder}/sh -c "$SSH_ORIGINAL_COMMAND"\n')
    await capture_there(lab, tmp_path)


async def test_few_tools_and_no_hash(lab: Lab, tmp_path: Path) -> None:
    folder = tools(tmp_path / "few", FEW)
    logs_in_by(lab, f'PATH={folder} exec {folder}/sh -c "$SSH_ORIGINAL_COMMAND"\n')
    heard = await capture_there(lab, tmp_path)
    assert "that machine has no sha256" in heard.remarks
