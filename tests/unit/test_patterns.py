from __future__ import annotations

import pytest

from nsys_tui.analysis.timeline.search import matcher
from nsys_tui.errors import UsageError
from nsys_tui.patterns import compiled, matching


@pytest.mark.parametrize("pattern", ["a(", "a{99999999999999999999}", "(" * 3000 + ")" * 3000])
def test_what_is_no_regular_expression_is_told(pattern: str) -> None:
    with pytest.raises(UsageError, match="not a regular expression"):
        compiled(pattern)
    with pytest.raises(UsageError, match="not a regular expression"):
        matching(pattern, ["a"])
    assert not matcher(pattern)("a"), "a search takes it for words"


def test_a_regular_expression_finds_names() -> None:
    assert matching("^g.mm", ["gemm", "sgemm"]) == ["gemm"]
