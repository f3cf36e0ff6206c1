"""GPU work for ``synth``: kernels, copies, graphs, waits, memory, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from synth_base import Base

if TYPE_CHECKING:
    from collections.abc import Sequence

NONE32 = 2**32 - 1
COPY_KINDS = {
    "HtoD": 1,
    "DtoH": 2,
    "DtoD": 8,
    "HtoH": 9,
    "PtoP": 10,
    "UVM HtoD": 11,
    "UVM DtoH": 12,
}
MEMORY = {"pageable": 0, "pinned": 1, "device": 2, "array": 3, "managed": 4, "unknown": 7}
SYNC_TYPES = {"event": 1, "stream wait": 2, "stream": 3, "context": 4}


class GpuEvents(Base):
    """What a GPU did, and what the host waited for."""

    def kernel(
        self,
        name: str,
        start: int,
        end: int,
        *,
        stream: int = 7,
        device: int = 0,
        corr: int | None = None,
        short: str | None = None,
        mangled: str | None = None,
        grid: Sequence[int] = (1, 1, 1),
        block: Sequence[int] = (128, 1, 1),
        context: int = 1,
        **columns: Any,
    ) -> Self:
        """A kernel; ``short`` defaults to the name before ``(`` and ``<``, without return type."""
        base = name.split("(")[0].split("<")[0].split(" ")[-1] or name
        shape = {
            f"{what}{axis}": size
            for what, sizes in (("grid", grid), ("block", block))
            for axis, size in zip("XYZ", sizes, strict=True)
        }
        fixed = {
            "demangledName": self.string(name),
            "shortName": self.string(base if short is None else short),
            "mangledName": self.string(mangled if mangled is not None else f"_Z{len(base)}{base}v"),
            "launchType": 1, "cacheConfig": 1, "registersPerThread": 32,
            "sharedMemoryExecuted": 32768, "tensorSizeMinusOneElements": "[]",
        }  # fmt: skip
        where = self.place(start, end, device, stream, context, corr)
        return self.add("CUPTI_ACTIVITY_KIND_KERNEL", **where | shape | fixed | columns)

    def memcpy(
        self,
        start: int,
        end: int,
        *,
        bytes: int = 1024,
        kind: int | str = "HtoD",
        src: int | str | None = None,
        dst: int | str | None = None,
        stream: int = 7,
        device: int = 0,
        corr: int | None = None,
        context: int = 1,
        **columns: Any,
    ) -> Self:
        """A copy; memory kinds by name (``pageable``, ``pinned``, ``device``...) or number."""
        number = COPY_KINDS[kind] if isinstance(kind, str) else kind
        src = ("pinned" if number == 1 else "device") if src is None else src
        dst = ("pinned" if number == 2 else "device") if dst is None else dst
        fixed = {
            "bytes": bytes,
            "copyKind": number,
            "srcKind": _memory(src),
            "dstKind": _memory(dst),
            "copyCount": 1,
        }
        where = self.place(start, end, device, stream, context, corr)
        return self.add("CUPTI_ACTIVITY_KIND_MEMCPY", **where | fixed | columns)

    def memset(
        self,
        start: int,
        end: int,
        *,
        bytes: int = 1024,
        value: int = 0,
        stream: int = 7,
        device: int = 0,
        corr: int | None = None,
        context: int = 1,
        **columns: Any,
    ) -> Self:
        where = self.place(start, end, device, stream, context, corr)
        fixed = {"bytes": bytes, "value": value, "memKind": 2}
        return self.add("CUPTI_ACTIVITY_KIND_MEMSET", **where | fixed | columns)

    def render(
        self,
        library: str,
        start: int,
        end: int,
        *,
        gpu: int | None = 0,
        call: str = "",
        marker: str = "",
        context: int | None = 9,
    ) -> Self:
        """GPU work of ``OPENGL``, ``VULKAN`` or ``DX12``; with a marker, the range of its text."""
        where = "shortContextId" if library == "DX12" else "contextId"
        text = {"textId": self.string(marker)} if marker else {}
        return self.add(
            f"{library}_WORKLOAD", start=start, end=end, gpu=gpu, globalTid=self.gtid(None),
            nameId=self.string(call), eventClass=54, correlationId=1, endCorrelationId=2,
            **{where: context}, **text,
        )  # fmt: skip

    def gpu_fault(self, start: int, end: int, address: int = 1, device: int = 0) -> Self:
        """A GPU serves seven page faults at one address."""
        return self.add(
            "CUDA_UM_GPU_PAGE_FAULT_EVENTS", start=start, end=end, globalPid=self.gpid(),
            deviceId=device, address=address, numberOfPageFaults=7, faultAccessType=1,
        )  # fmt: skip

    def page_faults(self, gpu: int, cpu: int) -> Self:
        """Seven faults of a GPU at one address, and one of the host at another, in ``main``."""
        self.gpu_fault(1, 2, address=gpu)
        return self.add(
            "CUDA_UM_CPU_PAGE_FAULT_EVENTS", start=1, globalPid=self.gpid(), address=cpu,
            CpuInstruction=self.string("main+0x10"),
        )  # fmt: skip

    def graph(
        self,
        start: int,
        end: int,
        *,
        graph: int = 1,
        executable: int = 2,
        stream: int = 7,
        device: int = 0,
        corr: int | None = None,
        context: int = 1,
        **columns: Any,
    ) -> Self:
        """One launch of a CUDA graph, traced as a whole."""
        where = self.place(start, end, device, stream, context, corr)
        fixed = {"graphId": graph, "graphExecId": executable}
        return self.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", **where | fixed | columns)

    def graph_event(
        self, event_class: int, t: int, *, tid: int | None = None, name: str = "", **columns: Any
    ) -> Self:
        """95 graph creation, 94 executable creation, 96 clone; give graphId, graphExecId..."""
        return self.add(
            "CUDA_GRAPH_EVENTS", start=t, end=t, eventClass=event_class, globalTid=self.gtid(tid),
            nameId=self.string(name), **columns,
        )  # fmt: skip

    def sync(
        self,
        start: int,
        end: int,
        type: int | str = "stream",
        *,
        stream: int = 7,
        device: int = 0,
        corr: int | None = None,
        event: int = NONE32,
        context: int = 1,
        **columns: Any,
    ) -> Self:
        """A host-side wait; ``type`` is event, stream wait, stream, context or a number."""
        number = SYNC_TYPES[type] if isinstance(type, str) else type
        where = self.place(start, end, device, stream, context, corr)
        fixed = {"syncType": number, "eventId": event, "eventSyncId": 0}
        return self.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", **where | fixed | columns)

    def cuda_event(
        self,
        t: int,
        event: int,
        *,
        stream: int = 7,
        device: int = 0,
        corr: int | None = None,
        **columns: Any,
    ) -> Self:
        where = self.place(0, 0, device, stream, 1, corr)
        del where["start"], where["end"]
        return self.add(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT", timestamp=t, eventId=event, **where | columns
        )

    def memory_usage(
        self,
        t: int,
        bytes: int,
        free: bool = False,
        *,
        device: int = 0,
        context: int = 1,
        address: int = 0x7F00_0000_0000,
        kind: int | str = "device",
        name: str | None = None,
        corr: int = 0,
        **columns: Any,
    ) -> Self:
        """An allocation or release of GPU memory."""
        return self.add(
            "CUDA_GPU_MEMORY_USAGE_EVENTS", start=t, globalPid=self.gpid(), deviceId=device,
            contextId=context, address=address, pc=0, bytes=bytes, memKind=_memory(kind),
            memoryOperationType=int(free), name=name, correlationId=corr, **columns,
        )  # fmt: skip

    def gpu_metric(self, t: int, metric: str, value: int, *, gpu: int = 0, **columns: Any) -> Self:
        """One sample of a GPU metric; its name row is added the first time."""
        type_id = self.hw_vm << 48 | 1 << 32 | gpu
        known = self.rows.setdefault("TARGET_INFO_GPU_METRICS", [])
        names = [row["metricName"] for row in known if row["typeId"] == type_id]
        if metric not in names:
            self.add(
                "TARGET_INFO_GPU_METRICS", typeId=type_id, sourceId=1, typeName="GPU metrics",
                metricId=len(names), metricName=metric,
            )  # fmt: skip
            names.append(metric)
        return self.add(
            "GPU_METRICS", rawTimestamp=t, timestamp=t, typeId=type_id,
            metricId=names.index(metric), value=value, **columns,
        )  # fmt: skip


def _memory(kind: int | str) -> int:
    return MEMORY[kind] if isinstance(kind, str) else kind
