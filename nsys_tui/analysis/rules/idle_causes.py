"""What to say of idle GPU time by its cause: advice, doubts and what would settle them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nsys_tui.analysis.stalls.causes import Cause
from nsys_tui.analysis.thread_states import Doing
from nsys_tui.model.capabilities import Capability, explain
from nsys_tui.model.report import Report
from nsys_tui.units import format_duration


@dataclass(frozen=True)
class Words:
    """What to say of idle time of one cause."""

    advice: str
    """Empty where what to do is to record more."""
    doubt: str
    settle: str
    """Empty where a report that holds more would tell."""
    hidden_by_work: bool = False
    """Whether it can be hidden behind GPU work, as far as there is any."""
    needs: Capability | None = None
    """What a report must hold for the command that settles it; else that is to be recorded."""

    def settled_by(self, report: Report) -> str:
        """The command that settles the doubt for a report, or the capture that would allow it."""
        if not self.settle:
            options = unrecorded(report)
            return f"nsys profile {options}" if options else "nsys-tui stalls REPORT"
        if self.needs is None or report.can(self.needs):
            return self.settle
        return f"nsys profile {self.needs.option}"


_TELLING: Final = (Capability.OSRT, Capability.SAMPLES, Capability.SCHED)
"""What tells where a thread is."""
_TRACES: Final = {Capability.API: "cuda", Capability.NVTX: "nvtx", Capability.OSRT: "osrt"}


def unrecorded(report: Report) -> str:
    """Options that record where threads are, as far as a report lacks it and was not asked for.

    What else is to be traced goes on being so.
    """
    missing = [kind for kind in _TELLING if report.lacks(kind) == explain(kind)]
    traced = ",".join(name for kind, name in _TRACES.items() if report.may_hold(kind))
    options = {Capability.OSRT: f"--trace={traced}"}
    return " ".join(options.get(kind, kind.option) for kind in missing)


def unseen(report: Report) -> str:
    """What to do about time of a thread in which nothing was recorded."""
    options = unrecorded(report)
    return f"record what it does: {options}" if options else "mark what it does by NVTX ranges"


def _in_system(advice: str, doubt: str, works: bool = True) -> Words:
    """Of a call of the operating system's libraries that works, or else waits for something."""
    settle = "nsys-tui stacks REPORT --source osrt"
    return Words(advice, doubt, settle, hidden_by_work=works, needs=Capability.OSRT_BACKTRACES)


NO_CALL: Final = "in no recorded call: it waited untraced (raw futex), for pages, or for a CPU"
"""What to do about a thread that was off the CPU where its OS calls are recorded."""
RETURNS_LATE: Final = (
    "no recorded GPU work holds it: see whether its thread had a CPU (--cpuctxsw=process-tree)",
    "no recorded GPU work holds it: a host function, another program, or no CPU; see the load then",
)
"""What to do about a wait that goes on without GPU work, without switches and with them."""
MAY_BE_PIPE: Final = re.compile(r"_*(readv?|fgets|fread|getc|getline)(_unlocked)?$")
OPENS: Final = re.compile(r"_*f?open(at)?(64)?$")
"""Calls before which nobody reads a file."""
LOADS: Final = "load and decode what comes next on other threads, or in worker processes"
"""What to do about files that are opened and read all along, and worked on between."""
PIPE_OR_FILE: Final = "of a file: read ahead, in larger pieces; of a pipe or socket: see who writes"
EMPTIED: Final = "launch ahead: {} empties the queue first"
MOVED: Final = ", or compute on another thread"
WAITS_FIRST: Final = "wait later, if nothing needs the result yet"
ON_HOST: Final = (Cause.HOST, Cause.OFF_CPU, Cause.NOTHING, Cause.UNKNOWN)
"""Causes with which the host may work on pages that it touches."""
ON_RESULTS: Final = "launch the next batch before working on these results, or do that on the GPU"
"""What to do about a host that works on data that have just come to it."""
FEEDS: Final = "make ready what is uploaded next before this wait, or on another thread"
FOR_MPI: Final = (
    "MPI needs what it waits for: exchange more at once, or compute the inside meanwhile"
)
READS: Final = "read results later, or many at once, so that the host launches ahead"
"""What to do about waits for what is copied to the host: no event spares it the data."""
OF_HOST: Final = (Cause.LAUNCH_LATENCY, Cause.IO, Cause.OSRT, Cause.HOST)
"""Causes that the launching thread works on, whatever the GPU does."""
PAUSES: Final = "see what makes it come in so few steps: compiling, collecting garbage, saving"
"""What to do about what the host computes in few of the steps alone."""
COMPILES: Final = "code is loaded there, likely compiled before: keep to few shapes, or warm up"
"""What to do about gaps that end when code is loaded."""
BEFORE_CODE: Final = "before code is loaded"
OF_PROFILER: Final = f", {Cause.PROFILER.label}"
CAUSES: Final = {
    Cause.LAUNCH_LATENCY: Words(
        "launch earlier, or capture the phase as a CUDA graph",
        "the host may need a result of the GPU before it can launch",
        "nsys-tui stalls REPORT",
    ),
    Cause.PROFILER: Words(
        "caused by profiling: trace less, or flush less often",
        "without the profiler something else may hold the GPU up",
        "nsys profile --cuda-flush-interval=10000 --sample=none",
    ),
    Cause.MODULE: Words(
        COMPILES,
        "the host may do something else before it loads code",
        "nsys-tui stacks REPORT --source cpu",
        needs=Capability.SAMPLES,
    ),
    Cause.QUEUE: Words(
        "too many launches are queued: launch fewer, or as one CUDA graph",
        "another process or the profiler may have filled the queue",
        "",
    ),
    Cause.ALLOCATION: Words(
        "allocate once before, reuse the memory, and free at the end",
        "the call may wait for GPU work that would be waited for anyway",
        "nsys-tui stalls REPORT",
    ),
    Cause.MPI: Words(
        "see which rank comes late to it, or let kernels run meanwhile (non-blocking calls)",
        "the message itself takes time, too, and copies of the GPU's memory may be part of it",
        "nsys-tui stalls REPORT",
    ),
    Cause.LOCK: _in_system(
        "see which thread holds it: that one is late, or busy",
        "the thread that holds it is the cause, and this one only its victim",
        works=False,
    ),
    Cause.WAIT: _in_system(
        "see which thread should wake this one: that one is late, or busy",
        "it may end by its own time limit, or when a client has something to ask: no fault",
        works=False,
    ),
    Cause.IO: _in_system(
        "read or write ahead on another thread, so that the launching one need not wait",
        "a pipe waits for another process, whose work is then the cause",
    ),
    Cause.SLEEP: _in_system(
        "wait for the event itself instead of sleeping, or sleep on another thread",
        "the program may pace itself on purpose",
        works=False,
    ),
    Cause.OSRT: _in_system(
        "take the call off the launching thread, or make it ahead of time",
        "the call may itself wait for a thread whose work is the cause",
    ),
    Cause.API: Words(
        "leave the call out, or make it earlier", "what the call waited for is not recorded", ""
    ),
    Cause.HOST: Words(
        "launch ahead of what the host computes here, or move it to another thread",
        "the GPU may need what the host computes: then only faster code helps",
        "nsys-tui stacks REPORT --source cpu",
        hidden_by_work=True,
        needs=Capability.SAMPLES,
    ),
    Cause.OFF_CPU: Words(
        "the launching thread slept or had no CPU: see in which call (--trace=osrt)",
        "what it waited for is not recorded",
        "",
    ),
    Cause.NOTHING: Words(
        "",
        "it may compute, sleep, or wait for another process",
        "",
    ),
    Cause.UNKNOWN: Words(
        "no recorded call launched what follows: record with --trace=cuda from the start",
        "the launch may lie before the capture, or in a process that was not traced",
        "nsys profile --trace=cuda",
    ),
}
"""Causes that ``gpu_idle`` reports; the others have rules of their own."""
RENDERING: Final = Words(
    "see what the frame loop does here: graphics calls are not tied to their work on the GPU",
    "a frame limit or the display may pace the program on purpose",
    "nsys-tui stalls REPORT",
)
SYNC: Final = Words(
    "leave out waits that only order work: streams keep order, events order streams",
    "the host may need the result before it can go on",
    "nsys-tui analyze REPORT -r cuda_api_sync",
)
TOLD: Final = {
    Cause.SYNC: (f", {Cause.SYNC.label} and launch", "most at "),
    Cause.LAUNCH_LATENCY: (f", {Cause.LAUNCH_LATENCY.label}", "most of "),
}
"""Causes in words, and before the call of most of it: without a wait the launch after is early."""
WAITS: Final = re.compile(
    r"_*(p?poll|p?select|epoll|recv|accept|connect)|sig(suspend|(timed)?wait)|pause$"
)
"""Calls that read nothing until somebody else sends, or go on at a signal."""
POLLS: Final = re.compile(r"cu(da)?(Event|Stream)Query")
"""Calls by which a host that asks again and again waits for the GPU."""
DRIVES: Final = re.compile(r"_*ioctl$")
"""Calls that drive a device, or wait for it, such as a camera, a display or a video engine."""
SERVES: Final = re.compile(r"_*(epoll_p?wait|accept)")
"""Calls in which the loop of a server waits for whoever comes next."""
RECEIVES: Final = re.compile(r"_*recv")
"""Calls in which a program takes what another one sent."""
LETS_IN: Final = re.compile(r"_*accept")
"""The call by which a server lets a client in."""
ANSWERS: Final = re.compile(r"_*(send(to|m?msg)?|accept4?)$")
"""Calls by which a server answers, or lets somebody in."""
WRITES: Final = re.compile(r"_*(p?writev?|send|f(write|flush|puts)|puts|putc|v?f?printf)")
"""Calls by which a program may ask for an answer."""
CONNECTS: Final = re.compile(r"_*connect$")
"""The call by which a client asks for a server's attention."""
TRAINS: Final = re.compile(r"(?i)\b(train|epoch|backward|optimizer)")
"""Names of ranges that no server has."""
FORKS: Final = re.compile(r"_*v?fork$")
"""Calls that start a process of one's own."""
REAPS: Final = re.compile(r"_*wait(pid|id|3|4)?$")
"""Calls by which a process learns that one of its own has ended."""
SIGNALS: Final = re.compile(
    r"pthread_cond_(signal|broadcast)|cnd_(signal|broadcast)|sem_post|futex"
)
"""Calls that wake a waiting thread."""
REQUESTS: Final = "no fault if nobody asked: else send requests sooner, or let other work run"
PACED: Final = "no fault where the rate is meant so: else raise it"
ASKED: Final = "no fault if that one asks and this one answers: else ask for its data ahead"
DEVICE: Final = "no fault where that device sets the pace: else ask it for less, or sooner"
GIVEN: Final = "no fault if it has nothing to do: else see who is to give it work, and comes late"
LOOKS: Final = "no fault if nothing was due: else see what comes late"
"""What to do about a thread that sleeps again and again until what it looks for is there."""
INPUT: Final = "no fault where a person or another program answers: else ask ahead of need"
MEANT: Final = {
    REQUESTS: "for lack of requests",
    GIVEN: "for work from elsewhere",
    PACED: "to keep its rate",
    ASKED: "for another program",
    INPUT: "for input",
    DEVICE: "for another device",
    LOOKS: "until something comes",
}
"""Advice on idle time that is no fault, and what the verdict says of it."""
ON_FLAG: Final = (
    "keep these few bytes in pinned memory: at each launch their page goes there and back"
)
ON_PAGES: Final = "the host works on pages of the GPU: compute there, or prefetch the pages back"
PAGES: Final = (ON_FLAG, ON_PAGES)
HELPERS: Final = (
    "start more of them, or make them quicker: let them prefetch, and keep running",
    "keep them running, so that they work ahead: new ones start before each of these waits",
)
"""What to do about waits for processes of one's own, and for such as are started each time."""
CHILD: Final = "start that process ahead of time, keep it running, or keep what it made"
LATE_RANK: Final = "see what the rank of {} does before: the others wait for it"
LATE_THREAD: Final = "make that thread quicker, or let it start earlier: this one waits for it"
ALSO_WAITS: Final = "that thread waits itself: see for which one, or for what from outside"
PACES: Final = {PACED: "the rate is higher"} | dict.fromkeys(
    (ALSO_WAITS, GIVEN, REQUESTS, INPUT), "what is waited for comes sooner"
)
"""Advice on what alone ends the waits, and what has to happen before anything else counts."""
NO_CPU: Final = "other threads have the CPUs: run fewer of them, or bind this one to a core"
SPREAD: Final = (
    "spread that GPU's work, or give this one some meanwhile",
    "let them overlap: launch the work of all before waiting, in more and smaller batches",
    "it has no more work, but begins later: launch for each GPU from a thread of its own",
)
ALIKE: Final = 2
"""Which of these is for a GPU that is not busier than the one that waits."""
AWAITED: Final = "see who is to send what it waits for: late or busy, or a client that asks nothing"
HOST_FUNCTION: Final = "shorten that function, or let a thread of its own wait for an event instead"
WAIT_ONCE: Final = "wait once for many of them"
READ_SELDOM: Final = "let the host read results less often"
WAIT_LESS: Final = "wait for the GPU less often, so that launches queue up; or "
NEXT_GRAPH: Final = "launch the next graph before this one ends, or let one graph do more"
HELD_LAUNCH: Final = (
    "see what the launch waits for: a lock, pages of host memory, a first use",
    "launch the graph before the work ahead of it ends: its launch takes the longer the more nodes",
)
"""What to do about a launch that takes long itself: of a kernel, of a graph."""
OWN_THREADS: Final = "launch for each GPU or stream from a thread of its own"
BEFORE_LAUNCH: Final = (
    ("of other work comes first", OWN_THREADS),
    ("outlasts what it launched", "fuse kernels, or capture the phase as a CUDA graph"),
)
"""Launch calls before the one that ends a gap: of other GPUs' work, or of its own."""
CALLS: Final = "leave these calls out, or make them earlier: nsys-tui stalls names them"
KEPT: Final = (
    (
        re.compile(r"cu(da)?Graph(?!ExecUpdate|ics)"),
        "build the graph once, then update it (ExecUpdate)",
    ),
    (re.compile(r"cu(da)?(Stream|Event)(Create|Destroy)"), "create them once, and use them again"),
)
"""What to do about calls other than launches, by their names."""
LAUNCHES: Final = ("cudaLaunch", "cuLaunch", "cudaGraphLaunch", "cuGraphLaunch")
ON_DEVICE: Final = Words(
    "see what holds it up: work of another GPU or rank, a host function, another program",
    "it may wait for work that nothing can bring forward, or that is not in this report",
    "nsys-tui stalls REPORT",
)
QUEUED: Final = {
    Cause.PEER: "waits for other ranks",
    Cause.EVENT: "its stream waits for an event",
    Cause.STREAM: "launched in time, begins late, why is not recorded",
}
"""What the GPU itself waits for, where no other GPU of the report works meanwhile."""
BY_DOING: Final = {
    Doing.POLLS: "the thread polls for another rank: see what that rank does, or overlap the wait",
    Doing.TEAM: "spread its parallel loop evenly over the threads, or launch from outside of it",
    Doing.COMPILES: "code is compiled here: warm up first, ship it for this GPU, or keep a cache",
    Doing.SETS_UP: "do so once, before the work, and keep the library's handle or plan",
    Doing.DRIVER: "the time goes to CUDA's driver: see the calls around it",
}
ELSEWHERE: Final = (*BY_DOING.values(), ON_DEVICE.advice)
"""Advice on time that the launching thread's own work does not explain."""
NO_PRICE: Final = (*MEANT, ALSO_WAITS, ON_DEVICE.advice, *RETURNS_LATE)
"""Advice on idle time that nobody can tell a price of, or that is no fault."""
_OTHERS: Final = [BY_DOING[one] for one in BY_DOING if one is not Doing.DRIVER]
WHOLE: Final = (AWAITED, ALSO_WAITS, CHILD, LATE_THREAD, ON_FLAG, *_OTHERS, *MEANT)
"""Advice on what takes no time where others are quick or it is done before, and no fault."""


def hiding(advice: str, idle: int, work: int) -> str:
    """Advice to hide idle time behind GPU work, with how much that can hide where it is less."""
    if idle <= work:
        return advice
    return f"{advice}; that hides {format_duration(work)} at most, quicker code the rest"
