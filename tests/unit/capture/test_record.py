from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from nsys_tui.capture.failures import LockedError
from nsys_tui.capture.record import (
    VERSION,
    Failure,
    Record,
    ReportFile,
    State,
    Store,
    new_id,
)
from nsys_tui.errors import UsageError
from nsys_tui.plain_data import restored


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "captures")


def full() -> Record:
    return replace(
        Record(id=new_id(), plan={"program": ["x"], "target": {"name": "box"}}),
        argv=("nsys", "profile", "\udcff é"),
        reports=(ReportFile("/r.nsys-rep", 5, 7, "aa", "", "/l", "/s", "id1", "id2"),),
        raw=(ReportFile("/r.qdstrm", 1),),
        failure=Failure("running", "t", "m", "h", 77),
        signals=("INT now",),
        notes=("n",),
    ).reached(State.RUNNING)


def test_a_record_reads_back_as_it_was(store: Store) -> None:
    record = full()
    store.save(record)
    assert store.load(record.id) == record


def test_records_are_for_their_owner_only(store: Store) -> None:
    record = store.save(full())
    folder = store.path(record.id)
    modes = [path.stat().st_mode & 0o777 for path in (store.folder, folder, folder / "record.json")]
    assert modes == [0o700, 0o700, 0o600]


def test_a_later_version_with_more_keys_is_still_read(store: Store) -> None:
    data = full().to_json() | {"version": VERSION + 1, "colour": "blue"}
    assert restored(Record, json.loads(json.dumps(data))).state is State.RUNNING


def test_a_crash_while_writing_leaves_the_old_record(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = store.save(full())

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        store.save(record.reached(State.DONE))
    assert store.load(record.id).state is State.RUNNING


def test_states_keep_the_time_when_they_were_reached() -> None:
    record = full().reached(State.DONE)
    assert set(record.times) == {"running", "done"}
    assert record.state.over
    assert not record.state.started


def test_lists_are_newest_first_and_pass_over_what_is_broken(store: Store) -> None:
    ids = ["20260101-000000-aaaaaa", "20260102-000000-bbbbbb", "20260103-000000-cccccc"]
    for capture in ids:
        store.save(replace(full(), id=capture))
    (store.folder / ids[1] / "record.json").write_text("{")
    (store.folder / "something else").mkdir()
    assert [record.id for record in store.all()] == [ids[2], ids[0]]
    with pytest.raises(UsageError, match="cannot be read as a record"):
        store.load(ids[1])


def test_ids_may_be_shortened_while_they_are_unique(store: Store) -> None:
    for capture in ("20260101-000000-aaaaaa", "20260102-000000-aaabbb"):
        store.save(replace(full(), id=capture))
    assert store.load("latest").id == "20260102-000000-aaabbb"
    assert store.load("aaaaaa").id == "20260101-000000-aaaaaa"
    with pytest.raises(UsageError, match="several captures match"):
        store.load("aaa")
    with pytest.raises(UsageError, match="no capture is called"):
        store.load("zzz")


@pytest.mark.parametrize("capture", ["../../etc", "a/b", "", "-rf", "20260101-000000-a.b"])
def test_ids_that_are_paths_are_refused(store: Store, capture: str) -> None:
    with pytest.raises(UsageError):
        store.path(capture)


def test_new_ids_are_sortable_and_differ() -> None:
    ids = {new_id() for _ in range(50)}
    assert len(ids) == 50
    assert all(Store(Path("/x")).path(capture).name == capture for capture in ids)


def test_ids_of_one_second_are_in_order() -> None:
    ids = []
    for _ in range(20):
        ids.append(new_id())
        time.sleep(0.002)
    assert ids == sorted(ids)


def test_only_one_process_drives_a_capture(store: Store) -> None:
    capture = store.save(full()).id
    code = (
        "import sys;from pathlib import Path;from nsys_tui.capture.record import Store\n"
        "with Store(Path(sys.argv[1])).hold(sys.argv[2]): print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(store.folder), capture],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(LockedError, match=f"process {other.pid}"), store.hold(capture):
            pass
        other.stdin.close()
    with store.hold(capture):
        pass


def test_reports_are_found_by_either_identity(store: Store) -> None:
    record = store.save(full())
    assert store.find_report("id1") == record
    assert store.find_report("id2") == record
    assert store.find_report("id3") is None
    assert store.find_report("") is None
