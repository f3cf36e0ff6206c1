from __future__ import annotations

from pathlib import Path

import pytest

from nsys_tui.capture.remote import RemoteName, parse_remote
from nsys_tui.errors import UsageError


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpu-box:runs/r7.nsys-rep", RemoteName("gpu-box", "runs/r7.nsys-rep")),
        ("me@gpu-box:/a b/r.nsys-rep", RemoteName("me@gpu-box", "/a b/r.nsys-rep")),
        ("gpu-box:", RemoteName("gpu-box", "")),
        ("gpu-box:~/runs/", RemoteName("gpu-box", "~/runs/")),
        ("me@[fe80::1]:r.sqlite", RemoteName("me@fe80::1", "r.sqlite")),
        ("ssh://gpu-box/abs/r.nsys-rep", RemoteName("gpu-box", "/abs/r.nsys-rep")),
        ("ssh://me@gpu-box:2222/~/r.nsys-rep", RemoteName("me@gpu-box", "~/r.nsys-rep", 2222)),
        ("ssh://gpu-box/a%20b.nsys-rep", RemoteName("gpu-box", "/a b.nsys-rep")),
    ],
)
def test_names(name: str, expected: RemoteName) -> None:
    assert parse_remote(name) == expected


@pytest.mark.parametrize(
    "name",
    ["report.nsys-rep", "./a:b.sqlite", "/x/a:b.sqlite", "C:\\r.nsys-rep", "c:/r.nsys-rep", ":x"],
)
def test_local_paths(name: str) -> None:
    assert parse_remote(name) is None


def test_a_file_of_that_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("box:r.sqlite").touch()
    assert parse_remote("box:r.sqlite") is None


@pytest.mark.parametrize(
    "name", ["-oProxyCommand=x:r.nsys-rep", "ssh:///r", "ssh://-x/r", "ssh://h:port/r"]
)
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        parse_remote(name)


def test_folders() -> None:
    assert RemoteName("h", "").is_folder
    assert RemoteName("h", "a/").is_folder
    assert not RemoteName("h", "a").is_folder
