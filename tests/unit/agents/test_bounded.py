from __future__ import annotations

import json
from typing import Any

import pytest

from nsys_tui.agents.bounded import CHARACTERS, Answers
from nsys_tui.errors import UsageError


def whole(data: Any, rows: int) -> tuple[list[Any], int]:
    """All rows of ``list`` by its cursors, and how many answers that took."""
    answers = Answers()
    page = json.loads(answers.first({"list": data}, rows, {}))
    found, count = list(page["data"]["list"]), 1
    more = page["more"].get("list")
    while more:
        text = answers.more(more["cursor"], rows)
        page, count = json.loads(text), count + 1
        found += page["data"]
        more = page["more"].get("list")
    return found, count


@pytest.mark.parametrize("rows", [1, 7, 40, 500])
def test_pages_put_together_are_the_list(rows: int) -> None:
    data = [{"number": number} for number in range(100)]
    found, count = whole(data, rows)
    assert found == data
    assert count == -(-100 // rows)


def test_an_answer_is_never_longer_than_it_may_be() -> None:
    wide = [{f"column {c}": "y" * 400 for c in range(20)} for _ in range(50)]
    text = Answers().first({"list": wide}, 500, {})
    assert len(text) < CHARACTERS * 1.3
    found, _ = whole(wide, 500)
    assert found == wide
    flat = {f"key {number}": "z" * 400 for number in range(1_000)}
    assert len(Answers().first(flat, 10, {})) < CHARACTERS * 1.3


def test_a_list_inside_a_row_of_a_later_page_has_a_cursor_too() -> None:
    answers = Answers()
    data = [{"id": number, "inner": list(range(number, number + 30))} for number in range(6)]
    page = json.loads(answers.first(data, 3, {}))
    later = json.loads(answers.more(page["more"]["data"]["cursor"], 3))
    assert [row["id"] for row in later["data"]] == [3, 4, 5]
    inner = later["more"]["1.inner"]
    rest = json.loads(answers.more(inner["cursor"], 500))
    assert later["data"][1]["inner"] + rest["data"] == data[4]["inner"]


@pytest.mark.parametrize("start", ["1.5", "true", '"1"', "null", "-1", "4", "[" * 100_000])
def test_a_cursor_that_was_changed_is_refused(start: str) -> None:
    answers = Answers()
    cursor = json.loads(answers.first([1, 2, 3], 2, {}))["more"]["data"]["cursor"]
    assert json.loads(answers.more(cursor, 2))["data"] == [3]
    with pytest.raises(UsageError, match="not known any more"):
        answers.more(f"{cursor.partition(':')[0]}:[[], {start}]", 2)


@pytest.mark.parametrize("cursor", ["", "x", "x:", "x:[]", "x:[[0],1]", "x:{}", 'x:[["a"],-1]'])
def test_a_cursor_that_was_never_given_out_is_refused(cursor: str) -> None:
    with pytest.raises(UsageError, match="not known"):
        Answers().more(cursor, 10)
