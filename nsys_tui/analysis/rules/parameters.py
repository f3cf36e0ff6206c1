"""Parameters of rules: what a rule takes, and the values that it was given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from nsys_tui.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

Listed = TypeVar("Listed", "NDArray[np.intp]", "list[Any]")


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
