"""Files as people give them: typed, pasted, or dropped into the terminal."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit


def given_path(text: str) -> Path:
    """The file that a typed or dropped text stands for: quotes and ``file://`` are taken off."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    if text.startswith("file://"):
        text = unquote(urlsplit(text).path)
    return Path(text).expanduser()
