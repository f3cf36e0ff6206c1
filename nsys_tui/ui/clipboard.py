"""Copying: the system's clipboard, else the terminal's by OSC 52, and always a file; says which.

Over SSH the machine that runs the app is not the one with the clipboard, so only the terminal can
reach it; under tmux the sequence is sent bare and wrapped, because which one arrives depends on two
options of tmux.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nsys_tui.paths import state_folder
from nsys_tui.ui.terminal import in_browser

OSC52_LIMIT: Final = 74_000
"""Bytes of base64 above which many terminals drop the sequence."""

KEPT: Final = 20
"""Copies kept as files."""


@dataclass(frozen=True)
class Copied:
    """Where a copied text went."""

    routes: tuple[str, ...]
    path: Path | None

    @property
    def sentence(self) -> str:
        """For a toast: ``clipboard; also in ~/.local/state/nsys-tui/copied.txt``."""
        files = [f"in {self.path}"] if self.path else []
        parts = [*self.routes, *(f"also {part}" if self.routes else part for part in files)]
        return "; ".join(parts) or "nowhere: neither clipboard nor state folder can be written"


def without_controls(text: str) -> str:
    """Removes escape and control characters except tab and newline."""
    return "".join(c for c in text if c in "\t\n" or (c.isprintable() and c != "\x7f"))


def copy(
    text: str,
    write: Callable[[str], None],
    *,
    environ: Mapping[str, str] | None = None,
) -> Copied:
    """Copies a text by every route that is likely to work.

    Args:
        text: what to copy; control characters are removed first.
        write: sends a sequence to the terminal.
        environ: the environment; by default the one of this process.
    """
    env = os.environ if environ is None else environ
    clean = without_controls(text)
    routes: list[str] = []
    if has_system_clipboard(env) and _system_copy(clean):
        routes.append("clipboard")
    elif (sequences := osc52(clean, bool(env.get("TMUX")))) is not None:
        for sequence in sequences:
            write(sequence)
        in_tmux = " (tmux: needs set-clipboard on or allow-passthrough on)"
        routes.append("terminal clipboard by OSC 52" + (in_tmux if env.get("TMUX") else ""))
    return Copied(tuple(routes), _keep(clean))


def has_system_clipboard(env: Mapping[str, str]) -> bool:
    """Whether this machine's clipboard is the user's: no SSH, and a display or a desktop system.

    In a browser it is the page that has one.
    """
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY") or in_browser(env):
        return False
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY") or env.get("WSL_DISTRO_NAME"))


def _system_copy(text: str) -> bool:
    import pyperclip

    try:
        pyperclip.copy(text)
    except (pyperclip.PyperclipException, OSError):
        return False
    return True


def osc52(text: str, tmux: bool) -> list[str] | None:
    """The sequences that hand a text to the terminal; None when it is too long for most."""
    data = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    if len(data) > OSC52_LIMIT:
        return None
    bare = f"\x1b]52;c;{data}\x07"
    wrapped = "\x1bPtmux;" + bare.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return [bare, wrapped] if tmux else [bare]


def _keep(text: str) -> Path | None:
    """Writes the newest copy to ``copied.txt`` and pushes the older ones down."""
    folder = state_folder()
    newest = folder / "copied.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        names = [newest, *(folder / f"copied-{n}.txt" for n in range(1, KEPT))]
        for older, newer in zip(reversed(names), list(reversed(names))[1:], strict=False):
            if newer.exists():
                newer.replace(older)
        descriptor = os.open(newest, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError:
        return None
    return newest
