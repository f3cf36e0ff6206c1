"""The target editor as data: its fields as text, what they become, and what is wrong with them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from nsys_tui.capture.launchers import Target, all_fields, launchers, plain_settings
from nsys_tui.capture.plan import Plan, make_plan, named_values, split_words
from nsys_tui.capture.targets import LOCAL, checked
from nsys_tui.config import EXPORTS, Config, TargetConfig, parse_config
from nsys_tui.errors import NsysTuiError, UsageError

Texts = Mapping[str, str]
"""Key of a field to its text; ``name`` is the target's name."""


@dataclass(frozen=True)
class TargetField:
    """One line of the editor.

    Attributes:
        key: of ``[targets.NAME]``, with a dot for a table in it.
        launchers: those that the field is for; empty = all.
        choices: what it may be; empty = any text.
    """

    key: str
    label: str
    hint: str
    launchers: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


@cache
def all_target_fields() -> tuple[TargetField, ...]:
    """Every field, with those that launchers and ways declare."""
    declared = [
        TargetField(field.key, field.label, field.hint, users) for field, users in all_fields()
    ]
    kinds = tuple(kind.name for kind in launchers())
    return (
        TargetField("name", "name", "how you call it here"),
        *(field for field in declared if not field.launchers),
        TargetField("launcher", "launcher", "what starts the program there", (), kinds),
        *(field for field in declared if field.launchers),
        *_COMMON,
    )


_COMMON: Final = (
    TargetField("cwd", "directory", "working directory there, such as ~/project"),
    TargetField("preamble", "preamble", "shell text run first: module load cuda && . .venv/bin/…"),
    TargetField("nsys", "nsys", "a path, or auto: PATH after the preamble, then the usual folders"),
    TargetField("command", "command", "program and arguments, split as a shell splits words"),
    TargetField("options", "options", "trace=cuda,nvtx cuda-graph-trace=node"),
    TargetField("env", "env", "NAME=VALUE, separated by blanks; no secrets here"),
    TargetField("env_from", "env from", "names whose values are taken from your environment"),
    TargetField("export", "export", "where the report becomes SQLite", (), EXPORTS),
    TargetField("jobs_dir", "jobs folder", "on clusters one that the compute nodes see"),
)


def shown_fields(texts: Texts) -> list[TargetField]:
    """The fields that matter for the launcher."""
    launcher = texts.get("launcher", "none")
    return [
        field for field in all_target_fields() if not field.launchers or launcher in field.launchers
    ]


def texts_of(name: str, settings: TargetConfig) -> dict[str, str]:
    """A target as the text of its fields."""
    values = {**plain_settings(settings), **Target(name, settings).own}
    texts = {field.key: _text(values[field.key]) for field in all_target_fields()[1:]}
    return {"name": name, **texts}


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        words = {k: v if isinstance(v, str) else ",".join(v) for k, v in value.items()}
        return shlex.join(f"{key}={word}" for key, word in words.items())
    return shlex.join(value) if isinstance(value, list | tuple) else str(value)


def settings_of(texts: Texts) -> dict[str, Any]:
    """The keys of ``[targets.NAME]`` that differ from their defaults, as plain values.

    Raises:
        UsageError: a text that cannot be split, or a pair without ``=``.
    """
    default = texts_of("", TargetConfig())
    settings: dict[str, Any] = {}
    for field in shown_fields(texts)[1:]:
        text = texts.get(field.key, "").strip()
        if text == default[field.key]:
            continue
        table, _, key = field.key.rpartition(".")
        place = settings.setdefault(table, {}) if table else settings
        place[key] = _value(field.key, text)
    return settings


def _value(key: str, text: str) -> object:
    if isinstance({**plain_settings(TargetConfig()), **Target("").own}[key], list | tuple):
        return split_words(text, key)
    if key not in ("options", "env"):
        return text
    values = named_values(split_words(text, key), key)
    if key == "env":
        return values
    return {
        name.removeprefix("--"): tuple(value.split(",")) if "," in value else value
        for name, value in values.items()
    }


def target_of(texts: Texts, config: Config) -> Target:
    """The target that the texts describe, checked as if it stood in the file.

    Raises:
        UsageError, ConfigError: a field cannot be what it says.
    """
    name = texts["name"].strip()
    if not name:
        raise UsageError("the target needs a name")
    document = {"targets": {name: settings_of(texts)}}
    return checked(name, parse_config(document, config.path).targets[name], "target")


def plan_of(target: Target, config: Config) -> Plan:
    """A capture as the target has it, to be looked at and not run.

    Raises:
        UsageError: its settings make no capture.
    """
    return make_plan(target, target.settings.command or ("true",), config=config)


def remarks(texts: Texts, config: Config, old_name: str) -> list[tuple[str, str]]:
    """What is wrong or worth knowing, as (severity, text); an error keeps it from being saved.

    Args:
        texts: the fields as they are.
        config: where the other targets are.
        old_name: name of the target that is edited; empty for a new one.
    """
    try:
        target = target_of(texts, config)
        plan = plan_of(target, config)
        advice = plan.advice()
    except NsysTuiError as error:
        return [("error", error.one_line)]
    taken = target.name != old_name and target.name in {LOCAL, *config.targets}
    remarks_on = [("error", f"there is a target {target.name} already")] if taken else []
    remarks_on += [(item.severity, item.told) for item in advice if item.severity != "note"]
    faults = plan.launcher_faults(config.capture.grace / 1e9)
    return remarks_on + [("warning", fault) for fault in faults]
