"""What file names and launcher environments say about rank, node, host and job of a report.

Only numbers of ranks and sizes ever leave an environment, and digests of what jobs are called: it
may hold secrets.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from nsys_tui.model.collective_sizes import payload_fields
from nsys_tui.model.kinds import Kind
from nsys_tui.model.report import Report
from nsys_tui.model.target import PROCESS_MASK

_RANK: Final = (
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
    "JSM_NAMESPACE_RANK",
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
    "RANK",
)
"""Launchers that are closest to the process come first: ``mpirun`` inside a Slurm job leaves every
process the SLURM_PROCID of the job script."""
_WORLD: Final = (
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "JSM_NAMESPACE_SIZE",
    "FLUX_JOB_SIZE",
    "SLURM_NTASKS",
    "WORLD_SIZE",
)
_LOCAL: Final = (
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "PMI_LOCAL_RANK",
    "SLURM_LOCALID",
    "LOCAL_RANK",
)
_LOCAL_SIZE: Final = (
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "MV2_COMM_WORLD_LOCAL_SIZE",
    "PMI_LOCAL_SIZE",
    "SLURM_NTASKS_PER_NODE",
    "LOCAL_WORLD_SIZE",
)
_NODE: Final = ("PALS_NODEID", "SLURM_NODEID", "GROUP_RANK", "NODE_RANK")
_JOB_IDS: Final = (
    *("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "PMIX_NAMESPACE", "MASTER_PORT"),
    *("TORCHELASTIC_RUN_ID", "CI_JOB_ID", "RUNNER_TRACKING_ID", "GITHUB_RUN_ID", "BUILD_TAG"),
    *("BUILDKITE_JOB_ID", "CIRCLE_WORKFLOW_JOB_ID", "SYSTEM_JOBID"),
)
"""What all ranks of a run share, and what two jobs of a scheduler or of CI do not."""
_WANTED: Final = frozenset((*_RANK, *_WORLD, *_LOCAL, *_LOCAL_SIZE, *_NODE))
_VARIABLE: Final = re.compile(r"^([A-Z_0-9]+)=(.+)$")
_COUNT: Final = re.compile(r"\d{1,9}")
_INIT: Final = re.compile(r"^(nccl)?CommInit")


@dataclass(frozen=True)
class Identity:
    """Where one process of a parallel program ran; None or empty where nothing tells."""

    rank: int | None = None
    world: int | None = None
    """Number of ranks."""
    local: int | None = None
    """Rank within its node."""
    local_size: int | None = None
    """Ranks of its node."""
    node: int | None = None
    host: str = ""
    pid: int | None = None
    job: str = ""
    number: int | None = None
    """Last number of a file name: the rank if nothing else tells and all names have another."""
    variable: str = ""
    """Environment variable that gave the rank."""
    others: tuple[tuple[int, str], ...] = ()
    """Ranks by the variables of launchers further away."""
    node_name: str = ""
    """What Slurm calls the node, where its own launcher started the process."""
    jobs: tuple[tuple[str, str], ...] = ()
    """Digests of what jobs are called, by variable."""


def from_environment(values: Iterable[str]) -> Identity:
    """Reads ranks and sizes out of ``NAME=value`` texts; everything else is passed over.

    Args:
        values: single variables, or whole environments with a line or a NUL between variables.
    """
    numbers: dict[str, int] = {}
    jobs: dict[str, str] = {}
    node_name = ""
    for value in values:
        for line in re.split(r"[\0\r\n]", value):
            match = _VARIABLE.match(line)
            if match and match[1] in _JOB_IDS:
                jobs.setdefault(match[1], digest(match[2]))
            if match and match[1] == "SLURMD_NODENAME":
                node_name = match[2].strip()
            if match and match[1] in _WANTED and _COUNT.fullmatch(match[2]):
                numbers.setdefault(match[1], int(match[2]))
    told = [(numbers[name], name) for name in _RANK if name in numbers]
    rank, variable = told[0] if told else (None, "")
    return Identity(
        rank=rank,
        world=_first(numbers, _WORLD),
        local=_first(numbers, _LOCAL),
        local_size=_first(numbers, _LOCAL_SIZE),
        node=_first(numbers, _NODE),
        variable=variable,
        others=tuple(told[1:]),
        node_name=node_name if variable == "SLURM_PROCID" else "",
        jobs=tuple(jobs.items()),
    )


def digest(text: str) -> str:
    """What stands for a text that is to be compared and not to be read."""
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()


def _first(numbers: dict[str, int], names: Iterable[str]) -> int | None:
    return next((numbers[name] for name in names if name in numbers), None)


def environment_of(report: Report) -> Identity:
    """The environment that a report recorded: of the profiled program, else of its machine."""
    for kind, wanted in _ENVIRONMENTS:
        rows = report.rows(kind, "name", "value")
        pairs = zip(rows["name"], rows["value"], strict=True)
        texts = (text for name, text in pairs if name == wanted and isinstance(text, str))
        if (identity := from_environment(texts)) != Identity():
            return identity
    return Identity()


def nccl_ranks(report: Report, world: int | None = None) -> dict[int, list[int]]:
    """globalPid -> ranks in the largest communicator that the process opened, by CUDA device.

    They come from NVTX payloads; where these name no device, they are in the order of ranks.

    Args:
        report: the report.
        world: number of all ranks, where known: smaller communicators number only some of them.
    """
    best: dict[int, tuple[int, set[tuple[int, int]]]] = {}
    for process, values in nccl_inits(report):
        rank, size = values.get("Rank"), values.get("No. of ranks", 0)
        device = values.get("CUDA device", 0)
        if not (isinstance(rank, int) and isinstance(size, int) and isinstance(device, int)):
            continue
        if size < (world or 0):
            continue
        if size > best.get(process, (0, set()))[0]:
            best[process] = size, set()
        if size == best.get(process, (0, set()))[0]:
            best[process][1].add((device, rank))
    return {process: [rank for _, rank in sorted(pairs)] for process, (_, pairs) in best.items()}


def nccl_inits(report: Report) -> Iterator[tuple[int, dict[str, Any]]]:
    """globalPid and payload of each range in which NCCL opens a communicator."""
    ranges = report.ranges
    opens = np.array([_INIT.match(text) is not None for text in ranges.names], bool)
    rows = np.flatnonzero(opens[ranges.name]) if len(opens) else np.empty(0, np.intp)
    if not len(rows):
        return
    payloads = report.payloads
    for row, code in zip(rows.tolist(), payloads.of(ranges.rowid[rows]).tolist(), strict=True):
        process = int(ranges.threads[ranges.thread[row]]) & PROCESS_MASK
        yield process, payload_fields(payloads.texts[code]) if code >= 0 else {}


_ENVIRONMENTS: Final = (
    (Kind.CAPTURE_SETTING, "PROCESS_0:ENVIRONMENT_VARIABLE"),
    (Kind.MACHINE_SETTING, "DeviceEnvironment"),
)
_SEP: Final = r"(?:^|[-_.])"
_NAMED: Final = {
    "rank": re.compile(rf"{_SEP}r(?:ank)?[-_.]?(\d+)(?=$|[-_.])", re.IGNORECASE),
    "node": re.compile(rf"{_SEP}node[-_.]?(\d+)(?=$|[-_.])", re.IGNORECASE),
    "local": re.compile(rf"{_SEP}local(?:[-_]?rank)?[-_.]?(\d+)(?=$|[-_.])", re.IGNORECASE),
    "world": re.compile(rf"{_SEP}of[-_.]?(\d+)(?=$|[-_.])", re.IGNORECASE),
}
_JOB: Final = re.compile(rf"{_SEP}job[-_.]?(\d+)(?=$|[-_.])", re.IGNORECASE)
_PROFILE_NODE: Final = re.compile(r"profile_(\d+)_node_\d+_", re.IGNORECASE)
_PROFILE_JOB: Final = re.compile(r"(?:profile|report)[-_.](\d{5,})$", re.IGNORECASE)
_ON_HOST: Final = re.compile(r"_on_([A-Za-z0-9][A-Za-z0-9._-]*)$")
_AUTO: Final = re.compile(r"auto_[^_]+_(?P<pod>[^_]+)_[^_]+_\d+_[^_]+$")
_HOST_PID: Final = re.compile(
    r"(?:nsys-report-|nsys-|report-|profile-|r_|.*_)?(?P<host>[A-Za-z][A-Za-z0-9.-]*)[-_](?P<pid>\d+)$"
)
_NUMBER: Final = re.compile(r"[-_.](\d{1,5})$")
_VERSION: Final = re.compile(r"[-_.]20\d\d\.\d{1,2}$")


def from_name(stem: str, host: str = "", pids: Collection[int] = ()) -> Identity:
    """Reads the naming schemes that launch scripts use.

    ``profile_77_node_0_rank_3_on_gpu-4``, ``report_big_job77_rank3_on_gpu-4``, ``r_3``,
    ``auto_python_pod-1_main_1712_9f``, ``nsys-report-gpu-4-31337`` (host and process id),
    ``report.3``. The last number of ``heat-2024.5`` is that of a version.

    Args:
        stem: file name without suffix.
        host: host name that the report itself holds.
        pids: process ids that the report holds; a number among them is no rank.
    """
    numbers: dict[str, Any] = {key: int(m[1]) for key, p in _NAMED.items() if (m := p.search(stem))}
    job = next((m[1] for p in (_JOB, _PROFILE_NODE, _PROFILE_JOB) if (m := p.search(stem))), "")
    identity = Identity(**numbers, host=_host_in(stem), job=job)
    if identity.rank is not None or _AUTO.match(stem) or identity.host:
        return identity
    placed = _host_and_pid(stem, host, pids)
    if placed is not None:
        return replace(identity, host=placed[0], pid=placed[1])
    number = None if _VERSION.search(stem) else _NUMBER.search(stem)
    if number and number[1] != job and int(number[1]) not in pids:
        return replace(identity, number=int(number[1]))
    return identity


def _host_in(stem: str) -> str:
    named = _ON_HOST.search(stem)
    if named:
        return named[1]
    auto = _AUTO.match(stem)
    return auto["pod"] if auto else ""


def _host_and_pid(stem: str, host: str, pids: Collection[int]) -> tuple[str, int] | None:
    """``…HOST-PID``: sure where the report knows the host or the process, else by its look."""
    for known in {host, host.partition(".")[0]} - {""}:
        match = re.search(rf"(?:^|[-_.]){re.escape(known)}[-_.](\d+)$", stem)
        if match:
            return host, int(match[1])
    match = _HOST_PID.match(stem)
    if match is None:
        return None
    pid = int(match["pid"])
    if pid in pids or (len(match["pid"]) >= 3 and stem.startswith("nsys-report-")):
        return match["host"], pid
    return None


def merged(first: Identity, second: Identity) -> Identity:
    """What ``first`` does not tell, ``second`` may."""
    missing = {
        field.name: getattr(second, field.name)
        for field in fields(first)
        if getattr(first, field.name) in (None, "")
    }
    return replace(first, **missing)
