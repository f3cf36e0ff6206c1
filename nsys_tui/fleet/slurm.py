"""Workers of a Dask cluster as jobs of Slurm, for as long as a command runs."""

from __future__ import annotations

import contextlib
import importlib
import logging
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from nsys_tui.errors import UsageError
from nsys_tui.extras import adding
from nsys_tui.fleet.cluster import Cluster

JOBS: Final = 4
"""Workers where nobody says how many."""
MEMORY: Final = "4GiB"
"""Of a worker; ``--mem`` of sbatch asks for another."""
ANSWERS: Final = 60
"""Seconds that Slurm has for an answer; a busy controller takes tens of them."""
_log = logging.getLogger(__name__)


@contextlib.contextmanager
def slurm_cluster(jobs: int, options: Sequence[str]) -> Iterator[Cluster]:
    """Workers in jobs of one processor each, which end with the context.

    The scheduler runs here; it and the workers know each other by certificates of this run, which
    the nodes read in the home folder. Partition, account, network interface and whatever else a
    site needs may also stand in dask-jobqueue's configuration file (``jobqueue.slurm``).

    Args:
        jobs: how many.
        options: of sbatch, such as ``--partition=cpu``.

    Raises:
        UsageError: dask-jobqueue or Slurm is missing, Slurm refuses such jobs, or none became a
            worker.
    """
    cluster = _cluster(options)
    try:
        _check(cluster.job_script())
        cluster.scale(jobs=jobs)
        _wait_for_one(cluster)
        yield Cluster(cluster.scheduler_address, cluster.security)
    finally:
        cluster.close()


def _cluster(options: Sequence[str]) -> Any:
    try:
        dask: Any = importlib.import_module("dask")
        jobqueue: Any = importlib.import_module("dask_jobqueue")
        distributed: Any = importlib.import_module("distributed")
        security = distributed.Security.temporary()
    except ImportError as error:
        raise UsageError(
            "--slurm needs dask-jobqueue and cryptography, which are not installed",
            hint=adding("slurm"),
        ) from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    of_site = dask.config.get("jobqueue.slurm.job-extra-directives", None) or ()
    return jobqueue.SLURMCluster(
        cores=1,
        processes=1,
        memory=MEMORY,
        worker_extra_args=["--memory-limit", "0"],  # Slurm's limit holds
        job_name="nsys-tui",
        job_extra_directives=["--output=/dev/null", *of_site, *options],
        protocol="tls://",
        security=security,
        shared_temp_directory="~",
        silence_logs="critical",
    )


def _check(script: str) -> None:
    """Sees that Slurm would take a job.

    Raises:
        UsageError: it would not, or is not here.
    """
    try:
        asked = _asked(["sbatch", "--test-only"], script)
    except OSError as error:
        raise UsageError("--slurm needs sbatch, which cannot be started here") from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"Slurm does not answer within {ANSWERS} s") from error
    if asked.returncode:
        lines = asked.stderr.strip().splitlines() or [f"sbatch ended with {asked.returncode}"]
        reason = lines[0].removeprefix("sbatch: error: ")
        raise UsageError(
            f"Slurm does not take the job: {reason}", hint="--sbatch=OPTION changes it"
        )


def _wait_for_one(cluster: Any) -> None:
    """Waits for a worker, as long as a job is in Slurm's queue.

    Raises:
        UsageError: all jobs ended, and none became a worker.
    """
    told = False
    while not cluster.scheduler.workers:
        time.sleep(1)
        jobs = sorted(job.job_id for job in cluster.workers.values() if job.job_id)
        if jobs and not told:
            _log.warning("waiting for jobs of Slurm: %s", ", ".join(jobs))
            told = True
        if jobs and not cluster.scheduler.workers and not _queued(jobs):
            raise UsageError(
                f"no job of Slurm became a worker: {', '.join(jobs)}",
                hint="--sbatch=--output=FILE keeps what they say; the nodes need this Python",
            )


def _queued(jobs: Sequence[str]) -> bool:
    """Whether Slurm still has one of these jobs, or does not say."""
    command = ["squeue", "--noheader", "--format=%i", f"--jobs={','.join(jobs)}"]
    with contextlib.suppress(subprocess.TimeoutExpired):
        return bool(_asked(command).stdout.strip())
    return True


def _asked(command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, timeout=ANSWERS
    )
