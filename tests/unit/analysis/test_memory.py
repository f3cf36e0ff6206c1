from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from paths import REPORTS, needs_reports
from synth import Synth

from nsys_tui.analysis.memory import device_memory
from nsys_tui.errors import NoDataError
from nsys_tui.reader import open_report

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.analysis.memory import DeviceMemory


def only(synth: Synth) -> DeviceMemory:
    (found,) = device_memory(open_report(synth.write()))
    return found


@pytest.fixture
def synth(tmp_path: Path) -> Synth:
    return Synth(tmp_path / "r.sqlite").process(1).kernel("k", 0, 9)


def test_peak_and_use_over_time(synth: Synth) -> None:
    synth.memory_usage(10, 100, address=1).memory_usage(20, 50, address=2)
    synth.memory_usage(30, 100, free=True, address=1).memory_usage(40, 70, address=3)
    found = only(synth)
    assert found.peak == (150, 20)
    assert found.at(np.array([5, 10, 25, 30, 99])).tolist() == [0, 100, 150, 50, 120]
    assert (found.allocations, found.frees, found.unmatched_frees) == (3, 1, 0)
    assert (len(found.never_freed), found.never_freed_bytes) == (2, 120)


def test_an_address_may_be_used_again_and_by_another_process(synth: Synth) -> None:
    synth.memory_usage(10, 100, address=1).memory_usage(20, 100, free=True, address=1)
    synth.memory_usage(30, 40, address=1)
    synth.process(2).memory_usage(35, 7, address=1)
    synth.memory_usage(40, 7, free=True, address=1)
    found = only(synth)
    assert found.used.tolist() == [100, 0, 40, 47, 40]
    assert found.never_freed_bytes == 40


def test_a_free_without_its_allocation_changes_nothing(synth: Synth) -> None:
    synth.memory_usage(10, 500, free=True, address=9).memory_usage(20, 5, address=8)
    found = only(synth)
    assert (found.unmatched_frees, found.used.tolist()) == (1, [0, 5])


def test_host_memory_is_no_gpu_memory(synth: Synth) -> None:
    synth.memory_usage(10, 500, kind="pinned", address=1)
    synth.memory_usage(20, 5, kind="managed", address=2)
    assert only(synth).peak == (5, 20)


def test_without_the_table_the_option_is_named(synth: Synth) -> None:
    with pytest.raises(NoDataError, match="cuda-memory-usage"):
        device_memory(open_report(synth.write()))


@needs_reports
def test_a_real_report_frees_all_it_took() -> None:
    (found,) = device_memory(open_report(REPORTS / "windows-streams-2022.1.sqlite"))
    assert found.peak[0] == 320_000_000
    assert (found.allocations, found.frees, found.never_freed_bytes) == (15, 15, 0)
    assert int(found.used[-1]) == 0
