"""The register of expert rules: name, parameters, advice, and how to look.

A rule is a small function in a family file of this folder, registered by the decorator; what it
gives is a table and findings. ``answer.py`` runs them all and ranks what they found.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from nsys_tui.analysis.rules.case import Case
from nsys_tui.analysis.rules.finding import Finding
from nsys_tui.analysis.window import Scope
from nsys_tui.errors import UsageError
from nsys_tui.model.arrays import Indices
from nsys_tui.model.table import Column, Table, Values
from nsys_tui.units import parse_duration

Listed = TypeVar("Listed", "Indices", "list[Any]")


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


def most_of(part: float, whole: float, most: str = "most") -> str:
    """``most`` where a part is more than half of a whole, else what is true of the largest."""
    return most if 2 * part > whole else "led by"


def cut(rows: Listed, arguments: Arguments) -> tuple[Listed, int]:
    """The first rows that the ``rows`` parameter lets through, and how many it does not."""
    most = arguments.count("rows")
    kept = rows if most < 0 else rows[:most]
    return kept, len(rows) - len(kept)


def typed(parameter: Parameter, text: str) -> int | float | bool | str:
    """A value of a parameter, from its text.

    Raises:
        UsageError: it is of another type.
    """
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


@dataclass(frozen=True, eq=False)
class Result:
    """What a rule gave."""

    columns: tuple[tuple[Column, Values], ...]
    findings: Sequence[Finding] = ()
    hidden: int = 0
    """Rows that are not in the table because of ``rows``."""


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
    finds: bool
    """Whether it has findings; else it is a table for those who ask."""

    @property
    def help(self) -> str:
        """What the rule looks for, from its docstring."""
        return inspect.cleandoc(self.look.__doc__ or "")

    def run(self, case: Case, arguments: Mapping[str, Any] | None = None) -> Outcome:
        """Looks at a report; with the defaults once, whoever asks.

        Args:
            case: the report; ``start``, ``end`` and ``nvtx`` look at a part of it.
            arguments: values of parameters; the others have their defaults.

        Raises:
            UsageError: a range or window that is not there.
            NoDataError: a range is asked for where there are none.
        """
        given = dict(arguments or {})
        return (
            self._run(case, given) if given else case.once(self.name, lambda: self._run(case, {}))
        )

    def _run(self, case: Case, given: dict[str, Any]) -> Outcome:
        defaults = {parameter.name: parameter.default for parameter in self.parameters}
        result = self.look(_narrowed(case, defaults | given), Arguments(defaults, given))
        more = f"{result.hidden} more rows: {self.name}:rows=-1 shows all"
        notes = (more,) if result.hidden else ()
        table = Table.of(self.name, self.title, result.columns, notes)
        return Outcome(self, table, result.findings)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A rule's answer: table, and what to make of it."""

    rule: Rule
    table: Table
    findings: Sequence[Finding]

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
    finds: bool = True,
) -> Callable[[Look], Look]:
    """Registers a rule under its function's name; the arguments are fields of ``Rule``."""

    def register(look: Look) -> Look:
        name = look.__name__
        RULES[name] = Rule(
            name, title, advice, nothing, (*parameters, *COMMON), look, of_nsys, finds
        )
        return look

    return register


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
        values[key] = typed(known[key], value if has_value else "1")
    return name, values


def _narrowed(case: Case, values: Mapping[str, Any]) -> Case:
    """The part of the report that ``start``, ``end`` and ``nvtx`` name; times win over ranges."""
    if not (values["start"] or values["end"] or values["nvtx"]):
        return case
    lo, hi = case.scope.bounds(case.report)
    if values["nvtx"]:
        from nsys_tui.analysis.stats.query import find_instance

        lo, hi = find_instance(case.report, str(values["nvtx"])).window
    if values["start"]:
        lo = parse_duration(str(values["start"]))
    if values["end"]:
        hi = parse_duration(str(values["end"]))
    if hi <= lo:
        raise UsageError(f"empty time window: {lo}ns/{hi}ns")
    scope = case.scope
    return Case(case.report, Scope((lo, hi), scope.devices, scope.processes, scope.streams))
