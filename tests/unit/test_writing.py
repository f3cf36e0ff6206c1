from __future__ import annotations

import errno
from pathlib import Path

import pytest

from nsys_tui.errors import UsageError
from nsys_tui.writing import whole_file, write_whole


def test_a_file_that_cannot_be_finished_does_not_stay(tmp_path: Path) -> None:
    path = tmp_path / "half.csv"
    said = f"cannot write {path}: No space"
    with pytest.raises(UsageError, match=said) as told, whole_file(path, "x"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert told.value.hint == "name another place"
    assert not path.exists()


def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text("old")
    with pytest.raises(UsageError, match="exists already") as told, whole_file(path, "x"):
        pass
    assert told.value.hint == "--force-overwrite replaces it"
    assert path.read_text() == "old"


def test_the_folder_of_a_private_file_is_made_and_private(tmp_path: Path) -> None:
    write_whole(tmp_path / "state" / "own.json", "{}")
    write_whole(tmp_path / "shared" / "all.json", "{}", 0o644)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "shared").stat().st_mode & 0o777 != 0o700
