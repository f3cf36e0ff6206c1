"""Step lines of the common trainers: which step ended, how long it took, how fast it was.

Every trainer prints its line after the step. A format is one regular expression and a small
function in ``_FORMATS``; what a trainer does not print is worked out where its own rule is known,
and such figures are marked as estimates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from nsys_tui.logs.line_prefixes import NO_TIME, parse_stamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

A100_PEAK_TFLOPS: Final = 312
"""nanoGPT's model FLOPs utilisation is against this, the bf16 peak of an A100, on every GPU."""


@dataclass(frozen=True)
class StepLine:
    """A line that closes a step; exact as printed, None where it has no such figure."""

    format: str
    file: int
    line: int
    step: int
    step_ns: int | None = None
    tflops: Fraction | None = None
    """TFLOP/s per GPU, as printed; see ``estimated``."""
    estimated: bool = False
    """``tflops`` was worked out by us, not printed."""
    tokens_per_s: Fraction | None = None
    samples_per_s: Fraction | None = None
    loss: float | None = None
    time_ns: int = NO_TIME
    glued: bool = False
    """Whether a COLL line follows in the same line, which then belongs to the next step."""

    @property
    def last_line(self) -> int:
        """Last line that can belong to the step."""
        return self.line - 1 if self.glued else self.line


@dataclass(frozen=True)
class RunTotal:
    """A line about the whole run: mean step time and rates."""

    format: str
    file: int
    line: int
    values: tuple[tuple[str, str], ...]
    step_ns: int | None = None
    tflops: Fraction | None = None


@dataclass(frozen=True)
class Average:
    """Means over step lines, exact."""

    format: str
    steps: int
    """Step lines averaged over."""
    first: int
    last: int
    step_ns: Fraction | None
    timed: int
    """Lines that carry a step time."""
    tflops: Fraction | None
    rated: int
    """Lines that carry TFLOPs."""
    estimated: bool


class TrainerLines:
    """Gathers the step lines of one file, and the model's size where a trainer prints it."""

    def __init__(self, file: int, flops_per_token: int | None = None) -> None:
        self.file = file
        self.steps: list[StepLine] = []
        self.totals: list[RunTotal] = []
        self._flops_per_token = flops_per_token
        self._model: dict[str, int] = {}
        self._dicts = 0

    def add(self, text: bytes, line: int, *, glued: bool = False) -> bool:
        r"""Takes a line in if it is a trainer's; returns whether it is.

        Args:
            text: the line, which may hold several progress bars separated by ``\r``.
            line: its number.
            glued: whether a COLL line follows in it.
        """
        if not _TRIGGER.search(text):
            return False
        found = False
        for part in text.split(b"\r"):
            found |= self._add_part(part.decode("utf-8", "replace"), line, glued)
        return found

    def _add_part(self, text: str, line: int, glued: bool) -> bool:
        for name, pattern, build in _FORMATS:
            if match := pattern.search(text):
                made = build(self, match, text)
                if made is None:
                    return False
                step, values = made
                stamp = parse_stamp(text.encode())
                self.steps.append(
                    StepLine(name, self.file, line, step, time_ns=stamp, glued=glued, **values)  # type: ignore[arg-type]
                )
                return True
        return self._total(text, line)

    def _total(self, text: str, line: int) -> bool:
        for name, pattern in _TOTALS:
            if match := pattern.search(text):
                self.totals.append(_run_total(name, match, self.file, line))
                return True
        if match := _MODEL.search(text):
            self._model[match[1]] = int(match[2])
        return False

    def next_dict(self) -> int:
        """Number of the next line of a trainer that prints none."""
        self._dicts += 1
        return self._dicts

    def tflops_per_gpu(self, tokens_per_s: Fraction) -> Fraction | None:
        """llm.c's own rule: tokens/s × (6N + 6·L·C·T), over all processes, from the model table."""
        flops = self._flops_per_token
        model = self._model
        if flops is None and {"num_parameters", "num_layers L", "channels C"} <= model.keys():
            length = model.get("max_sequence_length T", model.get("sequence length T", 0))
            flops = 6 * model["num_parameters"]
            flops += 6 * model["num_layers L"] * model["channels C"] * length
        if flops is None:
            return None
        return tokens_per_s * flops / model.get("num_processes", 1) / 10**12


_Values = dict[str, object]
_Made = tuple[int, _Values] | None
_Builder = Callable[[TrainerLines, "re.Match[str]", str], _Made]


def _number(text: str | None) -> Fraction | None:
    """A printed number, exact; None for none, nan and inf."""
    if not text:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    # A torn number may name an exponent that no machine can hold.
    return Fraction(value) if value.is_finite() and abs(value.adjusted()) < 40 else None


def _ns(text: str | None, scale: int) -> int | None:
    value = _number(text)
    return None if value is None else round(value * scale)


def _loss(text: str | None) -> float | None:
    value = _number(text)
    return None if value is None else float(value)


def _fields(text: str) -> dict[str, str]:
    """``name: value | name: value`` as a dictionary."""
    pairs = (part.rpartition(":") for part in text.split("|"))
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def _nemo(_: TrainerLines, match: re.Match[str], text: str) -> _Made:
    fields = _fields(text[match.end() :])
    return int(match[1]), {
        "step_ns": _ns(fields.get("train_step_timing in s"), 10**9),
        "tflops": _number(fields.get("TFLOPS_per_GPU")),
        "tokens_per_s": _number(fields.get("tokens_per_sec_per_gpu")),
        "loss": _loss(fields.get("reduced_train_loss")),
    }


def _megatron(_: TrainerLines, match: re.Match[str], text: str) -> _Made:
    # ROCm builds print current/average; the current value is the one of this line.
    fields = {k: v.partition("/")[0] for k, v in _fields(text[match.end() :]).items()}
    if "elapsed time per iteration (ms)" not in fields:
        return None
    return int(match[1]), {
        "step_ns": _ns(fields["elapsed time per iteration (ms)"], 10**6),
        "tflops": _number(fields.get("throughput per GPU (TFLOP/s/GPU)") or fields.get("TFLOPs")),
        "tokens_per_s": _number(fields.get("tokens per GPU (tokens/s/GPU)")),
        "samples_per_s": _number(fields.get("samples per second")),
        "loss": _loss(fields.get("lm loss")),
    }


def _llmc(lines: TrainerLines, match: re.Match[str], _: str) -> _Made:
    groups = match.groupdict()
    values: _Values = {"step_ns": _ns(groups["ms"], 10**6), "loss": _loss(groups["loss"])}
    rate = _number(groups.get("tokens"))
    if rate is not None:
        tflops = lines.tflops_per_gpu(rate)
        values |= {"tokens_per_s": rate, "tflops": tflops, "estimated": tflops is not None}
    return int(groups["step"]), values


def _nanogpt(_: TrainerLines, match: re.Match[str], __: str) -> _Made:
    utilisation = _number(match["mfu"])
    values: _Values = {"step_ns": _ns(match["ms"], 10**6), "loss": _loss(match["loss"])}
    if utilisation is not None and utilisation >= 0:
        values |= {"tflops": utilisation * A100_PEAK_TFLOPS / 100, "estimated": True}
    return int(match["step"]), values


def _fsdp(lines: TrainerLines, match: re.Match[str], text: str) -> _Made:
    values: _Values = {"samples_per_s": _number(match[3]), "loss": _loss(match[2])}
    step, stamp = int(match[1]), parse_stamp(text.encode())
    last = lines.steps[-1] if lines.steps else None
    if last and last.format == "fsdp" and last.step + 1 == step and NO_TIME < last.time_ns <= stamp:
        values["step_ns"] = stamp - last.time_ns
    return step, values


def _hf_bar(_: TrainerLines, match: re.Match[str], text: str) -> _Made:
    rate = _number(match[3])
    if not rate or _DESCRIBED.search(text[: match.start()]):
        return None
    seconds = rate if match[4] == "s/it" else 1 / rate
    return int(match[1]), {"step_ns": round(seconds * 10**9)}


def _hf_dict(lines: TrainerLines, match: re.Match[str], _: str) -> _Made:
    return lines.next_dict(), {"loss": _loss(match[1])}


_DESCRIBED: Final = re.compile(r"(?<![\w\[])[A-Za-z][\w .()/-]*:\s+\d+%\|")
"""Start of a bar that has a name, such as ``Loading checkpoint shards``: the trainer's has none."""
_N: Final = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)"

_FORMATS: Final[tuple[tuple[str, re.Pattern[str], _Builder], ...]] = (
    ("nemo", re.compile(r"Training epoch \d+, iteration (\d{1,18})/\d+"), _nemo),
    ("megatron", re.compile(r"iteration\s+(\d{1,18})/\s*\d+ \|"), _megatron),
    (
        "llm.c",
        re.compile(
            rf"step\s+(?P<step>\d{{1,18}})/\d+ \| loss (?P<loss>{_N}) .*?\| (?P<ms>[\d.]+) ms \|"
            rf"(?:.*MFU \|)? (?P<tokens>\d+) tok/s"
        ),
        _llmc,
    ),
    (
        "llm.c",
        re.compile(
            rf"step\s+(?P<step>\d{{1,18}})/\d+ ?[|:] train loss (?P<loss>{_N}) .*?"
            rf"\((?P<ms>[\d.]+) ms ?[|,] (?P<tokens>\d+) tok/s\)"
        ),
        _llmc,
    ),
    (
        "llm.c",
        re.compile(
            rf"step (?P<step>\d{{1,18}}): train loss (?P<loss>{_N}) \(took (?P<ms>[\d.]+) ms\)"
        ),
        _llmc,
    ),
    (
        "nanogpt",
        re.compile(
            rf"iter (?P<step>\d{{1,18}}): loss (?P<loss>{_N}), time (?P<ms>[\d.]+)ms"
            rf"(?:, mfu (?P<mfu>{_N})%)?"
        ),
        _nanogpt,
    ),
    ("fsdp", re.compile(rf"Batch (\d{{1,18}}) Loss: ({_N}), Speed: ({_N}) samples/sec"), _fsdp),
    (
        "huggingface",
        re.compile(r"(\d{1,18})/(\d+) \[[\d:]+<[\d:?]+, +([\d.]+)(s/it|it/s)"),
        _hf_bar,
    ),
    ("huggingface-dict", re.compile(rf"\{{'loss': '?({_N})'?,"), _hf_dict),
)

_TOTALS: Final = (
    ("llm.c", re.compile(rf"total average iteration time: (?P<ms>{_N}) ms")),
    ("nanogpt", re.compile(rf"time per iteration: (?P<ms>{_N})ms, MFU: (?P<mfu>{_N})%")),
    ("huggingface", re.compile(r"\{(?P<dict>[^{}]*'train_runtime':[^{}]*)\}")),
    (
        "huggingface",
        re.compile(
            r"^\s*(?:\*+ )?(?P<key>train_(?:runtime|samples_per_second|steps_per_second))"
            r"\s*=\s*(?P<value>[\d:.]+)\s*$"
        ),
    ),
)
_MODEL: Final = re.compile(
    r"^\s*(?:\d+: )?\| (num_parameters|num_layers L|channels C|max_sequence_length T"
    r"|sequence length T|num_processes)\s*\| (\d{1,15})\s*\|"
)
_TRIGGER: Final = re.compile(
    rb"iteration +\d|iteration time|per iteration|step +\d|iter \d|train_|'loss'|Batch \d|s/it|it/s"
    rb"|\| (?:num_|channels C|max_seq|sequence len)"
)
_PAIR: Final = re.compile(rf"'(\w+)': '?({_N})'?")


def _run_total(name: str, match: re.Match[str], file: int, line: int) -> RunTotal:
    groups = match.groupdict()
    if groups.get("dict"):
        values = dict(_PAIR.findall(groups["dict"]))
    elif groups.get("key"):
        values = {groups["key"]: groups["value"]}
    else:
        values = {key: value for key, value in groups.items() if value}
    step_ns = _ns(values.get("ms"), 10**6)
    rate = _number(values.get("train_steps_per_second"))
    if rate:
        step_ns = round(10**9 / rate)
    utilisation = _number(values.get("mfu"))
    tflops = utilisation * A100_PEAK_TFLOPS / 100 if utilisation and utilisation > 0 else None
    return RunTotal(name, file, line, tuple(values.items()), step_ns, tflops)


def main_format(steps: Iterable[StepLine], wanted: str | None = None) -> str:
    """The format whose lines own the steps: the wanted one, else the one with most timed lines."""
    if wanted:
        return wanted
    timed: Counter[str] = Counter()
    for step in steps:
        timed[step.format] += 1 if step.step_ns is None else 1000
    return max(timed, key=lambda name: timed[name], default="")


def average(steps: Sequence[StepLine], first: int | None, last: int | None) -> Average | None:
    """Means over the step lines of one format with first ≤ step ≤ last; None if there are none.

    Lines without a figure do not count for its mean, as in the AWK kit's own average.
    """
    inside = [
        one
        for one in steps
        if (first is None or one.step >= first) and (last is None or one.step <= last)
    ]
    if not inside:
        return None
    times = [one.step_ns for one in inside if one.step_ns is not None]
    rates = [one.tflops for one in inside if one.tflops is not None]
    return Average(
        inside[0].format,
        len(inside),
        min(one.step for one in inside),
        max(one.step for one in inside),
        Fraction(sum(times), len(times)) if times else None,
        len(times),
        sum(rates, Fraction(0)) / len(rates) if rates else None,
        len(rates),
        any(one.estimated for one in inside),
    )
