"""Step lines of the common trainers: which step ended, how long it took, how fast it was.

Every trainer prints its line after the step. What the lines look like is data (``trainer_table``);
what a trainer does not print is worked out where its own rule is known, and marked as an estimate.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Final

from nsys_tui.logs.figures import decimals, seconds
from nsys_tui.logs.line_prefixes import NO_TIME, parse_own_stamp
from nsys_tui.logs.trainers.trainer_table import (
    A100_PEAK_TFLOPS,
    TOTAL_WORDS,
    TOTALS,
    TRAINERS,
    Trainer,
    compiled,
    named_values,
)

UNKNOWN: Final = -1


@dataclass(frozen=True)
class StepLine:
    """A line that closes a step; exact as printed, None where it has no such figure."""

    format: str
    file: int
    line: int
    step: int
    """Its number; -1 where nothing tells it."""
    step_ns: int | None = None
    """Time of one step; a mean over ``over`` of them."""
    tflops: Fraction | None = None
    """TFLOP/s per GPU, as printed; see ``estimated``."""
    estimated: bool = False
    """``tflops`` was worked out by us, not printed."""
    tokens_per_s: Fraction | None = None
    samples_per_s: Fraction | None = None
    loss: float | None = None
    time_ns: int = NO_TIME
    """Its stamp or clock, where its trainer prints no time of a step."""
    glued: bool = False
    """Whether a COLL line follows in the same line, which then belongs to the next step."""
    epoch: int = UNKNOWN
    over: int = 1
    """Steps that ``step_ns`` is a mean over, where we made it of stamps or of a progress bar."""
    approximate: bool = False
    """Whether ``step_ns`` was so made, and not printed."""

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
    steps: int | None = None
    """Steps of the run, where the printed figures leave no other whole number."""
    step_range_ns: tuple[int, int] | None = None
    """Least and greatest mean step, where a rounded rate leaves several numbers of steps."""
    copies: int = 1
    """Processes that printed it."""

    @property
    def of_benchmark(self) -> bool:
        """Whether the run was no training."""
        return self.format in ("serving benchmark", "hpl", "hpl-mxp")

    def mean_step(self) -> str:
        """The mean step in words, empty where it is not known."""
        if self.step_ns is not None:
            steps = f" ({self.steps} step{'s' * (self.steps > 1)})" if self.steps else ""
            return f"average step {seconds(self.step_ns)} s{steps}"
        if self.step_range_ns is not None:
            low, high = map(seconds, self.step_range_ns)
            return f"average step {low} to {high} s (the printed rate is rounded)"
        return ""

    def words(self) -> str:
        """All that it says."""
        said = [step] if (step := self.mean_step()) else []
        if self.tflops is not None:
            said.append(f"average TFLOPs per GPU ≈ {decimals(self.tflops)}")
        said += [f"{name} {value}" for name, value in self.values if name != "ms"]
        copies = f" ({self.copies} processes)" if self.copies > 1 else ""
        return f"{self.format} at the end{copies}: {', '.join(said)}"


@dataclass
class TrainerLines:
    """Gathers the step lines of one file, and the model's size where a trainer prints it."""

    file: int
    flops_per_token: int | None = None
    own: Trainer | None = None
    """The user's own pattern, looked for first."""
    steps: list[StepLine] = field(default_factory=list)
    totals: list[RunTotal] = field(default_factory=list)
    _model: dict[str, int] = field(default_factory=dict)
    _open: tuple[Trainer, str, int] | None = None
    """The last step's trainer, text and line, if more lines may tell of it."""
    _above: dict[str, str] = field(default_factory=dict)
    """What a line told of the step line below it."""

    def add(self, text: bytes, line: int, *, glued: bool = False) -> bool:
        r"""Takes a line in if it is a trainer's; returns whether it is.

        Args:
            text: the line, which may hold several parts separated by ``\r``.
            line: its number.
            glued: whether a COLL line follows in it.
        """
        known = False
        for part in text.split(b"\r"):
            known |= self._add_part(part, line, glued)
        return known

    def _add_part(self, part: bytes, line: int, glued: bool) -> bool:
        text = ""
        if self._open and self._below(self._open, part.decode("utf-8", "replace")):
            return True
        for trainer in (self.own, *TRAINERS) if self.own else TRAINERS:
            if not any(word in part for word in trainer.words):
                continue
            text = text or part.decode("utf-8", "replace")
            if trainer.above and (told := compiled(trainer.above).search(text)):
                self._above = told.groupdict()
                return True
            if match := trainer.find(text):
                made = self._step(trainer, match, text, line)
                if made is not None:
                    self.steps.append(replace(made, glued=glued))
                    self._open = (trainer, text, line) if trainer.below else None
                    return True
        if any(word in part for word in TOTAL_WORDS):
            return self._total(text or part.decode("utf-8", "replace"), line)
        if match := _MODEL.search(text or part.decode("utf-8", "replace")):
            self._model[match[1]] = int(match[2])
        return False

    def _below(self, opened: tuple[Trainer, str, int], more: str) -> bool:
        """Takes in a field of the last step that has a line of its own."""
        trainer, text, line = opened
        told = compiled(trainer.below).search(more) if trainer.below else None
        if told is None:
            return False
        text = f"{text} | {told[1]}"
        self._open = trainer, text, line
        if (match := trainer.find(text)) and (made := self._step(trainer, match, text, line)):
            self.steps[-1] = made
        return True

    def _step(
        self, trainer: Trainer, match: re.Match[str], text: str, line: int
    ) -> StepLine | None:
        """The step that a line closes; None for a line that only looks like one."""
        told = match.groupdict()
        if trainer.above:
            told, self._above = {**told, **self._above}, {}
        figures = {k: number(v) for k, v in told.items() if v is not None}
        if trainer.fields:
            values = named_values(trainer, text)
            if trainer.needed and not any(name in values for name in trainer.needed):
                return None
            for figure, names in trainer.fields.items():
                if (name := next(filter(values.__contains__, names), None)) is not None:
                    value, unit = number(values[name][0]), values[name][1]
                    figures[figure] = value / 1000 if value is not None and unit else value
        step, epoch = _whole(figures.get("step")), _whole(figures.get("epoch"))
        over = 1
        if trainer.of_epoch:
            if epoch == UNKNOWN:
                return None
            over, step = step, epoch * step
        loss = figures.get("loss")
        made = StepLine(
            trainer.name,
            self.file,
            line,
            step,
            step_ns=_step_ns(figures),
            tokens_per_s=figures.get("tokens"),
            samples_per_s=figures.get("samples"),
            loss=None if loss is None else float(loss),
            epoch=epoch,
            over=over,
        )
        if trainer.by_stamps:
            clock = figures.get("clock")
            now = parse_own_stamp(text[: match.end()]) if clock is None else round(clock * 10**9)
            made = replace(made, time_ns=now)
        return self._with_tflops(trainer, made, figures)

    def _with_tflops(
        self, trainer: Trainer, made: StepLine, figures: dict[str, Fraction | None]
    ) -> StepLine:
        tflops, utilisation = figures.get("tflops"), figures.get("mfu")
        estimated = None
        if trainer.by_model and made.tokens_per_s is not None:
            estimated = self._tflops_per_gpu(made.tokens_per_s)
        elif trainer.peak_tflops and utilisation is not None and utilisation >= 0:
            estimated = utilisation * trainer.peak_tflops / 100
        if tflops is None and estimated is not None:
            return replace(made, tflops=estimated, estimated=True)
        return replace(made, tflops=tflops)

    def _total(self, text: str, line: int) -> bool:
        for name, expression in TOTALS:
            if match := compiled(expression).search(text):
                self.totals.append(_run_total(name, match, self.file, line))
                return True
        return False

    def _tflops_per_gpu(self, tokens_per_s: Fraction) -> Fraction | None:
        """llm.c's own rule: tokens/s × (6N + 6·L·C·T), over all processes, from the model table."""
        flops = self.flops_per_token
        model = self._model
        if flops is None and {"num_parameters", "num_layers L", "channels C"} <= model.keys():
            length = model.get("max_sequence_length T", model.get("sequence length T", 0))
            flops = 6 * model["num_parameters"]
            flops += 6 * model["num_layers L"] * model["channels C"] * length
        if flops is None:
            return None
        return tokens_per_s * flops / model.get("num_processes", 1) / 10**12


_SUFFIXES: Final = {"K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9, "T": 10**12}


def number(text: str | None) -> Fraction | None:
    """A printed number, exact: ``1.2e3``, ``6,785``, ``4.71K``; None for none, nan and inf.

    Of ROCm's ``current/average`` the current value counts: it is the one of its line.
    """
    words = (text or "").partition("/")[0].replace(",", "").split()
    if not words:
        return None
    word = words[0]
    scale = _SUFFIXES.get(word[-1], 1) if len(word) > 1 else 1
    try:
        value = Decimal(word[:-1] if scale > 1 else word)
    except InvalidOperation:
        return None
    # A torn number may name an exponent that no machine can hold.
    fits = value.is_finite() and abs(value.adjusted()) < 40
    return Fraction(value) * scale if fits else None


def _whole(value: Fraction | None) -> int:
    return UNKNOWN if value is None else int(value)


def _step_ns(figures: dict[str, Fraction | None]) -> int | None:
    for name, scale in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        value = figures.get(name)
        if value is not None:
            return round(value * scale)
    rate = figures.get("rate")
    return round(10**9 / rate) if rate else None


def with_times(steps: Iterable[StepLine]) -> list[StepLine]:
    """Step lines of a file, in order; one with a stamp has the time since the stamp before it.

    A line that tells no more than its number counts only where no other names the epoch too.
    """
    steps = list(steps)
    named = {one.format for one in steps if one.epoch != UNKNOWN}
    last: dict[str, tuple[int, int]] = {}
    timed = []
    for one in steps:
        bare = all(getattr(one, names[0]) is None for names in _TOGETHER)
        if bare and one.epoch == UNKNOWN and one.format in named:
            continue
        timed.append(one if one.time_ns == NO_TIME else _since(one, last))
    return timed


def _since(one: StepLine, stamped: dict[str, tuple[int, int]]) -> StepLine:
    """The step with the time since an earlier stamp; steps of one stamp share the next time."""
    last, now = stamped.get(one.format), one.time_ns
    late = last and last[0] > one.step and last[1] >= now  # of another process
    if late or (last and (last[0] == one.step or last[1] == now)):
        return one
    stamped[one.format] = one.step, now
    if last is None or last[0] > one.step or last[1] > now:
        return one
    over = one.step - last[0]
    return replace(one, step_ns=round(Fraction(now - last[1], over)), over=over, approximate=True)


_MODEL: Final = re.compile(
    r"^\s*(?:\d+: )?\| (num_parameters|num_layers L|channels C|max_sequence_length T"
    r"|sequence length T|num_processes)\s*\| (\d{1,15})\s*\|"
)
MODEL_WORDS: Final = (b"| num_", b"| channels C", b"| max_seq", b"| sequence len")
"""One of these stands in each line of llm.c's model table."""
_PAIR: Final = re.compile(r"'(\w+)': '?([-+]?\d[\d.:]*(?:[eE][-+]?\d+)?)'?")


def _run_total(name: str, match: re.Match[str], file: int, line: int) -> RunTotal:
    groups = match.groupdict()
    if groups.get("dict"):
        values = dict(_PAIR.findall(groups["dict"]))
    elif groups.get("key"):
        values = {groups["key"]: groups["value"]}
    else:
        values = {key: value for key, value in groups.items() if value}
    ms, utilisation = number(values.get("ms")), number(values.get("mfu"))
    step_ns = None if ms is None else round(ms * 10**6)
    tflops = utilisation * A100_PEAK_TFLOPS / 100 if utilisation and utilisation > 0 else None
    return RunTotal(name, file, line, tuple(values.items()), step_ns, tflops)


PER_GPU: Final = {one.name: one.per_gpu for one in TRAINERS}
"""Rates of each trainer that are of one GPU."""
_PRINTED, _MADE = 1000, 50
"""Weight of a line's time, as printed or as made of stamps, against a line without one."""


def main_format(steps: Iterable[StepLine], wanted: str | None = None) -> str:
    """The format whose lines own the steps: the wanted one, else that with most printed times."""
    if wanted:
        return wanted
    timed: Counter[str] = Counter()
    for step in steps:
        weight = _MADE if step.approximate else _PRINTED
        timed[step.format] += 1 if step.step_ns is None else weight
    return max(timed, key=lambda name: timed[name], default="")


def distinct(steps: Sequence[StepLine]) -> list[StepLine]:
    """Each step once, by epoch and number, in order: several processes print the same line."""
    first: dict[tuple[str, int, int], StepLine] = {}
    for one in steps:
        key = (one.format, one.epoch, one.step)
        if one.step == UNKNOWN:
            key = (one.format, -2 - one.file, one.line)
        known = first.get(key)
        first[key] = one if known is None else _joined(known, one)
    return sorted(first.values(), key=lambda one: (one.epoch, one.step, one.file, one.line))


_TOGETHER: Final = (
    ("step_ns", "over", "approximate"),
    ("tflops", "estimated"),
    ("tokens_per_s",),
    ("samples_per_s",),
    ("loss",),
)
"""Figures of a step line, each with what is said of it."""


def _joined(known: StepLine, more: StepLine) -> StepLine:
    """A step line with those figures of another that it lacks."""
    missing: dict[str, Any] = {
        name: getattr(more, name)
        for names in _TOGETHER
        if getattr(known, names[0]) is None and getattr(more, names[0]) is not None
        for name in names
    }
    return replace(known, **missing) if missing else known
