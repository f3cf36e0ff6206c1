"""The JSON of each verb against the schema that the verb prints for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from paths import LOGS, REPORTS, needs_logs, needs_reports

from nsys_tui import cli
from nsys_tui.export.events import TABLES
from nsys_tui.fleet.tables import SECTIONS
from nsys_tui.model.table import Column, Document, Form, Table, Unit, column, key_of, records
from nsys_tui.text.documents import document_text, json_schema

if TYPE_CHECKING:
    from pathlib import Path

Out = pytest.CaptureFixture[str]
RUNS = (
    ("stalls",),
    ("stalls", "--group-by", "pair", "--limit", "2"),
    ("overview",),
    ("overview", "--each", "iteration"),
    ("overview", "--section", "ranges"),
    ("iterations",),
    ("analyze", "-r", "all"),
    ("collectives",),
    ("stacks",),
    ("fleet",),
    ("fleet", "--by", "rank", *(word for name in SECTIONS for word in ("--section", name))),
    ("compare",),
    ("stats",),
    ("stats", "-r", "cuda_gpu_kern_sum"),
    ("doctor",),
    ("compare", "--section", "kernels"),
)
SEEN = ("pytorch-nccl-2gpu-2026.2", "mpi-nvtx-callchains-2022.2", "uvm-migration-2025.1")
ROWS = (
    *(("export", "--table", name) for name in TABLES),
    *(("sql", f"select * from {view}") for view in ("kernels", "stalls", "ranges")),
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("schemas") / "demo.sqlite"
    assert cli.main(["demo", "-o", str(path)]) == 0
    return path


def out_of(capsys: Out, *words: str) -> Any:
    assert cli.main(list(words)) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("verb", sorted({words[0] for words in RUNS}))
def test_the_schema_of_a_verb_is_one(capsys: Out, verb: str) -> None:
    Draft202012Validator.check_schema(out_of(capsys, verb, "--format", "json-schema"))


@needs_reports
@pytest.mark.parametrize("words", RUNS, ids=" ".join)
@pytest.mark.parametrize("report", ["demo", *SEEN])
def test_what_a_verb_prints_is_what_its_schema_says(
    capsys: Out, report: str, words: tuple[str, ...], demo: Path
) -> None:
    verb, *rest = words
    schema = out_of(capsys, verb, "--format", "json-schema")
    path = demo if report == "demo" else REPORTS / f"{report}.sqlite"
    more = [str(REPORTS / "cloverleaf-a100-2024.5.sqlite")] if verb == "compare" else []
    cli.main([verb, str(path), *more, *rest, "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    if verb not in ("stats", "doctor") and "no_data" not in found:
        assert found["schema"] == {"name": f"nsys-tui/{verb}", "version": 1}
    assert not [
        f"{'/'.join(map(str, error.path))}: {error.message}"
        for error in Draft202012Validator(schema).iter_errors(found)
    ]


@needs_reports
@pytest.mark.parametrize("words", ROWS, ids=" ".join)
def test_rows_of_one_report_are_told_by_the_schema_of_another(
    capsys: Out, words: tuple[str, ...], demo: Path
) -> None:
    verb, *rest = words
    options = [word for word in rest if word.startswith("-")]
    told = out_of(capsys, verb, str(demo), *rest, "--format", "json-schema")
    valid = Draft202012Validator(told)
    for path in (demo, *(REPORTS / f"{report}.sqlite" for report in SEEN)):
        cli.main([verb, str(path), *rest, *(["--window", "/1s"] if options else []),
                  "--format", "json"])  # fmt: skip
        found = json.loads(capsys.readouterr().out)
        if "no_data" not in found:
            valid.validate(found[:50])
            assert not found or not valid.is_valid([found[0] | {"More": 1}])


@needs_reports
@pytest.mark.parametrize("report", ["pytorch-nccl-2gpu-2026.2", "mpi-nvtx-callchains-2022.2"])
def test_stats_of_a_report_tell_every_column(capsys: Out, report: str) -> None:
    path = str(REPORTS / f"{report}.sqlite")
    names = "cuda_gpu_kern_sum,nvtx_sum,osrt_sum,mpi_event_sum,cuda_gpu_trace,cuda_api_sum"
    for words in (["-r", names], ["-r", "cuda_gpu_trace", "--timeunit", "msec"], ["-r", "um_sum"]):
        cli.main(["stats", path, *words, "--format", "json"])
        found = json.loads(capsys.readouterr().out)
        cli.main(["stats", path, *words, "--format", "json-schema"])
        valid = Draft202012Validator(json.loads(capsys.readouterr().out))
        valid.validate(found)
        rows = found if isinstance(found, list) else found["cuda_gpu_kern_sum"]
        if rows:
            rows[0]["More"] = 1
            assert not valid.is_valid(found)


@needs_reports
def test_baselines_print_what_their_schema_says(capsys: Out) -> None:
    report = REPORTS / "cloverleaf-a100-2024.5.sqlite"
    assert cli.main(["baseline", "save", "mine", str(report)]) == 0
    capsys.readouterr()
    found = out_of(capsys, "baseline", "list", "--format", "json")
    assert [row["name"] for row in found] == ["mine"]
    valid = Draft202012Validator(out_of(capsys, "baseline", "list", "--format", "json-schema"))
    valid.validate(found)
    assert not valid.is_valid([found[0] | {"more": 1}])


@needs_logs
@pytest.mark.parametrize("log", sorted(LOGS.glob("*.log")), ids=lambda log: log.stem)
def test_logs_print_what_their_schema_says(capsys: Out, log: Path) -> None:
    schema = out_of(capsys, "logs", "--format", "json-schema")
    found = out_of(capsys, "logs", str(log), "--format", "json", "--calls")
    assert {*found} == {*schema["properties"]} - {"no_data", "hint"}
    Draft202012Validator(schema).validate(found)


@pytest.mark.parametrize(
    ("header", "unit", "key"),
    [
        ("Held up", Unit.NS, "held_up_ns"),
        ("≈ Q1", Unit.NS, "approximate_q1_ns"),
        ("Bytes", Unit.BYTES, "bytes"),
        ("Time", Unit.PERCENT, "time_share"),
        ("Alg GB/s", Unit.NONE, "alg_gb_per_s"),
        ("Total", Unit.MB, "total_bytes"),
        ("opCount", Unit.TEXT, "opcount"),
    ],
)
def test_a_key_is_made_of_header_and_unit(header: str, unit: Unit, key: str) -> None:
    assert key_of(header, unit) == key


def test_values_of_a_document_have_the_declared_types() -> None:
    inner = (column("busy_ns"), column("busy_share"), Column("People", key=""), column("seen_ns"))
    table = Table(
        "t",
        "T",
        (Column("A", Unit.PERCENT, 1), Column("B", Unit.NS)),
        (np.array([50.0, np.nan]), np.ma.masked_equal(np.array([2**62, -1]), -1)),
    )
    document = Document(
        "test",
        (
            records("rows", inner, lambda rows, _: rows),
            column("times_ns", "", lambda _, shared: shared, form=Form.LIST),
            records("table", table.columns, lambda *_: table),
            column("gone_ns", "", lambda *_: None, optional=True),
        ),
    )
    rows = [{"busy_ns": np.float64(1.6), "busy_share": 0.5}, {"busy_ns": None, "seen_ns": 7}]
    found = json.loads("".join(document_text(document, rows, (1, 2), ["n", "n"])))
    assert found == {
        "schema": {"name": "nsys-tui/test", "version": 1},
        "rows": [
            {"busy_ns": 2, "busy_share": 0.5, "seen_ns": None},
            {"busy_ns": None, "busy_share": None, "seen_ns": 7},
        ],
        "times_ns": [1, 2],
        "table": [{"a_share": 0.5, "b_ns": 2**62}, {"a_share": None, "b_ns": None}],
        "notes": ["n"],
    }
    valid = Draft202012Validator(json_schema(document)).is_valid
    assert valid(found)
    assert not valid(found | {"rows": [{"busy_ns": 1.5, "busy_share": 1, "seen_ns": 1}]})
    assert not valid(found | {"more": 1})
