"""``nsys-tui captures``: list, follow, stop and remove captures of the past and the present."""

from __future__ import annotations

import itertools
import json
import shlex
import sys
from typing import TYPE_CHECKING, Any, Final

from nsys_tui.capture.quoting import printable
from nsys_tui.capture.record import Record, Store
from nsys_tui.commands.open import add_opening
from nsys_tui.commands.options import add, add_json
from nsys_tui.commands.printing import room
from nsys_tui.errors import OK, UsageError
from nsys_tui.names import cell_len
from nsys_tui.text.folding import indented, pad

if TYPE_CHECKING:
    import argparse

    from nsys_tui.capture.capture import Capture

PATIENCE: Final = 50
"""Looks, five a second, before a process that follows a capture counts as one that hangs."""

DESCRIPTION = "Captures are remembered in the user's state folder until they are removed."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    texts = {
        "list": "what, where, when, and how it ended (the default)",
        "show": "everything that is remembered of one",
        "log": "the output that was followed",
        "open": "open its reports; those of several ranks together, as a fleet",
        "attach": "follow one to its end, or bring its reports home",
        "stop": "end a running one and keep what it collected",
        "rm": "remove its record, its reports here and its folder over there",
    }
    parsers = {name: actions.add_parser(name, help=text) for name, text in texts.items()}
    for name, action in parsers.items():
        if name != "list":
            action.add_argument("id", metavar="ID", help="id, a part of it, or latest")
        add(action, "--config FILE", "config file instead of the user's")
        if name in ("list", "show"):
            add_json(action, f"commands.captures:{name}_schema")
        else:
            add(action, "--json", "events as JSON lines")
        add(action, "--batch", "never ask")
    add_opening(parsers["open"])
    attach, exports = parsers["attach"], "nsys executable over there that exports the reports"
    add(attach, "--nsys PATH", exports, default="")
    add(attach, "--propagate", "program's exit status")
    how = parsers["stop"].add_mutually_exclusive_group()
    add(how, "--discard", "throw away what was collected")
    add(how, "--kill", "KILL at once, and what outlived the capture; loses the report")
    for name in ("stop", "rm"):
        add(parsers[name], "--yes", "remove without asking")
    where = parsers["rm"].add_mutually_exclusive_group()
    add(where, "--local", "only what is on this machine")
    add(where, "--remote", "only the folder over there")


def run(arguments: argparse.Namespace) -> int:
    """Runs the verb."""
    verbs = {
        "list": _list, "show": _show, "log": _log, "open": _open_reports, "attach": _attach,
        "stop": _stop, "rm": _remove,
    }  # fmt: skip
    return verbs[arguments.action](arguments)


def _list(arguments: argparse.Namespace) -> int:
    records = Store().all()
    if arguments.format == "json":
        print(json.dumps([record.to_json() for record in records], indent=1))
        return OK
    if not records:
        print("no captures yet", file=sys.stderr)
        return OK
    rows = list(map(_cells, records))
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for record, row in zip(records, rows, strict=True):
        cells = [pad(cell, width) for cell, width in zip(row, widths, strict=True) if width]
        print(indented("  ".join(cells).rstrip(), room(sys.stdout), ""))
        print(indented(printable(result(record)), room(sys.stdout), "    "))
    return OK


def _cells(record: Record) -> tuple[str, ...]:
    commit = record.git_commit[:9] + ("+" if record.git_dirty else "")
    where = record.target_name + (f" ({record.where})" if record.where else "")
    command = printable(shlex.join(record.program), 80)
    return record.id, record.state.value, printable(where), commit, command


def result(record: Record) -> str:
    """How a capture ended, in one line."""
    if record.failure is not None:
        why = "; ".join(record.failure.message.splitlines())
        return record.failure.title + (f" ({why})" if why else "")
    if not record.state.over:
        return "not finished: nsys-tui captures attach " + record.id
    home = [report.local for report in record.reports if report.local]
    if len(record.reports) > 1:
        home = [_set_of(record)]
    exited = f"; the program exited {record.program_exit}" if record.program_exit else ""
    kept = f" ({record.kept})" if record.kept else ""
    return (", ".join(home) or "no report") + exited + kept


def _set_of(record: Record) -> str:
    """The reports of one run in a line: how many are here, in which folder, and their names."""
    import posixpath

    home = [report.local for report in record.reports if report.local]
    folders = {posixpath.dirname(path) for path in home}
    where = f" in {folders.pop()}" if len(folders) == 1 else ""
    names = ", ".join(posixpath.basename(path) for path in home)
    return f"{len(home)} of {len(record.reports)} reports{where}: {names}"


def _open_reports(arguments: argparse.Namespace) -> int:
    from nsys_tui.commands.open import run_app

    record = Store().load(arguments.id)
    there = record.at_home
    if not there:
        raise UsageError(f"capture {record.id} has no report here", result(record))
    Store().mark_opened(record.id)

    def without() -> int:
        print("\n".join(map(str, there)))
        return OK

    return run_app(arguments, there, without, "fleet" if len(there) > 1 else "overview")


def show_schema() -> dict[str, Any]:
    """The schema of a record as ``show`` prints it."""
    from nsys_tui.capture.plan import Plan
    from nsys_tui.commands import targets
    from nsys_tui.text.documents import object_schema

    plan = object_schema(Plan, target=targets.list_schema()["items"])
    return object_schema(Record, plan=plan, version={"type": "integer"})


def list_schema() -> dict[str, Any]:
    """The schema of ``list``."""
    from nsys_tui.text import documents

    return documents.list_schema("captures", show_schema())


def _show(arguments: argparse.Namespace) -> int:
    print(json.dumps(Store().load(arguments.id).to_json(), indent=1))
    return OK


def _log(arguments: argparse.Namespace) -> int:
    from nsys_tui.capture.output import OutputParser

    store = Store()
    path = store.log_path(store.load(arguments.id).id)
    if not path.exists():
        return OK
    parser = OutputParser()
    lines: list[str] = []
    for update in [*parser.feed(path.read_bytes()), *parser.close()]:
        if update.replaces and lines:
            lines[-1] = update.text
        else:
            lines.append(update.text)
    print("\n".join(lines))
    return OK


def _open(arguments: argparse.Namespace) -> Capture:
    from nsys_tui.capture.capture import Capture
    from nsys_tui.commands import capture_console as console
    from nsys_tui.config import load_config

    return Capture.attach(
        arguments.id,
        load_config(arguments.config),
        on_event=console.listener(arguments),
        on_prompt=console.prompt_handler(arguments),
        nsys=getattr(arguments, "nsys", ""),
    )


def _attach(arguments: argparse.Namespace) -> int:
    from nsys_tui.commands import capture_console as console

    def follow() -> Capture:
        capture = _open(arguments)
        if capture.record.state.over:
            ended = f"capture {capture.record.id} is over: {result(capture.record)}"
            print(printable(ended), file=sys.stderr)
        return capture

    record = console.drive(follow, console.Manner(stops=False))
    return console.finish(record, arguments)


def _stop(arguments: argparse.Namespace) -> int:
    import asyncio

    from nsys_tui.commands import capture_console as console

    record = asyncio.run(_stop_and_follow(arguments))
    if record is None:
        return OK
    if record.kept == "killed":
        print("killed; what it collected is lost", file=sys.stderr)
        return OK
    if arguments.discard and record.kept == "discarded":
        return asyncio.run(_remove_listed(arguments, remote=True, local=False))
    return console.finish(record, arguments)


async def _stop_and_follow(arguments: argparse.Namespace) -> Record | None:
    """Stops a capture; whoever follows it already goes on to bring it home, else we do.

    Returns:
        How it ended; ``None`` where it was over, and only what outlived it was killed.

    Raises:
        UsageError: it was over.
    """
    import asyncio

    from nsys_tui.capture.failures import LockedError

    capture = _open(arguments)
    if capture.record.state.over:
        if arguments.kill and (killed := await _kill_left(capture)):
            print(f"killed what outlived it: {', '.join(killed)}", file=sys.stderr)
            return None
        left = ", and nothing of it runs there" if arguments.kill else ""
        raise UsageError(f"capture {capture.record.id} has ended{left}", result(capture.record))
    running = asyncio.create_task(capture.run())
    holding = asyncio.create_task(capture.held())
    await asyncio.wait({running, holding}, return_when=asyncio.FIRST_COMPLETED)
    holding.cancel()
    if running.done() and isinstance(held := running.exception(), LockedError):
        print(f"{held.title}; it is asked to stop it", file=sys.stderr)
        return await _ask_follower(capture, arguments) or await _stop_and_follow(arguments)
    if arguments.kill:
        await capture.kill()
    elif not running.done():
        await capture.stop(keep=not arguments.discard)
    return await running


async def _kill_left(capture: Capture) -> list[str]:
    try:
        return await capture.kill_left() if capture.record.job_dir else []
    finally:
        await capture.close()


async def _ask_follower(capture: Capture, arguments: argparse.Namespace) -> Record | None:
    """Has the process that follows a capture end it; ``None`` when that process is gone."""
    import asyncio

    store, name = capture.job.store, capture.record.id
    wish = "kill" if arguments.kill else "discard" if arguments.discard else "keep"
    store.wish(name, wish)
    for look in itertools.count(1):
        await asyncio.sleep(0.2)
        held = store.is_held(name)
        record = store.load(name)
        if record.state.over:
            return record
        if not held:
            store.take_wish(name)
            return None
        if look == PATIENCE and store.take_wish(name):
            print("that process does not answer; the job itself is signalled", file=sys.stderr)
            await capture.signal({"keep": "INT", "discard": "TERM", "kill": "KILL"}[wish])
            await capture.close()
    return None


def _remove(arguments: argparse.Namespace) -> int:
    import asyncio

    parts = {"remote": not arguments.local, "local": not arguments.remote}
    return asyncio.run(_remove_listed(arguments, **parts))


async def _remove_listed(arguments: argparse.Namespace, *, remote: bool, local: bool) -> int:
    """Shows every file that would go, asks, and only then removes."""
    from nsys_tui.units import format_bytes

    store = Store()
    capture = _open(arguments)
    record = capture.record
    try:
        there = await capture.leftovers() if remote and record.job_dir else []
        here = [p for p in sorted(store.path(record.id).rglob("*")) if p.is_file()] if local else []
        for file in there:
            print(f"{record.where}: {printable(file.path)} {format_bytes(file.size)}")
        for path in here:
            print(f"here: {path} {format_bytes(path.stat().st_size)}")
        for report in (*record.reports, *record.raw):
            if record.job_dir and not report.path.startswith(record.job_dir + "/"):
                print(f"stays: {printable(report.path)}, which is outside of our own folders")
        if not arguments.yes and not _sure():
            print("nothing was removed", file=sys.stderr)
            return OK
        if there:
            await capture.remove_remote()
        if local:
            store.remove(record.id)
    finally:
        await capture.close()
    return OK


def _sure() -> bool:
    if not sys.stdin.isatty():
        raise UsageError("removing needs a yes", hint="add --yes")
    print("remove these files? (yes or no) ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() == "yes"
