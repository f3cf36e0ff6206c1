"""A plan: everything that decides one capture, and the exact argv that follows from it.

A plan is made from form values, command-line options, a record or a report, and is then only read.
Secret values are no part of it: it names them, and whoever starts the capture hands them over.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any, Final

from nsys_tui.capture.launchers import Target
from nsys_tui.capture.options import functions_trace
from nsys_tui.capture.options.advice import advise
from nsys_tui.capture.options.draft import Check, Draft
from nsys_tui.capture.options.presets import presets
from nsys_tui.capture.options.table import OPTIONS, name_there, option_there, read_words
from nsys_tui.capture.options.target_facts import Facts
from nsys_tui.capture.targets import check_env_name, find_target, from_snapshot, frozen, with_nsys
from nsys_tui.config import Config
from nsys_tui.config_values import OptionValue, option_text
from nsys_tui.errors import UsageError
from nsys_tui.plain_data import plain
from nsys_tui.redaction import looks_secret

_LONG: Final = re.compile(r"(?<=^--)[\w-]+")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_OWNED: Final = ("output", "env-var", "session-new", "command-file", "defer-report")
FUNCTIONS_FILE: Final = "functions.json"


@dataclass(frozen=True)
class Plan:
    """What to run, where, and what nsys is to collect.

    Attributes:
        target: where.
        program: the program and its arguments; never split or joined by a shell.
        cwd: working directory there; empty = the home or login directory.
        options: nsys's long names without dashes to values.
        extra: further nsys options as typed, passed on unchanged.
        env: environment of the program; plain values, kept in the record.
        env_from: names whose values come from the local environment at the start.
        replayed: names whose values come from the report that is profiled again.
        output: the report's name as ``--output`` takes it; empty = a fresh name of our own.
        functions_json: content of the ``--python-functions-trace`` file; empty = none.
        stdin: file over there that the program reads; empty = nothing.
    """

    target: Target
    program: tuple[str, ...]
    cwd: str = ""
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    env_from: tuple[str, ...] = ()
    replayed: tuple[str, ...] = ()
    output: str = ""
    functions_json: str = ""
    stdin: str = ""

    @property
    def processes(self) -> int:
        """How many nsys processes the launcher starts."""
        return self.target.launcher.processes(self.target)

    def argv(
        self, nsys: str = "nsys", job_dir: str = "JOB", known: Collection[str] = ()
    ) -> list[str]:
        """The exact command: nsys, its options, the program.

        Args:
            nsys: the executable over there.
            job_dir: the folder of the job over there; holds the report when no output is named.
            known: the options that this nsys lists; what it calls otherwise is given so.
        """
        return [nsys, "profile", *self._options(job_dir, known), *self.program]

    def _options(self, job_dir: str, known: Collection[str]) -> list[str]:
        passed = read_words(self.extra)
        words = [
            option_there(name, option_text(value), known)
            for name, value in self.options.items()
            if name not in passed  # nsys refuses an option that is given twice
        ]
        if self.functions_json:
            file = f"{job_dir}/{FUNCTIONS_FILE}"
            words.append(option_there("python-functions-trace", file, known))
        extra = [_LONG.sub(lambda name: name_there(name[0], known), word) for word in self.extra]
        return [*words, *extra, f"--output={self.output or f'{job_dir}/{self.stem()}'}"]

    def stem(self) -> str:
        """A readable name for a report of this program, without extension."""
        names = [PurePosixPath(word.replace("\\", "/")) for word in self.program]
        script = next((name for name in names[1:] if name.suffix == ".py"), None)
        chosen = (script or names[0]).name if names else "report"
        stem = _UNSAFE.sub("_", chosen.removesuffix(".py")).strip("._-") or "report"
        return stem[:60] + (f".{self.target.launcher.rank_mark}" if self.processes > 1 else "")

    def needed_s(self, grace_s: float = 120) -> float:
        """Seconds of a batch job that the capture takes at least; 0 when its length is open."""
        times = [str(self.options.get(name, "0")) for name in ("delay", "duration")]
        numbers = [float(text) for text in times if re.fullmatch(r"\d+(\.\d+)?", text)]
        return sum(numbers) + grace_s if "duration" in self.options else 0

    def launcher_faults(self, grace_s: float) -> list[str]:
        """What the launcher would pass over in silence in this plan, or find too late."""
        return self.target.launcher.faults(self.target, self.needed_s(grace_s))

    def command_text(self) -> str:
        """The command for reading and copying; a POSIX shell reads it back exactly."""
        return shlex.join(self.argv("nsys", "JOB"))

    def advice(self, facts: Facts | None = None) -> list[Check]:
        """Remarks on this plan, errors first."""
        return advise(
            Draft(
                {**self.options, **self._passed_on()},
                self.program,
                self.env,
                (*self.env_from, *self.replayed),
                self.output or self.stem(),
                self.processes,
                facts or Facts(),
                self.functions_json,
            )
        )

    def _passed_on(self) -> dict[str, str]:
        """Options among ``extra``; one of unknown meaning may well have no value."""
        return {n: v for n, v in read_words(self.extra).items() if v or n in OPTIONS}

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data; values of variables whose names say secret stay out."""
        return {**plain(vars(self)), "target": self.target.snapshot()}


def plan_from_json(data: Mapping[str, Any]) -> Plan:
    """A plan as a record keeps it."""
    values = {item.name: frozen(data[item.name]) for item in fields(Plan) if item.name in data}
    return Plan(**{**values, "target": from_snapshot(data["target"])})


def make_plan(
    target: Target,
    program: Sequence[str] = (),
    *,
    options: Mapping[str, OptionValue] | None = None,
    preset: str = "",
    config: Config | None = None,
    extra: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    env_from: Sequence[str] = (),
    cwd: str = "",
    output: str = "",
    functions_trace_file: str = "",
    functions_json: str = "",
    replayed: Sequence[str] = (),
    nsys: str = "",
    stdin: str = "",
) -> Plan:
    """Puts a plan together: target's settings < preset < what was asked for now.

    Args:
        target: where; its command, working directory, options and environment are the defaults.
        program: the program and its arguments.
        options: nsys options; an empty value removes one that came from target or preset.
        preset: name of a preset, built in or from the config.
        config: where the user's own presets are.
        extra: further nsys options as typed, such as ``--isr=true``.
        env: further environment of the program.
        env_from: further names taken from the local environment at the start.
        cwd: working directory over there; empty = home, on this machine the present folder.
        output: report name; refused characters are none, it is quoted.
        functions_trace_file: local JSON file for ``--python-functions-trace``, or functions as
            ``module:function``, from which one is made.
        functions_json: content of such a file, when there is none.
        replayed: names whose values come from the report that is profiled again.
        nsys: the nsys to run there; empty = what target and config say.
        stdin: file over there for the program's stdin.

    Raises:
        UsageError: no program, an unknown preset, an option of ours among ``extra``, a bad
            functions-trace file.
    """
    settings = target.settings
    chosen_env = dict(settings.env)
    chosen_options: dict[str, OptionValue] = dict(settings.options)
    if preset:
        known = presets(config.capture if config else None)
        if preset not in known:
            raise UsageError(f"no preset is called {preset!r}", hint="known: " + ", ".join(known))
        chosen_options |= known[preset].options
        chosen_env |= known[preset].env
    chosen_options |= options or {}
    named_output = chosen_options.pop("output", "")
    trace_file = functions_trace_file or str(chosen_options.pop("python-functions-trace", ""))
    plan = Plan(
        target=with_nsys(target, config, nsys),
        program=tuple(program) or settings.command,
        cwd=cwd or settings.cwd or ("" if target.remote else os.getcwd()),
        options={name: value for name, value in chosen_options.items() if value not in ("", ())},
        extra=tuple(extra),
        env=chosen_env | dict(env or {}),
        env_from=tuple(dict.fromkeys([*settings.env_from, *env_from])),
        output=output or str(named_output),
        functions_json=_read_functions(trace_file) if trace_file else functions_json,
        replayed=tuple(replayed),
        stdin=stdin,
    )
    return _checked(plan)


def _checked(plan: Plan) -> Plan:
    if not plan.program or not plan.program[0]:
        raise UsageError(
            "no program to profile",
            hint="write it after -- (in the form: as program), or give the target a command",
        )
    for name in (*plan.env, *plan.env_from, *plan.replayed):
        check_env_name(name, "environment")
    for name in read_words(plan.extra):
        if name in _OWNED:
            raise UsageError(
                f"--{name} cannot be passed on", "it would change what is watched here",
                "name the report with --output, variables with --env",
            )  # fmt: skip
    for value in (
        *plan.program,
        *plan.env.values(),
        *plan.extra,
        plan.cwd,
        plan.output,
        plan.stdin,
    ):
        if "\0" in value:
            raise UsageError(f"{value!r} holds a NUL character, which no program can be given")
    if "\n" in plan.output:
        raise UsageError(f"{plan.output!r}: a report name cannot hold a line break")
    secret = [name for name in plan.env if looks_secret(name)]
    if secret:
        raise UsageError(
            f"{', '.join(secret)}: a secret cannot be given as a plain value",
            "it would be kept in the record of the capture",
            "set it in your own environment and name it with --env-from or env_from",
        )
    return plan


def _read_functions(path: str) -> str:
    """The content of a file, or one made for functions given as ``module:function``."""
    named = path.replace(",", " ").split()
    if all(":" in name for name in named) and not Path(path).exists():
        return functions_trace.make(named)
    try:
        text = Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path}: cannot be read",
            str(error.strerror if isinstance(error, OSError) else error),
            "name functions as module:function, such as model:GPT.forward, or a JSON file",
        ) from error
    functions_trace.check(text, path)
    return text


@dataclass(frozen=True)
class Form:
    """The fields of the capture form as typed; :func:`plan_from_form` reads them.

    ``program`` is one line split as a POSIX shell splits words, but nothing in it is expanded;
    ``functions_trace`` names a local file or functions, ``functions_json`` is the content of an
    earlier file.
    """

    program: str = ""
    target: str = ""
    cwd: str = ""
    output: str = ""
    preset: str = ""
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    extra: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    env_from: tuple[str, ...] = ()
    functions_trace: str = ""
    functions_json: str = ""
    replayed: tuple[str, ...] = ()
    stdin: str = ""


def plan_from_form(form: Form, config: Config) -> Plan:
    """The plan that a filled form describes.

    Raises:
        UsageError: unbalanced quotes, an unknown target or preset, no program.
    """
    words = ("target", "program", "extra", "functions_trace")
    return make_plan(
        find_target(config, form.target),
        split_words(form.program, "program"),
        config=config,
        extra=split_words(form.extra, "more options"),
        functions_trace_file=form.functions_trace,
        **{name: value for name, value in vars(form).items() if name not in words},
    )


def form_from_plan(plan: Plan) -> Form:
    """The form prefilled with a plan, for "profile again" and for repeating a capture."""
    kept = ("cwd", "options", "env", "env_from", "functions_json", "replayed", "stdin")
    return Form(
        program=shlex.join(plan.program),
        target=plan.target.name,
        extra=shlex.join(plan.extra),
        **{name: getattr(plan, name) for name in kept},
    )


def named_values(words: Iterable[str], what: str) -> dict[str, str]:
    """Values of words such as NAME=VALUE.

    Raises:
        UsageError: a word has no ``=``.
    """
    pairs = [word.partition("=") for word in words]
    for name, equals, _ in pairs:
        if not equals:
            raise UsageError(f"{what} {name}: no value", hint="write NAME=VALUE")
    return {name: value for name, _, value in pairs}


def split_words(line: str, what: str) -> list[str]:
    """Splits one typed line into words, as a POSIX shell does, without expanding anything.

    Raises:
        UsageError: a quote is not closed.
    """
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(
            f"{what}: {error}", hint="close the quote, or escape it with \\"
        ) from error
