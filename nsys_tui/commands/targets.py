"""``nsys-tui targets``: list, check and edit the places where captures run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_tui.commands.options import add, add_json
from nsys_tui.config import Config, default_path, load_config
from nsys_tui.errors import OK, ConfigError, UsageError

if TYPE_CHECKING:
    import argparse

    from nsys_tui.capture.plan import Plan


DESCRIPTION = "Targets are the sections [targets.NAME] of the config file."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    from nsys_tui.commands.open import add_looks

    parser.epilog = _kinds()
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="all targets (the default)")
    check = actions.add_parser("check", help="look whether captures can run there")
    check.add_argument("name", nargs="?", default="", help="target (default: the default one)")
    add(check, "--batch", "never ask")
    add(check, "--options", "list the options of its nsys as well")
    add(check, "--nsys PATH", "nsys executable over there")
    edit = actions.add_parser("edit", help="add, change, check and delete targets on a screen")
    edit.add_argument("name", nargs="?", default="", help="target to edit, or name of a new one")
    add(edit, "--editor", "the config file in $EDITOR instead")
    add_looks(edit)
    lint = actions.add_parser("lint", help="faults of a Slurm job script")
    lint.add_argument("script", type=Path)
    add(lint, "--need TIME", "what the job takes, such as 10m", default="0")
    add_json(listing, "commands.targets:list_schema")
    add_json(check, "commands.targets:check_schema")
    for action in (listing, check, edit):
        add(action, "--config FILE", "config file instead of the user's")


def _kinds() -> str:
    """What each kind of place is called and which settings it has."""
    from nsys_tui.capture.launchers import HOST, launchers

    lines = ["kinds of places, with their settings:"]
    ssh = "ssh", "another machine by your own OpenSSH; the launcher starts there", (HOST,)
    for name, about, fields in (
        ssh,
        *((kind.name, kind.about, kind.fields) for kind in launchers()),
    ):
        lines.append(f"  {name:<10}{about}")
        lines += [f"  {'':<12}{field.key:<22}{field.hint}" for field in fields]
    return "\n".join(lines)


def run(arguments: argparse.Namespace) -> int:
    """Runs the verb."""
    return {"list": _list, "check": _check, "edit": _edit, "lint": _lint}[arguments.action](
        arguments
    )


def _list(arguments: argparse.Namespace) -> int:
    from nsys_tui.capture.targets import all_targets

    config = load_config(arguments.config)
    targets = all_targets(config)
    if arguments.format == "json":
        print(json.dumps([target.snapshot() for target in targets], indent=1))
        return OK
    for target in targets:
        mark = "*" if target.name == config.capture.default_target else " "
        command = " ".join(target.settings.command)
        print(f"{mark} {target.name:<20} {target.describe():<30} {command}".rstrip())
    print(f"* default; from {config.path}", file=sys.stderr)
    return OK


def list_schema() -> dict[str, Any]:
    """The schema of ``list``; tables that only one kind of place has are objects of any keys."""
    from nsys_tui.config import TargetConfig
    from nsys_tui.text import documents

    env = {"type": "array", "items": {"type": "string"}}
    schema = documents.object_schema(TargetConfig, name={"type": "string"}, env=env, tables=None)
    return documents.list_schema("targets", schema | {"additionalProperties": {"type": "object"}})


def check_schema() -> dict[str, Any]:
    """The schema of ``check``."""
    from nsys_tui.capture.options.draft import Check
    from nsys_tui.text import documents

    return documents.list_schema("remarks on a target", documents.object_schema(Check))


def _check(arguments: argparse.Namespace) -> int:
    from nsys_tui.capture.plan import make_plan
    from nsys_tui.capture.targets import find_target

    config = load_config(arguments.config)
    target = find_target(config, arguments.name)
    command = target.settings.command or ("true",)
    plan = make_plan(target, command, config=config, nsys=arguments.nsys or "")
    return check_plan(plan, config, arguments, as_json=arguments.format == "json")


def check_plan(plan: Plan, config: Config, arguments: argparse.Namespace, *, as_json: bool) -> int:
    """Prints the preflight of a plan; returns 0, or the exit status of the first error."""
    import asyncio
    from dataclasses import asdict

    from nsys_tui.capture.capture import preflight
    from nsys_tui.capture.preflight import checks, exit_code, option_lines
    from nsys_tui.commands.capture_console import prompt_handler
    from nsys_tui.commands.printing import room
    from nsys_tui.text.folding import fitted

    probed = asyncio.run(preflight(plan, config, prompt_handler(arguments)))
    lines = checks(probed, plan.target, plan)
    if getattr(arguments, "options", False):
        lines += option_lines(probed)
    if as_json:
        print(json.dumps([asdict(line) for line in lines], indent=1))
    else:
        for line in lines:
            remedy = f"\n{'':>10}{line.remedy}" if line.remedy else ""
            said = f"{line.severity:<8}  {line.name}: {line.text}{remedy}"
            sys.stdout.write(fitted(said, room(sys.stdout)))
    return exit_code(lines) if any(line.severity == "error" for line in lines) else OK


def _edit(arguments: argparse.Namespace) -> int:
    from nsys_tui.ui.terminal import probe

    path = Path(arguments.config) if arguments.config else default_path()
    terminal = probe(
        is_tty=all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)),
        ascii_only=arguments.ascii,
        no_color=arguments.no_color,
        text=arguments.text,
    )
    if not sys.stdin.isatty() or not (terminal.app or arguments.editor):
        raise UsageError(f"no terminal to edit {path} in", hint="edit the file, then run check")
    if arguments.editor:
        return _edit_file(path)
    from dataclasses import replace

    from nsys_tui.ui.screens.capture.targets_app import TargetsApp

    flags = {"display.theme": arguments.theme}
    config = load_config(path if path.exists() else None, flags)
    config = replace(config, path=path)
    app = TargetsApp(config, terminal, arguments.name)
    app.run(mouse=not arguments.no_mouse)
    if app.crash is not None:
        raise app.crash
    return OK


def _edit_file(path: Path) -> int:
    """Opens the file in the user's editor, and reads it afterwards to name its faults."""
    import os
    import shlex
    import subprocess

    from nsys_tui.config_edit import EXAMPLE

    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(EXAMPLE, "utf-8")
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    try:
        subprocess.run([*editor, str(path)], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConfigError(f"{' '.join(editor)}: cannot be run", str(error), "set EDITOR") from error
    config = load_config(path)
    print(f"{path}: {len(config.targets)} targets, no faults found")
    return OK


def _lint(arguments: argparse.Namespace) -> int:
    from nsys_tui.capture.launchers.slurm import lint
    from nsys_tui.units import parse_duration

    if arguments.script.exists() and not arguments.script.is_file():
        raise UsageError(f"{arguments.script} is no regular file", hint="name a job script")
    try:
        script = arguments.script.read_text("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"{arguments.script}: cannot be read", str(error)) from error
    faults = lint(script, parse_duration(arguments.need, "s") / 1e9)
    for fault in faults:
        print(f"{arguments.script}: {fault}")
    return 1 if faults else OK
