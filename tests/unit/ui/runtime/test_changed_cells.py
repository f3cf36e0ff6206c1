from __future__ import annotations

import re
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.names import char_cells
from nsys_tui.ui.runtime.ansi_styles import change, style_of
from nsys_tui.ui.runtime.changed_cells import AT_ONCE, SHOWN, Shadow, sending_changes

BLUE = "38;2;1;2;3"
ON_RED = "48;5;9"
OFF = {"22": {"1", "2"}, "23": {"3"}, "24": {"4"}, "27": {"7"}, "29": {"9"}}


class Terminal:
    """A reference: applies cursor jumps, styles and text to a grid, as a terminal does."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], tuple[str, str, str, frozenset[str]]] = {}
        self.at = (0, 0)
        self.fg, self.bg, self.flags = "39", "49", frozenset[str]()

    def feed(self, data: str) -> None:
        for numbers, edit, char in re.findall(r"\x1b\[([\d;]*)([A-Za-z])|([^\x1b\n])", data):
            y, x = self.at
            if edit == "m":
                self._style(numbers.split(";"))
            elif edit == "X":
                self._erase(int(numbers))
            elif edit == "H":
                row, _, column = numbers.partition(";")
                self.at = int(row or 1), int(column or 1)
            elif edit:
                count = int(numbers or 1)
                self.at = {"G": (y, count), "C": (y, x + count), "B": (y + count, x)}[edit]
            elif char in "\r\b":
                self.at = y, 1 if char == "\r" else x - 1
            else:
                self._print(char)

    def _erase(self, count: int) -> None:
        """As a terminal does: no attribute but the colours, the cursor stays."""
        assert "7" not in self.flags, "terminals differ in what erasing does in reverse"
        there, flags = self.at, self.flags
        self.flags = frozenset()
        for _ in range(count):
            self._print(" ")
        self.at, self.flags = there, flags

    def _print(self, char: str) -> None:
        y, x = self.at
        if not char_cells(char):
            return
        for half, other in ((x, x - 1), (x + char_cells(char), x + char_cells(char))):
            if self.cells.get((y, half), " ")[0] == "" and (y, other) in self.cells:
                self.cells[y, other] = (" ", *self.cells[y, other][1:])
        self.cells[y, x] = (char, self.fg, self.bg, self.flags)
        for extra in range(1, char_cells(char)):
            self.cells[y, x + extra] = ("", self.fg, self.bg, self.flags)
        self.at = (y, x + char_cells(char))

    def _style(self, words: list[str]) -> None:
        while words:
            word = words.pop(0)
            if word in ("38", "48"):
                taken = [word, *words[: 4 if words[0] == "2" else 2]]
                del words[: len(taken) - 1]
                if word == "38":
                    self.fg = ";".join(taken)
                else:
                    self.bg = ";".join(taken)
            elif word in ("0", ""):
                self.fg, self.bg, self.flags = "39", "49", frozenset()
            elif word.startswith(("3", "9")) and len(word) == 2:
                self.fg = word
            elif word.startswith(("4", "10")) and len(word) in (2, 3):
                self.bg = word
            elif word in OFF:
                self.flags -= OFF[word]
            else:
                self.flags |= {word}


def seen(terminal: Terminal) -> dict[tuple[int, int], tuple[str, ...]]:
    """What a user sees in each cell: of a blank without lines only the background."""
    return {
        at: (char, bg)
        if char == " " and not flags & {"4", "7", "9", "21", "53"}
        else (char, fg, bg, *sorted(flags))
        for at, (char, fg, bg, flags) in terminal.cells.items()
    }


def frame(*parts: tuple[int, int, str, str]) -> str:
    """Row, column, style and text as Textual writes them, the cursor put at the start at last."""
    drawn = "\n".join(
        f"\x1b[{y};{x}H" + (f"\x1b[{style}m{text}\x1b[0m" if style else text)
        for y, x, style, text in parts
    )
    return f"{drawn}\x1b[1;1H"


def test_the_first_frame_goes_out_in_full_and_an_equal_one_not_at_all() -> None:
    shadow = Shadow()
    one = frame((1, 1, BLUE, "hello"), (2, 1, "", "world"))
    assert "hello" in shadow.difference(one)
    assert shadow.difference(one) == ""


def test_the_cursor_goes_where_a_frame_leaves_it() -> None:
    shadow = Shadow()
    shadow.difference("\x1b[1;1Htext\x1b[1;1H")
    assert shadow.difference("\x1b[1;1Htext\x1b[2;3H") == "\x1b[2;3H"
    assert shadow.difference("\x1b[1;1Htext\x1b[2;3H") == ""


def test_only_the_changed_cells_are_sent() -> None:
    shadow = Shadow()
    shadow.difference(frame((3, 1, BLUE, "count 1234 of 9999")))
    sent = shadow.difference(frame((3, 1, BLUE, "count 1235 of 9999")))
    assert sent == f"\x1b[{BLUE}m\x1b[3;10H5\x1b[0m\x1b[1;1H"


def test_a_change_of_style_alone_is_a_change() -> None:
    shadow = Shadow()
    shadow.difference(frame((1, 1, BLUE, "ab")))
    assert "ab" in shadow.difference(frame((1, 1, "1", "ab")))


def test_what_is_no_frame_passes_through() -> None:
    shadow = Shadow()
    for data in ("\x1b[?2026h", "\x1b]52;c;aGk=\x07", "\x1b[?25l"):
        assert shadow.difference(data) == data


def test_an_odd_sequence_in_a_frame_sends_all_of_it_and_forgets_the_screen() -> None:
    shadow = Shadow()
    plain = frame((1, 1, "", "text"))
    shadow.difference(plain)
    odd = "\x1b[1;1Htext\x1b[2J\x1b[1;1H"
    assert shadow.difference(odd) == odd
    assert "text" in shadow.difference(plain)


def test_forgetting_sends_everything_again() -> None:
    shadow = Shadow()
    plain = frame((1, 1, "", "text"))
    shadow.difference(plain)
    shadow.forget()
    assert "text" in shadow.difference(plain)


def test_the_shortest_change_of_style() -> None:
    plain, blue = style_of(""), style_of(BLUE)
    both, bold = style_of(f"{BLUE};{ON_RED}"), style_of("1")
    assert change(blue, both) == f"\x1b[{ON_RED}m"
    assert change(both, blue) == "\x1b[49m"
    assert change(bold, plain) == "\x1b[0m"
    assert change(bold, blue) == f"\x1b[0;{BLUE}m"
    assert change(plain, plain) == ""


def test_an_attribute_is_taken_back_alone_where_that_is_shorter() -> None:
    bold, plain, both = style_of(f"1;{BLUE}"), style_of(BLUE), style_of(f"1;2;7;{BLUE}")
    assert change(plain, bold) == "\x1b[1m"
    assert change(bold, plain) == "\x1b[22m"
    assert change(both, bold) == "\x1b[22;27;1m"
    assert change(style_of(f"5;{BLUE}"), plain) == f"\x1b[0;{BLUE}m"


def test_blanks_take_no_colour_that_is_not_seen_on_them() -> None:
    sent = Shadow().difference(
        frame((1, 1, BLUE, "a"), (1, 2, f"1;{ON_RED}", "  "), (1, 4, "4", " "))
    )
    assert f"\x1b[{ON_RED}m\x1b[1;2H  " in sent
    assert f"\x1b[0;{BLUE}m\b\b\ba" in sent


def test_a_style_is_sent_once_a_frame() -> None:
    row = ((1, BLUE, "a"), (2, ON_RED, "b"), (3, BLUE, "c"), (4, BLUE, "d"))
    sent = Shadow().difference(
        frame(*((y, x, style, text) for y in (1, 2) for x, style, text in row))
    )
    assert sent.count(BLUE) == sent.count(ON_RED) == 1
    assert "\x1b[1Ha\x1b[Ccd\x1b[2Ha\x1b[Ccd" in sent


def test_styles_with_a_colour_in_common_follow_each_other() -> None:
    row = ((1, f"31;{ON_RED}", "a"), (2, "31", "b"), (3, f"32;{ON_RED}", "c"), (4, "32", "d"))
    sent = Shadow().difference(frame(*((1, x, style, text) for x, style, text in row)))
    assert sent.count(ON_RED) == 1


def test_after_the_last_column_and_doubtful_characters_columns_are_named() -> None:
    wide = Shadow().difference(frame((1, 1, BLUE, "日"), (1, 3, ON_RED, "x"), (1, 4, BLUE, "y")))
    assert "日\x1b[4Gy" in wide
    emoji = Shadow().difference(frame((1, 1, BLUE, "☃"), (1, 2, ON_RED, "x"), (1, 3, BLUE, "y")))
    assert "☃\x1b[3Gy" in emoji
    last = Shadow().difference(frame((1, 1, BLUE, "ab"), (2, 2, BLUE, "c")))
    assert "ab\x1b[2;2Hc" in last


def test_long_blanks_are_erased_where_the_terminal_can() -> None:
    wide = frame((1, 1, ON_RED, f"a{' ' * 20}b{' ' * 8}"), (2, 1, f"7;{ON_RED}", " " * 20))
    assert "a\x1b[20X\x1b[20Cb\x1b[8X\x1b" in Shadow(erase=True).difference(wide)
    assert f"{' ' * 20}\x1b[0m" in Shadow(erase=True).difference(wide)
    assert "X" not in Shadow().difference(wide)


class Base:
    """What a driver of Textual's does, as far as it matters here."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def write(self, data: str) -> None:
        self.sent.append(data)

    def start_application_mode(self) -> None:
        self.sent.append("start")


def a_driver() -> Any:
    return cast("Any", sending_changes)(Base, erases=True)()


def test_a_driver_forgets_when_it_starts_anew() -> None:
    driver = a_driver()
    one = frame((1, 1, "", "text"))
    driver.write(one)
    driver.write(one)
    driver.start_application_mode()
    driver.write(one)
    assert ["text" in data for data in driver.sent] == [True, False, True]


def test_a_frame_to_be_shown_at_once_is_one_write_and_an_empty_one_none() -> None:
    driver = a_driver()
    one = frame((1, 1, "", "text"))
    for data in (AT_ONCE, one, SHOWN, AT_ONCE, one, SHOWN):
        driver.write(data)
    assert driver.sent == [f"{AT_ONCE}\x1b[1Htext\x1b[1;1H{SHOWN}"]
    driver.write("\x1b[?25l")
    assert driver.sent[1:] == ["\x1b[?25l"]


parts = st.tuples(
    st.integers(1, 4),
    st.integers(1, 12),
    st.sampled_from(["", "1", "7", BLUE, ON_RED, f"1;{BLUE};{ON_RED}", f"97;{ON_RED}", "32;44"]),
    st.one_of(
        st.text("ab │▄日", min_size=1, max_size=8),
        st.integers(5, 30).map(lambda blanks: f"a{' ' * blanks}b{' ' * (blanks // 2)}"),
    ),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(parts, min_size=1, max_size=6), min_size=1, max_size=6), st.booleans())
def test_the_terminal_shows_the_same_as_without_saving(
    frames: list[list[tuple[int, int, str, str]]], erase: bool
) -> None:
    whole, saving, shadow = Terminal(), Terminal(), Shadow(erase=erase)
    for pieces in frames:
        data = frame(*pieces)
        whole.feed(data)
        saving.feed(shadow.difference(data))
        assert seen(saving) == seen(whole)
        assert saving.at == whole.at
