"""What a file lacks takes away what cannot be known without it, and is said."""

from __future__ import annotations

import pytest

from nsys_tui.model.capabilities import Capability
from nsys_tui.reader.resolved import Export, Resolved, affinity, as_declared, resolve
from nsys_tui.reader.schema import BESIDE, TABLES

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
TYPES = {"t": "TEXT", "r": "REAL", "b": "TEXT"}


def complete(*tables: str) -> dict[str, dict[str, str]]:
    with_these = [name for name, others in BESIDE.items() if not {*others}.isdisjoint(tables)]
    return {
        name: {c.name: TYPES.get(c.type, "INTEGER") for c in TABLES[name].columns.values()}
        if name in TABLES
        else {}
        for name in ("StringIds", *with_these, *tables)
    }


def resolved(
    found: dict[str, dict[str, str]], product: str = "2026.4.1", *, one: bool = False
) -> Resolved:
    return resolve(found, Export(product, "3.28.1"), lambda _: True, lambda: one)


def test_a_complete_file_needs_no_words() -> None:
    found = resolved(complete(*(name for name in TABLES if "*" not in name)))
    assert found.notes == ()
    assert not found.off


def test_a_required_column_takes_its_table_and_says_table_column_and_version() -> None:
    tables = complete(KERNEL)
    tables[KERNEL]["gpu"] = tables[KERNEL].pop("deviceId")
    found = resolved(tables)
    (note,) = found.notes
    assert (note.table, note.column) == (KERNEL, "deviceId")
    assert all(word in note.text for word in (KERNEL, "deviceId", "nsys 2026.4.1", "gpu"))
    assert found.off == {KERNEL}
    assert found.doubts[Capability.KERNELS] == note.text


@pytest.mark.parametrize("declared", ["TEXT", "REAL", "VARCHAR(9)", "DOUBLE PRECISION"])
def test_a_column_of_another_type_is_not_believed(declared: str) -> None:
    tables = complete(KERNEL)
    tables[KERNEL]["start"] = declared
    assert declared in resolved(tables).notes[0].text
    assert resolved(tables).off == {KERNEL}


@pytest.mark.parametrize("declared", ["INT", "BIGINT", "integer not null", "NUMERIC", ""])
def test_whole_numbers_are_believed_under_any_name(declared: str) -> None:
    tables = complete(KERNEL)
    tables[KERNEL]["start"] = declared
    assert resolved(tables).notes == ()


def test_fractions_are_whole_numbers_as_far_as_they_are_exact() -> None:
    largest, half = 2.0**53, 0.5
    values = [7.0, half, largest, -largest, largest + 2]
    assert as_declared("i", values) == [7, None, 2**53, -(2**53), None]


def test_an_alias_is_the_column() -> None:
    tables = complete("GPU_METRICS")
    tables["GPU_METRICS"]["start"] = tables["GPU_METRICS"].pop("timestamp")
    found = resolved(tables)
    assert found.notes == ()
    assert found.columns["GPU_METRICS"]["timestamp"] == "start"


def test_another_column_that_stands_in_is_said() -> None:
    tables = complete(KERNEL)
    del tables[KERNEL]["demangledName"]
    found = resolved(tables)
    assert found.columns[KERNEL]["demangledName"] == "shortName"
    assert "shortName stands in its place" in found.notes[0].text
    assert not found.off


def test_what_a_generation_never_had_is_no_loss() -> None:
    tables = complete(KERNEL)
    del tables[KERNEL]["mangledName"]
    assert resolved(tables, "2021.3.1").notes == ()
    assert [note.column for note in resolved(tables, "2023.1").notes] == ["mangledName"]


def test_an_unknown_version_is_at_least_that_of_its_columns() -> None:
    tables = complete("CUPTI_ACTIVITY_KIND_MEMCPY")
    del tables["CUPTI_ACTIVITY_KIND_MEMCPY"]["greenContextId"]
    assert [note.column for note in resolved(tables, "").notes] == ["greenContextId"]
    del tables["CUPTI_ACTIVITY_KIND_MEMCPY"]["copyCount"]
    assert resolved(tables, "").notes == ()


def test_an_empty_table_loses_nothing() -> None:
    tables = complete(KERNEL)
    del tables[KERNEL]["start"]
    found = resolve(tables, Export("2026.4"), lambda _: False, lambda: False)
    assert found.notes == ()


def test_the_process_is_known_where_there_is_one() -> None:
    tables = complete(KERNEL)
    del tables[KERNEL]["globalPid"]
    assert resolved(tables).off == {KERNEL}
    alone = resolved(tables, one=True)
    assert not alone.off
    assert "the only process" in alone.notes[0].text


def test_without_names_nothing_named_is_shown() -> None:
    tables = complete(KERNEL, "NET_NIC_METRIC")
    del tables["StringIds"]["value"]
    found = resolved(tables)
    assert found.off == {"StringIds", KERNEL, CALLS}
    assert "StringIds has no column value" in found.doubts[Capability.KERNELS]


def test_without_names_the_gpu_is_not_taken_for_idle() -> None:
    tables = complete(KERNEL, "CUPTI_ACTIVITY_KIND_MEMCPY")
    del tables["StringIds"]["value"]
    assert resolved(tables).off == {"StringIds", KERNEL, CALLS, "CUPTI_ACTIVITY_KIND_MEMCPY"}


def test_names_that_are_missing_are_as_those_that_are_not_believed() -> None:
    tables = complete(KERNEL, "CUPTI_ACTIVITY_KIND_MEMCPY")
    del tables["StringIds"]
    found = resolved(tables)
    assert found.off == {KERNEL, CALLS, "CUPTI_ACTIVITY_KIND_MEMCPY"}
    assert found.doubts[Capability.COPIES].startswith("StringIds is missing")


def filled(found: dict[str, dict[str, str]], *empty: str) -> Resolved:
    """Resolved where the tables of the file, but for some, have rows."""
    rows = found.keys() - set(empty)
    return resolve(found, Export("2026.4.1", "3.28.1"), rows.__contains__, lambda: False)


@pytest.mark.parametrize("name", [f"{KERNEL}_X", "CUPTI_ACTIVITY_KIND_CONCURRENT", "work", "WORK"])
@pytest.mark.parametrize("empty", [(), (KERNEL,)])
def test_a_table_of_another_name_is_named_and_what_is_lost_by_it(
    name: str, empty: tuple[str, ...]
) -> None:
    copies = "CUPTI_ACTIVITY_KIND_MEMCPY"
    tables = complete(KERNEL, copies)
    tables[name] = tables[KERNEL]
    if not empty:
        del tables[KERNEL]
    found = filled(tables, *empty)
    (note,) = found.notes
    assert note.table == name
    assert f"{name} is not understood (nsys 2026.4.1): it looks like {KERNEL}" in note.text
    assert copies in found.off
    assert found.doubts[Capability.KERNELS] == found.doubts[Capability.COPIES] == note.text


def test_of_tables_alike_the_one_that_is_not_there_is_named() -> None:
    tables = complete("OSRT_CALLCHAINS")
    tables["mine"] = tables["OSRT_CALLCHAINS"]
    (note,) = filled(tables).notes
    assert note.table == "mine"
    assert "it looks like SAMPLING_CALLCHAINS" in note.text


def test_a_table_of_somebody_else_needs_no_words() -> None:
    tables = complete(KERNEL) | {
        "mine": {"name": "TEXT", "value": "TEXT"},
        "RESULTS": {"start": "INTEGER", "end": "INTEGER"},
        "my_kernels": complete(KERNEL)[KERNEL],
    }
    found = filled(tables)
    assert found.notes == ()
    assert not found.off


def test_a_table_that_is_called_as_those_of_nsys_is_named_where_it_has_rows() -> None:
    tables = complete(KERNEL) | {"CUPTI_ACTIVITY_KIND_NOVELTY": {"x": "INTEGER"}}
    (note,) = filled(tables).notes
    assert "CUPTI_ACTIVITY_KIND_NOVELTY is not understood (nsys 2026.4.1)" in note.text
    assert filled(tables, "CUPTI_ACTIVITY_KIND_NOVELTY").notes == ()


def test_every_table_is_known_again_under_another_name() -> None:
    for name in TABLES:
        tables = complete() | {f"{name}_X": complete(name)[name]}
        if name != "StringIds" and "*" not in name:
            assert [note.table for note in filled(tables).notes] == [f"{name}_X"], name


def test_names_under_a_like_name_are_said_once() -> None:
    tables = complete(KERNEL)
    tables["StringIdz"] = tables.pop("StringIds")
    found = resolve(tables, Export("2026.4.1"), tables.__contains__, lambda: True)
    (note,) = found.notes
    assert note.table == "StringIdz"
    assert found.doubts[Capability.KERNELS] == note.text


@pytest.mark.parametrize(("table", "beside"), [(t, o) for t in BESIDE for o in BESIDE[t]])
def test_a_table_is_missed_where_every_export_holds_it(table: str, beside: str) -> None:
    tables = complete(beside)
    assert resolved(tables).notes == ()
    del tables[table]
    (note,) = resolved(tables).notes
    assert note.table == table
    assert note.text.startswith(f"{table} is missing (nsys 2026.4.1): ")
    assert resolve(tables, Export("2026.4.1"), lambda _: False, lambda: True).notes == ()


@pytest.mark.parametrize("backtraces", [True, False])
def test_classes_of_calls_are_needed_where_backtraces_double_them(backtraces: bool) -> None:
    runtime = "CUPTI_ACTIVITY_KIND_RUNTIME"
    tables = complete(runtime, "CUDA_CALLCHAINS")
    del tables[runtime]["eventClass"]
    rows = {runtime, "StringIds"} | ({"CUDA_CALLCHAINS"} if backtraces else set())
    found = resolve(tables, Export("2026.4.1"), rows.__contains__, lambda: True)
    (note,) = found.notes
    assert (note.table, note.column) == (runtime, "eventClass")
    assert (runtime in found.off) == (Capability.API in found.doubts) == backtraces


def test_a_lost_column_takes_a_capability_of_its_own() -> None:
    tables = complete(KERNEL)
    del tables[KERNEL]["gridX"]
    found = resolved(tables)
    assert found.lost == {Capability.LAUNCH_SHAPES}
    assert not found.off


def test_a_newer_schema_says_what_was_checked_and_what_is_not_understood() -> None:
    tables = complete(KERNEL) | {"CUDA_NOVELTY": {"x": "INTEGER"}}
    tables[KERNEL]["warpId"] = "INTEGER"
    found = resolve(tables, Export("2027.1", "4.0.0"), lambda _: True, lambda: True)
    (note,) = found.notes
    assert "newer than what this version knows" in note.text
    assert f"not understood: CUDA_NOVELTY, {KERNEL}.warpId" in note.text


@pytest.mark.parametrize(
    ("declared", "expected"),
    [("", ""), ("blob", ""), ("POINT", "INTEGER"), ("FLOATING", "REAL"), ("CLOB", "TEXT"),
     ("DATE", "NUMERIC")],
)  # fmt: skip
def test_affinity_is_that_of_sqlite(declared: str, expected: str) -> None:
    assert affinity(declared) == expected


def test_without_a_part_no_gpu_work_is_believed() -> None:
    copies = "CUPTI_ACTIVITY_KIND_MEMCPY"
    tables = complete(KERNEL, copies)
    del tables[KERNEL]["deviceId"]
    found = resolved(tables)
    assert found.off == {KERNEL, copies}
    assert "no GPU work is shown" in found.doubts[Capability.COPIES]
    tables = complete(KERNEL, copies)
    del tables[copies]["deviceId"]
    assert resolved(tables).off == {KERNEL, copies}
    assert "no GPU work is shown" in resolved(tables).doubts[Capability.KERNELS]
