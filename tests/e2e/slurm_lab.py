"""A real Slurm of two nodes on this machine: munge, controller and daemons, all our own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from e2e.capture_lab import free_port, need

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = """\
ClusterName=nsystui
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port_a}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.sock
StateSaveLocation={folder}/spool/ctld
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmctldTimeout=30
SlurmdTimeout=30
KillWait=3
MinJobAge=300
NodeName=DEFAULT CPUs=4 RealMemory=1000 State=UNKNOWN
NodeName=node1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={port_b}
NodeName=node2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={port_c}
PartitionName=debug Nodes=node[1-2] Default=YES MaxTime=INFINITE State=UP
"""


@contextlib.contextmanager
def make_slurm(folder: Path) -> Iterator[Path]:
    """Starts Slurm; yields its config file, which ``SLURM_CONF`` must name."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: Slurm needs root here")
    need("slurmctld", package="slurm-wlm munge")
    need("munged", package="slurm-wlm munge")
    for name in ("munge", "spool/ctld", "spool/node1", "spool/node2", "log"):
        (folder / name).mkdir(parents=True)
    munge = folder / "munge"
    (munge / "munge.key").write_bytes(os.urandom(1024))
    (munge / "munge.key").chmod(0o400)
    config = folder / "slurm.conf"
    ports = {f"port_{daemon}": free_port() for daemon in "abc"}
    config.write_text(CONFIG.format(folder=folder, **ports))
    env = {**os.environ, "SLURM_CONF": str(config)}
    commands = [
        ["munged", "--foreground", f"--key-file={munge}/munge.key", f"--socket={munge}/munge.sock",
         f"--pid-file={munge}/munged.pid", f"--log-file={munge}/munged.log",
         f"--seed-file={munge}/seed", "--force"],
        ["slurmctld", "-D", "-i"],
        ["slurmd", "-D", "-N", "node1"],
        ["slurmd", "-D", "-N", "node2"],
    ]  # fmt: skip
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            with (folder / "log" / command[0]).open("wb") as log:
                started.append(
                    subprocess.Popen(
                        command, env=env, stdout=log, stderr=log, start_new_session=True
                    )
                )
            time.sleep(0.5)
        _wait_until_idle(env, folder)
        yield config
    finally:
        for process in reversed(started):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)


def _wait_until_idle(env: dict[str, str], folder: Path) -> None:
    for _ in range(100):
        answer = subprocess.run(
            ["sinfo", "-h", "-o", "%T %D"], env=env, capture_output=True, text=True, check=False
        )
        if "idle 2" in answer.stdout:
            return
        time.sleep(0.2)
    logs = "\n".join(path.read_text(errors="replace")[-800:] for path in (folder / "log").iterdir())
    pytest.skip(f"NOT TESTED: Slurm did not start here:\n{logs}")
