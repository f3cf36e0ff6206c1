"""``nsys-tui stacks``: GPU time, CPU samples or backtraces as folded stacks, SVG or JSON."""

from __future__ import annotations

import sys
from itertools import chain
from typing import TYPE_CHECKING, Final

from nsys_tui.commands import options
from nsys_tui.commands.printing import CONSOLE, opened, room, say, write
from nsys_tui.errors import EmptyAnswerError, UsageError
from nsys_tui.units import format_count, format_duration, format_share

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from nsys_tui.analysis.stacks.folding import Stacks, StackSource
    from nsys_tui.analysis.stacks.frame_rules import FrameRules
    from nsys_tui.model.report import Report

EPILOG = """\
By default nothing is stripped or dropped: the weights add up to the time of all GPU operations.
"""


LEAST: Final = 0.01
"""Part of the whole from which a frame is listed on a terminal."""


DESCRIPTION = (
    "Folds GPU time or host time by NVTX path, CPU samples, API and OS backtraces, or time on or"
    " off the CPU."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the verb takes."""
    options.add_report(parser)
    options.add_scope(parser)
    options.add(
        parser,
        "--source",
        "GPU time by NVTX path, CPU samples, CUDA API or OS runtime backtraces, time on or "
        "off the CPU by OS call, host time by NVTX path (default: GPU time; without GPU work the "
        "first of these with data)",
        choices=("gpu", "cpu", "cuda", "osrt", "on", "off", "nvtx"),
    )
    options.add_format(parser, "export.folded", ("folded", "svg", "json", "tree"))
    parser.set_defaults(format=None)
    options.add_output(parser)
    options.add_names(parser, "how the kernels at the leaves are named", None)
    options.add(
        parser,
        "--across-threads",
        "credit work launched without a range of its own thread (backward passes) to the "
        "range open on the busiest thread of its process; such frames begin with ~",
    )
    options.add(
        parser,
        "--addresses",
        "tell addresses without a symbol apart, instead of naming them by their library",
    )
    _add_rules(parser)


def _add_rules(parser: argparse.ArgumentParser) -> None:
    rules = parser.add_argument_group("frame rules (none by default)")
    options.add(rules, "--strip-layers", 'leave out frames "Layer N"')
    options.add(rules, "--strip-steps", 'leave out "Train step N"')
    options.add(rules, "--strip-op-ids", 'remove "op_id = N" from frames')
    options.add(rules, "--drop-validation", "drop what validation ran")
    rules.add_argument("--strip", action="append", default=[], metavar="REGEX")
    rules.add_argument("--drop", action="append", default=[], metavar="REGEX")
    options.add(
        rules,
        "--rename REGEX=TEXT",
        "replace matches in frames; the first = separates",
        action="append",
        default=[],
    )
    options.add(rules, "--preset", "strip layers and steps, drop validation", choices=("llm.c",))
    legacy = parser.add_argument_group("switches of the script that --preset llm.c replaces")
    legacy.add_argument("--no_strip_layer_number", "--no-strip-layer-number", action="store_true")
    legacy.add_argument(
        "--no_strip_train_iter_number", "--no-strip-train-iter-number", action="store_true"
    )
    legacy.add_argument(
        "--no_filter_out_validation", "--no-filter-out-validation", action="store_true"
    )
    options.add(legacy, "--nsys_executable PATH", "same as --nsys", dest="nsys")


def run(arguments: argparse.Namespace) -> int:
    """Folds one report and writes the result."""
    report = options.open_from(arguments)
    cells = _for_people(arguments)
    stacks = _fold(arguments, report)
    with opened(arguments.output, overwrite=arguments.force_overwrite) as stream:
        write(stream, _rendered(arguments, stacks, report, cells))
    _narrate(arguments, stacks)
    return 0


def _for_people(arguments: argparse.Namespace) -> int | None:
    """Settles format and names; cells of a line where a terminal gets a tree of what weighs."""
    cells = None
    if arguments.format is None and arguments.output == CONSOLE:
        cells = room(sys.stdout)
    if cells is not None:
        arguments.strip_op_ids = True
        say("nsys-tui: frames below 1% are left out; --format tree has all, folded is for scripts")
    arguments.format = arguments.format or ("folded" if cells is None else "tree")
    arguments.names = arguments.names or ("full" if cells is None else "short")
    return cells


def _fold(arguments: argparse.Namespace, report: Report) -> Stacks:
    from nsys_tui.analysis.stacks.folding import StackSource, gpu_stacks
    from nsys_tui.analysis.stacks.sources import host_stacks

    source, rules = _source(arguments, report), _rules(arguments)
    if source is not StackSource.GPU and arguments.across_threads:
        raise UsageError("--across-threads belongs to --source gpu")
    scope = options.scope_from(arguments, report)
    if source is not StackSource.GPU:
        return host_stacks(report, source, scope, rules)
    return gpu_stacks(
        report,
        scope,
        rules=rules,
        names=arguments.names,
        across_threads=arguments.across_threads,
    )


def _source(arguments: argparse.Namespace, report: Report) -> StackSource:
    from nsys_tui.analysis.stacks.folding import TITLES, StackSource
    from nsys_tui.analysis.stacks.sources import sources

    if arguments.source is None:
        known = () if arguments.across_threads else sources(report)
        chosen = next(iter(known), StackSource.GPU)
        arguments.source = chosen.value
        if chosen is not StackSource.GPU:
            say(f"nsys-tui: no GPU work here, so {TITLES[chosen]}: --source {chosen}")
    return StackSource(arguments.source)


def _rules(arguments: argparse.Namespace) -> FrameRules:
    from nsys_tui.analysis.stacks.frame_rules import FrameRules

    preset = arguments.preset == "llm.c"
    rules = FrameRules(addresses=arguments.addresses)
    if arguments.strip_op_ids:
        rules = rules.without_op_ids()
    if arguments.strip_layers or (preset and not arguments.no_strip_layer_number):
        rules = rules.without_layers()
    if arguments.strip_steps or (preset and not arguments.no_strip_train_iter_number):
        rules = rules.without_steps()
    if arguments.drop_validation or (preset and not arguments.no_filter_out_validation):
        rules = rules.without_validation()
    for change in arguments.rename:
        pattern, separator, text = change.partition("=")
        if not separator:
            raise UsageError(f"--rename {change}: no =", hint="write it as REGEX=TEXT")
        rules = rules.with_rename(pattern, text)
    for pattern in arguments.strip:
        rules = rules.with_strip(pattern)
    for pattern in arguments.drop:
        rules = rules.with_drop(pattern)
    return rules


def _rendered(
    arguments: argparse.Namespace, stacks: Stacks, report: Report, cells: int | None
) -> Iterator[str]:
    from nsys_tui.export import folded
    from nsys_tui.text.documents import document_text

    if arguments.format == "folded":
        yield from (line + "\n" for line in folded.folded_lines(stacks.tree))
    elif arguments.format == "json":
        notes = chain(stacks.notes, report.notes)
        yield from document_text(folded.DOCUMENT, stacks.tree, None, notes)
    elif arguments.format == "svg":
        from nsys_tui.analysis.stacks.folding import TITLES, StackSource
        from nsys_tui.export.folded import flame_graph

        title = TITLES[StackSource(arguments.source)]
        yield flame_graph(stacks.tree, f"{report.name}: {title}", stacks.notes)
    else:
        yield from _tree_lines(stacks, cells)


def _tree_lines(stacks: Stacks, cells: int | None) -> Iterator[str]:
    """An indented tree, heaviest child first; with a room, only what weighs, in lines that fit."""
    import numpy as np

    from nsys_tui.model.tree import MOST_FRAMES
    from nsys_tui.names import visible
    from nsys_tui.text.folding import shorten

    tree = stacks.tree
    total, weight, depth = int(tree.weight[0]), tree.weight, tree.trie.depth
    size = tree.trie.summed(np.ones(len(tree.trie), np.int64))
    least, pending = 0 if cells is None else LEAST * total, [0]
    while pending:
        node = pending.pop()
        indent = "  " * int(depth[node])
        if depth[node] > MOST_FRAMES:
            yield f"{'':>27}  {indent}[... {int(size[node])} frames]\n"
            continue
        name = tree.trie.labels[tree.trie.label[node]] if node else "all"
        value = int(weight[node])
        amount = format_duration(value) if tree.unit == "ns" else format_count(value)
        share = format_share(value, total)
        line = f"{share:>6} {amount:>10} {int(tree.count[node]):>9}  {indent}{visible(name)}"
        yield f"{line if cells is None else shorten(line, cells)}\n"
        children = [c for c in tree.trie.children_of(node).tolist() if weight[c] >= least]
        pending += sorted(children, key=lambda child: int(weight[child]))


def _narrate(arguments: argparse.Namespace, stacks: Stacks) -> None:
    tree = stacks.tree
    total = int(tree.self_weight.sum())
    events = format_count(int(tree.self_count.sum()))
    where = f" in {arguments.output}" if arguments.output != CONSOLE else ""
    say(f"nsys-tui: {tree.amount(total)} in {events} events{where}")
    for note in stacks.notes:
        say(f"nsys-tui: {note}")
    if not tree.self_count.any():
        raise EmptyAnswerError("nothing is left after the rules and restrictions")
