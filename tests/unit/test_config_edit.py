from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsys_tui.config import load_config
from nsys_tui.config_edit import (
    EXAMPLE,
    remove_table,
    remove_target,
    save_setting,
    save_table,
    save_target,
)
from nsys_tui.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

FILE = """\
# mine
[display]
theme = "dark"   # I like it
mouse = false

[targets.box]    # the big one
host = "box"

[targets.box.container]
name = "c"

[targets.other]
host = "other"   # keep this
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "config.toml"
    place.write_text(FILE)
    return place


def test_a_setting_changes_and_the_rest_stays(path: Path) -> None:
    save_setting(path, "display.theme", "light")
    assert path.read_text() == FILE.replace('theme = "dark"', 'theme = "light"')
    assert load_config(path, environ={}).display.theme == "light"


def test_settings_of_new_names_and_new_sections(path: Path) -> None:
    save_setting(path, "display.names", "full")
    save_setting(path, "capture.default_target", "box")
    config = load_config(path, environ={})
    assert (config.display.names, config.display.theme) == ("full", "dark")
    assert config.capture.default_target == "box"
    assert "# keep this" in path.read_text()


def test_a_file_is_made_when_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    save_setting(path, "display.mouse", False)
    assert load_config(path, environ={}).display.mouse is False


def test_an_invalid_setting_is_refused_before_it_is_written(path: Path) -> None:
    for key, value in (("display.time", "utc"), ("display.nope", "x"), ("nope.x", "y")):
        with pytest.raises(ConfigError):
            save_setting(path, key, value)
    assert path.read_text() == FILE


def test_a_target_is_replaced_as_a_whole(path: Path) -> None:
    settings = {
        "host": "new-box", "command": ["python", 'a "b" \\ $(c)', "é\n"], "cwd": "",
        "options": {"trace": ["cuda", "nvtx"], "cuda-graph-trace": "node"},
        "env": {"A": "1"}, "container": {"name": "d", "user": ""},
    }  # fmt: skip
    save_target(path, "box", settings)
    config = load_config(path, environ={})
    box = config.targets["box"]
    assert box.host == "new-box"
    assert box.command == ("python", 'a "b" \\ $(c)', "é\n")
    assert box.options == {"trace": ("cuda", "nvtx"), "cuda-graph-trace": "node"}
    assert box.tables == {"container": {"name": "d", "user": ""}}
    assert config.targets["other"].host == "other"
    assert "# mine" in path.read_text()
    assert "# keep this" in path.read_text()


def test_a_target_with_an_odd_name(path: Path) -> None:
    save_target(path, "my.box", {"host": "h"})
    assert load_config(path, environ={}).targets["my.box"].host == "h"
    remove_target(path, "my.box")
    assert "my.box" not in load_config(path, environ={}).targets


def test_a_target_is_removed_with_its_tables(path: Path) -> None:
    remove_target(path, "box")
    assert list(load_config(path, environ={}).targets) == ["other"]
    assert "[display]" in path.read_text()


def test_a_bad_target_is_refused(path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown key"):
        save_target(path, "box", {"hots": "x"})
    assert path.read_text() == FILE


def test_the_example_is_valid_and_becomes_valid_targets(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(EXAMPLE)
    assert dict(load_config(path, environ={}).targets) == {}
    commented = [line for line in EXAMPLE.splitlines() if line.startswith("# ")][1:]
    lines = [line.removeprefix("# ") for line in commented]
    path.write_text("\n".join(lines))
    assert set(load_config(path, environ={}).targets) == {"gpu-box", "cluster"}


MINE = """\
# who wrote this
[targets.box]            # the big one
# where
host = "box"             # by its # short name
command = [
  "python",  # not 3.9
  "train.py",
]
slurm.args = ["-n2"]
cwd = "~/a#b"

# about the other
[targets.other]
host = "other"

[targets.box.container]
name = "c"
"""


def test_only_what_changed_is_written_and_comments_stay(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(MINE)
    box = {
        "host": "bigger", "command": ["python", "train.py"], "slurm": {"args": ["-n2"]},
        "cwd": "~/c", "container": {"name": "d"}, "nsys": "/opt/nsys",
    }  # fmt: skip
    save_target(path, "box", box)
    text = path.read_text()
    changed = MINE.replace('host = "box" ', 'host = "bigger" ').replace("~/a#b", "~/c")
    changed = changed.replace('\n[targets.box.container]\nname = "c"\n', "\n")
    added = 'container = {name = "d"}\nnsys = "/opt/nsys"\n'
    assert text == changed.replace('"~/c"\n', f'"~/c"\n{added}')


def test_a_preset_is_a_section_of_its_own(path: Path) -> None:
    save_table(path, ("capture", "presets", "two steps"), {"trace": ["cuda"], "delay": "3"})
    presets = load_config(path, environ={}).capture.presets
    assert presets == {"two steps": {"trace": ("cuda",), "delay": "3"}}
    save_table(path, ("capture", "presets", "two steps"), {"delay": "4"})
    assert load_config(path, environ={}).capture.presets == {"two steps": {"delay": "4"}}
    remove_table(path, ("capture", "presets", "two steps"))
    assert path.read_text() == FILE + "\n"


@pytest.mark.parametrize(
    "text",
    [
        'targets = { box = { host = "a" } }\n',
        '[targets]\nbox.host = "a"  # mine\n',
        '[targets.box]\nhost = "a"\n\n[targets.box.env]\nA = "1"\n',
        "[targets]\n# none yet\n",
        'targets."box".host = "a"',
    ],
)
def test_a_target_is_changed_however_it_is_spelled(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    save_target(path, "box", {"host": "b", "cwd": "/x", "command": ["a b"]})
    box = load_config(path, environ={}).targets["box"]
    assert (box.host, box.cwd, box.command, dict(box.env)) == ("b", "/x", ("a b",), {})
    assert ("# mine" in text) == ("# mine" in path.read_text())


def test_a_spelling_that_cannot_be_changed_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    text = 'targets = { box = { host = "a" } }\n'
    path.write_text(text)
    with pytest.raises(ConfigError, match="by hand"):
        save_target(path, "other", {"host": "b"})
    assert path.read_text() == text


def test_the_file_is_the_owners_and_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "config.toml"
    real.parent.mkdir()
    path = tmp_path / "config.toml"
    path.symlink_to(real)
    save_target(path, "box", {"env": {"A": "1"}})
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert load_config(path, environ={}).targets["box"].env == {"A": "1"}
