"""What the rules of advice look at, and what they return.

The form asks for advice at every key, so a rule looks at the draft only and never at a machine;
what is known of the target comes along as :class:`Facts`. The rules are in ``advice`` and
``clashes``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from nsys_tui.capture.options.table import OPTIONS
from nsys_tui.capture.options.target_facts import Facts
from nsys_tui.config_values import OptionValue, option_text

ERROR: Final = "error"
WARNING: Final = "warning"
NOTE: Final = "note"


@dataclass(frozen=True)
class Check:
    """One remark: ok, note, warning or error, about which option or part, what, what to do."""

    severity: str
    name: str
    text: str
    remedy: str = ""

    @property
    def told(self) -> str:
        """What, and what to do about it."""
        return f"{self.text} ({self.remedy})" if self.remedy else self.text


@dataclass(frozen=True)
class Draft:
    """What the rules look at.

    Attributes:
        options: long name to value, as typed.
        program: the program and its arguments.
        env: names and values of the environment that the capture sets.
        env_from: names whose values come from the local environment.
        output: the report's name, may be empty.
        processes: how many times the launcher starts nsys (1 without Slurm).
        facts: what is known about the target.
        functions_json: content of the ``--python-functions-trace`` file.
    """

    options: Mapping[str, OptionValue]
    program: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    env_from: tuple[str, ...] = ()
    output: str = ""
    processes: int = 1
    facts: Facts = field(default_factory=Facts)
    functions_json: str = ""

    def value(self, name: str) -> str:
        """The value of an option as one word; the default of that nsys when it is left out."""
        known, at_target = OPTIONS.get(name), self.facts.options.get(name)
        usual = (at_target.default if at_target else "") or (known.default if known else "")
        value = self.options.get(name, usual)
        return option_text(value)

    def words(self, name: str) -> list[str]:
        """The value of an option as a list."""
        return [word for word in self.value(name).split(",") if word]

    def given(self, name: str) -> bool:
        """Whether the user set the option."""
        return name in self.options

    def wants(self, name: str) -> bool:
        """Whether the option is on, by choice or by default."""
        return self.value(name) not in ("none", "false", "")


Rule = Callable[[Draft], Iterator[Check]]
RULES: Final[list[Rule]] = []


def rule(function: Rule) -> Rule:
    """Adds a rule to the registry."""
    RULES.append(function)
    return function
