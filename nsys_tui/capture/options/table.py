"""The options of ``nsys profile`` that the form and the command line know, as one table.

A new option is one line here: the form, ``--help``, the argv and the checks follow from it. What
options mean to each other stands in :mod:`nsys_tui.capture.options.advice`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from nsys_tui.errors import UsageError

_WORD: Final = re.compile(
    r"--(?P<long>[A-Za-z][\w-]*)(?:=(?P<value>.*))?|-(?P<short>[A-Za-z])=?(?P<rest>.*)", re.DOTALL
)


class Kind(Enum):
    """How a value is written and checked."""

    WORDS = "list"
    CHOICE = "choice"
    FLAG = "true|false"
    SECONDS = "seconds"
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True)
class Option:
    """One option of ``nsys profile``.

    Attributes:
        name: nsys's long name without the dashes.
        kind: how the value is written.
        default: what nsys does when the option is left out; empty = releases differ.
        help: one line for the form and for ``--help``.
        choices: known values; an unknown one is a warning, since nsys learns new ones.
        group: the row of the form it belongs to.
        lacking: the newest release that is known not to have it; 2022.4 and 2023.4 were asked.
    """

    name: str
    kind: Kind
    default: str
    help: str
    choices: tuple[str, ...] = ()
    group: str = "more"
    lacking: str = ""

    @property
    def about(self) -> str:
        """The line of help, with the releases that have the option if not all do."""
        return f"{self.help}; nsys newer than {self.lacking}" if self.lacking else self.help

    @property
    def flag(self) -> str:
        """The option as it stands on a command line."""
        return f"--{self.name}"


TRACES: Final = (
    "cuda", "cuda-sw", "nvtx", "osrt", "cublas", "cublas-verbose", "cudnn", "cusolver",
    "cusolver-verbose", "cusparse", "cusparse-verbose", "cudla", "cudla-verbose", "openacc",
    "openmp", "mpi", "nccl", "ucx", "oshmem", "python-gil", "gds", "s3", "s3-verbose", "syscall",
    "nvvideo", "vulkan", "vulkan-annotations", "opengl", "opengl-annotations", "dx11",
    "dx11-annotations", "dx12", "dx12-annotations", "openxr", "openxr-annotations", "wddm",
    "tegra-accelerators", "none",
)  # fmt: skip
RANGE_ENDS: Final = ("none", "stop", "stop-shutdown", "repeat", "repeat-shutdown")
_SCOPES: Final = ("process-tree", "system-wide", "none")

_TABLE: Final = (
    Option("trace", Kind.WORDS, "cuda,opengl,nvtx,osrt", "APIs to trace", TRACES, "trace"),
    Option("capture-range", Kind.CHOICE, "none", "what opens the capture",
           ("none", "cudaProfilerApi", "nvtx", "hotkey"), "window"),
    Option("capture-range-end", Kind.TEXT, "stop-shutdown", "what follows when the range closes",
           RANGE_ENDS, "window"),
    Option("nvtx-capture", Kind.TEXT, "none", "range@domain that opens the capture", (), "window"),
    Option("delay", Kind.SECONDS, "0", "seconds before collecting", (), "window"),
    Option("duration", Kind.SECONDS, "none", "seconds to collect", (), "window"),
    Option("kill", Kind.TEXT, "sigterm", "signal to the program when collecting ends",
           ("none", "sigkill", "sigterm"), "window"),
    Option("wait", Kind.CHOICE, "all", "processes to wait for", ("primary", "all"), "window"),
    Option("sample", Kind.CHOICE, "process-tree", "CPU sampling", (*_SCOPES, "cpu", "xhv"), "cpu"),
    Option("cpuctxsw", Kind.CHOICE, "process-tree", "CPU context switches", _SCOPES, "cpu"),
    Option("backtrace", Kind.CHOICE, "", "how CPU stacks are unwound",
           ("auto", "fp", "lbr", "dwarf", "none"), "cpu"),
    Option("samples-per-backtrace", Kind.NUMBER, "1", "samples per CPU stack", (), "cpu"),
    Option("osrt-threshold", Kind.NUMBER, "1000", "shortest OS call kept, ns", (), "cpu"),
    Option("osrt-backtrace-threshold", Kind.NUMBER, "80000", "shortest OS call with a stack, ns",
           (), "cpu"),
    Option("cudabacktrace", Kind.TEXT, "none", "stacks of CUDA calls",
           ("all", "none", "kernel", "memory", "sync", "other"), "stacks"),
    Option("python-sampling", Kind.FLAG, "false", "Python stacks", (), "stacks",
           "2022.4"),
    Option("python-sampling-frequency", Kind.NUMBER, "1000", "Python samples a second", (),
           "stacks", "2022.4"),
    Option("python-backtrace", Kind.CHOICE, "none", "Python stacks of CUDA calls",
           ("cuda", "none"), "stacks", "2022.4"),
    Option("python-functions-trace", Kind.TEXT, "none",
           "functions to mark: module:function, or a JSON file", (), "stacks", "2023.4"),
    Option("pytorch", Kind.WORDS, "none", "ready-made PyTorch ranges",
           ("autograd-nvtx", "autograd-shapes-nvtx", "functions-trace", "functions-trace-shapes",
            "none"), "stacks", "2023.4"),
    Option("cuda-graph-trace", Kind.TEXT, "graph", "CUDA graphs as a whole or node by node",
           ("graph", "node"), "gpu"),
    Option("cuda-memory-usage", Kind.FLAG, "false", "GPU memory in use", (), "gpu"),
    Option("cuda-um-cpu-page-faults", Kind.FLAG, "false", "unified memory, CPU faults", (), "gpu"),
    Option("cuda-um-gpu-page-faults", Kind.FLAG, "false", "unified memory, GPU faults", (), "gpu"),
    Option("cuda-flush-interval", Kind.NUMBER, "0", "flush trace buffers every N ms", (), "gpu"),
    Option("flush-on-cudaprofilerstop", Kind.FLAG, "true", "flush at cudaProfilerStop", (), "gpu",
           "2022.4"),
    Option("cuda-event-trace", Kind.TEXT, "false", "completion of CUDA events",
           ("auto", "true", "false"), "gpu", "2023.4"),
    Option("gpu-metrics-devices", Kind.TEXT, "none", "GPUs whose metrics are sampled",
           ("none", "all", "cuda-visible"), "gpu", "2023.4"),
    Option("gpu-metrics-frequency", Kind.NUMBER, "10000", "GPU metrics, samples a second", (),
           "gpu"),
    Option("gpu-metrics-set", Kind.TEXT, "auto", "set of GPU metrics", (), "gpu"),
    Option("nic-metrics", Kind.TEXT, "none", "network cards",
           ("none", "lf", "hf", "hf-via-dts", "true", "false"), "net"),
    Option("mpi-impl", Kind.CHOICE, "auto", "MPI flavour", ("openmpi", "mpich"), "net"),
    Option("nccl-trace", Kind.WORDS, "none", "NCCL internals", (), "net", "2023.4"),
    Option("nvtx-domain-include", Kind.WORDS, "all", "NVTX domains to keep", (), "trace"),
    Option("nvtx-domain-exclude", Kind.WORDS, "none", "NVTX domains to leave out", (), "trace"),
    Option("trace-fork-before-exec", Kind.FLAG, "false", "trace forked children without exec", (),
           "trace"),
    Option("stop-on-exit", Kind.FLAG, "true", "stop when the program exits", (), "window"),
    Option("show-output", Kind.FLAG, "true", "pass the program's output on"),
    Option("force-overwrite", Kind.FLAG, "false", "overwrite a report of that name"),
    Option("stats", Kind.FLAG, "false", "print summary tables at the end"),
    Option("export", Kind.WORDS, "none", "further formats written at the end",
           ("none", "sqlite", "arrow", "arrowdir", "parquetdir", "hdf", "jsonlines", "text")),
    Option("resolve-symbols", Kind.FLAG, "true", "resolve symbols at the end"),
)  # fmt: skip

OPTIONS: Final[Mapping[str, Option]] = MappingProxyType({item.name: item for item in _TABLE})

RENAMED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "stop-on-range-end": "capture-range-end",
        "gpu-metrics-device": "gpu-metrics-devices",
    }
)
"""Deprecated spelling to the one that took its place."""

_SAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gpu-metrics-devices": "gpu-metrics-device",
        "python-functions-trace": "python-nvtx-annotations",
    }
)
"""Options that an older nsys takes under another name, with the same values but for one."""


def name_there(name: str, known: Collection[str]) -> str:
    """What the nsys that lists these options calls an option."""
    older = _SAME.get(name, name)
    return older if name not in known and older in known else name


def option_there(name: str, value: str, known: Collection[str]) -> str:
    """An option as a word for the nsys that lists these; the older one knows no visible GPUs."""
    there = name_there(name, known)
    return f"--{there}={'all' if there != name and value == 'cuda-visible' else value}"


SHORT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "t": "trace", "c": "capture-range", "p": "nvtx-capture", "y": "delay", "d": "duration",
        "s": "sample", "b": "backtrace", "o": "output", "f": "force-overwrite", "e": "env-var",
        "w": "show-output", "x": "stop-on-exit", "n": "inherit-environment", "Y": "start-later",
    }
)  # fmt: skip
"""nsys's one-letter options, for options that a user pastes."""


def read_words(words: Iterable[str]) -> dict[str, str]:
    """Options as nsys takes them on its command line, by their long names.

    ``--name=value``, ``--name value``, ``-x value`` and ``-xvalue`` are understood.

    Raises:
        UsageError: a word is neither an option nor the value of the one before it.
    """
    values: dict[str, str] = {}
    open_name = ""
    for word in words:
        if open_name and not word.startswith("-"):
            values[open_name], open_name = word, ""
            continue
        match = _WORD.fullmatch(word)
        if match is None:
            raise UsageError(
                f"{word!r} cannot be passed on", "it is neither an option nor the value of one",
                f"options start with -, such as --{word.lstrip('-') or 'trace=nvtx'}",
            )  # fmt: skip
        name = match["long"] or SHORT.get(match["short"], match["short"])
        values[name] = match["value"] or match["rest"] or ""
        open_name = "" if match["value"] is not None or match["rest"] else name
    return values
