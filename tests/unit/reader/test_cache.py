"""The sidecar: what was stored comes back, what is doubtful does not, and no disk error matters."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nsys_tui.reader import cache
from nsys_tui.reader.cache import CacheFolder, Sidecar, cache_root, evict
from nsys_tui.reader.filecheck import report_id

ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "start": np.arange(5000, dtype=np.int64) - 7,
    "code": np.array([3, -1, 2], np.int32),
    "flag": np.array([True, False]),
    "none": np.empty(0, np.int64),
    "grid": np.arange(12, dtype=np.uint16).reshape(3, 4),
}
META = {"names": ["gemm", "\x1b[31m", "ü"], "count": 3, "nested": {"a": None}}


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "r.sqlite"
    path.write_bytes(bytes(range(256)) * 1000)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def sidecar_of(report: Path, root: Path) -> Sidecar:
    with report.open("rb") as file:
        return Sidecar.for_report(file.fileno(), root)


def part_file(root: Path) -> Path:
    (found,) = root.glob("reports/*/kernels.columns")
    return found


def store(report: Path, root: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    stored = sidecar_of(report, root).store("kernels", dict(ARRAYS), META)
    assert stored is not None
    return stored


def load(report: Path, root: Path) -> tuple[dict[str, Any], dict[str, Any]] | None:
    return sidecar_of(report, root).load("kernels")


def same(found: dict[str, Any]) -> bool:
    return found.keys() == ARRAYS.keys() and all(
        found[name].dtype == array.dtype and np.array_equal(found[name], array)
        for name, array in ARRAYS.items()
    )


def test_what_was_stored_comes_back_mapped_and_read_only(report: Path, root: Path) -> None:
    stored, stored_meta = store(report, root)
    found = load(report, root)
    assert found is not None
    for arrays, meta in ((stored, stored_meta), found):
        assert same(arrays)
        assert meta == META
        with pytest.raises(ValueError, match="read-only"):
            arrays["start"][0] = 1


def test_arrays_are_aligned_so_that_each_maps_whole_pages(report: Path, root: Path) -> None:
    stored, _ = store(report, root)
    assert [a.__array_interface__["data"][0] % 4096 for a in stored.values() if a.size] == [0] * 4


@pytest.mark.parametrize(
    ("array", "rows"),
    [
        (np.full(100_000, -1, np.int64), 1),
        (np.ones((100_000, 3), np.int16), 1),
        (np.arange(100_000) == 50_000, 100_000),
        (np.full(100_000, np.nan), 100_000),
        (np.where(np.arange(100_000) % 2, -0.0, 0.0)[1:], 99_999),
    ],
    ids=["numbers", "rows", "one other", "no number", "zeros of two signs"],
)
def test_rows_that_are_all_alike_are_written_once(
    report: Path, root: Path, array: np.ndarray[Any, Any], rows: int
) -> None:
    sidecar = sidecar_of(report, root)
    stored, found = sidecar.store("kernels", {"a": array}, {}), sidecar.load("kernels")
    assert stored is not None
    assert found is not None
    for arrays, _ in (stored, found):
        assert (arrays["a"].dtype, arrays["a"].shape) == (array.dtype, array.shape)
        assert arrays["a"].tobytes() == array.tobytes()
        assert not arrays["a"].flags.writeable
    written = rows * array.itemsize * (array.shape[1] if array.ndim > 1 else 1)
    assert 0 < part_file(root).stat().st_size - written <= 3 * 4096


def test_arrays_are_let_go_one_by_one(report: Path, root: Path) -> None:
    given = dict(ARRAYS)
    sidecar_of(report, root).store("kernels", given, META)
    assert given == {}


def test_an_unknown_part_is_absent(report: Path, root: Path) -> None:
    assert load(report, root) is None


def test_a_part_without_arrays(report: Path, root: Path) -> None:
    sidecar = sidecar_of(report, root)
    assert sidecar.store("empty", {}, META) == ({}, META)
    assert sidecar.load("empty") == ({}, META)


def test_parts_replace_each_other_while_old_arrays_stay_valid(report: Path, root: Path) -> None:
    sidecar = sidecar_of(report, root)
    old, _ = store(report, root)
    sidecar.store("kernels", {"start": np.zeros(1)}, {})
    assert same(old)
    found = sidecar.load("kernels")
    assert found is not None
    assert found[0].keys() == {"start"}


def test_another_report_of_the_same_name_finds_nothing(report: Path, root: Path) -> None:
    store(report, root)
    content = bytearray(report.read_bytes())
    times = (report.stat().st_atime_ns, report.stat().st_mtime_ns)
    content[10] ^= 1
    report.write_bytes(content)
    os.utime(report, ns=times)
    assert load(report, root) is None


def test_a_touched_report_finds_nothing(report: Path, root: Path) -> None:
    store(report, root)
    os.utime(report, ns=(1, 1))
    assert load(report, root) is None


def test_a_copy_finds_nothing_and_a_symlink_does(report: Path, root: Path) -> None:
    store(report, root)
    link = report.with_name("link.sqlite")
    link.symlink_to(report)
    assert load(link, root) is not None
    copy = shutil.copy2(report, report.with_name("copy.sqlite"))
    assert load(Path(copy), root) is None


def test_another_version_of_the_reader_finds_nothing(
    report: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(report, root)
    monkeypatch.setattr(cache, "READER_VERSION", cache.READER_VERSION + 1)
    assert load(report, root) is None


@pytest.mark.parametrize("kept", [0, 10, 25, 60, 4096, -1])
def test_a_part_that_was_cut_is_absent(report: Path, root: Path, kept: int) -> None:
    store(report, root)
    file = part_file(root)
    os.truncate(file, kept if kept >= 0 else file.stat().st_size - 1)
    assert load(report, root) is None


@pytest.mark.parametrize("position", [0, 20, 30, 100])
def test_a_part_with_a_damaged_header_is_absent_or_whole(
    report: Path, root: Path, position: int
) -> None:
    store(report, root)
    file = part_file(root)
    content = bytearray(file.read_bytes())
    content[position : position + 3] = b"\xff\xff\xff"
    file.write_bytes(content)
    assert load(report, root) is None


def test_a_header_that_points_outside_of_the_file_is_absent(report: Path, root: Path) -> None:
    store(report, root)
    file = part_file(root)
    file.write_bytes(file.read_bytes().replace(b'"shape": [5000]', b'"shape": [9999]'))
    found = load(report, root)
    assert found is None or found[0]["start"].shape == (9999,)
    file.write_bytes(file.read_bytes().replace(b'"shape": [9999]', b'"shape": [1E99]'))
    assert load(report, root) is None


def test_any_changed_bit_of_names_or_figures_makes_a_part_absent(report: Path, root: Path) -> None:
    arrays, _ = store(report, root)
    file = part_file(root)
    content = file.read_bytes()
    assert load(report, root) is not None
    mapped = {name: content.find(array.tobytes()) for name, array in arrays.items() if array.size}
    places = [0, 20, 30, content.find(b'"gemm"') + 2, content.find(b'"shape"') + 2]
    places += [place + arrays[name].nbytes - 1 for name, place in mapped.items()]
    for place, bit in product(places, range(8)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        file.write_bytes(damaged)
        assert load(report, root) is None, (place, bit)
    file.write_bytes(content)
    assert load(report, root) is not None


def test_a_part_of_another_name_or_report_is_absent(report: Path, root: Path) -> None:
    store(report, root)
    file = part_file(root)
    shutil.copyfile(file, file.with_name("api.columns"))
    assert sidecar_of(report, root).load("api") is None
    other = report.with_name("other.sqlite")
    other.write_bytes(b"another report")
    shutil.copyfile(file, sidecar_of(other, root).folder.path / file.name)
    assert load(other, root) is None


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a b", "é"])
def test_a_part_has_a_plain_name(report: Path, root: Path, name: str) -> None:
    with pytest.raises(ValueError, match="plain name"):
        sidecar_of(report, root).load(name)


def failing(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


class TestDisksThatDoNotTakeIt:
    def test_a_full_disk_gives_back_the_arrays_and_leaves_nothing(
        self, report: Path, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usage = shutil.disk_usage(report)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))
        arrays, meta = store(report, root)
        assert arrays["start"] is ARRAYS["start"]
        assert meta == META
        self.check_empty(report, root)

    def test_a_disk_that_fails_meanwhile_leaves_nothing(
        self, report: Path, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "fsync", failing)
        assert sidecar_of(report, root).store("kernels", dict(ARRAYS), META) is None
        self.check_empty(report, root)

    def check_empty(self, report: Path, root: Path) -> None:
        assert [file.name for file in root.rglob("*") if file.is_file()] == ["in-use"]
        assert load(report, root) is None

    def test_a_root_that_cannot_be_made_gives_back_the_arrays(
        self, report: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "file").touch()
        arrays, _ = store(report, tmp_path / "file" / "cache")
        assert arrays["start"] is ARRAYS["start"]
        assert load(report, tmp_path / "file" / "cache") is None

    @pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
    )
    def test_a_read_only_cache_is_still_read(self, report: Path, root: Path) -> None:
        store(report, root)
        folder = part_file(root).parent
        folder.chmod(0o500)
        assert load(report, root) is not None
        assert store(report, root)[0]["start"] is ARRAYS["start"]


class TestEviction:
    def fill(self, root: Path, names: str, kind: str = "reports") -> None:
        for age, name in enumerate(reversed(names)):
            folder = CacheFolder(root, kind, name)
            (folder.path / "part").write_bytes(bytes(1000))
            folder.close()
            os.utime(folder.path / "in-use", (10**9 - age, 10**9 - age))

    def left(self, root: Path) -> str:
        return "".join(sorted(path.name for path in root.glob("*/*")))

    def test_the_least_recently_used_go_first(self, root: Path) -> None:
        self.fill(root, "abc")
        self.fill(root, "ABC", kind="exports")
        assert evict(root, limit=10_000) == []
        removed = [path.name for path in evict(root, limit=3_500)]
        assert {name.lower() for name in removed[:2]} == {"a"}
        assert len(removed) == 3

    def test_one_in_use_stays(self, root: Path) -> None:
        self.fill(root, "abc")
        held = CacheFolder(root, "reports", "a")
        os.utime(held.path / "in-use", (1, 1))
        evict(root, limit=0)
        assert self.left(root) == "a"
        held.close()
        evict(root, limit=0)
        assert self.left(root) == ""

    def test_opening_counts_as_use(self, root: Path) -> None:
        self.fill(root, "ab")
        CacheFolder(root, "reports", "a").close()
        evict(root, limit=1_500)
        assert self.left(root) == "a"

    def test_storing_trims_the_cache(
        self, report: Path, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.fill(root, "a")
        monkeypatch.setenv("NSYS_TUI_CACHE_LIMIT", "500")
        sidecar = sidecar_of(report, root)
        sidecar.store("kernels", dict(ARRAYS), META)
        assert sidecar.load("kernels") is not None
        assert self.left(root) == sidecar.folder.path.name

    def test_the_cache_is_looked_through_again_only_when_it_has_grown(
        self, report: Path, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("NSYS_TUI_CACHE_LIMIT", "20000")
        sidecar = sidecar_of(report, root)
        sidecar.folder.grew(10)
        self.fill(root, "abcdefghijklmnopqrstuvwxyz")
        sidecar.folder.grew(1000)
        assert len([*root.glob("*/?")]) == 26
        sidecar.folder.grew(1)
        assert len([*root.glob("*/?")]) <= 20

    def test_many_reports_do_not_have_the_cache_looked_through_each_time(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looked: list[Path] = []
        monkeypatch.setattr(cache, "evict", lambda root, limit: looked.append(root))
        for number in range(100):
            folder = CacheFolder(root, "reports", f"report-{number}", 20_000)
            folder.grew(100)
            folder.close()
        assert len(looked) == 1 + 100 * 100 // 1_001

    def test_no_cache_is_no_error(self, root: Path) -> None:
        assert evict(root, limit=0) == []

    def test_arrays_outlive_the_eviction_of_their_folder(self, report: Path, root: Path) -> None:
        sidecar = sidecar_of(report, root)
        arrays, _ = sidecar.store("kernels", dict(ARRAYS), META) or ({}, {})
        sidecar.close()
        evict(root, limit=0)
        assert same(arrays)


def test_the_cache_lies_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("NSYS_TUI_CACHE", raising=False)
    assert cache_root() == tmp_path / "xdg" / "nsys-tui"
    monkeypatch.setenv("NSYS_TUI_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"


@pytest.mark.parametrize("size", [0, 10, 2**20, 3 * 2**20])
def test_a_report_is_identified_by_size_and_ends(tmp_path: Path, size: int) -> None:
    path = tmp_path / "r.nsys-rep"
    content = np.random.default_rng(1).bytes(size)
    path.write_bytes(content)
    expected = hashlib.blake2b(size.to_bytes(8, "little"), digest_size=16)
    expected.update(content[: 2**20])
    expected.update(content[-(2**20) :])
    assert report_id(path) == expected.hexdigest()
