"""Ready-made sets of options for common situations; the user's own come from the config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from nsys_tui.capture.options.advice import advise
from nsys_tui.capture.options.draft import NOTE, Draft
from nsys_tui.capture.options.table import OPTIONS, Kind, name_there, read_words
from nsys_tui.capture.options.target_facts import Facts
from nsys_tui.config import CaptureConfig
from nsys_tui.config_values import OptionValue


@dataclass(frozen=True)
class Preset:
    """A named set of options, and the environment that it needs to work."""

    name: str
    about: str
    options: Mapping[str, OptionValue]
    env: Mapping[str, str] = field(default_factory=dict)
    asks: str = ""
    """The question that a capture with these options answers."""
    cost: str = ""
    """What the options of a question cost: the program's time, and the size of the export.

    Sizes are of real exports, by bytes a row: 100 + 40 of a kernel and its call, 42 of a frame of a
    stack (with its index), 26 of a context switch, 25 of a value of a metric.
    """


def _preset(name: str, about: str, line: str, asks: str = "", cost: str = "", **env: str) -> Preset:
    """A preset by the options as one types them; lists are separated by commas."""
    words = read_words(line.split())
    options: dict[str, OptionValue] = {
        name: tuple(value.split(",")) if OPTIONS[name].kind is Kind.WORDS else value
        for name, value in words.items()
    }
    return Preset(name, about, options, env, asks, cost)


_BUILT_IN: Final = (
    _preset(
        "pytorch training",
        "CUDA, NVTX and library calls between cudaProfilerStart and Stop, with Python stacks",
        "--trace=cuda,nvtx,osrt,cudnn,cublas --capture-range=cudaProfilerApi"
        " --capture-range-end=stop --cuda-graph-trace=node --cudabacktrace=kernel"
        " --python-backtrace=cuda --cuda-memory-usage=true",
    ),
    _preset(
        "inference",
        "graph nodes and a fixed window of a server that keeps running",
        "--trace=cuda,nvtx,osrt --cuda-graph-trace=node --delay=10 --duration=10 --kill=none"
        " --trace-fork-before-exec=true --sample=none --cpuctxsw=none",
    ),
    _preset(
        "hpc mpi",
        "MPI, OpenMP and OpenACC beside CUDA, with CPU sampling",
        "--trace=cuda,nvtx,osrt,mpi,openmp,openacc --sample=process-tree",
    ),
    _preset(
        "first seconds",
        "5 s after a delay of 20 s; the program runs on",
        "--trace=cuda,nvtx,osrt --delay=20 --duration=5 --kill=none",
    ),
    _preset(
        "first nvtx step",
        "the NVTX range named just step, in any domain; nsys knows no patterns, so where steps have"
        " numbers: --nvtx-capture='step 5@*'",
        "--trace=cuda,nvtx,osrt --capture-range=nvtx --nvtx-capture=step@*"
        " --capture-range-end=stop",
        NSYS_NVTX_PROFILER_REGISTER_ONLY="0",
    ),
    _preset(
        "low overhead",
        "kernels and ranges only",
        "--trace=cuda,nvtx --sample=none --cpuctxsw=none",
    ),
    _preset(
        "why idle",
        "what the launching threads do meanwhile: their calls, stacks, sleep and waits",
        "--trace=cuda,nvtx,osrt --sample=process-tree --cpuctxsw=process-tree --cudabacktrace=sync",
        "Why is the GPU idle?",
        "run ≈ 3-10% longer; file ≈ 1.4 MB per 10,000 launches, 1.3 MB/s a busy core",
    ),
    _preset(
        "which kernels",
        "every kernel and copy, those inside of CUDA graphs too, and nothing of the host",
        "--trace=cuda,nvtx --sample=none --cpuctxsw=none --cuda-graph-trace=node",
        "Which kernels take the time?",
        "run ≈ 1-3% longer, graphs more; file ≈ 1.4 MB per 10,000 launches",
    ),
    _preset(
        "which python line",
        "Python stacks: sampled, and of every call that launches work",
        "--trace=cuda,nvtx,osrt --sample=process-tree --cudabacktrace=kernel"
        " --python-backtrace=cuda --python-sampling=true",
        "Which line of Python?",
        "run ≈ 5-20% longer; file ≈ 15 MB per 10,000 launches, 1.3 MB/s a thread",
    ),
    _preset(
        "communication",
        "collectives with their sizes, MPI and UCX calls, traffic of links and network cards",
        "--trace=cuda,nvtx,mpi,ucx --sample=none --cpuctxsw=none"
        " --gpu-metrics-devices=cuda-visible --nic-metrics=true",
        "Does communication hold it up?",
        "run ≈ 1-5% longer; file ≈ 1.4 MB per 10,000 launches, 6 MB/s a GPU",
    ),
    _preset(
        "everything, short",
        "all of the above from second 20 on; the program runs on",
        "--trace=cuda,nvtx,osrt,cublas,cudnn,mpi --sample=process-tree --cpuctxsw=process-tree"
        " --cuda-graph-trace=node --cuda-memory-usage=true --cudabacktrace=kernel"
        " --python-backtrace=cuda --gpu-metrics-devices=cuda-visible --delay=20 --duration=5"
        " --kill=none",
        "Everything, for five seconds",
        "these seconds take ≈ 10-30% longer; file ≈ 50-200 MB",
    ),
)


def built_in() -> tuple[str, ...]:
    """Names of the presets that are always there."""
    return tuple(preset.name for preset in _BUILT_IN)


def presets(config: CaptureConfig | None = None) -> Mapping[str, Preset]:
    """All presets by name, the built-in ones first; a user's preset of the same name wins."""
    by_name = {preset.name: preset for preset in _BUILT_IN}
    for name, options in (config.presets if config else {}).items():
        by_name[name] = Preset(name, "from the config file", options)
    return MappingProxyType(by_name)


KEPT_GROUPS = ("window", "net")
"""Options that say when, not what, is recorded: another question leaves them as they are."""


@dataclass(frozen=True)
class Fit:
    """What of some options the target can do."""

    options: Mapping[str, OptionValue]
    lost: tuple[str, ...]
    """What it cannot, and why."""


def questions() -> list[Preset]:
    """The presets that answer a question."""
    return [preset for preset in presets().values() if preset.asks]


def fitted(options: Mapping[str, OptionValue], facts: Facts | None) -> Fit:
    """Leaves out what the target's own help and rights refuse.

    Args:
        options: as one would like them.
        facts: what is known of the target; None leaves all in.
    """
    if facts is None:
        return Fit(dict(options), ())
    left, lost = _known_words(options, facts), []
    refused = True
    while refused:
        remarks = advise(Draft(left, program=("program",), facts=facts))
        refused = False
        for remark in remarks:
            if remark.severity == NOTE or left.get(remark.name, "none") == "none":
                continue
            refused = True
            lost.append(remark.text)
            left.pop(remark.name)
            if remark.name == "sample":
                left |= {"sample": "none", "cpuctxsw": "none"}
    return Fit(left, tuple(lost))


def _known_words(options: Mapping[str, OptionValue], facts: Facts) -> dict[str, OptionValue]:
    """Lists without the words that the nsys there does not list."""
    left = dict(options)
    for name, value in options.items():
        option = facts.options.get(name_there(name, facts.options))
        if isinstance(value, tuple) and option is not None and option.values:
            left[name] = tuple(word for word in value if word in option.values)
    return left


def changed(
    options: Mapping[str, OptionValue], wanted: Mapping[str, OptionValue]
) -> dict[str, OptionValue]:
    """Options of a capture that asks something else: when it records stays, what goes."""
    kept = {
        name: value
        for name, value in options.items()
        if name not in OPTIONS or OPTIONS[name].group in KEPT_GROUPS
    }
    return kept | dict(wanted)


def added(options: Mapping[str, OptionValue], line: str) -> dict[str, OptionValue]:
    """Options with those of a command line such as ``nsys profile --cpuctxsw=process-tree``.

    Lists are joined; words that are no options are passed over.
    """
    given = read_words(word for word in line.split() if word.startswith("--") and "=" in word)
    merged = dict(options)
    for name, text in given.items():
        option = OPTIONS.get(name)
        if option is None or option.kind is not Kind.WORDS:
            merged[name] = text
            continue
        before = merged.get(name, option.default)
        words = before.split(",") if isinstance(before, str) else before
        words = [word for word in words if word != "none"]
        merged[name] = tuple(dict.fromkeys([*words, *text.split(",")]))
    return merged
