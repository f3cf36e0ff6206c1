"""Files as people give them: typed, pasted, or dropped into the terminal."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit


def state_folder() -> Path:
    """The user's state folder of this program: what was opened, marked, captured and kept."""
    from platformdirs import user_state_path

    return user_state_path("nsys-tui", appauthor=False)


def given_path(text: str) -> Path:
    """The file that a typed or dropped text stands for: what a shell needs and ``file://`` go."""
    text = text.strip()
    with contextlib.suppress(ValueError):  # an apostrophe without its other
        words = shlex.split(text)
        if len(words) == 1 and not is_there(Path(text)):
            text = words[0]
    if text.startswith("file://"):
        text = unquote(urlsplit(text).path)
    return Path(text).expanduser()


def existing_path(text: str) -> Path:
    """The file of exactly this name where there is one, else the one that a dropped text means."""
    typed = Path(text)
    given = given_path(text)
    return given if not is_there(typed) and is_there(given) else typed


def is_there(path: Path) -> bool:
    """Whether a file can be seen; one in a folder that is closed to us cannot, and is no error."""
    return os.path.exists(path)


def told_apart(paths: Sequence[Path]) -> list[str]:
    """File names; those of namesakes with as many folders as it takes to tell them apart."""
    parts = [path.absolute().parts for path in paths]
    depths = [1] * len(parts)
    names = [path.name for path in paths]
    for _ in range(max(map(len, parts), default=0)):
        count = Counter(dict(zip(parts, names, strict=True)).values())
        depths = [depth + (count[name] > 1) for depth, name in zip(depths, names, strict=True)]
        names = ["/".join(folders[-depth:]) for folders, depth in zip(parts, depths, strict=True)]
    return names
