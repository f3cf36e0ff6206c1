"""Several runs as one side of a comparison."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.analysis.compare.side import GROUPS, Named, Side
from nsys_tui.analysis.compare.stats import pooled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def pooled_side(sides: Sequence[Side]) -> Side:
    """Runs as one side: each has its own estimate of every figure.

    Args:
        sides: runs that are all measured by step, or none of them.
    """
    if len(sides) == 1:
        return sides[0]
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
        label=f"{first.label} and {len(sides) - 1} more",
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
        style=first.style,
        run_count=len(sides),
    )


def _facts(several: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Facts by name; where runs differ, all values."""
    found: dict[str, dict[str, None]] = {}
    for facts in several:
        for name, text in facts.items():
            found.setdefault(name, {})[text] = None
    return {name: ", ".join(sorted(values)) for name, values in found.items()}


def _group(several: Sequence[Mapping[str, Named]]) -> dict[str, Named]:
    names = dict.fromkeys(name for group in several for name in group)
    return {name: _named([group.get(name) for group in several]) for name in names}


def _named(several: Sequence[Named | None]) -> Named:
    known = [named for named in several if named is not None]
    by_step = all(named.per_step is not None for named in known)
    calls = [named.calls or 0.0 for named in known]
    return Named(
        pooled([named.instances for named in known]),
        sum(named.total for named in known),
        pooled([named.per_step if named else None for named in several]) if by_step else None,
        sum(calls) / len(several) if by_step else None,
        sum(named.bytes for named in known),
    )
