from __future__ import annotations

import pytest

from nsys_tui.capture.plan import Form
from nsys_tui.config import Config, TargetConfig
from nsys_tui.errors import UsageError
from nsys_tui.ui.screens.capture.form import changed
from nsys_tui.ui.screens.capture.target_form import target_of, texts_of

EMPTY = texts_of("node", TargetConfig())


def test_pairs_are_typed_as_for_a_shell() -> None:
    text = "A=1 'B=two words' C= D=x=y"
    read = {"A": "1", "B": "two words", "C": "", "D": "x=y"}
    assert changed(Form(), "env", text).env == read
    options = "--trace=cuda,nvtx cpuctxsw=none"
    target = target_of({**EMPTY, "env": text, "options": options}, Config()).settings
    assert target.env == read
    assert target.options == {"trace": ("cuda", "nvtx"), "cpuctxsw": "none"}


def test_a_word_without_a_value_is_no_pair() -> None:
    with pytest.raises(UsageError, match="environment B: no value"):
        changed(Form(), "env", "A=1 B")
    with pytest.raises(UsageError, match="options trace: no value"):
        target_of({**EMPTY, "options": "trace"}, Config())
