"""Inks for colouring events by something other than their category."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nsys_tui.render.cells import OWN_INKS, SLOTS, Ink
from nsys_tui.render.colour import own_colour

if TYPE_CHECKING:
    from nsys_tui.model.intervals import Int64
    from nsys_tui.render.palette import Theme


def slot_inks(codes: npt.NDArray[np.integer]) -> npt.NDArray[np.uint8]:
    """Inks by stream or name: the same code has the same colour everywhere, others may share it."""
    return (Ink.SLOT + 2 * (codes % SLOTS)).astype(np.uint8)


def duration_inks(durations: Int64) -> npt.NDArray[np.uint8]:
    """Inks by order of magnitude: up to 9 ns the first slot, 10–99 ns the second, and so on."""
    decades = np.searchsorted(10 ** np.arange(1, SLOTS, dtype=np.int64), durations, side="right")
    return (Ink.SLOT + 2 * decades).astype(np.uint8)


def own_inks(theme: Theme, argb: Int64, fallback: int) -> tuple[Theme, npt.NDArray[np.uint8]]:
    """Inks of events that carry a colour of their own, such as NVTX ranges.

    Args:
        theme: only ``rgb`` themes show such colours.
        argb: int64 [n], negative for none.
        fallback: even ink of events without a colour, with one too close to the background, or
            with one of the rarest beyond ``OWN_INKS``.

    Returns:
        The theme with these colours, and uint8 [n] inks.
    """
    inks = np.full(len(argb), fallback, np.uint8)
    if theme.kind != "rgb":
        return theme, inks
    found, inverse, counts = np.unique(argb, return_inverse=True, return_counts=True)
    table = np.full(len(found), fallback, np.uint8)
    chosen: list[str] = []
    for place in np.argsort(-counts, kind="stable").tolist():
        colour = own_colour(int(found[place]), theme.colour("background"))
        if colour is not None and len(chosen) < OWN_INKS:
            table[place] = Ink.OWN + 2 * len(chosen)
            chosen.append(colour)
    return replace(theme, own=tuple(chosen)), table[inverse]
