from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from synth import Synth

from nsys_tui.commands.options import open_configured
from nsys_tui.config import load_config
from nsys_tui.errors import ConfigError
from nsys_tui.model.categories import Category

if TYPE_CHECKING:
    from pathlib import Path


def configured(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


def test_own_communication_patterns_change_the_category(tmp_path: Path) -> None:
    report = Synth(tmp_path / "r.sqlite").process(1).kernel("ring_exchange", 0, 10).write()
    config = load_config(
        configured(tmp_path, '[analysis]\ncommunication = ["^ring_"]\n'), environ={}
    )
    assert open_configured(report, config).operations.category.tolist() == [Category.COMM]
    plain = open_configured(report, load_config(environ={}))
    assert plain.operations.category.tolist() == [Category.COMPUTE]


def test_a_bad_pattern_names_file_and_key(tmp_path: Path) -> None:
    report = Synth(tmp_path / "r.sqlite").process(1).kernel("k", 0, 10).write()
    config = load_config(configured(tmp_path, '[analysis]\ncommunication = ["("]\n'), environ={})
    with pytest.raises(ConfigError, match=r"config\.toml: analysis\.communication"):
        open_configured(report, config)


def test_the_cache_folder_of_the_configuration_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NSYS_TUI_CACHE", "")
    monkeypatch.setenv("NSYS_TUI_CACHE_LIMIT", "")
    report = Synth(tmp_path / "r.sqlite").process(1).kernel("k", 0, 10).write()
    folder = tmp_path / "own cache"
    config = load_config(configured(tmp_path, f'[cache]\ndir = "{folder}"\n'), environ={})
    assert len(open_configured(report, config).operations) == 1
    assert any(folder.rglob("operations.columns"))
