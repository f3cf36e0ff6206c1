from __future__ import annotations

from nsys_tui.ui.matching import BEST, Entry, matching

ENTRIES = [
    Entry("zoom in: at the cursor", loose=True),
    Entry("exposed communication", loose=True),
    Entry("void exposed_communication_kernel"),
    Entry("colour: by category", loose=True),
]


def texts(typed: str) -> list[str]:
    return [entry.text for entry in matching(ENTRIES, typed)]


def test_letters_in_their_order_find_short_texts_after_what_holds_the_words() -> None:
    assert texts("expcomm") == ["exposed communication"]
    assert texts("zmin") == ["zoom in: at the cursor"]
    assert texts("exposed")[:2] == ["exposed communication", "void exposed_communication_kernel"]
    assert texts("co")[0] == "colour: by category"


def test_names_of_kernels_are_found_by_words_alone() -> None:
    assert "void exposed_communication_kernel" not in texts("expcomm")
    assert texts("void exp") == ["void exposed_communication_kernel"]


def test_a_whole_word_comes_before_words_that_begin_with_it() -> None:
    runs = [Entry(f"run-{n}.sqlite", "here") for n in (175, 17)]
    assert [entry.text for entry in matching(runs, "run-17")] == ["run-17.sqlite", "run-175.sqlite"]


def test_one_letter_or_a_sentence_is_no_reason_to_search_loosely() -> None:
    many = [Entry(f"a line of the list {n}", loose=True) for n in range(50)]
    assert matching(many, "q") == []
    assert matching(many, "x" * 30) == []
    assert len(matching(many, "alnlst")) == BEST


def test_words_that_are_not_shown_find_an_entry_after_those_that_show_them() -> None:
    page = Entry("page: write an HTML page", also="picture screenshot share")
    entries = [page, Entry("the picture of the stacks"), Entry("paint")]
    assert matching(entries, "picture") == [entries[1], page]
    assert matching(entries, "write pict") == [page]
    assert matching(entries, "share kernels") == []
    assert matching(entries, "shot") == [], "by their beginning alone"
