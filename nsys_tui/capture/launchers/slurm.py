"""Slurm: ``srun`` and ``sbatch``, what its words mean, and the faults of a job script.

Nothing here talks to Slurm; the functions of ``slurm.sh`` do, over there.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from nsys_tui.capture.launchers import Launcher, QueueState, Target, register, words_field

_LONG_SHORT: Final = {"ntasks": "n", "nodes": "N", "time": "t"}

QUEUED: Final = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED",
                           "SPECIAL_EXIT", "RESV_DEL_HOLD", "SUSPENDED"})  # fmt: skip
RUNNING: Final = frozenset(
    {"RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED", "RESIZING"}
)

_STATES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CANCELLED": "the job was cancelled",
        "TIMEOUT": "the job ran into its time limit",
        "DEADLINE": "the job ran into its deadline",
        "NODE_FAIL": "a node failed",
        "BOOT_FAIL": "a node did not start",
        "OUT_OF_MEMORY": "the job ran out of memory",
        "PREEMPTED": "the job was pre-empted by another",
        "FAILED": "the job failed",
        "COMPLETED": "the job ended",
        "REVOKED": "the job was taken to another cluster",
    }
)
_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Resources": "waiting for free resources",
        "Priority": "other jobs go first",
        "Dependency": "waiting for another job",
        "JobHeldUser": "held by the user: scontrol release starts it",
        "JobHeldAdmin": "held by an administrator",
        "BeginTime": "its begin time has not come",
        "ReqNodeNotAvail": "a node it asked for is not available",
        "PartitionDown": "the partition is down",
        "PartitionTimeLimit": "it asks for more time than the partition allows",
        "PartitionNodeLimit": "it asks for more nodes than the partition allows",
        "QOSMaxJobsPerUserLimit": "the limit of jobs per user is reached",
        "AssocGrpGRES": "the account's GPU limit is reached",
        "QOSMaxGRESPerUser": "the limit of GPUs per user is reached",
        "Licenses": "waiting for a licence",
        "BadConstraints": "no node can ever satisfy what it asks for",
    }
)

SBATCH_OPTIONS: Final = frozenset(
    {
        "account", "acctg-freq", "array", "batch", "bb", "bbf", "begin", "chdir",
        "cluster-constraint", "clusters", "comment", "constraint", "container", "contiguous",
        "core-spec", "cores-per-socket", "cpu-freq", "cpus-per-gpu", "cpus-per-task",
        "deadline", "delay-boot", "dependency", "distribution", "error", "exclude", "exclusive",
        "export", "export-file", "extra-node-info", "get-user-env", "gid", "gpu-bind",
        "gpu-freq", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres",
        "gres-flags", "hint", "hold", "ignore-pbs", "input", "job-name", "kill-on-invalid-dep",
        "licenses", "mail-type", "mail-user", "mcs-label", "mem", "mem-bind", "mem-per-cpu",
        "mem-per-gpu", "mincpus", "network", "nice", "no-kill", "no-requeue", "nodefile",
        "nodelist", "nodes", "ntasks", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node",
        "ntasks-per-socket", "open-mode", "output", "overcommit", "oversubscribe", "parsable",
        "partition", "power", "prefer", "priority", "profile", "propagate", "qos", "quiet",
        "reboot", "requeue", "reservation", "signal", "sockets-per-node", "spread-job",
        "switches", "test-only", "thread-spec", "threads-per-core", "time", "time-min", "tmp",
        "uid", "use-min-nodes", "verbose", "wait", "wait-all-nodes", "wckey", "wrap",
    }
)  # fmt: skip


def parse_job(line: str) -> QueueState:
    """Reads ``id|state|reason|nodes`` as the supervisor sends it."""
    job, said, reason, nodes, *_ = [*line.split("|"), "", "", ""]
    state = (said.split() or [""])[0]
    reason = reason.strip("()")
    told = _REASONS.get(reason, "" if reason in ("", "None") else reason)
    queued, over = state in QUEUED, state not in QUEUED | RUNNING
    words = _STATES.get(state, state.lower()) + (f" ({told})" if told and over else "")
    return QueueState(
        job.strip(),
        told or state.lower() if queued else words,
        queued,
        state == "RUNNING",
        over and state != "COMPLETED",
        nodes,
    )


def argument(args: Sequence[str], name: str) -> str:
    """The value of a Slurm option in any of its spellings; the last one counts."""
    short = f"-{_LONG_SHORT.get(name, ' ')}"
    value = ""
    for position, item in enumerate(args):
        following = args[position + 1] if position + 1 < len(args) else ""
        if item.startswith(f"--{name}="):
            value = item.partition("=")[2]
        elif item in (f"--{name}", short):
            value = following
        elif item.startswith(short) and not item.startswith("--"):
            value = item[2:]
    return value


def _count(text: str) -> int:
    match = re.match(r"\d+", text)
    return int(match[0]) if match else 0


def expected_processes(args: Sequence[str]) -> int:
    """How many tasks these arguments start, as far as they say; 1 when they say nothing."""
    tasks = _count(argument(args, "ntasks"))
    nodes = _count(argument(args, "nodes")) or 1
    per_node = _count(argument(args, "ntasks-per-node"))
    return tasks or nodes * (per_node or 1)


def seconds(limit: str) -> int | None:
    """A Slurm time limit (``20``, ``20:00``, ``1:20:00``, ``2-0:0:0``) in seconds."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", limit)
    if match is None:
        return None
    days, *rest = match.groups()
    numbers = [int(part) for part in rest if part is not None]
    if days is not None:
        hours, minutes, secs = [*numbers, 0, 0][:3]
    elif len(numbers) == 3:
        hours, minutes, secs = numbers
    else:
        hours, (minutes, secs) = 0, [*numbers, 0][:2]
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + secs


def batch_script(args: Sequence[str], body: str) -> tuple[str, list[str]]:
    """A job script with its ``#SBATCH`` lines, and the arguments that no such line can carry.

    Args:
        args: arguments for ``sbatch`` from the target.
        body: the commands.
    """
    plain = [item for item in args if re.fullmatch(r"-[\w:,.=/+@%-]+", item)]
    plain = plain if len(plain) == len(args) else []
    lines = "".join(f"#SBATCH {item}\n" for item in plain)
    return f"#!/bin/sh\n{lines}{body}", [] if plain else list(args)


_GAP: Final = r"(?:[ \t]|\\\n)+"
_OPTION: Final = rf"{_GAP}-(?:\S*=\S*|\S+{_GAP}[^-\s]\S*)"
_AROUND_SRUN: Final = re.compile(
    rf"^[^#\n]*\bnsys{_GAP}profile(?:{_OPTION})*{_GAP}srun\b", re.MULTILINE
)


def lint(script: str, needed_s: float = 0) -> list[str]:
    """Faults of a job script that Slurm passes over in silence, or finds too late.

    And an nsys around ``srun``, whose tasks are no children of it.

    Args:
        script: the text of the script.
        needed_s: seconds that the capture asks for (delay + duration + grace); 0 = unknown.
    """
    faults = []
    began = ""
    for number, line in enumerate(script.splitlines(), 1):
        text = line.strip()
        if text.startswith("#SBATCH"):
            if began:
                faults.append(
                    f"line {number}: #SBATCH after the first command ({began}) is ignored"
                )
            faults += [f"line {number}: {fault}" for fault in _directive_faults(text, needed_s)]
        elif re.match(r"#\s*[A-Za-z]+\b", text) and _looks_like_directive(text):
            faults.append(f"line {number}: {text.split()[0]} is not #SBATCH, so Slurm ignores it")
        elif text and not text.startswith("#") and not began:
            began = f"line {number}"
    for around in _AROUND_SRUN.finditer(script):
        number = script.count("\n", 0, around.start()) + 1
        faults.append(f"line {number}: nsys sees srun alone, not its tasks: srun nsys profile ...")
    return faults


def _looks_like_directive(text: str) -> bool:
    first, _, rest = text.partition(" ")
    if first == "#":
        first, _, rest = text[1:].strip().partition(" ")
        first = "#" + first
    near = difflib.SequenceMatcher(None, first.upper(), "#SBATCH").ratio()
    return near >= 0.7 and rest.lstrip().startswith("-")


def _directive_faults(text: str, needed_s: float) -> Iterable[str]:
    words = text.split()[1:]
    for item in words:
        if item.startswith("--"):
            name = item[2:].partition("=")[0]
            if name not in SBATCH_OPTIONS:
                near = difflib.get_close_matches(name, SBATCH_OPTIONS, 1)
                yield f"--{name} is no option of sbatch" + (
                    f"; did you mean --{near[0]}?" if near else ""
                )
    limit = seconds(argument(words, "time"))
    if limit is not None and needed_s and limit < needed_s:
        yield f"a time limit of {limit} s, and the capture needs {needed_s:.0f} s"


class Srun(Launcher):
    """The supervisor on the login node runs ``srun``, which ends with its allocation."""

    name = "srun"
    about = "a Slurm step, run from the login node"
    title = "Slurm"
    fields = (words_field("slurm.args", "Slurm", "--partition=gpu --gres=gpu:4 --time=00:20:00"),)
    tools = ("srun", "squeue", "scancel")
    variable = "SLURM_JOB_ID"
    scheduler = "slurm"
    shell = "slurm.sh"
    rank_mark = "%q{SLURM_PROCID}"

    def read_queue(self, line: str) -> QueueState:
        """Reads ``id|state|reason|nodes``."""
        return parse_job(line)

    def processes(self, target: Target) -> int:
        """Tasks that the arguments ask for."""
        return expected_processes(target.own["slurm.args"])

    def command(self, target: Target, capture: str, argv: Sequence[str]) -> list[str]:
        """nsys in each task of a step that carries the capture's id."""
        return [*_step(capture), *target.own["slurm.args"], *argv]

    def typed(self, target: Target, argv: Sequence[str], env: Sequence[str], cwd: str) -> list[str]:
        """``srun`` before the rest."""
        return ["srun", *target.own["slurm.args"], *super().typed(target, argv, env, cwd)]


class Sbatch(Srun):
    """The supervisor submits a job script, and asks the queue about it."""

    name = "sbatch"
    about = "a Slurm job, submitted and waited for"
    tools = ("sbatch", "squeue", "scancel")

    def command(self, target: Target, capture: str, argv: Sequence[str]) -> list[str]:
        """A step of the job, which has the arguments already."""
        return [*_step(capture), *argv]

    def typed(self, target: Target, argv: Sequence[str], env: Sequence[str], cwd: str) -> list[str]:
        """The command inside the job script."""
        return Launcher.typed(self, target, argv, env, cwd)

    def batch_script(self, target: Target, body: str, *, once: bool) -> tuple[str, list[str]]:
        """The job script; arguments that no ``#SBATCH`` line can carry stay beside it."""
        text, args = batch_script(target.own["slurm.args"], body)
        return text, [*args, *(["--no-requeue"] if once else [])]

    def faults(self, target: Target, needed_s: float) -> list[str]:
        """What Slurm passes over in silence in the arguments and the preamble."""
        args = " ".join(target.own["slurm.args"])
        directives = lint(f"#SBATCH {args}\n", needed_s) if args else []
        preamble = lint(f":\n{target.settings.preamble}\n")
        return [f"slurm.args: {fault.partition(': ')[2]}" for fault in directives] + [
            f"preamble: {fault.partition(': ')[2]}" for fault in preamble
        ]


def _step(capture: str) -> list[str]:
    return ["srun", "--unbuffered", "--export=ALL", f"--job-name=nt-{capture}"]


register(Srun())
register(Sbatch())
