"""A fleet read by jobs of a real Slurm of two nodes."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from e2e.slurm_lab import make_slurm
from unit.fleet.fleet_reports import US, Run

from nsys_tui.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("dask_jobqueue", reason="needs pip install 'nsys-terminal[slurm]'")
SMALL = ("--slurm", "--sbatch=--mem=150M", "--workers", "2")


@pytest.fixture(scope="module", autouse=True)
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with (
        make_slurm(tmp_path_factory.mktemp("slurm")) as config,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SLURM_CONF", str(config))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("ranks")
    Run(ranks=6, slow={(2, 1): 150 * US}).write(found)
    return found


def queue() -> str:
    command = ["squeue", "--noheader", "--states=pending,running"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_jobs_give_byte_for_byte_what_is_computed_here(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["fleet", str(folder), "--no-cache", "--format", "json", "--window", "1ms/3ms"]
    assert main([*arguments, *SMALL]) == 0
    by_jobs = capsys.readouterr()
    assert "waiting for jobs of Slurm" in by_jobs.err or queue() == ""
    assert main([*arguments, "--workers", "1"]) == 0
    assert by_jobs.out == capsys.readouterr().out
    assert queue() == "", "the jobs end with the command"


def test_a_job_that_slurm_refuses_is_told_in_its_words(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", str(folder), *SMALL, "--sbatch=--partition=nowhere"]) == 64
    assert "does not take the job: invalid partition" in capsys.readouterr().err
    assert queue() == ""


def test_jobs_that_end_before_they_work_are_not_waited_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", str(folder), *SMALL, "--sbatch=--output=/nowhere/log"]) == 64
    assert "no job of Slurm became a worker" in capsys.readouterr().err
