"""Several sides as one: ranks of a run put together, runs pooled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from nsys_tui.analysis.compare.origin import apart
from nsys_tui.analysis.compare.side import GROUPS, Named, Side, Variant
from nsys_tui.analysis.compare.stats import of_one_run, pooled


def pooled_side(sides: Sequence[Side]) -> Side:
    """Reports as one side: each run has its own estimate of every figure.

    Args:
        sides: reports that are all measured by step, or none of them.
    """
    runs = runs_of(sides)
    if len(runs) == 1:
        return runs[0]
    return _together(runs, f"{sides[0].label} and {len(sides) - 1} more")


def runs_of(sides: Sequence[Side]) -> list[Side]:
    """One side for each run, in the order of their first reports.

    What was recorded at the same time are ranks of one run, unless something tells them apart.
    """
    runs: list[list[Side]] = []
    told: list[str] = []
    for side in sides:
        for run in [run for run in runs if any(_at_once(side, other) for other in run)]:
            why = next(filter(None, (_apart(side, other) for other in run)), "")
            if not why:
                run.append(side)
                break
            told.append(f"{run[0].label} and {side.label}: {why}")
        else:
            runs.append([side])
    one_each = [run[0] if len(run) == 1 else _one_run(run) for run in runs]
    if told:
        note = f"recorded at the same time, but runs of their own: {told[0]}"
        one_each[0] = replace(one_each[0], notes=(*one_each[0].notes, note))
    return one_each


def of_the_same_run(side: Side, other: Side) -> bool:
    """Whether two sides are parts of a report, or ranks of a run: its noise is in both."""
    if side.run and side.run == other.run:
        return True
    return _at_once(side, other) and not _apart(side, other)


def _at_once(side: Side, other: Side) -> bool:
    """Whether two reports share most of their time; copies start together."""
    (start, end), (begun, ended) = side.recorded, other.recorded
    if start == begun:
        return False
    return 2 * (min(end, ended) - max(start, begun)) > min(end - start, ended - begun)


def _apart(side: Side, other: Side) -> str:
    """Why two reports of one moment are of two runs; empty where nothing says so.

    Ranks that wait for each other cannot get ahead by a whole step.
    """
    if side.by_step and other.by_step and len(side.steps) == len(other.steps):
        lasted = [each.metrics["wall"].total for each in (side, other)]
        if abs(lasted[0] - lasted[1]) * len(side.steps) > max(lasted):
            return "one gets ahead by more than a step"
    return apart(side.origin, other.origin)


def _one_run(ranks: Sequence[Side]) -> Side:
    run = _together(ranks, f"{ranks[0].label} and {len(ranks) - 1} more")
    note = (
        f"{ranks[0].label} and {ranks[1].label} were recorded at the same time, and nothing says"
        f" that they are runs of their own: {len(ranks)} reports count as the ranks of one"
    )
    return replace(
        run,
        run_count=1,
        notes=(*run.notes, note),
        metrics={key: of_one_run(sample) for key, sample in run.metrics.items()},
        groups={
            key: {name: _known_once(named) for name, named in names.items()}
            for key, names in run.groups.items()
        },
        variants={
            name: {
                key: replace(each, named=each.named and _known_once(each.named))
                for key, each in variants.items()
            }
            for name, variants in run.variants.items()
        },
    )


def _known_once(named: Named) -> Named:
    per_step = None if named.per_step is None else of_one_run(named.per_step)
    return replace(named, instances=of_one_run(named.instances), per_step=per_step)


def _together(sides: Sequence[Side], label: str) -> Side:
    first = sides[0]
    stepped = [side.steps for side in sides if side.by_step]
    nothing = [np.empty(0, np.int64)]
    steps = replace(
        first.steps,
        start=np.concatenate([each.start for each in stepped] or nothing),
        end=np.concatenate([each.end for each in stepped] or nothing),
    )
    identities = {side.identity for side in sides}
    return Side(
        label=label,
        identity=" ".join(sorted(identities)) if "" not in identities else "",
        facts=_facts([side.facts for side in sides]),
        options=_facts([side.options for side in sides]),
        kinds=tuple(dict.fromkeys(kind for side in sides for kind in side.kinds)),
        device_count=max(side.device_count for side in sides),
        base_ns=round(sum(side.base_ns for side in sides) / len(sides)),
        steps=steps,
        steps_found=sum(side.steps_found for side in sides),
        metrics={
            key: pooled([side.metrics.get(key) for side in sides])
            for key in dict.fromkeys(key for side in sides for key in side.metrics)
            if key in first.metrics
        },
        groups={key: _group([side.names(key) for side in sides]) for key in GROUPS},
        lacks={key: why for side in sides for key, why in side.lacks.items()},
        notes=tuple(dict.fromkeys(note for side in sides for note in side.notes)),
        unknown=frozenset().union(*(side.unknown for side in sides)),
        untraced=frozenset().union(*(side.untraced for side in sides)),
        style=first.style,
        run_count=sum(side.run_count for side in sides),
        variants=_variants(sides),
        threads=_threads(sides),
    )


def _facts(several: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Facts by name; where runs differ, all values."""
    distinct: dict[str, dict[str, None]] = {}
    for facts in several:
        for name, text in facts.items():
            distinct.setdefault(name, {})[text] = None
    return {name: ", ".join(sorted(values)) for name, values in distinct.items()}


def _group(several: Sequence[Mapping[str, Named]]) -> dict[str, Named]:
    names = dict.fromkeys(name for group in several for name in group)
    return {name: _named([group.get(name) for group in several]) for name in names}


def _variants(sides: Sequence[Side]) -> dict[str, dict[str, Variant]]:
    """Variants of the kernels of which each report that has them knows the variants."""
    pooled: dict[str, dict[str, Variant]] = {}
    for name in dict.fromkeys(name for side in sides for name in side.variants):
        if any(name in side.names("kernels") and name not in side.variants for side in sides):
            continue
        named = [side.variants_of(name) for side in sides]
        pooled[name] = {
            key: Variant(_full_names(sides, name, key), _named([each.get(key) for each in named]))
            for key in dict.fromkeys(key for each in named for key in each)
        }
    return pooled


def _threads(sides: Sequence[Side]) -> Counter[str]:
    """Threads of kernels together; none where one of the sides does not know its own."""
    known = all(side.threads for side in sides)
    return sum((Counter(side.threads) for side in sides if known), Counter())


def _full_names(sides: Sequence[Side], kernel: str, variant: str) -> tuple[str, ...]:
    known = (side.variants.get(kernel, {}).get(variant) for side in sides)
    return tuple(dict.fromkeys(full for each in known if each for full in each.full))


def _named(several: Sequence[Named | None]) -> Named:
    known = [named for named in several if named is not None]
    by_step = all(named.per_step is not None for named in known)
    calls = [named.calls or 0.0 for named in known]
    return Named(
        pooled([named.instances for named in known]),
        sum(named.total for named in known),
        pooled([named.per_step if named else None for named in several]) if by_step else None,
        sum(calls) / len(several) if by_step else None,
        sum(named.amount for named in known),
    )
