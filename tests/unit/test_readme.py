"""The generated parts of the README are current. NSYS_TUI_UPDATE=1 writes them anew."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from paths import ROOT

from nsys_tui.cli import VERBS
from nsys_tui.ui.keymap import GLOBAL, SCREENS, Action, shown_key

if TYPE_CHECKING:
    from collections.abc import Iterable

README = ROOT / "README.md"


def key_tables() -> str:
    """What works everywhere, then screen by screen."""
    views = {f"view.{spec.name}" for spec in SCREENS}
    everywhere = [a for a in GLOBAL if not a.id.startswith("view.") or a.id in views]
    parts = [key_table("Everywhere", everywhere)]
    parts += [key_table(spec.long, own) for spec in SCREENS if (own := spec.actions())]
    return "\n".join(parts)


def key_table(title: str, actions: Iterable[Action]) -> str:
    lines = [f"### {title}", "", "| key | action id | does |", "|---|---|---|"]
    for action in actions:
        keys = " ".join(f"`{shown_key(key)}`" for key in action.keys).replace("|", "\\|")
        lines.append(f"| {keys} | `{action.id}` | {action.help} |")
    return "\n".join([*lines, ""])


def generated() -> dict[str, str]:
    rows = [f"| `{verb}` | {text} |" for verb, text in VERBS.items()]
    verbs = "\n".join(["| verb | gives |", "|---|---|", *rows])
    return {"verbs": verbs, "keys": "\n" + key_tables().strip() + "\n"}


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


def test_the_table_of_keys_lists_every_global_action() -> None:
    table = key_tables()
    for action in GLOBAL:
        if not action.id.startswith("view."):
            assert f"`{action.id}`" in table
    assert re.search(r"^\| `\?` `F1` \| `app.help` \|", table, re.MULTILINE)


def test_readme_names_the_two_commands_first() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.index("./demo/run") < text.index("./tests/run") < text.index("## Install")
