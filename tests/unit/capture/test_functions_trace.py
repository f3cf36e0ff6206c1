from __future__ import annotations

import json

import pytest

from nsys_tui.capture.options.functions_trace import check, make
from nsys_tui.errors import UsageError


def test_made_files_group_by_module_and_pass_their_own_check() -> None:
    text = make(["pkg.a:f", "pkg.b:C.method", "pkg.a:g"], domain="mine", color="0x112233")
    assert json.loads(text) == [
        {"domain": "mine", "color": "0x112233", "module": "pkg.a", "functions": ["f", "g"]},
        {"domain": "mine", "color": "0x112233", "module": "pkg.b", "functions": ["C.method"]},
    ]
    assert check(text, "x") == []


def test_documented_forms_are_accepted() -> None:
    text = json.dumps(
        [
            {
                "_comment": "ignored",
                "domain": "d",
                "category": "c",
                "color": "blue",
                "module": "a.b",
                "functions": ["f", "C.m", {"module": "x", "function": "g"}],
            }
        ]
    )
    assert check(text, "x") == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not JSON"),
        ("{}", "must be a list"),
        ("[]", "must be a list"),
        ("[1]", "must be an object"),
        ('[{"module": "m"}]', "functions must be a list"),
        ('[{"module": "__main__", "functions": ["f"]}]', "belongs to __main__"),
        ('[{"functions": [{"module": "__main__", "function": "f"}]}]', "belongs to __main__"),
        ('[{"functions": ["f"]}]', "module None is no Python name"),
        ('[{"module": "a-b", "functions": ["f"]}]', "module 'a-b' is no Python name"),
        ('[{"module": "m", "functions": ["f()"]}]', "function 'f()' is no Python name"),
        ('[{"module": "m", "functions": ["f"], "color": "#12"}]', "color '#12'"),
    ],
)
def test_faults_name_the_file_and_the_entry(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        check(text, "trace.json")
    assert "trace.json" in str(caught.value)
    assert says in str(caught.value)


def test_main_is_refused_with_the_reason_and_a_way_on() -> None:
    with pytest.raises(UsageError) as caught:
        make(["__main__:train"])
    assert "module is imported" in caught.value.message
    assert "module of its own" in caught.value.hint


def test_keys_that_nsys_does_not_know_are_remarked_on() -> None:
    text = '[{"module": "m", "functions": ["f"], "colour": "blue"}]'
    assert check(text, "x") == ["x: entry 1: nsys does not know the key 'colour'"]


def test_a_function_needs_its_module() -> None:
    with pytest.raises(UsageError, match="names no module"):
        make(["train"])
