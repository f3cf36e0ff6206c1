"""A small language for tests: says events in a few words and gets an nsys export of any generation.

    report = (
        Synth(tmp_path / "r.sqlite")
        .process(100, "train")
        .nvtx("step 1", 0, 900)
        .launch("gemm(float*)", call=(10, 20), gpu=(100, 400))
        .write()
    )

Every event goes to the process named last; ``tid`` defaults to its main thread (tid = pid). Every
method takes further columns by their nsys name. Columns a generation does not have are left out of
its file; columns no generation has are an error (``raw`` writes those). Tables exist only where a
row does, as in real exports; ``empty_tables`` and ``omit_tables`` change that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from synth_base import HW_VM, global_pid, global_tid
from synth_gpu import COPY_KINDS, MEMORY, NONE32, SYNC_TYPES, GpuEvents

from nsys_tui.demo import schema

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "COPY_KINDS",
    "HW_VM",
    "MEMORY",
    "NONE32",
    "SYNC_TYPES",
    "Synth",
    "global_pid",
    "global_tid",
]


class Synth(GpuEvents):
    """One report to be; see the module for how it reads."""

    def thread(self, tid: int, name: str, **columns: Any) -> Self:
        return self.add(
            "ThreadNames",
            nameId=self.string(name),
            priority=20,
            globalTid=self.gtid(tid),
            **columns,
        )

    def gpu(
        self, id: int = 0, name: str = "Test GPU", cu_device: int | None = None, **columns: Any
    ) -> Self:
        limits = {
            "vmId": self.hw_vm << 48, "busLocation": f"0000:{id + 1:02x}:00.0", "isDiscrete": 1,
            "totalMemory": 80 * 10**9, "memoryBandwidth": 2_039_000_000_000, "smCount": 108,
            "clockRate": 1_410_000_000, "maxRegistersPerSm": 65536, "maxRegistersPerBlock": 65536,
            "maxShmemPerSm": 167936, "maxShmemPerBlock": 49152, "maxShmemPerBlockOptin": 166912,
            "threadsPerWarp": 32, "maxWarpsPerSm": 64, "maxBlocksPerSm": 32,
            "maxThreadsPerBlock": 1024, "computeMajor": 8, "computeMinor": 0, "smMajor": 8,
            "smMinor": 0,
        }  # fmt: skip
        device = id if cu_device is None else cu_device
        return self.add("TARGET_INFO_GPU", id=id, name=name, cuDevice=device, **limits | columns)

    def cuda_device(self, pid: int, cuda_id: int, gpu_id: int, **columns: Any) -> Self:
        """Says which physical GPU a process's CUDA ordinal is."""
        return self.add("TARGET_INFO_CUDA_DEVICE", gpuId=gpu_id, cudaId=cuda_id, pid=pid, **columns)

    def stream_info(
        self,
        stream: int,
        *,
        context: int = 1,
        priority: int = 0,
        flag: int = 2,
        name: str = "",
        device: int = 0,
    ) -> Self:
        """Adds a row for a stream, and its user name where one is given."""
        place = {"hwId": self.hw_vm >> 8, "vmId": self.hw_vm & 0xFF, "processId": self.pid}
        place |= {"contextId": context, "streamId": stream}
        self.add("TARGET_INFO_CUDA_STREAM", priority=priority, flag=flag, **place)
        if name:
            self.add("TARGET_INFO_NVTX_CUDA_STREAM", name=name, deviceId=device, **place)
        return self

    def context_info(
        self, context: int = 1, device: int = 0, null_stream: int = 7, **columns: Any
    ) -> Self:
        """Says which stream is the null stream, in the table of the generation."""
        place = {"hwId": self.hw_vm >> 8, "vmId": self.hw_vm & 0xFF, "processId": self.pid}
        place |= {"contextId": context, "deviceId": device}
        if "TARGET_INFO_CUDA_NULL_STREAM" in schema.tables(self.generation):
            return self.add("TARGET_INFO_CUDA_NULL_STREAM", streamId=null_stream, **place)
        return self.add(
            "TARGET_INFO_CUDA_CONTEXT_INFO", nullStreamId=null_stream, **place | columns
        )

    def launch(
        self,
        name: str,
        call: tuple[int, int],
        gpu: tuple[int, int],
        *,
        tid: int | None = None,
        api: str = "cudaLaunchKernel_v7000",
        **kernel: Any,
    ) -> Self:
        """A kernel together with the API call that launched it, under one correlation id."""
        corr = kernel.pop("corr", None) or self.next_correlation()
        return self.api(api, *call, tid=tid, corr=corr).kernel(name, *gpu, corr=corr, **kernel)

    def api(
        self,
        name: str,
        start: int,
        end: int,
        *,
        tid: int | None = None,
        corr: int | None = None,
        event_class: int = 0,
        returned: int = 0,
        frames: Sequence[str] = (),
        **columns: Any,
    ) -> Self:
        """A CUDA API call; ``event_class`` 0 runtime, 1 driver, 67 the backtrace duplicate."""
        chain = self.chain("CUDA_CALLCHAINS", frames) if frames else None
        return self.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME", start=start, end=end, eventClass=event_class,
            globalTid=self.gtid(tid),
            correlationId=self.next_correlation() if corr is None else corr,
            nameId=self.string(name),
            returnValue=returned, callchainId=chain, **columns,
        )  # fmt: skip

    def nvtx(
        self,
        name: str | None,
        start: int,
        end: int | None = None,
        *,
        tid: int | None = None,
        type: int = 59,
        domain: int = 0,
        registered: bool = False,
        end_tid: int | None = None,
        color: int | None = None,
        category: int | None = None,
        json: str | None = None,
        **columns: Any,
    ) -> Self:
        """A range (59 push/pop, 60 start/end); end None leaves it open; ``json`` is its payload."""
        text = {"textId": self.string(name)} if registered and name is not None else {"text": name}
        return self.add(
            "NVTX_EVENTS", start=start, end=end, eventType=type, color=color, category=category,
            globalTid=self.gtid(tid), endGlobalTid=None if end_tid is None else self.gtid(end_tid),
            domainId=domain, jsonText=json, **text | columns,
        )  # fmt: skip

    def mark(self, name: str, t: int, **columns: Any) -> Self:
        return self.nvtx(name, t, None, type=34, **columns)

    def domain(self, id: int, name: str, t: int = 0, **columns: Any) -> Self:
        return self.nvtx(name, t, None, type=75, domain=id, **columns)

    def osrt(
        self,
        name: str,
        start: int,
        end: int,
        *,
        tid: int | None = None,
        nesting: int | None = 0,
        frames: Sequence[str] = (),
        **columns: Any,
    ) -> Self:
        chain = self.chain("OSRT_CALLCHAINS", frames) if frames else 0
        return self.add(
            "OSRT_API", start=start, end=end, eventClass=27, globalTid=self.gtid(tid),
            nameId=self.string(name), returnValue=0, nestingLevel=nesting, callchainId=chain,
            argumentsId=0, **columns,
        )  # fmt: skip

    def sample(
        self,
        t: int,
        frames: Sequence[str] = ("main",),
        *,
        tid: int | None = None,
        cpu: int = 0,
        state: int = 1,
        cycles: int = 1_000_000,
        module: str = "python3",
        **columns: Any,
    ) -> Self:
        """One CPU sample; frames from the leaf outwards, none for a sample without a chain."""
        id_ = self.chains["SAMPLING_CALLCHAINS"] = self.chains["SAMPLING_CALLCHAINS"] + 1
        if frames:
            self.chain_rows("SAMPLING_CALLCHAINS", id_, frames, module)
        return self.add(
            "COMPOSITE_EVENTS", id=id_, start=t, cpu=cpu, threadState=state,
            globalTid=self.gtid(tid), cpuCycles=cycles, **columns,
        )  # fmt: skip

    def sched(
        self, t: int, switched_in: bool, *, tid: int | None = None, cpu: int = 0, **columns: Any
    ) -> Self:
        return self.add(
            "SCHED_EVENTS",
            start=t,
            cpu=cpu,
            isSchedIn=int(switched_in),
            globalTid=self.gtid(tid),
            **columns,
        )

    def overhead(
        self,
        name: str,
        start: int,
        end: int,
        *,
        tid: int | None = None,
        type: int = 0,
        **columns: Any,
    ) -> Self:
        """A PROFILER_OVERHEAD row."""
        return self.add(
            "PROFILER_OVERHEAD", start=start, end=end, globalTid=self.gtid(tid),
            nameId=self.string(name), returnValue=0, overheadType=type, **columns,
        )  # fmt: skip

    def cuda_overhead(
        self,
        name: str,
        start: int,
        end: int,
        type: int,
        *,
        tid: int | None = None,
        corr: int = 0,
        **columns: Any,
    ) -> Self:
        """A CUPTI_ACTIVITY_KIND_OVERHEAD row: 2 JIT, 6 module loading, 7 lazy loading, 8 full."""
        return self.add(
            "CUPTI_ACTIVITY_KIND_OVERHEAD", start=start, end=end, eventClass=103,
            globalTid=self.gtid(tid), correlationId=corr, nameId=self.string(name),
            overheadType=type, **columns,
        )  # fmt: skip

    def mpi(
        self,
        name: str,
        start: int,
        end: int,
        kind: str = "collective",
        *,
        tid: int | None = None,
        size: int | None = None,
        **columns: Any,
    ) -> Self:
        """An MPI call; kind is collective, p2p, wait or other."""
        table = {
            "collective": "MPI_COLLECTIVES_EVENTS", "p2p": "MPI_P2P_EVENTS",
            "wait": "MPI_START_WAIT_EVENTS", "other": "MPI_OTHER_EVENTS",
        }[kind]  # fmt: skip
        sized = {"size": size} if kind in ("collective", "p2p") else {}
        return self.add(
            table, start=start, end=end, globalTid=self.gtid(tid), textId=self.string(name),
            **sized | columns,
        )  # fmt: skip

    def mpi_rank(self, rank: int, tid: int | None = None) -> Self:
        return self.add("MPI_RANKS", globalTid=self.gtid(tid), rank=rank)

    def diagnostic(
        self, text: str, severity: int = 1, t: int = 0, source: int = 3, **columns: Any
    ) -> Self:
        return self.add(
            "DIAGNOSTIC_EVENT", timestamp=t, timestampType=1, source=source, severity=severity,
            text=text, globalPid=self.gpid(), **columns,
        )  # fmt: skip

    def meta(self, name: str, value: str, *, capture: bool = False) -> Self:
        """A metadata row; export metadata goes to the table of the generation."""
        old = "EXPORT_META_DATA" in schema.tables(self.generation)
        export = "EXPORT_META_DATA" if old else "META_DATA_EXPORT"
        return self.add("META_DATA_CAPTURE" if capture else export, name=name, value=value)

    def session(
        self, duration: int, start: int = 7_000_000_000, utc: int = 1_780_000_000_000_000_000
    ) -> Self:
        """Adds the session's length and its UTC start."""
        self.add(
            "TARGET_INFO_SESSION_START_TIME",
            utcEpochNs=utc,
            utcTime="",
            localTime="",
            systemClockNs=start,
        )
        return self.add(
            "ANALYSIS_DETAILS", globalVid=self.hw_vm << 48, duration=duration, startTime=start,
            stopTime=start + duration,
        )  # fmt: skip

    def environment(self, name: str, value: str, device: str = "Device") -> Self:
        return self.add(
            "TARGET_INFO_SYSTEM_ENV", globalVid=self.hw_vm << 48, devStateName=device, name=name,
            nameEnum=0, value=value,
        )  # fmt: skip
