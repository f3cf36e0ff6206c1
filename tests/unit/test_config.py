from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from nsys_tui.capture.launchers import Target
from nsys_tui.config import ENVIRONMENT, Config, default_path, load_config
from nsys_tui.errors import USAGE, ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


def test_defaults_without_a_file(own_folders: Path) -> None:
    config = load_config(environ={})
    assert config.capture.default_target == "local"
    assert config.capture.grace == 120_000_000_000
    assert config.source("display.theme") == "default"
    assert dict(config.targets) == {}


def test_user_file_is_found_in_the_config_folder(own_folders: Path) -> None:
    path = default_path({})
    assert path.is_relative_to(own_folders)
    path.parent.mkdir(parents=True)
    path.write_text('[display]\ntheme = "dark"\n')
    assert load_config(environ={}).display.theme == "dark"


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    path = written(tmp_path, '[display]\ntheme = "file"\nnames = "full"\n[nsys]\npath = "/file"\n')
    environ = {"NSYS_TUI_THEME": "environment", "NSYS_TUI_NSYS": "/environment"}
    flags = {"display.theme": "flag", "nsys.path": None}
    config = load_config(path, flags, environ)
    assert (config.display.theme, config.source("display.theme")) == ("flag", "flag")
    assert (config.nsys.path, config.source("nsys.path")) == ("/environment", "environment")
    assert (config.display.names, config.source("display.names")) == ("full", "file")
    assert (config.display.time, config.source("display.time")) == ("auto", "default")


def test_every_environment_variable_names_a_setting() -> None:
    config = Config()
    for key in ENVIRONMENT.values():
        section, name = key.split(".")
        assert hasattr(getattr(config, section), name), key


def test_a_whole_target_is_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        [capture]
        grace = "90s"
        presets.mine = { trace = ["cuda"], delay = 5 }
        [targets.gpu-box]
        host = "gpu-box"
        cwd = "~/llm"
        launcher = "podman"
        options = { trace = ["cuda", "nvtx"], cuda-graph-trace = "node", stats = false }
        command = ["python", "train.py", "--steps", "20"]
        env = { OMP_NUM_THREADS = "8" }
        env_from = ["WANDB_API_KEY"]
        slurm = { args = ["--partition=gpu"] }
        container = { name = "trainer", user = "1000" }
        kubernetes = { context = "prod", namespace = "ml", pod = "p-0", container = "main" }
        """,
    )
    config = load_config(path, environ={})
    target = config.targets["gpu-box"]
    assert target.options == {
        "trace": ("cuda", "nvtx"),
        "cuda-graph-trace": "node",
        "stats": "false",
    }
    assert target.command == ("python", "train.py", "--steps", "20")
    own = Target("gpu-box", target).own
    assert own["container.user"] == "1000"
    assert own["kubernetes.pod"] == "p-0"
    assert own["slurm.args"] == ("--partition=gpu",)
    assert config.capture.grace == 90_000_000_000
    assert config.capture.presets["mine"] == {"trace": ("cuda",), "delay": "5"}


def test_a_config_cannot_be_changed(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, '[targets.a]\nenv = { A = "1" }\n'), environ={})
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.display.theme = "dark"  # type: ignore[misc]
    with pytest.raises(TypeError):
        config.targets["a"].env["A"] = "2"  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "title", "hint"),
    [
        ("[dispaly]\n", "unknown key dispaly", "did you mean display?"),
        ("[display]\nteme = 'dark'\n", "unknown key display.teme", "did you mean theme?"),
        ("[targets.a]\nhots = 'x'\n", "unknown key targets.a.hots", "did you mean host?"),
        ("[display]\nzzzz = 1\n", "unknown key display.zzzz", "known here: ascii, "),
        ("[display]\nmouse = 'maybe'\n", "display.mouse must be true or false", ""),
        ("[display]\ntime = 'utc'\n", "display.time must be one of auto, ns", ""),
        ("[capture]\ngrace = 'long'\n", "capture.grace must be a time", ""),
        ("[cache]\nlimit = 'big'\n", "cache.limit must be a size", ""),
        ("[targets.a]\ncommand = 'python x'\n", "targets.a.command must be a list", ""),
        ("[targets]\na = 1\n", "targets.a must be a section", ""),
        ("display = 1\n", "display must be a section", ""),
        ("[display\n", "is not a TOML file", "correct the line"),
    ],
)
def test_errors_name_file_and_key(tmp_path: Path, text: str, title: str, hint: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(path, environ={})
    assert str(path) in caught.value.title
    assert title in caught.value.title
    assert hint in caught.value.hint
    assert caught.value.exit_code == USAGE


def test_a_bad_environment_value_names_the_variable() -> None:
    with pytest.raises(ConfigError, match=r"NSYS_TUI_MOUSE: display\.mouse must be true or false"):
        load_config(environ={"NSYS_TUI_MOUSE": "perhaps"})


def test_a_named_file_must_exist_and_be_readable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such config file"):
        load_config(tmp_path / "absent.toml", environ={})
    with pytest.raises(ConfigError, match="no such config file"):
        load_config(environ={"NSYS_TUI_CONFIG": str(tmp_path / "absent.toml")})
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path, environ={})
    (tmp_path / "latin.toml").write_bytes(b"[display]\ntheme = '\xe9'\n")
    with pytest.raises(ConfigError, match="is not a TOML file"):
        load_config(tmp_path / "latin.toml", environ={})


@pytest.mark.parametrize(("text", "bytes_"), [("10GB", 10**10), ("1.5 MB", 1_500_000), ("7", 7)])
def test_sizes(tmp_path: Path, text: str, bytes_: int) -> None:
    assert load_config(environ={"NSYS_TUI_CACHE_LIMIT": text}).cache.limit == bytes_
