from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsys_tui.config import load_config
from nsys_tui.config_edit import EXAMPLE, remove_target, save_setting, save_target
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
    assert path.read_text() == FILE.replace('theme = "dark"   # I like it', 'theme = "light"')
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
    assert box.container.name == "d"
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
