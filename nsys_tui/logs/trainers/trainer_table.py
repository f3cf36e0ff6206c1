"""The trainers whose lines are known, as data: how a line that closes a step looks.

A trainer is one row. What is the same for all of them (numbers, times by stamps, TFLOPs by a known
rule) is ``trainers``'s business; one more trainer needs a row here and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from nsys_tui.errors import UsageError
from nsys_tui.patterns import time_limit

A100_PEAK_TFLOPS: Final = 312
"""nanoGPT's model FLOPs utilisation is against this, the bf16 peak of an A100, on every GPU."""

N: Final = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)"
"""A number."""
_STEP: Final = r"(?P<step>\d{1,18})"
_FIRST: Final = r"(?:^|[\s:])"
"""What a line begins with may stand behind what launchers and collectors put there."""

FIGURES: Final = ("s", "ms", "tflops", "mfu", "tokens", "samples", "loss")
"""What a line may tell: seconds or ms of a step, TFLOP/s per GPU, percent of a peak, tokens or
samples per second, loss. Fields tell also ``step``, steps per second (``rate``) and the seconds
since the run began (``clock``); a line of ours also microseconds of a step (``us``)."""


@dataclass(frozen=True)
class Trainer:
    """One kind of step line."""

    name: str
    words: tuple[bytes, ...]
    """One of them stands in each of its lines: what has none is not looked at."""
    line: str
    """Finds the line, as an expression; its groups are ``step``, ``epoch`` and ``FIGURES``."""
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Figures that stand behind a name (``name: value``, ``name=value``, ``name value``), by the
    names that they go by, the best first."""
    needed: tuple[str, ...] = ()
    """Names of which one must be among the fields."""
    by_stamps: bool = False
    """It prints no time of a step: that is the time from one line's stamp or clock to the next."""
    peak_tflops: int = 0
    """What its utilisation is a percentage of; 0 where it is not known."""
    per_gpu: tuple[str, ...] = ()
    """Those of its rates, ``tokens`` and ``samples``, that are of one GPU and not of the job."""
    below: str = ""
    """Finds its fields where they stand on lines of their own behind it."""
    above: str = ""
    """Finds figures of its that stand on a line of their own before it."""
    of_epoch: bool = False
    """It closes an epoch, not a step: its ``step`` is the epoch's number of steps, its time their
    mean; without an epoch above it is of an evaluation."""
    by_model: bool = False
    """Tokens per second become TFLOPs by the model table that it prints (llm.c)."""

    def find(self, text: str) -> re.Match[str] | None:
        """Its line in a text."""
        return compiled(self.line).search(text)


@cache
def compiled(expression: str) -> re.Pattern[str]:
    """An expression of a table, made ready once."""
    return re.compile(expression)


_ELAPSED: Final = (
    "elapsed time per iteration (ms)",
    "elapsed_time_per_iteration_ms",
    "elapsed time per iteration (s)",
)

TRAINERS: Final = (
    Trainer(
        "nemo",
        (b"Training epoch",),
        rf"Training epoch (?P<epoch>\d{{1,9}}), iteration {_STEP}/\d+",
        {
            "s": ("train_step_timing in s",),
            "tflops": ("TFLOPS_per_GPU",),
            "tokens": ("tokens_per_sec_per_gpu",),
            "loss": ("reduced_train_loss",),
        },
        per_gpu=("tokens",),
    ),
    Trainer(
        "megatron",
        (b"elapsed time per iteration", b"elapsed_time_per_iteration_ms=", b"MODEL_TFLOP/s/GPU"),
        rf"iteration[ =]\s*{_STEP}/\s*\d+ \|",
        {
            "ms": _ELAPSED[:2],
            "s": _ELAPSED[2:],
            "tflops": ("throughput per GPU (TFLOP/s/GPU)", "TFLOPs", "approx flops per GPU"),
            "tokens": (
                *("tokens per GPU (tokens/s/GPU)", "tokens per gpu per second(tgs)"),
                "token throughput per GPU (tokens/s/GPU)",
                "tokens_per_gpu_per_second_tgs",
            ),
            "samples": ("samples per second", "samples_per_second", "samples/sec"),
            "loss": ("lm loss", "lm_loss"),
        },
        needed=_ELAPSED,
        per_gpu=("tokens",),
        above=rf"Step Time ?: .{{1,60}}?\bGPU utilization: (?P<tflops>{N}) ?MODEL_TFLOP/s/GPU",
    ),
    Trainer(
        "llm.c",
        (b" tok/s",),
        rf"step\s+{_STEP}/\d+ \| loss\s+(?P<loss>{N}) .*?\| (?P<ms>[\d.]+) ms \|"
        rf"(?:.*MFU \|)? (?P<tokens>\d+) tok/s",
        by_model=True,
    ),
    Trainer(
        "llm.c",
        (b" tok/s)",),
        rf"step\s+{_STEP}/\d+ ?[|:] train loss (?P<loss>{N}) .*?"
        rf"\((?P<ms>[\d.]+) ms ?[|,] (?P<tokens>\d+) tok/s\)",
        by_model=True,
    ),
    Trainer(
        "llm.c",
        (b"(took ",),
        rf"step {_STEP}: train loss (?P<loss>{N}) \(took (?P<ms>[\d.]+) ms\)",
    ),
    Trainer(
        "nanogpt",
        (b"iter ",),
        rf"iter {_STEP}: loss (?P<loss>{N}), time (?P<ms>[\d.]+)ms(?:, mfu (?P<mfu>{N})%)?",
        peak_tflops=A100_PEAK_TFLOPS,
    ),
    Trainer(
        "fsdp",
        (b" samples/sec",),
        rf"Batch {_STEP} Loss: (?P<loss>{N}), Speed: (?P<samples>{N}) samples/sec",
        by_stamps=True,
    ),
    Trainer(
        "torchtitan",
        (b"tps: ",),
        rf"step:\s*{_STEP}\s+loss:\s*(?P<loss>{N})\s.*?\btps:\s*(?P<tokens>[\d,]+)"
        rf"(?:\s+tflops:\s*(?P<tflops>[\d,.]+))?(?:\s+mfu:\s*(?P<mfu>{N})%)?",
        by_stamps=True,
        per_gpu=("tokens",),
    ),
    Trainer(
        "deepspeed",
        (b"SamplesPerSec=", b", skipped="),
        r"(?:epoch=(?P<epoch>\d{1,9})/micro_step=\d+/global_step=|\bstep=|\] \d+/)"
        rf"{_STEP}, (?:skipped=\d|(?:RunningAvg)?SamplesPerSec={N}"
        rf"(?:, CurrSamplesPerSec=(?P<samples>{N}))?)",
        by_stamps=True,
    ),
    Trainer(
        "deepspeed-pipeline",
        (b"iter time (s): ",),
        rf"steps: {_STEP} loss: (?P<loss>{N}) iter time \(s\): (?P<s>{N}) "
        rf"samples/sec: (?P<samples>{N})",
    ),
    Trainer(
        "torchtune",
        (b"tokens_per_second_per_gpu:",),
        rf"Step {_STEP} \| loss:(?P<loss>{N}) .*?tokens_per_second_per_gpu:(?P<tokens>{N})",
        per_gpu=("tokens",),
    ),
    Trainer(
        "composer",
        (b"[batch=",),
        rf"\[(?:epoch=(?P<epoch>\d{{1,9}})\]\[)?batch={_STEP}/\d+\]:",
        {
            "tokens": ("Train throughput/device/tokens_per_sec",),
            "samples": ("Train throughput/samples_per_sec",),
            "loss": ("Train loss/train/total",),
        },
        below=rf"(?:^|\s)(Train [\w/]+: {N})\s*$",
        per_gpu=("tokens",),
    ),
    Trainer(
        "olmo",
        (b"[step=",),
        rf"\[step={_STEP}/\d+",
        {
            "tokens": ("throughput/device/tokens_per_second", "throughput/device/TPS"),
            "loss": ("train/CrossEntropyLoss", "train/CE loss"),
        },
        by_stamps=True,
        below=r"(?:^|\s)((?:train|throughput)/[\w/ ]+=[\d.,]+)\s*$",
        per_gpu=("tokens",),
    ),
    Trainer(
        "nanotron",
        (b"time_per_iteration_ms",),
        rf"iteration: {_STEP} / \d+ \|",
        {
            "ms": ("elapsed_time_per_iteration_ms", "time_per_iteration_ms"),
            "tflops": ("model_tflops_per_gpu",),
            "tokens": ("tokens_per_sec_per_gpu",),
            "loss": ("lm_loss",),
        },
        needed=("elapsed_time_per_iteration_ms", "time_per_iteration_ms"),
        per_gpu=("tokens",),
    ),
    Trainer(
        "litgpt",
        (b"iter time: ",),
        rf"(?:Epoch (?P<epoch>\d{{1,9}}) \| )?iter {_STEP} step \d+(?: \| loss train:|: loss) "
        rf"(?P<loss>{N}),.*?iter time: (?P<ms>[\d.]+) ?ms",
    ),
    Trainer(
        "maxtext",
        (b"completed step: ",),
        rf"completed step: {_STEP}, seconds: +(?P<s>{N})"
        rf"(?:, TFLOP/s(?:/device)?: +(?P<tflops>{N}))?"
        rf"(?:, Tokens/s/device: +(?P<tokens>{N}))?(?:.*?\bloss: (?P<loss>{N}))?",
        per_gpu=("tokens",),
    ),
    Trainer(
        "keras",
        (b"/step", b"Epoch "),
        rf"{_FIRST}{_STEP}/(?P=step) (?:\[=+\] - |━+ |- )\d+s(?: -)? "
        r"(?:(?P<s>\d+)s|(?P<ms>\d+)ms|(?P<us>\d+)us)/step\b(?:.*?\bloss: (?P<loss>[\d.e+-]+))?",
        above=rf"{_FIRST}Epoch (?P<epoch>\d{{1,9}})/\d+\s*$",
        of_epoch=True,
    ),
    Trainer(
        "paddle",
        (b"batch_cost: ", b"interval_runtime: "),
        r"(?:[Ee]poch:? \[?(?P<epoch>\d{1,9})(?:/\d+)?\]?,? )?"
        rf"(?:\bglobal[_ ]step:? |\biter:? |\bbatch: |(?<=\d\] )\[ *){_STEP}[],/ ]",
        {
            "s": ("avg_batch_cost", "batch_cost"),
            "rate": ("interval_steps_per_second",),
            "tflops": ("interval_hardware_tflops_per_device",),
            "tokens": ("interval_tokens_per_second_per_device",),
            "loss": ("loss",),
        },
        needed=("avg_batch_cost", "batch_cost", "interval_steps_per_second"),
        per_gpu=("tokens",),
    ),
    Trainer(
        "mindformers",
        (b"per_step_time: ",),
        r"(?:[Ee]poch ?:?\[ *(?P<epoch>\d{1,9})(?:/ *\d+)?\], )?"
        rf"\b(?:step|iter):?\[? ?\s*{_STEP}\b"
        rf"(?:.*?throughput(?:_per_npu)?: +(?P<tflops>{N})T)?",
        {"s": ("per_step_time",), "loss": ("loss",)},
        needed=("per_step_time",),
    ),
    Trainer(
        "clu",
        (b"steps_per_sec",),
        rf"\] \[{_STEP}\] ",
        {"rate": ("steps_per_sec", "steps_per_second"), "loss": ("train_loss", "loss")},
    ),
    Trainer(
        "fairseq",
        (b"gnorm",),
        r"\bepoch\"?:? (?P<epoch>\d{1,9})(?::?\s+(?P<step>\d{1,18}) / \d+)?",
        {
            "step": ("num_updates",),
            "clock": ("wall",),
            "tokens": ("wps",),
            "loss": ("loss",),
        },
        needed=("wps",),
        by_stamps=True,
    ),
    Trainer(
        "modded-nanogpt",
        (b"train_time:",),
        rf"\bstep:{_STEP}/\d+ ",
        {"clock": ("train_time",), "loss": ("train_loss",)},
        by_stamps=True,
    ),
    Trainer(
        "detectron2",
        (b"d2.utils.events",),
        rf"\biter: {_STEP}\b",
        {"loss": ("total_loss",)},
        by_stamps=True,
    ),
    Trainer(
        "dllogger",
        (b"DLL 20",),
        r"DLL 20.*?(?:[Ee]poch:?\s+(?P<epoch>\d{1,9})\b.*?)?"
        rf"\b[Ii]ter(?:ation)?:?\s+{_STEP}\b",
        {"samples": ("throughput_train",), "loss": ("step_loss", "total_loss", "loss")},
        by_stamps=True,
    ),
    Trainer(
        "verl",
        (b"timing_s/step",),
        rf"\bstep:{_STEP} - ",
        {
            "s": ("timing_s/step",),
            "tokens": ("perf/throughput",),
            "loss": ("actor/pg_loss", "train/loss"),
        },
        needed=("timing_s/step",),
        per_gpu=("tokens",),
    ),
    Trainer(
        "horovod",
        (b"img/sec per GPU",),
        rf"Iter #{_STEP}: (?P<samples>{N}) img/sec",
        per_gpu=("samples",),
    ),
    Trainer(
        "vision",
        (b"Epoch", b"Train: ", b"Iter(train)", b"Iter ["),
        r"(?:(?:Epoch(?:\(train\))?:? *\[|Train: )(?P<epoch>\d{1,9})\]?|Iter(?:\(train\))?)"
        rf" *\[ *{_STEP}/\d+",
        {"s": ("time", "Time"), "samples": ("img/s",), "loss": ("loss", "Loss")},
        needed=("time", "Time"),
    ),
    Trainer(
        "tensorrt-llm",
        (b", global_rank = ",),
        rf"\biter = {_STEP}, global_rank = ",
        {"s": ("host_step_time", "elapsed_time")},
        needed=("host_step_time", "elapsed_time"),
    ),
    Trainer(
        "step",
        (b"tok/sec", b"tokens_per_sec", b"Tokens/s"),
        rf"(?i:\b(?:global_)?step|\biter(?:ation)?)[:= #]+\[? *{_STEP}(?![\w.])",
        {
            "s": ("dt", "step_time", "time_per_step", "iter_time"),
            "tokens": (
                *("tok/sec", "tok/s", "tokens_per_second", "tokens_per_sec"),
                *("Tokens/s", "tokens/s", "tokens/sec"),
            ),
            "loss": ("loss", "Loss", "train_loss", "train loss"),
        },
        needed=("tok/sec", "tokens_per_second", "tokens_per_sec", "Tokens/s"),
    ),
)
"""All of them, those that name no trainer last. Progress bars are read by ``progress_bars``."""
NAMES: Final = (
    *dict.fromkeys(one.name for one in TRAINERS),
    *("tqdm", "huggingface", "huggingface-dict", "lightning", "yolo", "own"),
)
"""As ``--trainer`` takes them, with those of progress bars; ``own`` is that of ``--pattern``."""


BELOW_WORDS: Final = (b"Train ", b"train/", b"throughput/")
"""One of these stands in each line of ``Trainer.below``."""
TOTALS: Final = (
    ("llm.c", rf"total average iteration time: (?P<ms>{N}) ms"),
    ("nanogpt", rf"time per iteration: (?P<ms>{N})ms, MFU: (?P<mfu>{N})%"),
    ("litgpt", rf"(?:^|[\s:])Training time: (?P<training_time_s>{N})s$"),
    (
        "hpl",
        rf"{_FIRST}W[RC]\d\w*\s+(?P<N>\d+)\s+(?P<NB>\d+)\s+(?P<P>\d+)\s+(?P<Q>\d+)"
        r"\s+(?P<seconds>[\d.]+)\s+(?P<Gflops>[\d.e+]+)(?:\s+\(.*\))?\s*$",
    ),
    ("hpl", rf"{_FIRST}\|\|Ax-b\|\|.*= *(?P<residual>{N}) \.+ (?P<check>PASSED|FAILED)"),
    ("hpl-mxp", rf"(?<!LU )\bGFLOPS = (?P<Gflops>{N}), per GPU =\s+(?P<Gflops_per_GPU>{N})"),
    ("hpl-mxp", rf"\bLU GFLOPS = (?P<LU_Gflops>{N}), per GPU =\s+(?P<LU_Gflops_per_GPU>{N})"),
    ("huggingface", r"\{(?P<dict>[^{}]*'train_runtime':[^{}]*)\}"),
    (
        "huggingface",
        r"(?:^|>>)\s*(?:\*+ )?(?P<key>train_(?:runtime|samples_per_second|steps_per_second))"
        r"\s*=\s*(?P<value>[\d:.]+)\s*$",
    ),
)
"""Lines about a whole run."""
TOTAL_WORDS: Final = (
    *(b"iteration time:", b"per iteration:", b"Training time:", b"train_"),
    *(b"WR0", b"WR1", b"WC0", b"WC1", b"||Ax-b||", b"GFLOPS = "),
)
"""One of these stands in each of them."""


_VALUE: Final = (
    r"[\"']?\s*[:=]?\s*[\"'\[]?"
    r"([-+]?(?:\d[\d,]*(?:\.\d*)?(?:[eE][-+]?\d+)?|nan|inf)(?:[KMGBT](?![A-Za-z]))?)( ?ms\b)?"
)


@cache
def _finder(names: frozenset[str]) -> re.Pattern[str]:
    words = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"(?<![\w/.])({words}){_VALUE}")


def named_values(trainer: Trainer, text: str) -> dict[str, tuple[str, str]]:
    """Values of a trainer's fields in a line, with ``ms`` where that is their unit."""
    names = frozenset(trainer.needed).union(*trainer.fields.values())
    found: dict[str, tuple[str, str]] = {}
    for name, value, unit in _finder(names).findall(text):
        found.setdefault(name, (value, unit.strip()))
    return found


LONGEST: Final = 4096
"""Characters of a line that the expression is given."""
SECONDS: Final = 1.0
"""Time that one search may take."""
_GROUPS: Final = ("step", "epoch", *FIGURES)


@dataclass(frozen=True)
class _Own(Trainer):
    """A user's own, whose searches end in time.

    One can take longer than the age of the universe on one line. So a line is cut, and the time of
    each search is bounded: what runs past it is the user's to mend, and said so.
    """

    def find(self, text: str) -> re.Match[str] | None:
        """As of any trainer, on the start of a line.

        Raises:
            UsageError: it takes too long.
        """
        with time_limit(SECONDS, f"--pattern takes more than {SECONDS:g} s on one line"):
            return super().find(text[:LONGEST])


def own_trainer(pattern: str) -> Trainer:
    """The trainer that an expression is.

    Raises:
        UsageError: it is no expression, or its groups are none of the figures.
    """
    try:
        groups = set(compiled(pattern).groupindex)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"--pattern is no regular expression: {error}") from error
    if "step" not in groups or groups - set(_GROUPS):
        wrong = ", ".join(sorted(groups - set(_GROUPS))) or "none named step"
        raise UsageError(
            f"groups of --pattern: {wrong}",
            hint=f"(?P<step>\\d+) and any of {', '.join(_GROUPS[1:])}",
        )
    return _Own("own", (b"",), pattern)
