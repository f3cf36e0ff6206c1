#!/usr/bin/env python3
"""Writes the demo report to demo.sqlite, or where --output says; the same as ``nsys-tui demo``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nsys_tui.cli import main


def _arguments(words: list[str]) -> list[str]:
    given = any(word.startswith(("-o", "--o")) for word in words)
    return ["demo", *words] if given else ["demo", "--output", "demo.sqlite", *words]


if __name__ == "__main__":
    raise SystemExit(main(_arguments(sys.argv[1:])))
