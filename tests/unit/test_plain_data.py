from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from nsys_tui.names import NameStyle
from nsys_tui.plain_data import plain, restored


class Pair(NamedTuple):
    first: int
    last: int


@dataclass(frozen=True)
class Inner:
    share: float
    pair: Pair | None = None


@dataclass(frozen=True)
class Outer:
    name: str
    style: NameStyle
    span: tuple[int, int]
    inner: tuple[Inner, ...]
    chosen: frozenset[int]
    by_name: Mapping[str, Inner] = field(default_factory=dict)
    anything: Any = None


FULL = Outer(
    "a",
    NameStyle.SHORT,
    (-1, 2**62),
    (Inner(0.5, Pair(1, 2)), Inner(1.0)),
    frozenset({3, 1}),
    {"x": Inner(2.0)},
    [1, "b"],
)


@pytest.mark.parametrize("rows", [False, True])
def test_what_was_taken_apart_is_put_together_again(rows: bool) -> None:
    assert restored(Outer, json.loads(json.dumps(plain(FULL, rows=rows)))) == FULL


def test_what_is_missing_has_its_default_and_what_is_unknown_is_passed_over() -> None:
    assert restored(Inner, {"share": 1, "colour": "blue"}) == Inner(1.0)


@pytest.mark.parametrize(
    "change",
    [
        {"name": 3},
        {"style": "taste"},
        {"span": [1]},
        {"span": [1, 2, 3]},
        {"span": [1, 2**63]},
        {"span": [True, 1]},
        {"span": [1.0, 1]},
        {"inner": "ab"},
        {"inner": [{}]},
        {"inner": [["0.5", None]]},
        {"inner": [[0.5]]},
        {"chosen": 3},
        {"by_name": {"x": 1}},
        {"by_name": "x"},
    ],
    ids=str,
)
def test_what_does_not_fit_the_annotations_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        restored(Outer, plain(FULL) | change)
