"""Ready-made sets of options for common situations; the user's own come from the config."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from nsys_tui.capture.options import OPTIONS, Kind, read_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_tui.config import CaptureConfig
    from nsys_tui.config_values import OptionValue


@dataclass(frozen=True)
class Preset:
    """A named set of options, and the environment that it needs to work."""

    name: str
    about: str
    options: Mapping[str, OptionValue]
    env: Mapping[str, str] = field(default_factory=dict)


def _preset(name: str, about: str, line: str, **env: str) -> Preset:
    """A preset by the options as one types them; lists are separated by commas."""
    words = read_words(line.split())
    options: dict[str, OptionValue] = {
        name: tuple(value.split(",")) if OPTIONS[name].kind is Kind.WORDS else value
        for name, value in words.items()
    }
    return Preset(name, about, options, env)


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
)


def built_in() -> tuple[str, ...]:
    """Names of the presets that are always there."""
    return tuple(preset.name for preset in _BUILT_IN)


def presets(config: CaptureConfig | None = None) -> Mapping[str, Preset]:
    """All presets by name, the built-in ones first; a user's preset of the same name wins."""
    found = {preset.name: preset for preset in _BUILT_IN}
    for name, options in (config.presets if config else {}).items():
        found[name] = Preset(name, "from the config file", options)
    return MappingProxyType(found)
