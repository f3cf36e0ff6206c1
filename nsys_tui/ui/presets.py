"""Keyboard presets and the user's own keys: action id -> keys, laid over the key table."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nsys_tui.config import KeysConfig
from nsys_tui.errors import ConfigError
from nsys_tui.ui.keymap import normal_key

FOLDER: Final = Path(__file__).parent / "keymaps"
NO_KEY: Final = "unbound"
"""Stands in Textual's keymap for an action that only chords reach."""

Keymap = dict[str, tuple[str, ...]]


def presets() -> list[str]:
    """Names of the presets, the default first."""
    return ["default", *sorted(path.stem for path in FOLDER.glob("*.toml"))]


def load_preset(name: str) -> Keymap:
    """Keys of a preset by action id; empty for ``default``.

    Raises:
        ConfigError: there is no such preset.
    """
    if name == "default":
        return {}
    path = FOLDER / f"{name}.toml"
    if name not in presets():
        raise ConfigError(
            f"no keyboard preset named {name!r}", hint="there are " + ", ".join(presets())
        )
    return {action: tuple(keys) for action, keys in tomllib.loads(path.read_text()).items()}


def effective(keys: KeysConfig) -> Keymap:
    """The preset with the user's own keys over it."""
    return load_preset(keys.preset) | dict(keys.bindings)


def textual_keymap(keymap: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """What ``App.set_keymap`` takes: single keys only."""
    return {
        action: ",".join(normal_key(key) for key in keys if " " not in key) or NO_KEY
        for action, keys in keymap.items()
    }


def chords(keymap: Mapping[str, tuple[str, ...]]) -> dict[tuple[str, str], str]:
    """Action id by the two keys of its chord."""
    by_key: dict[tuple[str, str], str] = {}
    for action, keys in keymap.items():
        for key in keys:
            first, blank, second = key.partition(" ")
            if blank:
                by_key[normal_key(first), normal_key(second)] = action
    return by_key
