"""From the whole trace of real reports to one kernel, its call and back: few keys, always seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from paths import REPORTS, needs_reports
from tui.timeline_pilot import running, settled

from nsys_tui.model.categories import OpKind

if TYPE_CHECKING:
    from textual.pilot import Pilot

WITH_KERNELS = (
    "cloverleaf-a100-2024.5",
    "cuda-graph-2025.5",
    "many-kernels-2025.5",
    "mpi-nvtx-callchains-2022.2",
    "no-metadata-old",
    "pytorch-nccl-2gpu-2026.2",
    "uvm-migration-2025.1",
    "windows-streams-2022.1",
)


async def press(pilot: Pilot[int], *keys: str) -> Any:
    for key in keys:
        await pilot.press(key)
    await settled(pilot)
    return pilot.app.front.model  # type: ignore[attr-defined]


def is_seen(model: Any) -> bool:
    """Whether the selected event is in the window, and its lane on the screen."""
    picked, rows = model.picked, range(model.top, model.top + model.size.rows)
    track = model.track_of(picked)
    number = None if track is None else model.rows.number(track.key)
    return bool(model.window.start <= picked.start < model.window.end and number in rows)


async def zoomed_to(pilot: Pilot[int], kernel: str) -> Any:
    """``z``, the name, and Enter."""
    await press(pilot, "z")
    pilot.app.screen.query_one("Input").value = kernel  # type: ignore[attr-defined]
    return await press(pilot, "enter")


@needs_reports
@pytest.mark.parametrize("name", WITH_KERNELS[:2] + WITH_KERNELS[-3:])
async def test_every_kind_of_kernel_is_four_keys_from_the_first_screen(name: str) -> None:
    async with running(REPORTS / f"{name}.sqlite") as pilot:
        model = await press(pilot, "2")
        ops = model.report.operations
        kernels = np.flatnonzero(ops.kind == OpKind.KERNEL)
        codes = ops.name[kernels]
        time = np.bincount(codes, ops.durations(kernels))
        busiest = [code for code in np.argsort(-time).tolist() if time[code]]
        rarest = min(busiest, key=np.bincount(codes).item)
        for code in (busiest[0], busiest[len(busiest) // 2], rarest):
            await press(pilot, "0")
            model = await zoomed_to(pilot, ops.shown[code])
            assert model.picked.events is ops
            assert model.name_of(model.picked) == ops.shown[code]
            assert is_seen(model)


@needs_reports
@pytest.mark.parametrize("name", WITH_KERNELS)
async def test_each_of_the_99_longest_kernels_is_four_keys_from_the_whole_trace(name: str) -> None:
    async with running(REPORTS / f"{name}.sqlite") as pilot:
        model = await press(pilot, "2", "0")
        ops = model.report.operations
        kernels = np.flatnonzero(ops.kind == OpKind.KERNEL)
        time = np.bincount(ops.name[kernels], ops.durations(kernels), len(ops.names))
        by_time = sorted(np.flatnonzero(time).tolist(), key=lambda c: (-time[c], ops.shown[c]))[:99]
        for number in {1, len(by_time) // 2 + 1, len(by_time)}:
            await press(pilot, "0")
            await press(pilot, "z")
            keys = [*str(number), "enter"]
            assert 1 + len(keys) <= 4
            model = await press(pilot, *keys)
            assert model.name_of(model.picked) == ops.shown[by_time[number - 1]]
            assert is_seen(model)
            length = model.picked.end - model.picked.start
            assert 2 * length >= min(model.window.width, 2 * model.size.columns), "fitted"


@needs_reports
async def test_n_goes_from_a_selected_kernel_to_the_next_of_its_name_and_back() -> None:
    async with running(REPORTS / "cloverleaf-a100-2024.5.sqlite") as pilot:
        await pilot.press("3", "j")
        await settled(pilot)
        model = await press(pilot, "enter")
        ops, first = model.report.operations, model.picked
        same = np.flatnonzero(ops.name == ops.name[first.row])
        place = int(np.searchsorted(ops.start[same], first.start))
        for key, step in (("n", 1), ("n", 2), ("N", 1), ("N", 0)):
            model = await press(pilot, key)
            expected = int(ops.start[same[(place + step) % len(same)]])
            assert (model.picked.start, is_seen(model)) == (expected, True)


@needs_reports
@pytest.mark.parametrize("name", WITH_KERNELS)
async def test_a_named_kernel_and_its_call_are_few_keys_away_and_stay_in_view(name: str) -> None:
    async with running(REPORTS / f"{name}.sqlite") as pilot:
        model = await press(pilot, "2", "0")
        assert tuple(model.window) == model.extent, "the whole trace"
        ops = model.report.operations
        kernels = np.flatnonzero(ops.kind == OpKind.KERNEL)
        row = int(kernels[len(kernels) // 2])
        kernel = ops.shown[ops.name[row]]
        model = await zoomed_to(pilot, kernel)
        assert model.picked.events is ops
        assert kernel in model.name_of(model.picked)
        assert is_seen(model)
        length = model.picked.end - model.picked.start
        assert 2 * length >= min(model.window.width, 2 * model.size.columns), "fitted"
        for key in ("S", "d", "a", "w"):
            model = await press(pilot, key)
            assert model.track_of(model.picked).key == model.lane_key
            assert model.top <= model.row_number < model.top + model.size.rows, "its lane stays"
        model = await press(pilot, "left_square_bracket")
        if model.picked.events is ops:
            return  # no call has its correlation id
        assert is_seen(model)
        model = await press(pilot, "right_square_bracket")
        assert model.picked.events is ops
        assert is_seen(model)
