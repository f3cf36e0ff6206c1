"""Reads what nsys prints while it works, mixed with whatever the program prints.

The log is the only source of "collecting", "importing" and of the names of the reports; it is
untrusted, so a path counts only with a report's ending and is looked up before anything is done
with it. Formats: public logs of releases 2020 to 2026.
"""

from __future__ import annotations

import codecs
import posixpath
import re
from dataclasses import replace
from typing import Final

from nsys_tui.capture.events import LogUpdate, Remark
from nsys_tui.capture.quoting import printable

REPORT_ENDINGS: Final = (".nsys-rep", ".qdrep")
RAW_ENDING: Final = ".qdstrm"
KNOWN_ENDINGS: Final = (*REPORT_ENDINGS, RAW_ENDING, ".sqlite")
_DROPPED: Final = (*KNOWN_ENDINGS, ".json", ".h5", ".txt")
"""Endings that nsys 2022.4 and 2023.4 take off an ``--output`` before they add their own."""
_LINE_LIMIT: Final = 8192
_BLOCK_LINES: Final = 40
_AROUND: Final = 1000
"""Lines at each end of what comes at once; more take longer than a stop may wait."""

_FRAME = re.compile(r"\[(\d+)/(\d+)\] *\[[^\]%]*?(\d{1,3})%[^\]]*\] ?(.*)")
_GENERATING = re.compile(r"Generating '([^']+\.qdstrm)'")
_SAVED = re.compile(r"(?:Saved report file to|Report file moved to) \"([^\"]+)\"")
_OLD_IMPORT = re.compile(r"^(Processing events\.\.\.|Creating final output files|Processing \[)")
_COLLECTING = re.compile(r"^(Collecting data|Capture range started)")
_GENERATED = re.compile(r"\bGenerated:(.*)$")
_POINTER = re.compile(r"Please refer to the troubleshooting|docs.nvidia.com/nsight-systems")
"""Lines that nsys ends with where something went wrong, and that tell nothing of it."""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


ROOM: Final = "set TMPDIR to a folder with room, as by --env TMPDIR=FOLDER"
"""What helps where nsys's temporary folder is full, on every kind of target."""
_NOTES: Final[tuple[tuple[re.Pattern[str], Remark], ...]] = tuple(
    (re.compile(pattern), Remark(severity, text, remedy))
    for pattern, severity, text, remedy in (
        (r"does not allow enabling CPU profiling|CPU IP/backtrace sampling not supported",
         "warning", "no CPU samples: the system does not allow them",
         "perf_event_paranoid must be 2 or less, or the container needs CAP_SYS_ADMIN"),
        (r"CPU context switch tracing not supported", "warning", "no context switches",
         "kernel.perf_event_paranoid must be 2 or less there"),
        (r"perf event paranoid level is \d", "note", "CPU samples of user space only",
         "kernel.perf_event_paranoid 1 adds the kernel"),
        (r"ERR_NVGPUCTRPERM|insufficient privilege", "warning", "no GPU metrics: they need rights",
         "NVreg_RestrictProfilingToAdminUsers=0, or run as root"),
        (r"Failed to create '([^']*)': No space left on device", "error",
         r"the disk there is full: \1", "make room, or name another --output"),
        (r"(?<!': )No space left on device", "error", "the disk there is full",
         f"make room, or {ROOM}"),
        (r"Failed to create '.*': File exists|Failed to create \".*\": File exists", "warning",
         "a report of that name exists, so nsys kept the new one under another name", ""),
        (r"Failed to create '([^']*)': (?!File exists|No space)(.*?)\.?$", "warning",
         r"nsys could not create \1 (\2), and writes its report elsewhere",
         "name a folder that is there and can be written"),
        (r"^(?:Executable not found|Program not found: |No such file or directory: \S+$)",
         "error", "the program was not found there", "give its path, or set PATH in the preamble"),
        (r"error while loading shared libraries: (\S+):",
         "error", r"a library is missing there: \1", "install it, or set LD_LIBRARY_PATH there"),
        (r"^Not executable", "error", "the program there is no executable file",
         "make it executable, or put what runs it in front of it, such as python"),
        (r"^(?:Failed to probe the process|Agent launcher failed)|Invalid truncate size"
         r"|temp_directory_path: ",
         "error", "nsys could not prepare the program there",
         f"its temporary folder may be full or missing: make room, or {ROOM}"),
        (r"serializeProtobufToStream|Failed to write termination status",
         "error", "nsys could not write what it collected",
         f"its temporary folder may be full: make room, or {ROOM}"),
        (r"^None of the installed GPUs are supported", "error",
         "no GPU metrics: nsys supports no GPU there", "leave GPU metrics out"),
        (r"^Connection to (?:the )?Agent lost", "error", "nsys broke off: it lost its own agent",
         "capture again; where it happens each time, another release of nsys may not"),
        (r"Throw in function QuadDCommon::ProcessWaiter", "error",
         "nsys broke off: it could not watch its own processes", "capture again"),
        (r"^Substitution error in .*variable [`']?(\w+)", "warning",
         r"the report's name holds %q{\1}, and \1 is not set there", "set it with --env"),
        (r"No reports were generated", "error", "no report: the capture range never opened",
         "check its name; NVTX strings may need NSYS_NVTX_PROFILER_REGISTER_ONLY=0"),
        (r"Importer error status: (.*?)\.?$", "error", r"nsys's importer failed: \1", ""),
        (r"exceeded maximum protobuf size of 2GB", "error",
         "nsys's importer takes no more than 2 GB of text, what the program prints included",
         "send the program's output to a file there: sh -c 'PROGRAM >FILE'"),
        (r"Exportation error: Version number is invalid", "error",
         "that nsys is older than the report", "export it with the nsys that made it, or newer"),
        (r"Wrong event order has been detected", "error", "nsys could not order the events",
         "update nsys, or capture a shorter time"),
        (r"(?:--\S+|option) .*is deprecated", "note", "nsys calls an option deprecated", ""),
        (r"^Substitution error in .*Unknown expression [`']?(%.)", "warning",
         r"the report's name holds \1, which stands for nothing", "write %% for a percent sign"),
        (r"[Ii]llegal (--?[a-z-]+) argument:? '?(.*?)'?(?:\. .*|\.)?$", "error",
         r"nsys does not take \1=\2", "see its own words in the log"),
        (r"Possible (--[a-z-]+) (?:values|option-arguments) are:? (.*?),\s*$", "error",
         r"\1 takes \2, …", ""),
        (r"Possible (--[a-z-]+) (?:values|option-arguments) are:? (.*?[^,\s.])[.\s]*$", "error",
         r"\1 takes \2", ""),
        (r"^(Illegal --\S+ usage|option '--\S+' cannot be specified more than once)", "error",
         r"nsys: \1", "see its own words in the log"),
        (r"(?:[Uu]nrecogni[sz]ed|[Uu]nknown) option ?'?(--[a-z-]*)?", "error",
         r"nsys does not know an option there: \1", "see its own words in the log"),
        (r"JOB \d+ ON \S+ CANCELLED .*DUE TO TIME LIMIT", "error",
         "the job ran into its time limit", "ask for more with --time, or capture less"),
        (r"(?:JOB|STEP) \S+ ON \S+ CANCELLED AT (?!.*DUE TO)", "error",
         "Slurm cancelled the job", "by the user or an administrator: scancel"),
        (r"oom-kill|Out Of Memory", "error", "out of memory", ""),
    )
)  # fmt: skip


def output_stem(output: str) -> str:
    """An ``--output`` as nsys takes it: without the ending of a file that it could make."""
    return next((output.removesuffix(end) for end in _DROPPED if output.endswith(end)), output)


class OutputParser:
    """Follows a log from its first byte; feeding it the same bytes gives the same state.

    Attributes:
        collecting: nsys said that it collects.
        importing: nsys said that it makes the report.
        step: (k, n, percent) of the last progress frame, or ``None``.
        generated: paths that nsys named as its results, in order, without repeats; a relative one
            counts from the job's working directory.
        raw: paths of ``.qdstrm`` files that nsys named, likewise.
        notes: remarks, without repeats.
        last: the last line that is not blank.
    """

    def __init__(self) -> None:
        self.collecting = False
        self.importing = False
        self.step: tuple[int, int, int] | None = None
        self.generated: list[str] = []
        self.raw: list[str] = []
        self.notes: list[Remark] = []
        self.last = ""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._frame_shown = False
        self._block = 0
        self._saved = ""

    def feed(self, data: bytes) -> list[LogUpdate]:
        """Takes the next bytes of the log; returns what a screen should show.

        Of a flood the first and the last lines are read: nsys speaks before and after its program.
        """
        text = self._pending + self._decode.decode(data.replace(b"\0", b""))
        *lines, self._pending = text.split("\n")
        if len(self._pending) > _LINE_LIMIT:
            lines.append(self._pending)
            self._pending = ""
        updates = [self._line(line) for line in lines[:_AROUND]]
        unread = len(lines) - 2 * _AROUND
        if unread > 0:
            updates.append(LogUpdate(f"[{unread} lines were not read]"))
        updates += [self._line(line) for line in lines[max(_AROUND, len(lines) - _AROUND) :]]
        if "\r" in self._pending:
            updates.append(self._partial())
        return updates

    def close(self) -> list[LogUpdate]:
        """Takes the last line, which may lack its end."""
        rest, self._pending = self._pending, ""
        return [self._line(rest)] if rest else []

    def _partial(self) -> LogUpdate:
        """The newest frame of a line that still changes; older frames of it are forgotten."""
        frames = [frame for frame in self._pending.split("\r") if frame]
        newest = frames[-1] if frames else ""
        self._read_frame(newest)
        self._pending = "\r" + newest + ("\r" if self._pending.endswith("\r") else "")
        return self._update(newest, partial=True)

    def _line(self, line: str) -> LogUpdate:
        frames = [frame for frame in _COLOUR.sub("", line).split("\r") if frame] or [""]
        for frame in frames:
            self._read_frame(frame)
        self._read(frames[-1])
        return self._update(frames[-1], partial=False)

    def _update(self, text: str, *, partial: bool) -> LogUpdate:
        replaces, self._frame_shown = self._frame_shown, partial
        return LogUpdate(printable(_COLOUR.sub("", text), _LINE_LIMIT), replaces)

    def _read_frame(self, text: str) -> None:
        if match := _FRAME.search(text):
            self.importing = True
            self.step = (int(match[1]), int(match[2]), min(100, int(match[3])))

    def _read(self, line: str) -> None:
        if not _POINTER.search(line):
            self.last = line.strip() or self.last
        if match := _GENERATED.search(line):
            self._block = _BLOCK_LINES
            self._result(match[1])
        elif self._block:
            self._block -= 1
            if line[:1] in " \t" or line.startswith("/"):
                self._result(line)
        self.collecting = self.collecting or bool(_COLLECTING.match(line))
        if match := _GENERATING.search(line):
            self.importing = True
            self._raw(match[1])
        elif _OLD_IMPORT.match(line):
            self.importing = True
        if match := _SAVED.search(line):
            if "moved to" in line:  # from where it was said to be saved
                self.generated = [path for path in self.generated if path != self._saved]
            self._saved = posixpath.normpath(match[1])
            self._result(match[1])
        for pattern, note in _NOTES:
            if match := pattern.search(line):
                said = replace(note, text=printable(match.expand(note.text).strip()))
                self.notes += [said] if said not in self.notes else []

    def _result(self, said: str) -> None:
        path = said.strip().strip("'\"")
        if not path.endswith(KNOWN_ENDINGS):
            return
        path = posixpath.normpath(path)
        if path.endswith(RAW_ENDING):
            self._raw(path)
        elif path not in self.generated:
            self.generated.append(path)

    def _raw(self, path: str) -> None:
        if path not in self.raw:
            self.raw.append(posixpath.normpath(path))
