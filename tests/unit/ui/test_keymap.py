from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import XTermParser
from textual.keys import key_to_character

from nsys_tui.config import KeysConfig
from nsys_tui.errors import ConfigError
from nsys_tui.ui import keymap, presets
from nsys_tui.ui.commands import COMMANDS
from nsys_tui.ui.keymap import GLOBAL, Action

SCREENS = keymap.screen_actions()
EVERY = [*GLOBAL, *(action for actions in SCREENS.values() for action in actions)]


@pytest.mark.parametrize("preset", presets.presets())
def test_no_key_means_two_things_in_one_place(preset: str) -> None:
    assert keymap.clashes(SCREENS, presets.load_preset(preset)) == []


def test_a_clash_is_found() -> None:
    own = (Action("x.one", ("z",), "", "help"), Action("x.two", ("z",), "", "help"))
    assert keymap.clashes({"x": own}, {}) == ["x: z means both x.one and x.two"]
    shadow = (Action("x.quit", ("q",), "", "help"),)
    assert keymap.clashes({"x": shadow}, {}) == ["x: q means both x.quit and app.quit"]


def test_a_key_that_begins_a_chord_means_nothing_else_in_that_place() -> None:
    own = (Action("x.one", ("z",), "", "help"), Action("x.two", ("Z",), "", "help"))
    chord = {"x.two": ("z i",)}
    assert keymap.clashes({"x": own}, chord) == ["x: z means x.one and begins x.two"]


def test_every_action_has_help_and_a_unique_id() -> None:
    assert all(action.help and action.label for action in EVERY)
    for name, actions in SCREENS.items():
        ids = [action.id for action in actions]
        assert len(ids) == len(set(ids)), name
    assert len({action.id for action in GLOBAL}) == len(GLOBAL)


def test_number_keys_keep_their_meaning() -> None:
    meant = {action.keys[0]: action.id for action in GLOBAL if action.id.startswith("view.")}
    assert meant["1"] == "view.overview"
    assert meant["2"] == "view.timeline"
    assert meant["6"] == "view.stacks"
    assert meant["9"] == "view.capture"


def _arrives(key: str) -> list[str]:
    """Names under which a legacy terminal's bytes for a key arrive; empty where it has none."""
    character = key if len(key) == 1 else key_to_character(key)
    found = [character] if character else []
    if key.startswith("ctrl+"):
        plain = key_to_character(key.removeprefix("ctrl+")) or key.removeprefix("ctrl+")
        found += [chr(ord(plain.upper()) & 0x1F)] if len(plain) == 1 else []
    found += [
        sequence
        for sequence, keys in ANSI_SEQUENCES_KEYS.items()
        if isinstance(keys, tuple) and len(keys) == 1 and keys[0].value == key
    ]
    if key.startswith("alt+"):
        rest = key.removeprefix("alt+")
        arrows = {"up": "A", "down": "B", "right": "C", "left": "D"}
        found.append(f"\x1b[1;3{arrows[rest]}" if rest in arrows else f"\x1b{rest}")
    return found


@pytest.mark.parametrize("action", EVERY, ids=lambda action: action.id)
def test_every_action_has_a_key_that_survives_a_legacy_terminal(action: Action) -> None:
    assert any(_survives(key) for key in action.keys), action.keys


@pytest.mark.parametrize("preset", presets.presets())
def test_presets_name_known_actions_and_keys_that_survive(preset: str) -> None:
    known = {action.id for action in EVERY}
    for action, keys in presets.load_preset(preset).items():
        assert action in known
        for key in keys:
            assert all(_survives(part) for part in key.split(" ")), (action, key)


def _survives(key: str) -> bool:
    for sequence in _arrives(key):
        parser = XTermParser()
        heard = [*parser.feed(sequence), *parser.feed("")]  # the second: no more bytes follow
        events = [event for event in heard if hasattr(event, "key")]
        if [event.key for event in events] == [keymap.normal_key(key)]:
            return True
    return False


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("ctrl+p", "^P"),
        ("?", "?"),
        ("question_mark", "?"),
        ("shift+tab", "shift+tab"),
        ("+", "+"),
        ("left", "<-"),
        ("g g", "gg"),
        ("alt+right", "alt+->"),
        ("comma", ","),
        ("enter", "enter"),
        ("f10", "F10"),
    ],
)
def test_keys_are_written_as_people_read_them(key: str, shown: str) -> None:
    assert keymap.shown_key(key) == shown


def test_user_keys_lie_over_the_preset() -> None:
    keys = KeysConfig(preset="azerty", bindings={"timeline.zoom_in": ("Z",)})
    found = presets.effective(keys)
    assert found["timeline.zoom_in"] == ("Z",)
    assert found["app.quit"] == ("ctrl+q",)


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        presets.load_preset("qwertz")
    assert "azerty" in caught.value.hint


def test_chords_are_kept_apart_from_single_keys() -> None:
    mapped = {"a.b": ("g g", "x"), "c.d": ("z i",)}
    assert presets.chords(mapped) == {("g", "g"): "a.b", ("z", "i"): "c.d"}
    assert presets.textual_keymap(mapped) == {"a.b": "x", "c.d": presets.NO_KEY}


def test_every_action_of_the_table_is_implemented() -> None:
    sources = [path.read_text() for path in Path(keymap.__file__).parent.rglob("*.py")]
    defined = re.compile(r"\b(action_\w+)(?:\(self| = )")
    methods = {name for text in sources for name in defined.findall(text)}
    missing = [
        action.id
        for action in EVERY
        if not action.id.startswith("view.")
        and action.method not in methods
        and action.id not in COMMANDS
    ]
    assert missing == []
