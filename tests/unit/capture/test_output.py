from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_tui.capture.output import OutputParser, output_stem


def bar(percent: int) -> str:
    label = f"{percent}%"
    return "[" + ("=" * max(0, 28 * percent // 100 - len(label)) + label).ljust(28) + "]"


NEW = (
    b"WARNING: CPU IP/backtrace sampling not supported, disabling.\n"
    b"Collecting data...\nstep 1\n"
    b"Generating '/tmp/nsys-report-0f74.qdstrm'\n"
    + b"".join(f"\r[1/2] {bar(p)} tiny.nsys-rep".encode() for p in (0, 33, 100))
    + b"\n"
    + b"".join(f"\r[2/2] {bar(p)} tiny.sqlite".encode() for p in (0, 50, 100))
    + b"\nGenerated:\n    /home/u/tiny.nsys-rep\n\t/home/u/tiny.sqlite\ndone\n"
)


def parsed(data: bytes) -> OutputParser:
    parser = OutputParser()
    parser.feed(data)
    parser.close()
    return parser


def test_a_usual_run() -> None:
    parser = parsed(NEW)
    assert parser.collecting
    assert parser.importing
    assert parser.step == (2, 2, 100)
    assert parser.generated == ["/home/u/tiny.nsys-rep", "/home/u/tiny.sqlite"]
    assert parser.raw == ["/tmp/nsys-report-0f74.qdstrm"]
    assert [note.text for note in parser.notes] == [
        "no CPU samples: the system does not allow them"
    ]


def screen(parser: OutputParser, chunks: list[bytes]) -> list[str]:
    lines: list[str] = []
    for update in [u for chunk in chunks for u in parser.feed(chunk)] + parser.close():
        if update.replaces:
            lines.pop()
        lines.append(update.text)
    return lines


def test_progress_frames_collapse_into_one_line() -> None:
    lines = screen(OutputParser(), [NEW])
    assert lines[4:6] == [f"[1/2] {bar(100)} tiny.nsys-rep", f"[2/2] {bar(100)} tiny.sqlite"]
    assert lines[-1] == "done"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(NEW)), max_size=8))
def test_where_the_bytes_are_cut_makes_no_difference(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(NEW)]
    chunks = [NEW[a:b] for a, b in pairwise(edges)]
    parser, whole = OutputParser(), OutputParser()
    assert screen(parser, chunks) == screen(whole, [NEW])
    for name in ("generated", "raw", "step", "notes", "collecting", "importing"):
        assert getattr(parser, name) == getattr(whole, name), name


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_survived_and_never_sent_as_control_characters(data: bytes) -> None:
    for line in screen(OutputParser(), [data]):
        assert all(char.isprintable() or char == "\t" for char in line)


def test_old_releases_name_the_file_in_a_sentence() -> None:
    parser = parsed(
        b"Processing events...\nSaving temporary \"/tmp/x.qdstrm\" file to disk...\n"
        b"Creating final output files...\nSaved report file to \"/tmp/nsys/report1.qdrep\"\n"
        b"Report file moved to \"/home/u/report1.qdrep\"\n"
    )  # fmt: skip
    assert parser.importing
    assert parser.generated == ["/home/u/report1.qdrep"]


def test_program_output_glued_to_a_frame_keeps_the_percentage() -> None:
    assert parsed(f"loss=0.3[1/1] {bar(33)} a.nsys-rep\n".encode()).step == (1, 1, 33)


def test_a_program_cannot_name_other_files() -> None:
    parser = parsed(
        b"Generated:\n    /etc/passwd\n    relative.nsys-rep\n    /x/../../root/a.nsys-rep\n"
        b"outside\n    /late.nsys-rep\n"
    )
    assert parser.generated == ["relative.nsys-rep", "/root/a.nsys-rep", "/late.nsys-rep"]
    assert parsed(b"    /no/block.nsys-rep\n").generated == []


def test_blocks_of_several_ranks_that_mix() -> None:
    parser = parsed(b"Generated:\nGenerated:\n    /r.0.nsys-rep\n    /r.1.nsys-rep\n")
    assert parser.generated == ["/r.0.nsys-rep", "/r.1.nsys-rep"]


def test_import_failure_names_what_is_kept() -> None:
    parser = parsed(
        b"Importer error status: Importation failed.\nGenerated:\n    /home/u/a.qdstrm\n"
    )
    assert parser.generated == []
    assert parser.raw == ["/home/u/a.qdstrm"]


def test_of_a_flood_the_first_and_the_last_lines_are_read() -> None:
    parser = OutputParser()
    flood = b"".join(b"line %d\n" % number for number in range(100_000))
    shown = [update.text for update in parser.feed(flood + b"Generated:\n    /r/a.nsys-rep\n")]
    assert len(shown) < 3000
    assert shown[:2] == ["line 0", "line 1"]
    assert "[98002 lines were not read]" in shown
    assert shown[-3:] == ["line 99999", "Generated:", "    /r/a.nsys-rep"]
    assert parser.generated == ["/r/a.nsys-rep"]


def test_a_line_without_end_stays_bounded() -> None:
    parser = OutputParser()
    for _ in range(50):
        parser.feed(b"x" * 4000)
    assert len(parser._pending) <= 8192


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "Throw in function void QuadDCommon::serializeProtobufToStream(std::ostream&, const",
            "nsys could not write what it collected",
        ),
        (
            "[QuadDCommon::tag_message*] = Failed to write termination status to file",
            "nsys could not write what it collected",
        ),
        ("Executable not found in current directory", "the program was not found there"),
        ("Program not found: a.out", "the program was not found there"),
        ("No such file or directory: /no/such/a.out", "the program was not found there"),
        ("Not executable", "the program there is no executable file"),
        (
            "[QuadDCommon::tag_message*] = Invalid truncate size.",
            "nsys could not prepare the program there",
        ),
        (
            "Failed to create '/r.qdstrm': No space left on device.",
            "the disk there is full: /r.qdstrm",
        ),
        ("write: No space left on device", "the disk there is full"),
        ("Failed to probe the process (sync)", "nsys could not prepare the program there"),
        ("Agent launcher failed.", "nsys could not prepare the program there"),
        ('temp_directory_path: Not a directory: "/x"', "nsys could not prepare the program there"),
        ("Connection to Agent lost. This is most likely", "nsys broke off: it lost its own agent"),
        ("Connection to the Agent lost.", "nsys broke off: it lost its own agent"),
        (
            "/build/ProcessWaiterImpl.cpp(166): Throw in function QuadDCommon::ProcessWaiter::Pro",
            "nsys broke off: it could not watch its own processes",
        ),
        (
            "None of the installed GPUs are supported. See the guide",
            "no GPU metrics: nsys supports no GPU there",
        ),
        (
            "Substitution error in '/r%z': Unknown expression `%z`.",
            "the report's name holds %z, which stands for nothing",
        ),
        (
            "Illegal --delay argument: abc. Delay set to 0 seconds.",
            "nsys does not take --delay=abc",
        ),
        ("Illegal --sample argument: bogus.", "nsys does not take --sample=bogus"),
        ("Illegal --trace argument 'bogus'", "nsys does not take --trace=bogus"),
        (
            "Substitution error in '/r.%q{NO}': Environment variable `NO` is not set.",
            "the report's name holds %q{NO}, and NO is not set there",
        ),
        ("Possible --backtrace values are 'lbr', 'none'.", "--backtrace takes 'lbr', 'none'"),
        (
            "Possible --trace values are one of 'cuda', 'mpi', ",
            "--trace takes one of 'cuda', 'mpi', …",
        ),
    ],
)
def test_its_words_are_lifted(line: str, said: str) -> None:
    parser = OutputParser()
    parser.feed(line.encode() + b"\n")
    assert [note.text for note in parser.notes] == [said]


@pytest.mark.parametrize(
    ("output", "stem"),
    [
        ("perf/run", "perf/run"),
        ("run.nsys-rep", "run"),
        ("run.sqlite", "run"),
        ("run.txt", "run"),
        ("run.csv", "run.csv"),
        ("run.v2", "run.v2"),
    ],
)
def test_nsys_takes_only_endings_of_its_own_files_off_an_output(output: str, stem: str) -> None:
    """As nsys 2022.4 and 2023.4 were seen to."""
    assert output_stem(output) == stem


def test_where_nsys_points_to_its_handbook_the_line_before_counts() -> None:
    parser = OutputParser()
    parser.feed(
        b"Generating '/tmp/a.qdstrm'\n\nPlease refer to the troubleshooting section of the docs:\n"
        b"https://docs.nvidia.com/nsight-systems/UserGuide/index.html#troubleshooting\n"
    )
    assert parser.last == "Generating '/tmp/a.qdstrm'"
