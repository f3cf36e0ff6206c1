"""The register of expert rules: name, parameters, advice, and how to look.

A rule is a small function in a family file of this folder, registered by the decorator; what it
gives is a table and findings. ``findings.py`` runs them all and ranks what they found.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from nsys_tui.analysis.breakdown import DeviceSplit, device_splits
from nsys_tui.analysis.iterations.detection import Iterations, find_iterations
from nsys_tui.analysis.iterations.detection import Rule as StepRule
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.rules.severity import Severity, severity
from nsys_tui.analysis.stalls.gaps import Stalls, stalls
from nsys_tui.analysis.stalls.host_activity import HostWork
from nsys_tui.analysis.window import Scope, clipped, row_numbers
from nsys_tui.errors import UsageError
from nsys_tui.model import intervals
from nsys_tui.model.table import Column, Table
from nsys_tui.units import format_count, parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from nsys_tui.model.events import Int64
    from nsys_tui.model.intervals import Intervals
    from nsys_tui.model.report import Report
    from nsys_tui.model.table import Values

WORTH_A_LINE: Final = 0.0005
"""Findings that could save less than this part of the time looked at are left out."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a rule; the default's type is the parameter's type."""

    name: str
    default: int | float | bool | str
    help: str


COMMON: Final = (
    Parameter("rows", 50, "rows of the table, -1 for all"),
    Parameter("start", "", "look only from this time on (ns or with a unit)"),
    Parameter("end", "", "look only until this time"),
    Parameter("nvtx", "", "look only inside this NVTX range: range[@domain][/index]"),
)


class Arguments:
    """Values of a rule's parameters.

    Args:
        defaults: value of every parameter that was not given.
        given: values that were.
    """

    def __init__(self, defaults: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        self._given = given
        self._values = {**defaults, **given}

    def given(self, name: str, otherwise: float) -> float:
        """A number where it was given, else another one than the parameter's default."""
        return float(self._given.get(name, otherwise))

    def number(self, name: str) -> float:
        """A number."""
        return float(self._values[name])

    def count(self, name: str) -> int:
        """A whole number."""
        return int(self._values[name])

    def flag(self, name: str) -> bool:
        """A yes or no."""
        return bool(self._values[name])

    def text(self, name: str) -> str:
        """A text, empty for none."""
        return str(self._values[name])


class Case:
    """One report under examination, with the analyses that several rules share.

    Args:
        report: the report.
        scope: window, devices, processes and streams.
        splits: where the time of each device went, if that is known already.
        idle: gives the idle gaps with their causes, where others want them too.
    """

    def __init__(
        self,
        report: Report,
        scope: Scope | None = None,
        splits: Sequence[DeviceSplit] | None = None,
        idle: Callable[[], Stalls] | None = None,
    ) -> None:
        self._idle = idle
        self.report = report
        self.scope = scope or Scope()
        if splits is not None:
            self.splits = [*splits]
        base = self.scope.base(report)
        self.base = base
        self.base_ns = base[1] - base[0]

    @cached_property
    def splits(self) -> list[DeviceSplit]:
        """Where the time of each device went."""
        return device_splits(self.report, self.scope)

    @cached_property
    def work(self) -> HostWork:
        """What host threads did."""
        return HostWork(self.report)

    @cached_property
    def stalls(self) -> Stalls:
        """Idle gaps with their causes."""
        if self._idle is not None:
            return self._idle()
        return stalls(self.report, self.scope, work=self.work)

    @cached_property
    def iterations(self) -> Iterations:
        """Steps, by NVTX name or by pattern."""
        return find_iterations(self.report, scope=self.scope)

    @cached_property
    def loop(self) -> tuple[int, int]:
        """The steady part: from the second step to the last, else all GPU work."""
        steps = self.iterations
        if steps.rule in (StepRule.NONE, StepRule.PATTERN) or len(steps) < 3:
            return self.base
        return int(steps.start[1]), int(steps.own_end[-1])

    @cached_property
    def _busy(self) -> dict[int, tuple[Intervals, frozenset[int]]]:
        """When each device worked, and the processes (globalPid) that it worked for."""
        ops, found = self.report.operations, {}
        for place, rows in self.scope.by_device(self.report):
            busy = intervals.union(*clipped(ops, rows, self.scope.window))
            owners = ops.processes[np.unique(ops.process[rows])]
            found[place] = busy, frozenset(owners.tolist())
        return found

    def idle_within(self, starts: Int64, ends: Int64, processes: Int64) -> int:
        """GPU time that host events held up: idle meanwhile, on the GPU of theirs that lost most.

        Args:
            starts: of the events.
            ends: of the events.
            processes: globalPid of each.
        """
        idle, known = 0, {*np.unique(processes).tolist()}
        spans_of: dict[frozenset[int], Intervals] = {}
        for busy, owners in self._busy.values():
            if not (mine := owners & known):
                continue
            if mine not in spans_of:
                own = np.isin(processes, [*mine])
                spans = intervals.union(starts[own], ends[own])
                spans_of[mine] = intervals.clip(*spans, *self.base)
            spans = spans_of[mine]
            idle = max(idle, intervals.total(*spans) - intervals.overlap_length(spans, busy))
        return idle

    def idle_in_calls(self, calls: NDArray[np.integer]) -> int:
        """The same of API calls."""
        api = self.report.api
        owners = api.thread_process[api.thread[calls]]
        return self.idle_within(api.start[calls], api.end[calls], owners)

    def operations(self) -> NDArray[np.intp]:
        """Rows of the operations in scope, whole where they straddle the window."""
        ops = self.report.operations
        return row_numbers(ops, self.scope.operations(ops))

    def calls(self) -> NDArray[np.intp]:
        """Rows of the API calls in scope, backtrace duplicates left out."""
        api = self.report.api
        rows = row_numbers(api, self.scope.threads(api))
        return rows[api.real[rows]]

    def device_labels(self, places: Iterable[int]) -> str:
        """``GPU 0, GPU 1``."""
        return ", ".join(self.report.devices[place].label for place in sorted(set(places)))

    def finding(
        self,
        rule: str,
        title: str,
        advice: str,
        *,
        subject: str,
        saved_ns: int,
        window: tuple[int, int] | None,
        place: int | None = None,
        screen: str = "2",
        command: str = "",
        at_least: Severity | None = None,
        stake_ns: int = 0,
    ) -> list[Finding]:
        """A finding rated by the time it could save; nothing where that is hardly any.

        Args:
            rule: name of the rule.
            title: what is wrong.
            advice: what to do.
            subject: what it is about, in a few words.
            saved_ns: time that could be saved at most; more than all of it never is.
            window: where it shows.
            place: on which device.
            screen: number key of the screen that shows it.
            command: command that shows it; the rule itself by default.
            at_least: this severity, for what costs no time but matters.
            stake_ns: time that it is about, where what could be saved cannot be told.
        """
        saved_ns = min(saved_ns, self.base_ns)
        weight = max(saved_ns, stake_ns)
        rated = at_least or severity(weight, self.base_ns)
        if at_least is None and weight < WORTH_A_LINE * self.base_ns:
            return []
        shown = command or f"nsys-tui analyze REPORT -r {rule}"
        return [
            Finding(
                rule,
                rated,
                title,
                subject,
                advice,
                saved_ns,
                window,
                place,
                screen,
                shown,
                stake_ns,
            )
        ]


@dataclass(frozen=True, eq=False)
class Result:
    """What a rule gave."""

    columns: tuple[tuple[Column, Values], ...]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    hidden: int = 0
    """Rows that are not in the table because of ``rows``."""


Listed = TypeVar("Listed", "NDArray[np.intp]", "list[Any]")
Look: TypeAlias = Callable[[Case, Arguments], Result]


@dataclass(frozen=True)
class Rule:
    """One expert rule."""

    name: str
    title: str
    advice: str
    """Shown above a table with rows."""
    nothing: str
    """Said where the rule found nothing."""
    parameters: tuple[Parameter, ...]
    look: Look
    of_nsys: bool
    """Whether nsys has a rule of this name."""

    @property
    def help(self) -> str:
        """What the rule looks for, from its docstring."""
        return inspect.cleandoc(self.look.__doc__ or "")

    def run(self, case: Case, arguments: Mapping[str, Any] | None = None) -> Outcome:
        """Looks at a report.

        Args:
            case: the report; ``start``, ``end`` and ``nvtx`` look at a part of it.
            arguments: values of parameters; the others have their defaults.

        Raises:
            UsageError: a range or window that is not there.
            NoDataError: a range is asked for where there are none.
        """
        defaults = {parameter.name: parameter.default for parameter in self.parameters}
        given = dict(arguments or {})
        result = self.look(_narrowed(case, defaults | given), Arguments(defaults, given))
        notes = list(result.notes)
        if result.hidden:
            notes.append(f"{result.hidden} more rows: {self.name}:rows=-1 shows all")
        table = Table(
            self.name,
            self.title,
            tuple(column for column, _ in result.columns),
            tuple(data for _, data in result.columns),
            tuple(notes),
        )
        return Outcome(self, table, result.findings)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A rule's answer: table, and what to make of it."""

    rule: Rule
    table: Table
    findings: tuple[Finding, ...]

    @property
    def advice(self) -> str:
        """Advice where there are rows, else that there is no problem."""
        return self.rule.advice if len(self.table) else self.rule.nothing


RULES: Final[dict[str, Rule]] = {}
"""All rules by name, in the order of their registration."""
OLD_NAMES: Final = {
    "cuda-async-memcpy": "cuda_memcpy_async",
    "cuda-sync-api": "cuda_api_sync",
    "cuda-sync-memcpy": "cuda_memcpy_sync",
    "cuda-sync-memset": "cuda_memset_sync",
    "dx12-mem-op": "dx12_mem_ops",
    "gpu-low-util": "gpu_time_util",
    "gpu-starv": "gpu_gaps",
}
"""What nsys called its rules up to 2022."""


def rule(
    title: str,
    *,
    advice: str,
    nothing: str,
    parameters: tuple[Parameter, ...] = (),
    of_nsys: bool = False,
) -> Callable[[Look], Look]:
    """Registers a rule under its function's name; the arguments are fields of ``Rule``."""

    def register(look: Look) -> Look:
        name = look.__name__
        RULES[name] = Rule(name, title, advice, nothing, (*parameters, *COMMON), look, of_nsys)
        return look

    return register


def cut(rows: Listed, arguments: Arguments) -> tuple[Listed, int]:
    """The first rows that the ``rows`` parameter lets through, and how many it does not."""
    most = arguments.count("rows")
    kept = rows if most < 0 else rows[:most]
    return kept, len(rows) - len(kept)


def plural(count: int, what: str) -> str:
    """``1 gap``, ``1,204 gaps``."""
    return f"{format_count(count)} {what}{'' if count == 1 else 's'}"


def parse_rule(text: str) -> tuple[str, dict[str, Any]]:
    """Parses ``name[:parameter=value…]`` into a rule's name and typed values.

    Raises:
        UsageError: unknown rule or parameter, or a value of the wrong type; the hint lists them.
    """
    name, *given = [part.strip() for part in text.split(":")]
    name = OLD_NAMES.get(name, name)
    if name not in RULES:
        raise UsageError(f"no rule called {name!r}", hint=f"rules: {', '.join(RULES)}")
    known = {parameter.name: parameter for parameter in RULES[name].parameters}
    values = {}
    for part in given:
        key, has_value, value = part.partition("=")
        if key not in known:
            raise UsageError(
                f"rule {name} has no parameter {key!r}", hint=f"it has {', '.join(known)}"
            )
        values[key] = _typed(known[key], value if has_value else "1")
    return name, values


def _typed(parameter: Parameter, text: str) -> int | float | bool | str:
    default = parameter.default
    try:
        if isinstance(default, bool):
            return text.lower() in ("1", "true", "yes", "on")
        if isinstance(default, int):
            return int(text)
        return float(text) if isinstance(default, float) else text
    except ValueError as error:
        raise UsageError(
            f"{parameter.name}: not a number: {text!r}", hint=parameter.help
        ) from error


def _narrowed(case: Case, values: Mapping[str, Any]) -> Case:
    """The part of the report that ``start``, ``end`` and ``nvtx`` name; times win over ranges."""
    if not (values["start"] or values["end"] or values["nvtx"]):
        return case
    lo, hi = case.scope.bounds(case.report)
    if values["nvtx"]:
        from nsys_tui.analysis.stats.nvtx_filter import find_instance

        lo, hi = find_instance(case.report, str(values["nvtx"])).window
    if values["start"]:
        lo = parse_duration(str(values["start"]))
    if values["end"]:
        hi = parse_duration(str(values["end"]))
    if hi <= lo:
        raise UsageError(f"empty time window: {lo}ns/{hi}ns")
    scope = case.scope
    return Case(case.report, Scope((lo, hi), scope.devices, scope.processes, scope.streams))
