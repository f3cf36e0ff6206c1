"""``nsys-tui completion SHELL``: code for bash, zsh and fish, made from the parsers themselves."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass
from typing import Any

SUFFIXES = ("sqlite", "nsys-rep", "qdrep")


@dataclass(frozen=True)
class Option:
    """One flag of a verb."""

    flags: tuple[str, ...]
    help: str
    choices: tuple[str, ...]
    """Values, where there is a fixed set."""
    takes_value: bool


@dataclass(frozen=True)
class Verb:
    """One verb with what can follow it."""

    name: str
    help: str
    options: tuple[Option, ...]
    """Those of its actions among them."""
    actions: tuple[str, ...]
    """What may come first where that is a fixed set, such as ``list``."""


def add_parser(subparsers: Any) -> None:
    """Registers the verb."""
    parser = subparsers.add_parser(
        "completion",
        help="print shell completion",
        description='Prints completion code: eval "$(nsys-tui completion bash)".',
    )
    parser.add_argument("shell", choices=tuple(SHELLS))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the code for one shell."""
    print(SHELLS[arguments.shell](verbs()))
    return 0


def verbs() -> list[Verb]:
    """All verbs that exist, from their own parsers."""
    import importlib
    import pkgutil

    from nsys_tui import commands

    top = argparse.ArgumentParser(prog="nsys-tui", add_help=False)
    subparsers = top.add_subparsers()
    for module in pkgutil.iter_modules(commands.__path__):
        found = importlib.import_module(f"nsys_tui.commands.{module.name}")
        if hasattr(found, "add_parser") and hasattr(found, "run"):
            found.add_parser(subparsers)
    helps = {entry.dest: entry.help or "" for entry in subparsers._choices_actions}
    return [
        Verb(name, helps.get(name, ""), _options(parser), _actions(parser))
        for name, parser in sorted(subparsers.choices.items())
    ]


def _options(parser: argparse.ArgumentParser) -> tuple[Option, ...]:
    found: dict[Option, None] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for own in action.choices.values():
                found |= dict.fromkeys(_options(own))
        elif action.option_strings and action.help != argparse.SUPPRESS:
            flags, choices = tuple(action.option_strings), tuple(map(str, action.choices or ()))
            found[Option(flags, action.help or "", choices, action.nargs != 0)] = None
    return tuple(found)


def _actions(parser: argparse.ArgumentParser) -> tuple[str, ...]:
    first = [action for action in parser._actions if not action.option_strings][:1]
    return tuple(str(choice) for action in first for choice in action.choices or ())


def bash(found: list[Verb]) -> str:
    """For bash: verbs first, then flags of the verb, values of a flag, and report files."""
    cases = "\n".join(
        f"    {verb.name}) flags={shlex.quote(' '.join(_flags(verb)))} ;;" for verb in found
    )
    values = "\n".join(
        f"    {verb.name}:{flag}) values={shlex.quote(' '.join(option.choices))} ;;"
        for verb in found
        for option in verb.options
        if option.choices
        for flag in option.flags
    )
    actions = "\n".join(
        f"    2:{verb.name}) values={shlex.quote(' '.join(verb.actions))} ;;"
        for verb in found
        if verb.actions
    )
    return f"""_nsys_tui() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local verb=${{COMP_WORDS[1]}} flags= values=
  COMPREPLY=()
  case $verb in
{cases}
  esac
  case $verb:$before in
{values}
  esac
  [ "${{word#-}}" = "$word" ] && case $COMP_CWORD:$verb in
{actions}
  esac
  if [ -n "$values" ]; then
    COMPREPLY=($(compgen -W "$values" -- "$word"))
  elif [ "${{word#-}}" != "$word" ]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
  else
    local IFS=$'\\n'
    [ "$COMP_CWORD" = 1 ] && COMPREPLY=($(compgen -W {_lines(found)} -- "$word"))
    COMPREPLY+=($(compgen -f -X '!*.@({"|".join(SUFFIXES)})' -- "$word") \\
      $(compgen -d -- "$word"))
  fi
}}
shopt -s extglob
complete -o filenames -F _nsys_tui nsys-tui"""


def zsh(found: list[Verb]) -> str:
    """For zsh: verbs with their help, then flags with theirs."""
    described = "\n".join(f"    {_zsh(f'{v.name}:{v.help}')}" for v in found)
    cases = "\n".join(
        f"    {verb.name}) _arguments {' '.join(map(_zsh_option, verb.options))}"
        f"{_zsh_actions(verb)} '*:file:_files' ;;"
        for verb in found
    )
    pattern = f"'*.({'|'.join(SUFFIXES)})'"
    return f"""#compdef nsys-tui
_nsys_tui() {{
  local -a found=(
{described}
  )
  if (( CURRENT == 2 )); then
    _describe verb found
    _files -g {pattern}
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
{cases}
    *) _files -g {pattern} ;;
  esac
}}
compdef _nsys_tui nsys-tui"""


def fish(found: list[Verb]) -> str:
    """For fish: one ``complete`` line per verb and flag."""
    lines = ["complete -c nsys-tui -k -a '(__fish_complete_suffix .sqlite .nsys-rep .qdrep)'"]
    for verb in found:
        lines.append(
            f"complete -c nsys-tui -n __fish_use_subcommand -a {verb.name} -d {_fish(verb.help)}"
        )
        condition = _fish(f"__fish_seen_subcommand_from {verb.name}")
        if verb.actions:
            actions = " ".join(verb.actions)
            first = f"__fish_seen_subcommand_from {verb.name}"
            first += f"; and not __fish_seen_subcommand_from {actions}"
            lines.append(f"complete -c nsys-tui -n {_fish(first)} -f -a {_fish(actions)}")
        for option in verb.options:
            flags = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                for flag in option.flags
            )
            values = f" -x -a {_fish(' '.join(option.choices))}" if option.choices else ""
            needs = " -r" if option.takes_value and not option.choices else ""
            lines.append(
                f"complete -c nsys-tui -n {condition} {flags}{values}{needs}"
                f" -d {_fish(option.help)}"
            )
    return "\n".join(lines)


def _flags(verb: Verb) -> list[str]:
    return [flag for option in verb.options for flag in option.flags]


def _lines(found: list[Verb]) -> str:
    return "$'" + "\\n".join(verb.name for verb in found) + "'"


def _zsh(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _zsh_option(option: Option) -> str:
    flag = option.flags[-1]
    text = option.help.replace("[", "(").replace("]", ")").replace(":", " ")
    value = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
    return _zsh(f"{flag}[{text}]{value if option.takes_value else ''}")


def _zsh_actions(verb: Verb) -> str:
    return f" '1:action:({' '.join(verb.actions)})'" if verb.actions else ""


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
