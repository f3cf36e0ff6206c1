"""Options that we name to users, beside what NVIDIA's own nsys lists as its own."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from oracle.real_nsys import laid_out, run

import nsys_tui
from nsys_tui.capture.options.table import OPTIONS, RENAMED
from nsys_tui.capture.options.target_facts import read_help

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(nsys_tui.__file__).parent
VERSIONS: Final = ("2022.4", "2023.4")
OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]+[a-z]")
VALUE: Final = re.compile(r"(?<![\w-])--([a-z][a-z-]+[a-z])=(\w[\w,-]*\w)")
OTHERS: Final = {
    # nsys export, nsys itself
    "--include-blobs", "--include-json", "--type", "--version",
    # kubectl, sbatch, squeue, torchrun, ncu, nvidia-smi, uv
    "--context", "--job-name", "--jobs", "--memory-limit", "--no-requeue", "--noheader",
    "--test-only", "--unbuffered", "--nproc-per-node", "--launch-count", "--set",
    "--query-gpu", "--query-compute-apps", "--python",
    # nsys stats, refused; a part of a text
    "--report-dir", "--end",
}  # fmt: skip


def listed(version: str) -> set[str]:
    """The options of ``nsys profile``, by its help."""
    text = run(laid_out(version), "profile", "--help")
    text = re.sub(r"(--[a-z-]+)\[(\w+)\|(\w+)\]", r"\1\2 \1\3", text)
    return {name.removeprefix("--") for name in OPTION.findall(text)}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_table_knows_which_release_lacks_an_option(version: str) -> None:
    there = listed(version)
    assert len(there) > 40
    wrong = {n: o.lacking for n, o in OPTIONS.items() if (n in there) == (o.lacking >= version)}
    assert wrong == {}


def sentences() -> Iterator[str]:
    """The texts of the program, but for what is said to programmers."""
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text())
        said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield "" if id(node) in said else node.value


def test_every_option_in_a_sentence_is_one_of_nsys_of_ours_or_of_a_tool_that_is_known() -> None:
    reference = (ROOT.parent / "docs/reference.md").read_text()
    known = {*OPTION.findall(reference), *OTHERS, *(f"--{n}" for n in (*OPTIONS, *RENAMED))}
    named = {option for text in sentences() for option in OPTION.findall(text)}
    assert named - known == set()
    assert OTHERS - named == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_value_in_a_sentence_is_one_that_nsys_lists_or_says_since_when(version: str) -> None:
    legal = read_help(run(laid_out(version), "profile", "--help").splitlines())
    seen = [
        (name, word, text) for text in sentences() for name, words in VALUE.findall(text)
        for word in words.split(",") if name in legal and legal[name].values
    ]  # fmt: skip
    assert len(seen) > 40
    assert [
        (name, word, text) for name, word, text in seen
        if word not in legal[name].values and not re.search("2023.4|Windows|old name", text)
    ] == []  # fmt: skip


def test_a_sentence_with_a_newer_option_says_since_when() -> None:
    """Words that are given to nsys are translated; see ``option_there``."""
    newer = {f"--{n}": o.lacking for n, o in OPTIONS.items() if o.lacking == VERSIONS[-1]}
    told = [text for text in sentences() if not all(word.startswith("--") for word in text.split())]
    lost = [
        text for text in told for option in OPTION.findall(text)
        if newer.get(option, "") not in text
    ]  # fmt: skip
    assert lost == []
