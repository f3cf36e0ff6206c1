"""Progress bars of tqdm as step lines: Hugging Face's, others', and Lightning's of each epoch.

A bar is redrawn at will, by every process, and its rate is smoothed: only steps done and the time
since it began are facts. Times are whole seconds, so a step's time is taken over spans that are
long enough for that; a bar of other work (data, checkpoints, evaluation) is none of the trainer's.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple

from nsys_tui.logs.trainers.step_lines import UNKNOWN, RunTotal, StepLine, number

_STATE: Final = re.compile(
    r"(?P<done>\d{1,18})/(?P<all>\d{1,18}) \[(?P<since>[\d:]+)<(?P<left>[\d:?]+), *"
    r"(?P<rate>[\d.]+|\?) ?(?P<unit>s/it|it/s)"
)
_EPOCH: Final = re.compile(
    r"(?:Epoch (?P<lightning>\d{1,9})|^\s*(?P<yolo>\d{1,9})/\d+ +[\d.]+[GM]B? .*)"
    r":\s+\d+%\|[^|]*\|\s*$"
)
"""A bar of an epoch, by whose it is."""
_DESCRIBED: Final = re.compile(
    r"(?<![\w\[])(?!(?i:steps?|train(?:ing)?|iterations?):)[A-Za-z][\w .()/-]*:\s+\d+%\|"
)
"""Start of a bar that has a name, such as ``Loading checkpoint shards``: the trainer's has none, or
says that it trains."""
_OF_OTHERS: Final = re.compile(
    r"(?i:steps?|train(?:ing)?|iterations?|loss: [\d.]+):\s+\d+%\|[^|]*\|\s*$"
)
"""Names that Hugging Face does not give its bar, to which it adds no figures either."""
_BAR: Final = re.compile(r"(?:\d+%\|[^|]*\|)?\s*$")
"""What stands right before a state; other text makes it no bar of a trainer."""
_DICT: Final = re.compile(r"\{'loss': '?([^',}]+)'?,(?:[^{}]*'epoch': '?([\d.]+)'?)?")
WORDS: Final = (b"it/s", b"s/it", b"{'loss'")
"""One of these stands in each line of theirs."""
LONG_ENOUGH_S: Final = 50
"""A span of whole seconds is read to 2 % from this on."""
_SHORTEST_S: Final = 5
"""Shorter ones tell no time, not even at a bar's end."""
_CONTRADICTION: Final = 3
"""Mean since the start and printed rate that differ by more: the bar did not start at 0."""


class _State(NamedTuple):
    done: int
    since: int
    line: int
    spacing: Fraction | None
    """Seconds a step by the bar's own smoothed rate."""


class _Dict(NamedTuple):
    line: int
    loss: Fraction | None
    epoch: Fraction | None
    before: int
    """Steps that the last bar before it shows."""
    after: int = UNKNOWN
    """Steps that the next bar shows."""


@dataclass
class Bars:
    """The progress bars of one file."""

    file: int
    _states: dict[tuple[str, int, int], dict[int, _State]] = field(default_factory=dict)
    """States by (trainer, epoch, steps in all) and steps done; each where it was first shown."""
    _of_others: set[int] = field(default_factory=set)
    """Steps in all of bars that are not Hugging Face's."""
    _dicts: list[_Dict] = field(default_factory=list)
    _last: int = UNKNOWN

    def add(self, text: bytes, line: int) -> bool:
        """Takes a line in if it holds a bar or a loss of Hugging Face; returns whether it does."""
        has_bar, has_loss = b"it/s" in text or b"s/it" in text, b"{'loss'" in text
        if not (has_bar or has_loss):
            return False
        known = False
        for part in text.decode("utf-8", "replace").split("\r"):
            if has_loss and (match := _DICT.search(part)):
                values = number(match[1]), number(match[2])
                self._dicts.append(_Dict(line, *values, self._last))
                known = True
            if has_bar:
                known |= self._add_bars(part, line)
        return known

    def _add_bars(self, part: str, line: int) -> bool:
        known, begin = False, 0
        for match in _STATE.finditer(part):
            front, begin = part[begin : match.start()], match.end()
            epoch = _EPOCH.search(front)
            if epoch is None and not _is_plain(front):
                continue
            whose = (epoch.lastgroup or "") if epoch else ""
            self._add_state(whose, int(epoch[whose]) if epoch else UNKNOWN, match, line)
            if part.startswith(",", begin) or _OF_OTHERS.search(front):
                self._of_others.add(int(match["all"]))
            known = True
        return known

    def _add_state(self, whose: str, epoch: int, match: re.Match[str], line: int) -> None:
        rate = number(match["rate"])
        spacing = None if not rate else rate if match["unit"] == "s/it" else 1 / rate
        state = _State(int(match["done"]), _seconds(match["since"]), line, spacing)
        self._states.setdefault((whose, epoch, int(match["all"])), {}).setdefault(state.done, state)
        if epoch == UNKNOWN:
            self._last = state.done
            if self._dicts and self._dicts[-1].after == UNKNOWN:
                self._dicts[-1] = self._dicts[-1]._replace(after=state.done)

    def _plain(self) -> tuple[str, dict[int, _State]]:
        """The longest of the bars without an epoch: others are of an evaluation, or of data."""
        plain = [
            ("tqdm" if every in self._of_others else "huggingface", states)
            for (whose, _, every), states in self._states.items()
            if not whose
        ]
        return max(
            plain, key=lambda one: max(state.since for state in one[1].values()), default=("", {})
        )

    def done(self) -> int | None:
        """Steps that the bar without an epoch has come to."""
        return max(self._plain()[1], default=None)

    def steps(self, totals: list[RunTotal]) -> list[StepLine]:
        """The step lines that the bars are, by line."""
        name, plain = self._plain()
        steps = self._of_bar(name, UNKNOWN, 0, plain)
        for (whose, epoch, every), states in self._states.items():
            if whose:
                # YOLO counts epochs from 0 or from 1.
                before = epoch * every if whose == "lightning" else 0
                steps += self._of_bar(whose, epoch, before, states)
        steps += self._of_dicts(totals)
        return sorted(steps, key=lambda one: one.line)

    def _of_bar(
        self, name: str, epoch: int, before: int, states: dict[int, _State]
    ) -> list[StepLine]:
        if not states:
            return []
        ordered = [states[done] for done in sorted(states)]
        start, since = _start(ordered)
        last = ordered[-1].done
        steps = []
        for state in ordered:
            if state.done < 1:
                continue
            span, over = Fraction(state.since - since), state.done - start
            # The rate is smoothed, but for that of one step and Lightning's, which are means.
            is_mean = state.done == over and (over == 1 or name == "lightning")
            exact = over * state.spacing if is_mean and state.spacing is not None else None
            if exact is not None and 0 <= exact - span < 1:
                span = exact
            warm = state.done == 1 and 2 * span * (last - 1) > 3 * (ordered[-1].since - span)
            ends = span >= LONG_ENOUGH_S or state.done == last or warm
            timed = over > 0 and ends and span >= (0 if span == exact else _SHORTEST_S)
            ns = round(span * 10**9 / over) if timed and start >= 0 else None
            steps.append(
                StepLine(
                    name,
                    self.file,
                    state.line,
                    before + state.done,
                    step_ns=ns,
                    epoch=epoch,
                    over=over if ns is not None else 1,
                    approximate=True,
                )
            )
            if timed or start < 0:
                start, since = state.done, state.since
        return steps

    def _of_dicts(self, totals: list[RunTotal]) -> list[StepLine]:
        """Losses with the step that the bar beside them shows, or that their epoch makes it."""
        shown = [one.before if one.after == UNKNOWN else one.after for one in self._dicts]
        if not _plausible(shown, [one.epoch for one in self._dicts]):
            shown = _by_epoch(self._dicts, totals)
        return [
            StepLine(
                "huggingface-dict",
                self.file,
                one.line,
                step,
                loss=None if one.loss is None else float(one.loss),
            )
            for one, step in zip(self._dicts, shown, strict=True)
        ]


def _is_plain(front: str) -> bool:
    """Whether what stands before a bar's state is the bar alone, perhaps behind a label."""
    bar = _BAR.search(front)
    alone = bar is not None and (bool(bar[0].strip()) or not front.strip())
    return alone and _DESCRIBED.search(front) is None


def _start(ordered: list[_State]) -> tuple[int, int]:
    """Steps and seconds from which a bar's time counts; -1 steps where it is not known.

    A run that goes on from a checkpoint leaps to its steps at once: what the first bar says of the
    time since 0 then contradicts its own rate.
    """
    first = ordered[0]
    if first.done < 1 or first.spacing is None:
        return first.done, first.since
    mean = Fraction(first.since, first.done)
    near = first.spacing / _CONTRADICTION <= mean <= first.spacing * _CONTRADICTION
    return (0, 0) if near else (UNKNOWN, 0)


def _seconds(text: str) -> int:
    total = 0
    for word in text.split(":"):
        total = total * 60 + int(word or 0)
    return total


def _plausible(steps: list[int], epochs: list[Fraction | None]) -> bool:
    """Whether steps ascend from 1 on, in proportion to their epochs where those are told."""
    if any(step < 1 for step in steps) or any(a >= b for a, b in itertools.pairwise(steps)):
        return False
    rates = [step / epoch for step, epoch in zip(steps, epochs, strict=True) if epoch]
    return not rates or max(rates) <= 2 * min(rates)


def _by_epoch(dicts: list[_Dict], totals: list[RunTotal]) -> list[int]:
    """Steps by the share of the run's epochs, where the run's end tells both; else unknown."""
    for total in totals:
        last = number(dict(total.values).get("epoch"))
        # Epochs have two decimals: they must tell single steps apart.
        if total.steps and last and Fraction(total.steps, 100) < last:
            return [
                UNKNOWN if one.epoch is None else round(one.epoch * total.steps / last)
                for one in dicts
            ]
    return [UNKNOWN] * len(dicts)
