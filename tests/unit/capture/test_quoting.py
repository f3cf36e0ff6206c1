from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.capture import quoting
from nsys_tui.errors import UsageError

TEXT = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=12)


@settings(max_examples=50, deadline=None)
@given(st.lists(TEXT, max_size=4))
def test_a_shell_sees_each_word_as_it_was(items: list[str]) -> None:
    script = f"printf '%s\\0' {quoting.words(['x', *items])}\n"
    shell = subprocess.run(
        ["sh", "-s"], input=quoting.to_bytes(script), capture_output=True, check=True
    )
    assert shell.stdout.decode().split("\0")[1:-1] == items


@settings(max_examples=30, deadline=None)
@given(TEXT)
def test_an_assignment_gives_back_its_value(value: str) -> None:
    script = quoting.assignments({"V": value}) + "printf '%s.' \"$V\"\n"
    shell = subprocess.run(
        ["sh", "-s"], input=quoting.to_bytes(script), capture_output=True, check=True
    )
    assert shell.stdout.decode() == value + "."


def test_bytes_that_are_no_utf8_survive() -> None:
    assert quoting.to_bytes(quoting.word("\udcff")) == b"'\xff'"


def test_nul_is_refused() -> None:
    with pytest.raises(UsageError, match="NUL"):
        quoting.word("a\0b")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb", "a\\nb"),
        ("a\tb", "a\tb"),
        ("ü", "ü"),
        ("\u202e", "\\u202e"),
    ],
)
def test_control_characters_are_shown(text: str, shown: str) -> None:
    assert quoting.printable(text) == shown


def test_long_text_is_cut() -> None:
    assert quoting.printable("x" * 50, 10) == "x" * 10 + "…"
