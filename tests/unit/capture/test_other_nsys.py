"""Captures with an nsys that words and orders things in another way than the usual stand-in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from capture_support import Place, Recorder, make_place
from synth import Synth

from nsys_tui.capture.capture import preflight
from nsys_tui.capture.failures import NoReportError
from nsys_tui.capture.find_reports import output_pattern
from nsys_tui.capture.record import State

HEAD = r"""#!/bin/sh
verb=$1; shift
case $verb in
--version|-v)
  printf 'Copyright (c) a company\nNsight Systems 2023.4.1.97-234133557503v0\n' >&2; exit 0 ;;
profile) ;;
*) echo "unknown command: $verb" >&2; exit 2 ;;
esac
out=report export=
while [ $# -gt 0 ]; do
  case $1 in
  -o) out=$2; shift 2 ;;
  --output=*) out=${1#*=}; shift ;;
  --export=*) export=${1#*=}; shift ;;
  -*) shift ;;
  *) break ;;
  esac
done
out=$(printf '%s' "$out" | sed "s/%p/$$/; s/%h/box/; s/%q{WHO}/me/").nsys-rep
make() { printf 'report of %s bytes' "$#" > "$out"; }
echo starting >&2
"$@"
"""

WAYS = {
    "names nothing": "make\n",
    "a relative name": "make; printf 'Generated:\\n\\t%s\\n' \"$out\"\n",
    "one line, quoted, on stderr": 'make; printf \'Report Generated: "%s"\\n\' "$out" >&2\n',
    "no indentation, CR LF": "make; printf 'Generated:\\r\\n%s\\r\\n' \"$out\"\n",
    "colours and other frames": (
        "for p in 1 50 100; do printf '\\r\\033[32m[1/1] [###   %d%% ] x\\033[0m' $p >&2; done\n"
        "make; printf '\\n\\033[1mGenerated:\\033[0m\\n    %s\\n' \"$out\" >&2\n"
    ),
    "written after its end": "( sleep 0.4; make ) > /dev/null 2>&1 &\n",
    "named first, written after its end": (
        "printf 'Generated:\\n    %s\\n' \"$out\"; ( sleep 0.4; make ) > /dev/null 2>&1 &\n"
    ),
    "names what it did not write": "make; printf 'Generated:\\n    /no/such.nsys-rep\\n'\n",
}
SQLITE = 'printf "SQLite format 3\\0" > '


def at(folder: Path, way: str) -> Place:
    nsys = folder / "other" / "nsys"
    nsys.parent.mkdir(parents=True)
    nsys.write_text(HEAD + way)
    nsys.chmod(0o755)
    return make_place(folder, nsys=str(nsys))


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsys_tui.capture.find_reports.LATE_S", 0.1)
    monkeypatch.setattr("nsys_tui.capture.find_reports.LATE_TRIES", 3)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("output", ["", "my [report] %p"])
async def test_the_report_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, output: str
) -> None:
    if "after" in way:
        monkeypatch.setattr("nsys_tui.capture.find_reports.LATE_TRIES", 35)
    record = await at(tmp_path, WAYS[way]).capture("true", output=output).run()
    assert record.state is State.DONE
    [report] = record.reports
    assert Path(report.local).read_text().startswith("report of")
    assert record.nsys_version == "2023.4.1"


async def test_frames_of_another_style_are_read(tmp_path: Path) -> None:
    heard = Recorder()
    place = at(tmp_path, WAYS["colours and other frames"])
    await place.capture("true", recorder=heard).run()
    assert State.IMPORTING in heard.states
    assert "[1/1] [###   100% ] x" in heard.log


async def test_an_end_without_a_report_is_told_after_a_while(tmp_path: Path) -> None:
    with pytest.raises(NoReportError, match="no report"):
        await at(tmp_path, "exit 0\n").capture("true").run()


async def test_reports_of_others_are_left_alone(tmp_path: Path) -> None:
    place = at(tmp_path, "printf x > other.nsys-rep; printf x > mine2.nsys-rep\n")
    with pytest.raises(NoReportError):
        await place.capture("true", output="mine").run()


async def test_an_nsys_that_exports_only_while_it_profiles(tmp_path: Path) -> None:
    way = (
        'make; [ "$export" != sqlite ] || printf "SQLite format 3\\0" > "${out%.nsys-rep}.sqlite"\n'
    )
    place = at(tmp_path, way + "echo 'Generated:'; printf '\\t%s\\n' \"$out\"\n")
    place = place.setting(export="auto")
    record = await place.capture("true", options={"export": "sqlite"}).run()
    assert Path(record.reports[0].sqlite).read_bytes()[:6] == b"SQLite"
    heard = Recorder()
    record = await place.capture("true", recorder=heard).run()
    assert record.reports[0].sqlite == ""
    assert "could not export" in heard.remarks


async def test_an_export_verb_that_knows_the_oldest_options_only(tmp_path: Path) -> None:
    place = at(tmp_path, "make\n")
    nsys = Path(place.target.settings.nsys)
    verb = f'export) [ "$1 $2 $3" = "-t sqlite -o" ] || exit 1; {SQLITE}"$4"; exit ;;'
    nsys.write_text(nsys.read_text().replace("profile) ;;", f"profile) ;;\n{verb}"))
    record = await place.setting(export="auto").capture("true").run()
    assert Path(record.reports[0].sqlite).read_bytes()[:6] == b"SQLite"


async def test_a_short_help_refuses_no_option(tmp_path: Path) -> None:
    place = at(tmp_path, "make\n")
    nsys = Path(place.target.settings.nsys)
    short = "case $1 in --help) echo '  --trace --output --sample'; exit ;; esac\n"
    nsys.write_text(nsys.read_text().replace("out=report", f"{short}out=report"))
    found = await preflight(place.plan("true"), place.config)
    assert found.facts.options == {}
    record = await place.capture("true", options={"cuda-graph-trace": "node"}).run()
    assert record.state is State.DONE


@pytest.mark.parametrize(
    ("output", "folder", "pattern"),
    [
        ("run", "", "run"),
        ("a/b/run.nsys-rep", "a/b", "run"),
        ("/x/r%p.%q{SLURM_PROCID}-%h", "/x", "r*.*-*"),
        ("100%%[1]*", "", "100%[[]1[]][*]"),
        ("%h/run", "", ""),
        ("", "", ""),
    ],
)
def test_patterns_of_names(output: str, folder: str, pattern: str) -> None:
    assert output_pattern(output) == (folder, pattern)


@pytest.mark.parametrize("named", [True, False])
async def test_a_sqlite_that_nobody_asked_for_is_taken_and_doubted(
    tmp_path: Path, named: bool
) -> None:
    """Over a connector that counts as remote, since here the reader finds it by itself."""
    place = at(tmp_path, 'make; cp "$MADE" "${out%.nsys-rep}.sqlite"\n')
    synth = Synth(tmp_path / "made.sqlite").process(1000).kernel("k", 0, 10)
    name = "true.nsys-rep" if named else "another.nsys-rep"
    synth.add("META_DATA_EXPORT", name="EXPORT_PARAM_INPUT_FILE", value=f"/there/{name}")
    synth.add("META_DATA_EXPORT", name="EXPORT_TIME_UTC", value="2099-01-01T00:00:00")
    env = {**place.target.settings.env, "MADE": str(synth.write())}
    place = place.setting(
        export="auto", env=env, launcher="docker", tables={"container": {"name": "c"}}
    )
    docker = tmp_path / "tools" / "docker"
    docker.parent.mkdir()
    docker.write_text('#!/bin/sh\nshift 3\nexec "$@"\n')
    docker.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{docker.parent}:{os.environ['PATH']}")
        heard = Recorder()
        record = await place.capture("true", recorder=heard).run()
    [report] = record.reports
    assert bool(report.sqlite) is named
    assert Path(report.local).with_suffix(".sqlite").is_file()
    assert ("was exported from another report" in "\n".join(record.notes)) is not named
