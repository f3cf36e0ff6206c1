from __future__ import annotations

import pytest

from nsys_tui.ui import keymap
from nsys_tui.ui.widgets import chrome

WIDTHS = (80, 100, 120, 160, 230)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("current", [spec.name for spec in keymap.SCREENS])
def test_every_tab_is_seen_at_every_width(current: str, width: int) -> None:
    labels, gap = chrome.tab_labels(current, width)
    assert len(gap.join(label for _, label in labels)) <= width
    keys = {spec.name: keymap.tab_key(spec).upper() for spec in keymap.SCREENS}
    assert {name for name, key in keys.items() if key or name == current} == set(dict(labels))
    for name, label in labels:
        key, _, text = label.strip("[] ").partition(" ")
        assert key == keys[name] or not keys[name]
        assert text or not keys[name] or (name in keymap.FUNCTION_KEYS and name != current)
    assert [name for name, label in labels if label.startswith("[")] == [current]
    named = {
        " " in label for name, label in labels if name in keymap.FUNCTION_KEYS and name != current
    }
    assert len(named) <= 1, "one without a name beside one that has it reads as a fault"


def test_names_are_whole_where_there_is_room() -> None:
    assert dict(chrome.tab_labels("kernels", 160)[0])["kernels"] == "[ 3 Kernels ]"
    assert dict(chrome.tab_labels("kernels", 120)[0])["stalls"] == "5 Stalls"
    assert dict(chrome.tab_labels("kernels", 100)[0])["stalls"] == "5 Stalls"
    narrow = dict(chrome.tab_labels("kernels", 80)[0])
    assert (narrow["stalls"], narrow["fleet"], narrow["kernels"]) == (
        "5 Stall",
        "F7 Fleet",
        "[3 Kern]",
    )
