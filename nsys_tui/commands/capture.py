"""``nsys-tui capture``: profile a program here, over SSH, in Slurm or in a container."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from nsys_tui.capture.options.table import OPTIONS
from nsys_tui.capture.quoting import printable
from nsys_tui.commands.options import add
from nsys_tui.config_values import option_text
from nsys_tui.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_tui.capture.plan import Plan
    from nsys_tui.config import Config

DESCRIPTION = """Starts nsys on a target, follows it, and brings the report home.
The path of the report is printed on stdout; everything else goes to stderr.
Options of nsys keep their long names; others go through --nsys-option."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    parser.usage = "nsys-tui capture [TARGET] [options] -- COMMAND [ARGUMENT ...]"
    parser.allow_abbrev = False
    add_options(parser)
    # everything from the first positional on, with "--" in it: argparse alone would lose the
    # border between our words and the program's
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this verb and those of nsys that have a place in the table."""
    option = partial(add, parser)
    option("--config FILE", "config file instead of the user's own")
    option("--preset NAME", "ready-made options; see --list-presets", default="")
    option("--list-presets", "print the presets and what they set")
    option("--cwd DIR", "working directory over there", default="")
    option("--nsys PATH", "nsys executable over there", default="")
    option("--output, -o NAME", "report name; default: a fresh one", default="")
    option("--env NAME=VALUE", "set for the program", action="append", default=[])
    own = "pass this variable of our own environment on; its value is kept nowhere here"
    option("--env-from NAME", own, action="append", default=[])
    stdin = "file over there that the program reads on its stdin; otherwise it is empty"
    option("--stdin FILE", stdin, default="")
    option("--nsys-option OPT", "passed on as it is", action="append", default=[])
    option("--again REPORT", "repeat how this report was made")
    option("--repeat ID", "repeat an earlier capture")
    replayed = "with --again: take this variable's value from the report"
    option("--replay NAME", replayed, action="append", default=[])
    option("--check", "only look whether it could work there")
    option("--print", "only print the command or job script")
    option("--detach", "start, print the id and return")
    option("--queue", "wait for another capture on the target")
    option("--anyway", "start beside another capture on the target")
    option("--batch", "never ask; fail where ssh would")
    option("--json", "events as JSON lines on stdout")
    option("--propagate", "exit with the program's own status")
    group = parser.add_argument_group("options of nsys profile")
    for one in OPTIONS.values():
        text = one.about + (f" (default {one.default})" if one.default not in ("none", "") else "")
        shown = f"{one.flag} {one.kind.value.upper()}"
        add(group, shown, text.replace("%", "%%"), dest=f"nsys_{one.name}")


def run(arguments: argparse.Namespace) -> int:
    """Runs the verb."""
    target, command = _sides(arguments)
    from nsys_tui.config import load_config

    config = load_config(arguments.config)
    if arguments.list_presets:
        return _list_presets(config)
    plan, secrets = _plan(arguments, config, target, command)
    _explain(plan, arguments)
    if arguments.print:
        return _print(plan, config)
    if arguments.check:
        from nsys_tui.commands.targets import check_plan

        return check_plan(plan, config, arguments, as_json=arguments.json)
    return _capture(arguments, config, plan, secrets)


def _sides(arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """What stands before and after ``--``; options after the target are read here."""
    words: list[str] = list(arguments.words)
    border = words.index("--") if "--" in words else len(words)
    before, command = words[:border], words[border + 1 :]
    parser = argparse.ArgumentParser(
        prog="nsys-tui capture", allow_abbrev=False, exit_on_error=False, add_help=False
    )
    add_options(parser)
    parser.add_argument("target", nargs="?", default="")
    try:
        _, unknown = parser.parse_known_args(before, arguments)
    except argparse.ArgumentError as error:
        raise UsageError(str(error), hint="see nsys-tui capture --help") from error
    if unknown:
        raise UsageError(
            f"not understood: {' '.join(unknown)}", "",
            "write -- before the program; further nsys options go through"
            f" --nsys-option={unknown[0] if unknown[0].startswith('-') else '…'}",
        )  # fmt: skip
    return arguments.target, command


def _plan(
    arguments: argparse.Namespace, config: Config, target: str, command: Sequence[str]
) -> tuple[Plan, dict[str, str]]:
    from nsys_tui.capture.plan import make_plan, named_values
    from nsys_tui.capture.targets import find_target

    given = {name: getattr(arguments, f"nsys_{name}") for name in OPTIONS}
    options = {name: value for name, value in given.items() if value is not None}
    base, secrets = _base(arguments, config, target)
    if base is None:
        chosen = find_target(config, target)
    else:
        chosen = base.target
        options = {**base.options, **options}
        command = command or base.program
    return (
        make_plan(
            chosen,
            command,
            options=options,
            preset=arguments.preset,
            config=config,
            extra=[*(base.extra if base else ()), *arguments.nsys_option],
            env={**(base.env if base else {}), **named_values(arguments.env, "--env")},
            env_from=[*(base.env_from if base else ()), *arguments.env_from],
            replayed=tuple(arguments.replay),
            cwd=arguments.cwd or (base.cwd if base else ""),
            output=arguments.output,
            functions_json=base.functions_json if base else "",
            nsys=arguments.nsys,
            stdin=arguments.stdin or (base.stdin if base else ""),
        ),
        secrets,
    )


def _base(
    arguments: argparse.Namespace, config: Config, target: str
) -> tuple[Plan | None, dict[str, str]]:
    """The plan that ``--again`` or ``--repeat`` starts from, and replayed values."""
    from nsys_tui.capture.profile_again import plan_again, plan_from_record, replayed_values
    from nsys_tui.capture.record import Store

    if arguments.again and arguments.repeat:
        raise UsageError("--again and --repeat cannot stand together")
    if arguments.repeat:
        return plan_from_record(Store().load(arguments.repeat), config, target), {}
    if not arguments.again:
        if arguments.replay:
            raise UsageError("--replay needs --again", hint="name the report with --again REPORT")
        return None, {}
    pairs, identity, driver = _report_rows(arguments.again, config, arguments.nsys)
    plan, again = plan_again(pairs, identity, config, target=target, driver=driver)
    for remark in again.remarks if again else ():
        print(f"note: {printable(remark)}", file=sys.stderr)
    return plan, replayed_values(pairs, arguments.replay)


def _report_rows(path: str, config: Config, nsys: str) -> tuple[list[tuple[str, str]], str, str]:
    """Settings that a report was captured with, its identity, and the driver that it names."""
    from pathlib import Path

    from nsys_tui.model.kinds import Kind
    from nsys_tui.reader import open_configured
    from nsys_tui.reader.filecheck import report_id
    from nsys_tui.reader.find_nsys import find_nsys

    here = nsys if nsys and find_nsys(nsys) else None  # it may name one of another machine
    report = open_configured(Path(path), config, here)
    try:
        table = report.rows(Kind.CAPTURE_SETTING, "name", "value")
        pairs = list(zip(table["name"], table["value"], strict=True)) if len(table) else []
        driver = report.metadata.driver
    finally:
        report.close()
    return [(str(name), str(value)) for name, value in pairs], report_id(Path(path)), driver


def _explain(plan: Plan, arguments: argparse.Namespace) -> None:
    """Prints remarks; an error that needs no look at the target ends the run."""
    advice = plan.advice()
    first = next((item for item in advice if item.severity == "error"), None)
    arguments.told = {item.text for item in advice}
    for item in advice:
        if item is not first:
            line = f"{item.severity}: {item.text}" + (f"; {item.remedy}" if item.remedy else "")
            print(printable(line), file=sys.stderr)
    if first:
        raise UsageError(first.text, hint=first.remedy)


def _print(plan: Plan, config: Config) -> int:
    from nsys_tui.capture import scripts

    script, args = scripts.readable_batch_script(plan)
    line = scripts.typed_command(plan)
    print(script.rstrip("\n") or (printable(line, 100_000) if sys.stdout.isatty() else line))
    for fault in plan.launcher_faults(config.capture.grace / 1e9):
        print(f"warning: {printable(fault)}", file=sys.stderr)
    if args:
        print(
            f"note: on {plan.target.launcher.name}'s command line: {printable(' '.join(args))}",
            file=sys.stderr,
        )
    return 0


def _list_presets(config: Config) -> int:
    from nsys_tui.capture.options.presets import presets
    from nsys_tui.commands.printing import room
    from nsys_tui.text.folding import indented

    wide = room(sys.stdout)
    for preset in presets(config.capture).values():
        words = [f"--{name}={option_text(value)}" for name, value in preset.options.items()]
        env = [f"{name}={value}" for name, value in preset.env.items()]
        print(indented(f"{preset.name}: {preset.about}", wide, ""))
        print(indented(" ".join([*env, *words]), wide, "    "))
    return 0


def _capture(
    arguments: argparse.Namespace, config: Config, plan: Plan, secrets: dict[str, str]
) -> int:
    from nsys_tui.capture.capture import Capture
    from nsys_tui.commands import capture_console as console

    def make() -> Capture:
        return Capture.create(
            plan,
            config,
            on_event=console.listener(arguments),
            on_prompt=console.prompt_handler(arguments),
            secrets=secrets,
            repeats=arguments.repeat or arguments.again or "",
        )

    print(printable(plan.command_text(), 10_000), file=sys.stderr)
    manner = console.Manner(arguments.anyway, arguments.queue, arguments.detach)
    record = console.drive(make, manner)
    return console.finish(record, arguments)
