"""The capture form as data: its fields, how each changes, and the lines that show it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.capture.options import functions_trace
from nsys_tui.capture.options.presets import presets
from nsys_tui.capture.options.table import OPTIONS, Kind, name_there
from nsys_tui.capture.options.target_facts import Facts, OwnOption
from nsys_tui.capture.plan import Form, Plan, named_values, plan_from_form, split_words
from nsys_tui.capture.targets import usable_targets
from nsys_tui.config import Config, TargetConfig
from nsys_tui.config_values import OptionValue, option_text
from nsys_tui.errors import NsysTuiError
from nsys_tui.names import pad, visible
from nsys_tui.render.cells import BOLD, MUTED, STALL

if TYPE_CHECKING:
    from nsys_tui.capture.profile_again import Again
    from nsys_tui.ui.widgets.lines import Line


LABEL: Final = 24
"""Cells of the longest label."""

SHOWN_OPTIONS: Final = (
    "trace",
    "capture-range",
    "capture-range-end",
    "nvtx-capture",
    "delay",
    "duration",
    "sample",
    "backtrace",
    "cudabacktrace",
    "python-sampling",
    "cuda-graph-trace",
    "cuda-memory-usage",
    "gpu-metrics-devices",
)
"""nsys options with a line of their own; the others go into the line "more"."""

PLAIN: Final = {
    "program": "program",
    "target": "target",
    "cwd": "directory",
    "output": "output",
    "preset": "preset",
    "env": "env",
    "env_from": "env from",
    "functions_trace": "functions",
    "extra": "more",
}
HINTS: Final = {
    "program": "one line, split as a shell splits words; nothing is expanded",
    "cwd": "working directory there; empty = the target's",
    "output": "report name; empty = a fresh one; %q{SLURM_PROCID}, %h, %p are filled in by nsys",
    "env": "NAME=VALUE, separated by blanks, quoted as for a shell; no secrets here",
    "env_from": "names whose values are taken from this environment at the start",
    "functions_trace": "functions to mark: module:function …, or a JSON file",
    "extra": "further options of nsys, as typed",
}

ANY_PROGRAM: Final = "program"
"""Stands in for a program that is not typed yet, so that advice on options can be given."""


@dataclass(frozen=True)
class Field:
    """One line of the form."""

    key: str
    """A field of ``Form``, ``--name`` for an option of nsys, or ``replay:NAME``."""
    label: str
    value: str
    hint: str = ""
    choices: tuple[str, ...] = ()
    """Space goes through them; empty for text."""
    default: str = ""


def fields(
    form: Form,
    config: Config,
    again: Again | None,
    ticked: frozenset[str],
    facts: Facts | None = None,
) -> list[Field]:
    """The form's lines in their order; defaults and values are those of the nsys there."""
    targets = tuple(target.name for target in usable_targets(config)[0])
    choices = {"target": targets, "preset": ("", *presets(config.capture))}
    usual = _usual(form, config)
    lines = [
        Field(
            key,
            label,
            _text(form, key),
            HINTS.get(key, ""),
            choices.get(key, ()),
            usual.get(key, ""),
        )
        for key, label in PLAIN.items()
        if key not in ("env", "env_from", "functions_trace", "extra")
    ]
    lines += [_option_field(form, name, facts) for name in SHOWN_OPTIONS]
    lines += [
        Field(key, PLAIN[key], _text(form, key), HINTS[key])
        for key in ("functions_trace", "env", "env_from", "extra")
    ]
    others = sorted(set(form.options) - set(SHOWN_OPTIONS))
    lines += [_option_field(form, name, facts) for name in others]
    for variable in again.variables if again else ():
        value = (
            "not replayed: " + variable.refused
            if variable.refused
            else ("[x] replay" if variable.name in ticked else "[ ] not replayed")
        )
        boxes = () if variable.refused else ("[ ]", "[x]")
        shown = f"{value}  ({variable.length} characters, redacted)"
        lines.append(Field(f"replay:{variable.name}", variable.name, shown, "", boxes))
    return lines


def _usual(form: Form, config: Config) -> dict[str, str]:
    """What the target brings along where the form is empty."""
    name = form.target or config.capture.default_target
    settings = config.targets.get(name, TargetConfig())
    return {"program": shlex.join(settings.command), "cwd": settings.cwd}


def _option_field(form: Form, name: str, facts: Facts | None) -> Field:
    option = OPTIONS.get(name)
    known = facts.options if facts else {}
    at_target = known.get(name_there(name, known), OwnOption())
    text = option_text(form.options.get(name, ""))
    if option is None:
        return Field(f"--{name}", name, text)
    words = at_target.values or option.choices
    if option.kind is Kind.FLAG:
        choices: tuple[str, ...] = ("", "true", "false")
    elif option.kind is Kind.CHOICE or (option.choices and option.kind is Kind.TEXT):
        choices = ("", *words)
    else:
        choices = ()
    hint = option.help + (f": {', '.join(words[:12])} …" if words else "")
    return Field(f"--{name}", name, text, hint, choices, at_target.default or option.default)


def _text(form: Form, key: str) -> str:
    value = getattr(form, key)
    if key == "functions_trace" and not value and form.functions_json:
        return " ".join(functions_trace.names(form.functions_json))
    if key == "env":
        return " ".join(
            f"{name}={shlex.quote(text) if text else ''}" for name, text in value.items()
        )
    return " ".join(value) if isinstance(value, tuple) else str(value)


def changed(form: Form, key: str, text: str) -> Form:
    """The form with one field set from text.

    Raises:
        UsageError: the text is no value for that field.
    """
    if key.startswith("--"):
        options: dict[str, OptionValue] = dict(form.options)
        option = OPTIONS.get(key[2:])
        words = option is not None and option.kind is Kind.WORDS
        options[key[2:]] = tuple(text.replace(" ", ",").split(",")) if words and text else text
        if not text:
            options.pop(key[2:])
        return replace(form, options=options)
    if key == "env":
        return replace(form, env=named_values(split_words(text, "environment"), "environment"))
    if key == "env_from":
        return replace(form, env_from=tuple(text.split()))
    if key == "functions_trace":
        return replace(form, functions_trace=text, functions_json="")
    changes: dict[str, Any] = {key: text}
    return replace(form, **changes)


def live_text(form: Form, config: Config, key: str, text: str, facts: Facts | None) -> str:
    """What there is to say about a value while it is typed: a fault, or what advice it brings."""
    try:
        typed = changed(form, key, text)
        if key != "program" and not typed.program and not _usual(typed, config)["program"]:
            typed = replace(typed, program=ANY_PROGRAM)
        plan = plan_from_form(typed, config)
    except NsysTuiError as error:
        return error.one_line
    before = planned(form, config)
    known = before.advice(facts) if isinstance(before, Plan) else []
    name = "python-functions-trace" if key == "functions_trace" else key.removeprefix("--")
    told = [a for a in plan.advice(facts) if a.name == name or a not in known]
    return "; ".join(f"{a.severity}: {a.told}" for a in told[:3])


def next_choice(entry: Field) -> str:
    """The choice after the present one."""
    choices = entry.choices
    place = choices.index(entry.value) if entry.value in choices else 0
    return choices[(place + 1) % len(choices)]


def form_lines(entries: list[Field], width: int) -> list[Line]:
    """The form, one line per field."""
    room = min(LABEL, max(len(entry.label) for entry in entries)) + 2
    lines: list[Line] = []
    for entry in entries:
        value = entry.value or (f"({entry.default})" if entry.default else "-")
        ink = 0 if entry.value else MUTED
        mark = "<> " if entry.choices else "   "
        label = f" {pad(entry.label, room - 2)}  {mark}"
        lines.append([(label, MUTED), (pad(visible(value), width - len(label)).rstrip(), ink)])
    return lines


def planned(form: Form, config: Config) -> Plan | NsysTuiError:
    """The plan of a form, or why there is none yet."""
    try:
        return plan_from_form(form, config)
    except NsysTuiError as error:
        return error


def command_lines(
    plan: Plan | NsysTuiError, width: int, facts: Facts | None = None, note: str = ""
) -> list[Line]:
    """The exact command and what there is to say about it.

    Args:
        plan: of the form, or why there is none.
        width: cells.
        facts: what is known of the target.
        note: a line about how that is known.
    """
    if isinstance(plan, NsysTuiError):
        parts = (plan.title, plan.message, plan.hint)
        return [[(part, STALL if part is plan.title else MUTED)] for part in parts if part]
    lines: list[Line] = [[(text, BOLD)] for text in _wrapped(plan.command_text(), width)]
    where = f"on {plan.target.name}" + (f" in {plan.cwd}" if plan.cwd else "")
    where += "" if plan.output else "; JOB is its own folder there"
    where += f"; {note}" if note else ""
    lines += [[(text, MUTED)] for text in _wrapped(where, width)]
    for remark in plan.advice(facts):
        for number, text in enumerate(_wrapped(f"{remark.severity}: {remark.told}", width)):
            ink = STALL if remark.severity != "note" and not number else MUTED
            lines.append([(text, ink)])
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    from textwrap import wrap

    return wrap(text, max(20, width), break_long_words=True, break_on_hyphens=False) or [""]
