"""Rows of bytes that are equal, found without sorting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Longs = NDArray[np.int64]
    Words = NDArray[np.uint64]

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_SLOT_BITS: Final = 16


def distinct(
    hashes: Words, equal: Callable[[Longs, Longs], NDArray[np.bool_]]
) -> tuple[Longs, Longs]:
    """Groups equal rows.

    Rows meet in slots by parts of their hashes and are compared there; those that meet others in
    every part are left groups of their own. That never merges different rows.

    Args:
        hashes: equal for equal rows; the highest bits count most.
        equal: tells of rows and as many others, given by number, which are equal.

    Returns:
        Group of each row, and the first row of each group.
    """
    groups, firsts = np.empty(len(hashes), np.int64), []
    slots = np.empty(1 << _SLOT_BITS, np.int64)
    left, known = np.arange(len(hashes)), 0
    for part in range(64 - _SLOT_BITS, -1, -_SLOT_BITS):
        slot = (hashes >> np.uint64(part)).view(np.int64) & (1 << _SLOT_BITS) - 1
        slots[slot[::-1]] = left[::-1]  # the first of equal ones is written last
        leader = slots.take(slot)
        leads = np.flatnonzero(leader == left)
        slots[slot[leads]] = np.arange(known, known + len(leads))
        groups[left] = slots.take(slot)
        firsts.append(left[leads])
        known += len(leads)
        differ = np.flatnonzero(~equal(left, leader))
        left, hashes = left[differ], hashes[differ]
        if not len(left):
            break
    groups[left] = np.arange(known, known + len(left))
    return groups, np.concatenate([*firsts, left])


def distinct_rows(rows: Words) -> tuple[Longs, Longs]:
    """Groups equal rows of a matrix; result as of ``distinct``."""
    hashes = np.zeros(len(rows), np.uint64)
    for number, words in enumerate(rows.T):
        hashes ^= words * salt(number)
    whole = rows.view(f"V{rows.shape[1] * rows.itemsize}").reshape(-1)

    def equal(mine: Longs, others: Longs) -> NDArray[np.bool_]:
        left = rows if len(mine) == len(rows) else rows[mine]
        same = whole.take(others).view(np.uint64).reshape(left.shape) == left
        return np.ones(len(mine), bool) if same.all() else same.all(axis=1)

    return distinct(hashes, equal)


def salt(number: int) -> np.uint64:
    """What the words of some number in all rows are multiplied with, to be added to a hash."""
    return np.uint64(int(_MULTIPLIER) * (2 * number + 1) & 0xFFFF_FFFF_FFFF_FFFF)
