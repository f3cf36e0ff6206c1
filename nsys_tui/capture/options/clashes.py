"""Rules about options together: what closes, hides, starves or contradicts what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Final

from nsys_tui.capture.options.draft import ERROR, NOTE, WARNING, Check, Draft, rule
from nsys_tui.capture.options.functions_trace import check, modules
from nsys_tui.capture.options.table import name_there

REGISTER_ONLY: Final = "NSYS_NVTX_PROFILER_REGISTER_ONLY"
WRAPPERS: Final = re.compile("torchrun|deepspeed|accelerate|mpirun|mpiexec|horovodrun")
CLIENTS: Final = re.compile("srun|sbatch|salloc|docker|podman|kubectl|ssh")
"""They ask a server to start the program, which is then no child of nsys."""
_UNIQUE: Final = ("%q{", "%p", "%n")


@rule
def nvtx_capture(draft: Draft) -> Iterator[Check]:
    """An NVTX range as the capture range."""
    by_nvtx = draft.value("capture-range") == "nvtx"
    if by_nvtx and not draft.given("nvtx-capture"):
        yield Check(
            ERROR, "nvtx-capture", "--capture-range=nvtx needs the name of the range",
            "for instance --nvtx-capture=step@*",
        )  # fmt: skip
    if draft.given("nvtx-capture") and not by_nvtx:
        yield Check(
            WARNING, "nvtx-capture", "--nvtx-capture does nothing by itself",
            "add --capture-range=nvtx",
        )  # fmt: skip
    if by_nvtx and draft.env.get(REGISTER_ONLY) != "0":
        yield Check(
            WARNING, "nvtx-capture",
            "only registered NVTX strings open it, such as Python's nvtx has, and PyTorch has not",
            f"set {REGISTER_ONLY}=0 in the environment, so that others open it too",
        )  # fmt: skip
    wanted = draft.value("nvtx-capture").rpartition("@")
    if by_nvtx and any(mark in (wanted[0] or wanted[2]) for mark in "*?"):
        yield Check(
            WARNING, "nvtx-capture",
            f"nsys compares the whole name of a range: {wanted[0] or wanted[2]} is no pattern",
            "name one range, such as 'step 5@*'; only the domain may be *",
        )  # fmt: skip


@rule
def capture_range(draft: Draft) -> Iterator[Check]:
    """What the capture range does to the program and to other options."""
    ranged = draft.wants("capture-range")
    if draft.given("capture-range-end") and not ranged:
        yield Check(
            ERROR, "capture-range-end", "nsys refuses --capture-range-end without a range",
            "add --capture-range",
        )  # fmt: skip
    if ranged and draft.value("capture-range-end") == "stop-shutdown":
        yield Check(
            NOTE, "capture-range-end", "the program is ended when the range closes",
            "--capture-range-end=stop lets it run on",
        )  # fmt: skip
    if ranged and draft.given("delay"):
        said = "when the delay is over nsys collects, be the range open or not"
        yield Check(WARNING, "delay", said, "leave one of them out")
    if draft.value("stop-on-exit") == "false" and not draft.given("duration"):
        said = "nsys may collect on without end when the program has ended"
        yield Check(WARNING, "stop-on-exit", said, "add --duration")
    if draft.given("duration") and draft.value("kill") != "none":
        yield Check(
            NOTE, "duration", "the program is ended when the time is over",
            "--kill=none lets it run on",
        )  # fmt: skip


@rule
def cuda_graphs(draft: Draft) -> Iterator[Check]:
    """Whole graphs hide kernels; nodes cost."""
    if draft.value("cuda-graph-trace").startswith("node"):
        yield Check(
            NOTE, "cuda-graph-trace", "tracing graph nodes costs time in every launch",
            "graph is cheap and hides the kernels inside",
        )  # fmt: skip
    elif draft.given("cuda-graph-trace"):
        yield Check(
            NOTE, "cuda-graph-trace", "kernels inside CUDA graphs do not show", "node shows them"
        )


@rule
def traces(draft: Draft) -> Iterator[Check]:
    """A trace list that leaves out what the user looks for."""
    words = draft.words("trace")
    if "none" in words and len(words) > 1:
        yield Check(ERROR, "trace", "none cannot stand beside other traces")
    implied = ("cuda", "cuda-sw", "cublas", "cudnn", "cusolver", "cusparse", "cudla")
    turned_on = draft.value("capture-range") == "cudaProfilerApi"
    if not (turned_on or "none" in words or any(word.startswith(implied) for word in words)):
        yield Check(WARNING, "trace", "without cuda there are no kernels in the report", "add cuda")
    if draft.given("nvtx-domain-include") and draft.given("nvtx-domain-exclude"):
        yield Check(ERROR, "nvtx-domain-include", "include and exclude cannot stand together")


@rule
def sampling(draft: Draft) -> Iterator[Check]:
    """CPU sampling, what needs it and what it needs."""
    sampling_on = draft.wants("sample")
    for name in ("cudabacktrace", "python-backtrace"):
        if draft.wants(name) and not sampling_on:
            said = f"--{name} collects nothing without CPU sampling"
            yield Check(WARNING, name, said, "set --sample=process-tree")
    if draft.wants("python-backtrace") and not draft.wants("cudabacktrace"):
        said = "--python-backtrace collects nothing without --cudabacktrace"
        yield Check(WARNING, "python-backtrace", said, "add --cudabacktrace=all")
    if sampling_on and draft.given("cpuctxsw") and draft.value("cpuctxsw") != draft.value("sample"):
        yield Check(
            NOTE, "cpuctxsw", "nsys gives --cpuctxsw the value of --sample unless that is none"
        )
    yield from _sampling_there(draft, sampling_on=sampling_on)


def _sampling_there(draft: Draft, *, sampling_on: bool) -> Iterator[Check]:
    """What the target allows, by nsys's own look at it and by the kernel's setting."""
    facts, scope = draft.facts, draft.value("sample")
    if sampling_on and scope.replace("cpu", "process-tree") in facts.refused_scopes:
        yield Check(
            WARNING, "sample", f"nsys status -e there: CPU profiling ({scope}) fails",
            "nsys-tui targets check shows its lines; or --sample=none --cpuctxsw=none",
        )  # fmt: skip
    paranoid = facts.paranoid
    if paranoid is None or facts.root:
        return
    wants = sampling_on or draft.wants("cpuctxsw")
    if paranoid > 2 and wants:
        yield Check(
            WARNING, "sample", f"perf_event_paranoid is {paranoid} there: no CPU samples",
            "kernel.perf_event_paranoid=2 (administrator), or --sample=none --cpuctxsw=none",
        )  # fmt: skip
    elif paranoid == 2 and sampling_on:
        yield Check(NOTE, "sample", "perf_event_paranoid is 2 there: samples of user space only")


@rule
def gpu_metrics(draft: Draft) -> Iterator[Check]:
    """GPU metrics need rights, and one session per GPU."""
    if not draft.wants("gpu-metrics-devices"):
        return
    if draft.facts.gpu_admin_only and not draft.facts.root:
        yield Check(
            WARNING, "gpu-metrics-devices", "the driver there gives GPU counters to administrators",
            "an administrator sets NVreg_RestrictProfilingToAdminUsers=0 (ERR_NVGPUCTRPERM)",
        )  # fmt: skip
    if draft.processes > 1:
        yield Check(
            WARNING, "gpu-metrics-devices", "only one nsys per node can read GPU metrics",
            "profile one rank per node with them",
        )  # fmt: skip


@rule
def many_processes(draft: Draft) -> Iterator[Check]:
    """Several nsys with one output name overwrite or refuse each other."""
    several = draft.processes > 1
    if several and draft.output and not any(mark in draft.output for mark in _UNIQUE):
        yield Check(
            ERROR, "output", f"{draft.processes} processes would write the same report",
            "put %h.%p in the name, or give none: each rank then gets its number",
        )  # fmt: skip
    wrapper = PurePath(draft.program[0]).name if draft.program else ""
    if WRAPPERS.fullmatch(wrapper) and not several:
        yield Check(
            NOTE,
            "program",
            f"one report will hold all processes that {wrapper} starts on this node",
        )
    if CLIENTS.fullmatch(wrapper):
        yield Check(
            WARNING, "program", f"the report will hold {wrapper} alone, not what it has started",
            "name that program, on a target whose launcher or host leads there",
        )  # fmt: skip


@rule
def functions_trace(draft: Draft) -> Iterator[Check]:
    """Functions that nsys would skip in silence."""
    if not draft.functions_json:
        return
    known = draft.facts.options
    if known and name_there("python-functions-trace", known) not in known:
        yield Check(
            ERROR, "python-functions-trace", "the nsys there does not know it", "use a newer one"
        )
    scripts = {PurePath(word).stem for word in draft.program if word.endswith(".py")}
    for module in sorted(scripts & modules(draft.functions_json)):
        yield Check(
            WARNING, "python-functions-trace",
            f"{module} is the script itself: it runs as __main__ and is never imported as {module}",
            "move its functions to a module that the script imports",
        )  # fmt: skip
    for remark in check(draft.functions_json, "functions trace"):
        yield Check(NOTE, "python-functions-trace", remark)


@rule
def end_of_run(draft: Draft) -> Iterator[Check]:
    """Work at the end that a time limit may cut."""
    for name in ("stats", "export"):
        if draft.wants(name):
            yield Check(
                NOTE, name, f"--{name} makes the end of the run longer",
                "a batch time limit may cut it off",
            )  # fmt: skip
    if draft.value("show-output") == "false":
        yield Check(NOTE, "show-output", "the program's own output will not be in the log")
