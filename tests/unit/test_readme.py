"""The generated parts of the README are current. NSYS_TUI_UPDATE=1 writes them anew."""

from __future__ import annotations

import os

from paths import ROOT

from nsys_tui.cli import available_verbs
from nsys_tui.ui.keymap import markdown_table

README = ROOT / "README.md"


def generated() -> dict[str, str]:
    rows = [f"| `{verb}` | {text} |" for verb, text in available_verbs().items()]
    verbs = "\n".join(["| verb | gives |", "|---|---|", *rows])
    return {"verbs": verbs, "keys": "\n" + markdown_table().strip() + "\n"}


def with_current_parts(text: str) -> str:
    for name, part in generated().items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        text = f"{before}{start}{part}\n{end}{after}"
    return text


def test_generated_parts_of_the_readme_are_current() -> None:
    text = README.read_text(encoding="utf-8")
    current = with_current_parts(text)
    if os.environ.get("NSYS_TUI_UPDATE"):
        README.write_text(current, encoding="utf-8")
    assert text == current or os.environ.get("NSYS_TUI_UPDATE")


def test_readme_names_the_two_commands_first() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.index("./demo/run") < text.index("./tests/run") < text.index("## Install")
