"""How to add the packages of an extra to where the program runs."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path


def adding(extra: str) -> str:
    """The command that adds an extra's packages, which needs no index that has this program."""
    packages = shlex.join(_packages(extra))
    if not packages:
        return f"pip install '.[{extra}]' in the program's checkout"
    place = Path(sys.prefix)
    if (place / "pipx_metadata.json").exists():
        return f"pipx inject {shlex.quote(place.name)} {packages}"
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:  # as in environments of uv
        return f"uv pip install --python {python} {packages}"
    return f"{python} -m pip install {packages}"


def _packages(extra: str) -> list[str]:
    """Requirements of an extra as they were installed; none where nothing was."""
    try:
        found = requires("nsys-terminal") or ()
    except PackageNotFoundError:
        return []
    wanted = re.compile(rf"""(.+?)\s*;\s*extra\s*==\s*['"]{extra}['"]""")
    return [match[1] for text in found if (match := wanted.fullmatch(text))]
