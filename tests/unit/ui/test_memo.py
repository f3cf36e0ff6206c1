"""What screens share is computed once, and given up when newer results need the memory."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsys_tui.model.lanes import Lane
from nsys_tui.ui.memo import Memo, array_bytes

if TYPE_CHECKING:
    from nsys_tui.model.arrays import Int64


@dataclass(frozen=True, eq=False)
class Held:
    """Some arrays, as an analysis gives them."""

    values: Int64
    more: dict[str, list[Int64]]


def zeros(size: int) -> Int64:
    return np.zeros(size, np.int64)


def test_a_value_is_made_once() -> None:
    memo, made = Memo(), iter([7])
    for _ in range(2):
        assert memo.get("key", lambda: next(made)) == 7


def test_threads_wait_for_the_first_that_asks() -> None:
    memo, entered, go, made = Memo(), threading.Event(), threading.Event(), []

    def make() -> int:
        made.append(1)
        entered.set()
        go.wait(10)
        return len(made)

    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(memo.get("key", make))) for _ in range(2)
    ]
    threads[0].start()
    entered.wait(10)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join(10)
    assert found == [1, 1]


def test_a_failure_is_not_kept() -> None:
    memo = Memo()

    def fail() -> int:
        raise ValueError

    for make in (fail, fail):
        try:
            memo.get("key", make)
        except ValueError:
            continue
        raise AssertionError
    assert memo.get("key", lambda: 1) == 1


def remade(memo: Memo, keys: str) -> str:
    """Those of some keys whose values are gone."""
    gone: list[str] = []

    def make() -> Int64:
        gone.append(key)
        return zeros(1)

    for key in keys:
        memo.get(key, make)
    return "".join(gone)


def test_the_least_recently_used_is_given_up() -> None:
    memo = Memo(limit=2 * 8000)
    for key in "abac":
        memo.get(key, lambda: zeros(1000))
    assert remade(memo, "ac") == ""
    assert remade(memo, "b") == "b"


def test_the_latest_stays_however_large() -> None:
    memo = Memo(limit=10)
    memo.get("a", lambda: zeros(1000))
    assert remade(memo, "a") == ""


def test_lasting_values_stay_and_are_not_counted() -> None:
    memo, shared = Memo(limit=8000), zeros(5000)
    memo.get("lasting", lambda: shared, lasting=True)
    memo.get("shares it", lambda: [shared[10:]])
    memo.get("own", lambda: zeros(1000))
    memo.get("z", lambda: zeros(1000))
    assert remade(memo, "z") == ""
    gone = []
    memo.get("lasting", lambda: gone.append(1), lasting=True)
    memo.get("shares it", lambda: gone.append(2))
    assert gone == []


def test_bytes_are_counted_once_wherever_arrays_lie() -> None:
    values = zeros(1000)
    held = Held(values, {"parts": [values[:10], zeros(500)]})
    counted: set[int] = set()
    assert array_bytes(held, counted) == 12_000
    assert array_bytes(held, counted) == 0


def test_lanes_have_slots_and_are_counted() -> None:
    lane = Lane.build(np.arange(0, 4000, 4), np.arange(1, 4001, 4))
    assert array_bytes([lane], set()) == 2 * 8000 + 4000 + 8 * (
        len(lane.busy_sums) + len(lane.peaks)
    )


def test_the_latest_of_those_with_arrays_stays() -> None:
    memo = Memo(limit=10)
    memo.get("a", lambda: zeros(1000))
    memo.get("b", lambda: "a few words about it")
    assert remade(memo, "ba") == ""
