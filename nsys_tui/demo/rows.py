"""Turns a simulated run into rows of nsys's tables, by column name and for any generation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from nsys_tui.demo import session
from nsys_tui.demo.events import GRAPH, KERNEL, MEMCPY, MEMSET, Operation, RankInfo, Trace
from nsys_tui.demo.tables import HW_VM, Row, Tables, global_tid

GRAPH_ID, EXECUTABLE_ID = 1, 2
_RUNNING: Final = 1
"""State of a thread that is sampled."""

_OPERATION_TABLES: Final = {
    KERNEL: "CUPTI_ACTIVITY_KIND_KERNEL",
    MEMCPY: "CUPTI_ACTIVITY_KIND_MEMCPY",
    MEMSET: "CUPTI_ACTIVITY_KIND_MEMSET",
    GRAPH: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
}


class Rows(Tables):
    """The rows of every table for one simulated run."""

    def __init__(self, trace: Trace, generation: str, own_devices: bool) -> None:
        super().__init__(trace, generation, own_devices)
        self._chains = {"SAMPLING_CALLCHAINS": 0, "OSRT_CALLCHAINS": 0, "CUDA_CALLCHAINS": -1}
        self._known_chains: dict[tuple[str, tuple[str, ...]], int] = {}
        self._fill()

    def _fill(self) -> None:
        self._gpu_work()
        self._host_calls()
        self._nvtx()
        self._costs_and_memory()
        self._sampling()
        for info in self.trace.ranks:
            session.describe_process(self, info)
        session.describe_machine(self)
        for value, id_ in self.strings.items():
            self.add("StringIds", id=id_, value=value)

    def _where(self, rank: int, stream: int) -> Row:
        return {
            "deviceId": self.device(rank),
            "contextId": 1,
            "greenContextId": 0,
            "streamId": stream,
            "globalPid": global_tid(self.pid(rank)),
        }

    def _gpu_work(self) -> None:
        for number, o in enumerate(sorted(self.trace.operations, key=lambda o: (o.start, o.rank))):
            row = self._where(o.rank, o.stream)
            row |= {"start": o.start, "end": o.end, "correlationId": o.correlation}
            self.add(_OPERATION_TABLES[o.kind], o.phase, **row | self._details(o, number))
        for sync in _by_start(self.trace.syncs):
            row = self._where(sync.rank, sync.stream)
            row |= {"start": sync.start, "end": sync.end, "correlationId": sync.correlation}
            row |= {"syncType": sync.kind, "eventId": sync.event, "eventSyncId": 0}
            self.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", sync.phase, **row)
        for record in self.trace.event_records:
            row = self._where(record.rank, record.stream)
            row |= {"timestamp": record.timestamp, "correlationId": record.correlation}
            row |= {"eventId": record.event, "eventSyncId": record.event}
            self.add("CUPTI_ACTIVITY_KIND_CUDA_EVENT", record.phase, **row)

    def _details(self, o: Operation, number: int) -> Row:
        if o.kind == GRAPH:
            return {"graphId": GRAPH_ID, "graphExecId": EXECUTABLE_ID}
        if o.kind == MEMSET:
            return {"bytes": o.bytes, "value": 0, "memKind": 2}
        if o.kind == MEMCPY:
            kinds = {"srcKind": o.source, "dstKind": o.target, "copyKind": o.copy_kind}
            return kinds | {"bytes": o.bytes, "copyCount": 1}
        assert o.kernel is not None
        k = o.kernel
        shape = zip(
            ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), k.grid + k.block, strict=True
        )
        return dict(shape) | {
            "demangledName": self.string(k.full),
            "shortName": self.string(k.short),
            "mangledName": self.string(f"_Z{len(k.short)}{k.short}"),
            "launchType": 1,
            "cacheConfig": 1,
            "registersPerThread": k.registers,
            "staticSharedMemory": k.static_shared,
            "dynamicSharedMemory": k.dynamic_shared,
            "sharedMemoryExecuted": 102_400,
            "localMemoryTotal": 144_703_488,
            "gridId": number + 1,
            "clusterX": 0,
            "clusterY": 0,
            "clusterZ": 0,
            "tensorSizeMinusOneElements": "[]",
        }

    def _host_calls(self) -> None:
        for call in _by_start(self.trace.calls):
            row = {"globalTid": global_tid(self.pid(call.rank), call.tid), "returnValue": 0}
            row |= {"start": call.start, "end": call.end, "correlationId": call.correlation}
            row |= {"eventClass": int(call.driver), "nameId": self.string(call.name)}
            table = "CUPTI_ACTIVITY_KIND_RUNTIME"
            self.add(table, call.phase, **row, callchainId=None)
            if call.frames:
                around = {"start": call.start - 700, "end": call.end + 300, "eventClass": 67}
                plain = {"nameId": self.string(call.name.partition("_v")[0])}
                chain = self._chain("CUDA_CALLCHAINS", call.frames, "libgpt2.so")
                self.add(table, call.phase, **row | around | plain, callchainId=chain)
        for wait in _by_start(self.trace.os_calls):
            self.add(
                "OSRT_API",
                wait.phase,
                start=wait.start,
                end=wait.end,
                eventClass=27,
                globalTid=global_tid(self.pid(wait.rank), wait.tid),
                nameId=self.string(wait.name),
                returnValue=0,
                nestingLevel=0,
                callchainId=self._chain("OSRT_CALLCHAINS", wait.frames, "libc.so.6"),
                argumentsId=0,
            )

    def _nvtx(self) -> None:
        for r in _by_start(self.trace.ranges):
            pid = self.pid(r.rank)
            ended = None if r.end_tid in (None, r.tid) else global_tid(pid, r.end_tid or 0)
            named = {"textId": self.string(r.name)} if r.registered else {"text": r.name}
            self.add("NVTX_EVENTS", r.phase, **named, start=r.start, end=r.end,
                     eventType=r.event_type, category=r.category,
                     globalTid=global_tid(pid, r.tid),
                     endGlobalTid=ended, domainId=r.domain, jsonText=r.payload)  # fmt: skip

    def _costs_and_memory(self) -> None:
        for cost in _by_start(self.trace.overheads):
            row = {"start": cost.start, "end": cost.end, "nameId": self.string(cost.name)}
            row |= {"globalTid": global_tid(self.pid(cost.rank), cost.tid), "returnValue": 0}
            if cost.kind in (2, 6, 7, 8):
                row |= {"eventClass": 103, "correlationId": 0, "overheadType": cost.kind}
                del row["returnValue"]
                self.add("CUPTI_ACTIVITY_KIND_OVERHEAD", **row)
            else:
                self.add("PROFILER_OVERHEAD", **row | {"overheadType": cost.kind})
        for use in _by_start(self.trace.memory):
            self.add("CUDA_GPU_MEMORY_USAGE_EVENTS", start=use.start, bytes=use.bytes, memKind=2,
                     globalPid=global_tid(self.pid(use.rank)), deviceId=self.device(use.rank),
                     contextId=1, address=use.address, pc=0, memoryOperationType=int(use.freed),
                     correlationId=use.correlation)  # fmt: skip
        for rank, start, event_class, id_ in self.trace.graph_nodes:
            instantiated = event_class == 94
            self.add("CUDA_GRAPH_EVENTS", start=start, end=start, eventClass=event_class,
                     globalTid=global_tid(self.pid(rank), self.pid(rank)),
                     nameId=self.string("cudaGraphInstantiate" if instantiated else "cudaGraph"),
                     graphNodeId=id_, graphId=GRAPH_ID,
                     graphExecId=id_ if instantiated else None)  # fmt: skip

    def _sampling(self) -> None:
        for sample in _by_start(self.trace.samples):
            id_ = self._chain("SAMPLING_CALLCHAINS", sample.frames, "libgpt2.so", share=False)
            self.add("COMPOSITE_EVENTS", id=id_, start=sample.start, cpu=sample.cpu,
                     threadState=_RUNNING, cpuCycles=2_450_000,
                     globalTid=global_tid(self.pid(sample.rank), sample.tid))  # fmt: skip
        for switch in _by_start(self.trace.switches):
            self.add("SCHED_EVENTS", start=switch.start, cpu=switch.cpu,
                     isSchedIn=int(switch.switched_in),
                     globalTid=global_tid(self.pid(switch.rank), switch.tid))  # fmt: skip
        names = list(dict.fromkeys(metric.name for metric in self.trace.metrics))
        for info in self.trace.ranks:
            for metric_id, name in enumerate(names):
                self.add("TARGET_INFO_GPU_METRICS", typeId=_metric_type(info), sourceId=1,
                         typeName="GPU Metrics [A100]", metricId=metric_id,
                         metricName=name)  # fmt: skip
        for metric in _by_start(self.trace.metrics):
            self.add("GPU_METRICS", rawTimestamp=metric.start, timestamp=metric.start,
                     typeId=_metric_type(self.trace.ranks[metric.gpu]),
                     metricId=names.index(metric.name), value=metric.value)  # fmt: skip

    def _chain(self, table: str, frames: Sequence[str], module: str, share: bool = True) -> int:
        """The id of a call chain, leaf first; 0 where there is none."""
        key = (table, tuple(frames))
        if not frames:
            return 0
        if share and key in self._known_chains:
            return self._known_chains[key]
        self._chains[table] += 1
        id_ = self._known_chains[key] = self._chains[table]
        for depth, frame in enumerate(frames):
            row = {"id": id_, "symbol": self.string(frame), "module": self.string(module)}
            row |= {"unresolved": 0, "originalIP": 0x55_0000 + row["symbol"], "stackDepth": depth}
            if table != "CUDA_CALLCHAINS":
                row |= {"kernelMode": int(frame == "ioctl"), "thumbCode": 0, "unwindMethod": 6}
            self.add(table, **row)
        return id_


def _metric_type(info: RankInfo) -> int:
    return HW_VM << 48 | 1 << 32 | info.gpu


def _by_start(records: Iterable[Any]) -> list[Any]:
    return sorted(records, key=lambda record: int(record.start))
