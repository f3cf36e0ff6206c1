"""README and docs: what is made is current, links lead somewhere, and what they show runs.

NSYS_TUI_UPDATE=1 writes what is made anew.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tomllib
from glob import glob
from typing import TYPE_CHECKING

import pytest
from demo_making import make
from doc_making import DOCS, made_pages, parser_of
from loglines import body, info, nemo
from paths import ROOT

from nsys_tui.cli import VERBS, main
from nsys_tui.config import load_config

if TYPE_CHECKING:
    from pathlib import Path

PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
UNTRIED = {"capture", "captures", "targets", "open", "tour", "mcp", "serve"}
"""Verbs that need another machine or a terminal, or stay: what is shown is only parsed."""
FINE = {0, 1, 3}
"""Of a shown command: a gate may be hit, or nothing be told of two runs that are the same."""
REPORTS_SHOWN = "report before after new main-1 branch-1 rank0 rank1 reports/rank0 reports/rank1"


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", made_pages(), ids=name)
def test_what_is_made_is_current(path: Path) -> None:
    current = made_pages()[path]
    if os.environ.get("NSYS_TUI_UPDATE"):
        path.write_text(current, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == current, (
        "NSYS_TUI_UPDATE=1 .venv/bin/python -m pytest tests/unit/test_readme.py writes it again"
    )


def test_the_readme_names_the_commands_of_a_checkout() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.index("./demo/run") < text.index("./tests/run")
    assert len(text.splitlines()) < 90, "the rest belongs to docs/"


def test_every_page_is_reached_from_the_index() -> None:
    """A new one needs a line in docs/README.md."""
    index = (DOCS / "README.md").read_text("utf-8")
    assert [name(path) for path in PAGES[1:] if f"({path.name})" not in index] == ["docs/README.md"]


def anchors(path: Path) -> set[str]:
    """Of the headings of a page, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", without_code(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def without_code(path: Path) -> str:
    return re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    found = re.findall(r"\]\(([^)]+)\)|<img [^>]*src=\"([^\"]+)\"", without_code(page))
    lost = []
    for link in (a or b for a, b in found):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


def blocks(page: Path, language: str) -> list[str]:
    pattern = rf"^```{language}\n(.*?)^```"
    return re.findall(pattern, page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[list[str]]:
    """The words of each ``nsys-tui`` in shell code, up to a pipe or a redirection."""
    found = []
    for line in text.splitlines():
        for command in re.split(r"&&|\|\||;", line):
            words = shlex.split(command, comments=True)
            if words[:1] == ["nsys-tui"]:
                end = [i for i, word in enumerate(words) if word in ("|", ">", ">>")]
                found.append(words[1 : min(end, default=len(words))])
    return found


def examples(verb: str) -> list[list[str]]:
    """The commands that the help of a verb shows."""
    epilog = parser_of(verb).epilog or ""
    return commands("\n".join(re.findall(r"^  (nsys-tui .*)$", epilog, re.MULTILINE)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With every file that the pages name."""
    place = tmp_path_factory.mktemp("shown")
    made = make(place, steps=8)
    report = made.path.read_bytes()
    for path in REPORTS_SHOWN.split():
        (place / path).parent.mkdir(exist_ok=True)
        (place / f"{path}.sqlite").write_bytes(report)
    (place / "rank0.log").write_bytes(made.logs[0].read_bytes())
    steps = [line for step in range(44, 51) for line in (info(body(op_count=step)), nemo(step))]
    (place / "nccl.log").write_text("\n".join(steps))
    (place / "demo.sqlite").unlink()
    (place / "perf").mkdir()
    base = place / "perf" / "base.json"
    assert main(["baseline", "add", "--file", str(base), str(place / "before.sqlite")]) == 0
    return place


@pytest.fixture
def there(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder, which the commands may fill."""
    copy = tmp_path / "shown"
    shutil.copytree(folder, copy, copy_function=os.link)
    monkeypatch.chdir(copy)
    monkeypatch.setenv("NSYS_TUI_CACHE", str(folder / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return copy


def try_out(words: list[str]) -> None:
    """Runs a command if it can be run here, else lets its verb read its words."""
    verb = words[0] if words and words[0] in VERBS else "open"
    if verb in UNTRIED:
        own = words[1:] if words[:1] == [verb] else words
        parser_of(verb).parse_args([word for word in own if word not in ("-h", "--help")])
        return
    if any(word.startswith(("/shared", "tcp:")) for word in words):
        parser_of(verb).parse_args(words[1:])
        return
    expanded = [path for word in words for path in (sorted(glob(word)) or [word])]
    if verb == "fleet":
        expanded += ["--workers", "1"]
    assert main(expanded) in FINE, shlex.join(["nsys-tui", *words])


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")], ids=name)
def test_shown_commands_run(page: Path, there: Path) -> None:
    shown = commands("\n".join(blocks(page, "sh")))
    assert shown
    for words in shown:
        try_out(words)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_shown_python_runs(page: Path, there: Path) -> None:
    for code in blocks(page, "python"):
        exec(compile(code, page.name, "exec"), {})


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")], ids=name)
def test_shown_configuration_is_understood(page: Path, tmp_path: Path) -> None:
    for number, code in enumerate(blocks(page, "toml")):
        tomllib.loads(code)
        path = tmp_path / f"{number}.toml"
        path.write_text(code, "utf-8")
        load_config(path)


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_shows_two_commands_that_run(verb: str, there: Path) -> None:
    shown = examples(verb)
    assert len(shown) >= 2, "see nsys_tui/commands/examples.py"
    for words in shown:
        assert words[0] == verb or verb == "open"
        try_out(words)
