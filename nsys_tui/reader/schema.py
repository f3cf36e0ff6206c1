"""What nsys calls things: every table and column that is read, as data.

A column is written as ``name type``. Types: ``i`` whole number, ``r`` number, ``t`` text, ``s``
whole number that points into StringIds, ``b`` anything. Signs behind the type, and marks:

* ``!``: required. Without it, or where it is of another type, nothing of the table is believed, and
  an event without a number there is left out.
* ``?``: required, and NULL says something of an event, such as a range that was never closed.
* ``*``: the exporter declares it NOT NULL. Columns stand in the order of the files in those tables
  that the demo writes.
* ``+``: it does not, yet no row of a real report lacks a value. NULL in these and those is told.
* ``8``, ``32``: bits of the numbers in it, unsigned and signed. Others are told and taken for NULL.
* ``p!`` is a process that is also known where only one process made CUDA calls.
* ``|other``: the name in another generation. Where ``other`` is a column of its own it stands in,
  which is said.
* ``~TABLE``: required only where TABLE has rows; else what is ``lost`` without it is all.
* ``@2024.5.1``, ``<2025.5.2``: product version that brought the column, and that dropped it. Before
  and after them its absence is a fact about nsys and no loss.

A column without a mark may be absent; what cannot be known then stands in ``lost``. Columns that
are known but never read are listed too, so that those of newer versions can be told from them.
Which option records what stands in ``model.capabilities``. Nothing here reads a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from nsys_tui.model.capabilities import Capability
from nsys_tui.model.kinds import Kind

Version = tuple[int, ...]

NEWEST: Final = (3, 28, 1)
"""The newest schema version that was looked at, of nsys 2026.4."""

METADATA_TABLES: Final = ("META_DATA_EXPORT", "EXPORT_META_DATA")
"""Where the exporter notes its version and input: since 2023.3, and 2022.1 to 2023.2."""
STRINGS: Final = "StringIds"
BESIDE: Final[Mapping[str, tuple[str, ...]]] = {
    "CUPTI_ACTIVITY_KIND_OVERHEAD": ("ENUM_CUPTI_OVERHEAD_TYPE",),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("CUPTI_ACTIVITY_KIND_KERNEL",),
    "META_DATA_CAPTURE": METADATA_TABLES[:1],
    "SAMPLING_CALLCHAINS": ("COMPOSITE_EVENTS",),
    "TARGET_INFO_GPU": ("TARGET_INFO_CUDA_DEVICE",),
    "TARGET_INFO_GPU_METRICS": ("GPU_METRICS",),
    **dict.fromkeys(
        (
            "ANALYSIS_DETAILS", "PROCESSES", "TARGET_INFO_SESSION_START_TIME",
            "TARGET_INFO_SYSTEM_ENV", "ThreadNames",
        ),
        METADATA_TABLES,
    ),
}  # fmt: skip
"""Tables that every export holds in which one of some others has rows."""
COPY_KINDS: Final = (
    "Unknown", "Host-to-Device", "Device-to-Host", "Host-to-Array", "Array-to-Host",
    "Array-to-Array", "Array-to-Device", "Device-to-Array", "Device-to-Device", "Host-to-Host",
    "Peer-to-Peer", "Unified Host-to-Device", "Unified Device-to-Host", "Unified Device-to-Device",
)  # fmt: skip
"""What the numbers in copyKind mean."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of one table, in every generation that has it."""

    name: str
    """Its name in the newest generation, by which the reader calls it."""
    type: str
    """One of ``i r t s b p``."""
    required: bool = False
    may_be_null: bool = False
    """Whether an event without a value there is whole."""
    not_null: bool = False
    """Whether the exporter declares it so."""
    always: bool = False
    """Whether it has a value in every row all the same."""
    since: Version = ()
    until: Version = ()
    aliases: tuple[str, ...] = ()
    bits: int = 64
    """Of its numbers: 8 without a sign, 32 or 64 with one."""
    beside: str = ""
    """Table without whose rows it is not required."""

    @property
    def field(self) -> str:
        """Its name outside the reader: ``globalTid`` is ``global_tid``, ``nameId`` is ``name``."""
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.name).lower()
        return snake.removesuffix("_id") if self.type == "s" else snake

    @property
    def filled(self) -> bool:
        """Whether NULL in it says that a fact is lost."""
        return self.not_null or self.always or (self.required and not self.may_be_null)

    def expected(self, version: Version) -> bool:
        """Whether exports of a version have it; those of unknown version only what all have."""
        return _is_between(version, self.since, self.until)


@dataclass(frozen=True, slots=True)
class Table:
    """One table and what is lost without parts of it."""

    name: str
    """``PREFIX_*`` stands for all tables with that prefix."""
    gives: Capability | str
    """What cannot be known where a required column is absent."""
    columns: Mapping[str, Column]
    kind: Kind | None = None
    lost: Mapping[str, Capability | str] = field(default_factory=dict)
    """Column -> what cannot be known without it, though the rest of the table is used."""


def in_versions(marks: Iterable[str], version: Version) -> bool:
    """Whether a version is one of those that ``@2022.1`` and ``<2023.3.1`` name."""
    return _is_between(version, *_versions(marks))


def _is_between(version: Version, since: Version, until: Version) -> bool:
    return version >= since and not (until and version >= until)


def _versions(marks: Iterable[str]) -> tuple[Version, Version]:
    """Version that brought what has these marks, and that dropped it; empty for none."""
    edges = {mark[0]: version(mark[1:]) for mark in marks}
    return edges.get("@", ()), edges.get("<", ())


def _column(text: str) -> Column:
    names, kind, *marks = text.split()
    name, *aliases = names.split("|")
    return Column(
        name,
        kind[0],
        "!" in kind or "?" in kind,
        "?" in kind,
        "*" in kind,
        "+" in kind,
        *_versions(marks),
        tuple(aliases),
        int(kind.strip("irtsbp!?*+") or 64),
        next((mark[1:] for mark in marks if mark[0] == "~"), ""),
    )


def version(text: str) -> Version:
    """``2025.5.2.266-x`` as numbers that compare; empty where the text is no version."""
    parts = text.partition("-")[0].split(".")
    return (
        tuple(map(int, parts)) if all(part.isascii() and part.isdigit() for part in parts) else ()
    )


_TIMES: Final = "start i!*, end i!*"
_CALL: Final = f"{_TIMES}, eventClass i!*, globalTid i!, nameId s!*"
_PLACE: Final = "deviceId i32!*, contextId i!*, greenContextId i @2023.4.4, streamId i!*"
_FRAMES: Final = (
    "symbol s!*, module s!*, kernelMode i, thumbCode i, unresolved i, specialEntry i,"
    " originalIP i, unwindMethod i, stackDepth i32!*"
)
_MPI: Final = f"{_TIMES}, globalTid i!, textId s!"
_OPENACC: Final = (
    f"{_TIMES}, globalTid i!, nameId s!, eventKind i, DeviceType i, lineNo i, cuDeviceId i,"
    " cuContextId i, cuStreamId i, srcFile s, funcName s, correlationId i @2025.5"
)
_DEBUG: Final = (
    f"{_TIMES}, globalTid i!, textId s!, eventClass i, correlationId i, endCorrelationId i,"
    " nameId s, shortContextId i, longContextId i, contextId i, frameId i, gpu i, color i,"
    " commandListType i, objectName t"
)
_WORKLOAD: Final = (
    f"{_TIMES}, globalTid i!, gpu i!, nameId s!*, eventClass i*, correlationId i,"
    " endCorrelationId i"
)
_WDDM: Final = "start i!, end i, globalTid i!, gpu i!, context i!, engineType i!, packetType i"
_SHAPE: Final = (
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread",
    "staticSharedMemory", "dynamicSharedMemory",
)  # fmt: skip
_NUMBERS: Final = (
    "uint64Value", "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue",
)  # fmt: skip
_LIMITS: Final = (
    "computeMajor", "computeMinor", "maxWarpsPerSm", "maxBlocksPerSm", "maxRegistersPerSm",
    "maxShmemPerSm", "threadsPerWarp",
)  # fmt: skip


def _table(
    name: str,
    gives: Capability | str,
    columns: str,
    *,
    kind: Kind | None = None,
    lost: Mapping[str | tuple[str, ...], Capability | str] | None = None,
) -> Table:
    parsed = (_column(text) for text in columns.split(","))
    each = {
        column: what
        for columns, what in (lost or {}).items()
        for column in ((columns,) if isinstance(columns, str) else columns)
    }
    return Table(name, gives, {column.name: column for column in parsed}, kind, each)


_TABLES: Final = (
    _table(STRINGS, "the names of anything", "id i!*, value t!*"),
    _table(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        Capability.KERNELS,
        f"{_TIMES}, {_PLACE}, correlationId i+, globalPid p!, demangledName|shortName s!*,"
        " shortName|demangledName s*, mangledName|demangledName s @2022.1.1, launchType i,"
        " cacheConfig i, registersPerThread i32*, gridX i32*, gridY i32*, gridZ i32*, blockX i32*,"
        " blockY i32*, blockZ i32*, staticSharedMemory i32*, dynamicSharedMemory i32*,"
        " localMemoryPerThread i*, localMemoryTotal i*, gridId i*, sharedMemoryExecuted i,"
        " graphNodeId i, sharedMemoryLimitConfig i, qmdBulkReleaseDone i @2025.5.1,"
        " qmdPreexitDone i @2025.5.1, qmdLastCtaDone i @2025.5.1, graphId i @2025.5.1,"
        " clusterX i @2025.5.1, clusterY i @2025.5.1, clusterZ i @2025.5.1,"
        " clusterSchedulingPolicy i @2025.5.1, maxPotentialClusterSize i @2025.5.1,"
        " maxActiveClusters i @2025.5.1, sharedMemoryRequestedPercentage i @2025.6.3,"
        " tensorSizeMinusOneElements t* @2026.1.3",
        kind=Kind.KERNEL,
        lost={
            "correlationId": Capability.LAUNCH_CALLS,
            "graphNodeId": "which kernels ran inside CUDA graphs",
            "greenContextId": "green contexts of kernels",
            "localMemoryPerThread": "the local memory of kernels",
            _SHAPE: Capability.LAUNCH_SHAPES,
        },
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        Capability.COPIES,
        f"{_TIMES}, {_PLACE}, correlationId i+, globalPid p!, bytes i!*, copyKind i8!*,"
        " deprecatedSrcId i, srcKind i8+, dstKind i8+, srcDeviceId i, srcContextId i,"
        " dstDeviceId i, dstContextId i, migrationCause i8, graphNodeId i,"
        " virtualAddress i @2022.1.1, copyCount i @2025.1.3",
        kind=Kind.MEMCPY,
        lost={
            "correlationId": Capability.LAUNCH_CALLS,
            "graphNodeId": "which copies ran inside CUDA graphs",
            "greenContextId": "green contexts of copies",
            "migrationCause": "why unified memory migrated",
            ("srcKind", "dstKind"): "whether copies are of pageable memory",
            "virtualAddress": "which addresses of unified memory migrated",
        },
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_MEMSET",
        Capability.MEMSETS,
        f"{_TIMES}, deviceId i!*, contextId i!*, greenContextId i @2024.5.4, streamId i!*,"
        " correlationId i+, globalPid p!, value i*, bytes i!*, graphNodeId i, memKind i8+",
        kind=Kind.MEMSET,
        lost={
            "correlationId": Capability.LAUNCH_CALLS,
            "graphNodeId": "which memsets ran inside CUDA graphs",
            "greenContextId": "green contexts of memsets",
            "memKind": "whether memsets are of pageable memory",
            "value": "what memsets set memory to",
        },
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        Capability.GRAPHS,
        f"{_TIMES}, {_PLACE}, correlationId i?+, globalPid p!, graphId i!*, graphExecId i*",
        kind=Kind.GRAPH,
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        Capability.API,
        f"{_TIMES}, eventClass i!* @2020 ~CUDA_CALLCHAINS, globalTid i!, correlationId i+,"
        " nameId s!*, returnValue i32*, callchainId i @2020",
        kind=Kind.API,
        lost={
            "correlationId": Capability.LAUNCH_CALLS,
            "eventClass": "which CUDA calls are the driver's",
            "returnValue": "which CUDA calls failed",
            "callchainId": Capability.CUDA_BACKTRACES,
        },
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        Capability.SYNC,
        f"{_TIMES}, {_PLACE}, correlationId i?+, globalPid p!, deprecatedSyncType i @2025.1.1,"
        " syncType i8!*, eventId i*, eventSyncId i @2025.1.1",
        kind=Kind.SYNC,
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
        "CUDA events",
        "timestamp i @2025.5.1, deviceId i*, contextId i*, greenContextId i @2023.4.4,"
        " streamId i*, correlationId i, globalPid i, eventId i*, eventSyncId i @2025.5.1",
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_OVERHEAD",
        "overhead of CUDA",
        f"{_TIMES}, eventClass i*, globalTid i!, correlationId i, nameId s?, overheadType i8!*",
        kind=Kind.CUDA_OVERHEAD,
    ),
    _table(
        "CUDA_GRAPH_EVENTS",
        "when CUDA graphs were made",
        f"{_CALL}, graphNodeId i* <2022.4, originalGraphNodeId i <2022.4, graphId i @2022.4,"
        " originalGraphId i @2022.4, graphExecId i @2022.4",
    ),
    _table(
        "CUDA_GRAPH_NODE_EVENTS",
        "when nodes of CUDA graphs were made",
        f"{_CALL}, graphNodeId i*, originalGraphNodeId i",
    ),
    _table(
        "CUDA_GPU_MEMORY_USAGE_EVENTS",
        Capability.GPU_MEMORY,
        "start i!*, globalPid i!*, deviceId i!*, contextId i*, address i!*, pc i*, bytes i!*,"
        " memKind i8!*, memoryOperationType i8!*, name t, correlationId i, streamId i @2023.3,"
        " localMemoryPoolAddress i @2023.3, localMemoryPoolReleaseThreshold i @2023.3,"
        " localMemoryPoolSize i @2023.3, localMemoryPoolUtilizedSize i @2023.3,"
        " importedMemoryPoolAddress i @2023.3, importedMemoryPoolProcessId i @2023.3",
        kind=Kind.MEMORY,
        lost={"correlationId": "which CUDA call allocated memory"},
    ),
    _table(
        "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
        "CPU page faults on unified memory",
        "start i!*, globalPid i!*, address i!*, originalFaultPc i, CpuInstruction s*, module i,"
        " unresolvedFaultPc i, sourceFile i @2026.4, sourceLine i @2026.4",
        kind=Kind.UM_CPU_FAULT,
        lost={"CpuInstruction": "which instructions caused page faults"},
    ),
    _table(
        "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
        "GPU page faults on unified memory",
        f"{_TIMES}, globalPid i!*, deviceId i*, address i!*, numberOfPageFaults i!*,"
        " faultAccessType i*",
        kind=Kind.UM_GPU_FAULT,
    ),
    _table(
        "NVTX_EVENTS",
        Capability.NVTX,
        "start i!*, end i?, eventType i!*, rangeId i, category i, color i, text t?, globalTid i!,"
        " endGlobalTid i?, textId s?, domainId i?, uint64Value i, int64Value i, doubleValue r,"
        " uint32Value i, int32Value i, floatValue r, jsonTextId i, jsonText t,"
        " binaryData b @2024.6.2, eventId i @2026.4",
        kind=Kind.NVTX,
        lost={
            "category": "categories of NVTX ranges",
            "color": "colours of NVTX ranges",
            ("jsonTextId", "jsonText", "binaryData", *_NUMBERS): "payloads of NVTX ranges",
        },
    ),
    _table(
        "NVTX_PAYLOAD_SCHEMAS",
        "binary payloads of NVTX ranges",
        "domainId i!, schemaId i!, name t, type i, flags i, numEntries i, payloadSize i!,"
        " alignTo i",
    ),
    _table(
        "NVTX_PAYLOAD_SCHEMA_ENTRIES",
        "binary payloads of NVTX ranges",
        "domainId i!*, schemaId i!*, idx i*, flags i, type i!, name t!, description t,"
        " arrayOrUnionDetail i, offset i?",
    ),
    _table(
        "OSRT_API",
        Capability.OSRT,
        f"{_TIMES}, eventClass i8!*, globalTid i!, correlationId i <2022.1.1, nameId s!*,"
        " returnValue i*, nestingLevel i32?, callchainId i*, argumentsId i* @2025.5.1",
        kind=Kind.OSRT,
        lost={
            "returnValue": "what OS runtime calls returned",
            "callchainId": Capability.OSRT_BACKTRACES,
        },
    ),
    _table(
        "OSRT_CALLCHAINS", Capability.OSRT_BACKTRACES, f"id i!*, {_FRAMES}", kind=Kind.OSRT_CHAIN
    ),
    _table(
        "CUDA_CALLCHAINS",
        Capability.CUDA_BACKTRACES,
        "id i!*, symbol s!*, module s!*, unresolved i, originalIP i, stackDepth i32!*",
        kind=Kind.CUDA_CHAIN,
    ),
    _table(
        "SAMPLING_CALLCHAINS",
        "call stacks of CPU samples",
        f"id i!*, {_FRAMES}",
        kind=Kind.SAMPLE_CHAIN,
    ),
    _table(
        "COMPOSITE_EVENTS",
        Capability.SAMPLES,
        "id i!*, start i!*, cpu i32, threadState i8, globalTid i!, cpuCycles i*",
        kind=Kind.SAMPLE,
        lost={
            "cpu": "on which processor samples were taken",
            "threadState": "in which state sampled threads were",
        },
    ),
    _table(
        "SCHED_EVENTS",
        Capability.SCHED,
        "start i!*, cpu i*, isSchedIn i!*, globalTid i!, threadState i @2024.5.1,"
        " threadBlock i @2024.5.1",
        kind=Kind.SCHEDULING,
    ),
    _table(
        "PROFILER_OVERHEAD",
        "overhead of the profiler",
        f"{_TIMES}, globalTid i!, correlationId i <2022.1.1, nameId s!*, returnValue i* <2025.5.2,"
        " overheadType i8* @2025.5.2",
        kind=Kind.PROFILER_OVERHEAD,
        lost={"overheadType": "of which type profiler overhead is, but by its name"},
    ),
    _table("SYSCALL", "system calls", f"{_TIMES}, globalTid i!, nameId s!", kind=Kind.SYSCALL),
    _table(
        "CUDNN_EVENTS",
        "cuDNN calls",
        f"{_TIMES}, eventClass i*, globalTid i!, nameId s!*",
        kind=Kind.CUDNN,
    ),
    _table(
        "CUBLAS_EVENTS",
        "cuBLAS calls",
        f"{_TIMES}, eventClass i*, globalTid i!, nameId s!*",
        kind=Kind.CUBLAS,
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_OPENACC_DATA",
        "OpenACC events",
        f"{_OPENACC}, bytes i, varName s",
        kind=Kind.OPENACC_DATA,
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH",
        "OpenACC events",
        f"{_OPENACC}, numGangs i, numWorkers i, vectorLength i, kernelName s",
        kind=Kind.OPENACC_LAUNCH,
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_OPENACC_OTHER", "OpenACC events", _OPENACC, kind=Kind.OPENACC_OTHER
    ),
    _table(
        "OPENMP_EVENT_KIND_*",
        "OpenMP events",
        f"{_CALL}, correlationId i, eventKind i, kind i, parallelId i, parentTaskId i, taskId i,"
        " newTaskId i, priorTaskId i, priorTaskStatus i, nextTaskId i, threadId i, threadType i,"
        " waitId i, count i",
        kind=Kind.OPENMP,
    ),
    _table("MPI_RANKS", "MPI ranks", "globalTid i!*, rank i!*"),
    _table(
        "MPI_P2P_EVENTS",
        Capability.MPI,
        f"{_MPI}, commHandle i, commUid i, tag i!, remoteRank i!, size i!, requestHandle i",
        kind=Kind.MPI_P2P,
    ),
    _table(
        "MPI_COLLECTIVES_EVENTS",
        Capability.MPI,
        f"{_MPI}, commHandle i, rootRank i?, size i?, recvSize i?, requestHandle i,"
        " commUid i @2026.4",
        kind=Kind.MPI_COLLECTIVE,
    ),
    _table(
        "MPI_START_WAIT_EVENTS",
        Capability.MPI,
        f"{_MPI}, requestHandle i",
        kind=Kind.MPI_START_WAIT,
    ),
    _table("MPI_OTHER_EVENTS", Capability.MPI, _MPI, kind=Kind.MPI_OTHER),
    _table(
        "MPI_COMMUNICATORS",
        "MPI communicators",
        "rank i, timestamp i, commHandle i, parentHandle i, localRank i, size i, groupRoot i,"
        " groupRootUid i, members t",
    ),
    _table("UCP_SUBMIT_EVENTS", "UCX calls", _MPI, kind=Kind.UCX_SUBMIT),
    _table("UCP_PROGRESS_EVENTS", "UCX calls", _MPI, kind=Kind.UCX_PROGRESS),
    _table("UCP_EVENTS", "UCX calls", _MPI, kind=Kind.UCX),
    _table(
        "GPU_METRICS",
        Capability.GPU_METRICS,
        "rawTimestamp i, timestamp|start i!, typeId i!*, metricId i!*, value i!*",
        kind=Kind.GPU_METRIC,
    ),
    _table(
        "TARGET_INFO_GPU_METRICS",
        "names of GPU metrics",
        "typeId i!*, sourceId i*, typeName t*, metricId i!*, metricName t!*",
    ),
    _table(
        "NET_NIC_METRIC",
        "metrics of network cards",
        f"{_TIMES}, globalId i!*, portId i*, metricsListId i!*, metricsIdx i!*, value i!*",
        kind=Kind.NIC_METRIC,
    ),
    _table(
        "NET_IB_SWITCH_METRIC",
        "metrics of InfiniBand switches",
        f"{_TIMES}, globalId i!, metricsListId i!, metricsIdx i!, value i!, portId i",
        kind=Kind.SWITCH_METRIC,
    ),
    _table(
        "TARGET_INFO_NETWORK_METRICS",
        "names of network metrics",
        "metricsListId i!*, metricsIdx i!*, name t!*, description t*, unit t*",
        kind=Kind.NETWORK_METRIC_NAME,
    ),
    _table(
        "TARGET_INFO_NIC_INFO",
        "names of network cards",
        "globalId i <2023.4.4, GUID i @2023.4.4, stateName t*, nicId i!*, name t!*, deviceId i*,"
        " vendorId i*, linkLayer i*",
        kind=Kind.NIC,
        lost={("GUID", "globalId"): "ids of network cards"},
    ),
    _table(
        "TARGET_INFO_NIC_ID_MAP",
        "which network card a metric is of",
        "nicId i!, globalId i!",
        kind=Kind.NIC_ID,
    ),
    _table(
        "VULKAN_API",
        "Vulkan calls",
        f"{_CALL}, contextId i!, correlationId i!, id i, endCorrelationId i",
        kind=Kind.VULKAN_CALL,
    ),
    _table("VULKAN_DEBUG_API", "Vulkan ranges", _DEBUG, kind=Kind.VULKAN_RANGE),
    _table(
        "VULKAN_WORKLOAD",
        Capability.RENDERING,
        f"{_WORKLOAD}, contextId i, color i, textId s",
        kind=Kind.VULKAN_GPU_RANGE,
    ),
    _table(
        "OPENGL_WORKLOAD",
        Capability.RENDERING,
        f"{_WORKLOAD}, contextId i, endGlobalTid i, endNameId s, returnValue i*,"
        " frameId i, display i",
        kind=Kind.OPENGL_GPU_RANGE,
    ),
    _table(
        "KHR_DEBUG_EVENTS",
        "OpenGL ranges",
        f"{_TIMES}, globalTid i!, textId s!, eventClass i!, source i, khrdType i, id i,"
        " severity i, correlationId i, context i",
        kind=Kind.OPENGL_DEBUG,
    ),
    _table("D3D11_PIX_DEBUG_API", "Direct3D 11 ranges", _DEBUG, kind=Kind.DX11_RANGE),
    _table("D3D12_PIX_DEBUG_API", "Direct3D 12 ranges", _DEBUG, kind=Kind.DX12_RANGE),
    _table(
        "DX12_WORKLOAD",
        Capability.RENDERING,
        f"{_WORKLOAD}, shortContextId i, longContextId i, frameId i, color i, textId"
        " s, commandListType i, objectName t",
        kind=Kind.DX12_GPU_RANGE,
    ),
    _table(
        "DX12_API",
        "Direct3D 12 calls",
        f"id i!, {_TIMES}, globalTid i!, nameId s!, eventClass i, correlationId i,"
        " endCorrelationId i, shortContextId i, longContextId i, frameId i, color i, textId s,"
        " commandListType i, objectName t",
        kind=Kind.DX12_CALL,
    ),
    _table(
        "DX12_MEMORY_OPERATION",
        "Direct3D 12 memory operations",
        "traceEventId i!, heapType i!, heapFlags i!, cpuPageProperty i!, gpu i!, rangeStart i,"
        " rangeEnd i, subresourceId i, nvApiFlags i",
        kind=Kind.DX12_MEMORY,
    ),
    _table("NVVIDEO_ENCODER_API", "video encoder calls", _CALL, kind=Kind.VIDEO_ENCODER),
    _table("NVVIDEO_DECODER_API", "video decoder calls", _CALL, kind=Kind.VIDEO_DECODER),
    _table("NVVIDEO_JPEG_API", "JPEG calls", _CALL, kind=Kind.VIDEO_JPEG),
    _table(
        "WDDM_QUEUE_PACKET_START_EVENTS",
        "packets of the display driver",
        f"{_WDDM}, submitSequence i!, dmaBufferSize i, dmaBuffer i, queuePacket i,"
        " progressFenceValue i, allocationListSize i, patchLocationListSize i, present i,"
        " syncObject i",
        kind=Kind.WDDM_QUEUE_START,
    ),
    _table(
        "WDDM_QUEUE_PACKET_STOP_EVENTS",
        "packets of the display driver",
        "start i!, context i!, submitSequence i!, end i, globalTid i, gpu i, engineType i,"
        " packetType i, queuePacket i, preempted i, timeouted i",
        kind=Kind.WDDM_QUEUE_STOP,
    ),
    _table(
        "WDDM_DMA_PACKET_START_EVENTS",
        "packets of the display driver",
        f"{_WDDM}, uliSubmissionId i!, queuePacketContext i, dmaBuffer i, ulQueueSubmitSequence i,"
        " quantumStatus i",
        kind=Kind.WDDM_DMA_START,
    ),
    _table(
        "WDDM_DMA_PACKET_STOP_EVENTS",
        "packets of the display driver",
        "start i!, context i!, uliCompletionId i!, end i, globalTid i, gpu i, engineType i,"
        " packetType i, ulQueueSubmitSequence i, preempted i",
        kind=Kind.WDDM_DMA_STOP,
    ),
    _table(
        "WDDM_HW_QUEUE_EVENTS",
        "hardware queues of the display driver",
        "context i!, hwQueue i!, parentDxgHwQueue i!, start i, end i, globalTid i, gpu i",
        kind=Kind.WDDM_HARDWARE_QUEUE,
    ),
    _table(
        "TARGET_INFO_WDDM_CONTEXTS",
        "names of the display driver's contexts",
        "context i!, nodeOrdinal i!, friendlyName t!, engineType i",
        kind=Kind.WDDM_CONTEXT,
    ),
    _table(
        "TARGET_INFO_GPU",
        Capability.GPU_PROPERTIES,
        "vmId i*, id i!*, name t+, busLocation t+, isDiscrete i, l2CacheSize i, totalMemory i,"
        " memoryBandwidth i, clockRate i+, smCount i+, pwGpuId i, uuid t, luid i, chipName t,"
        " cuDevice i+, ctxswDevPath t, ctrlDevPath t, revision i, nodeMask i, constantMemory i,"
        " maxIPC i, maxRegistersPerBlock i, maxShmemPerBlock i, maxShmemPerBlockOptin i,"
        " maxShmemPerSm i+ @2021, maxRegistersPerSm i+ @2021, threadsPerWarp i+ @2021,"
        " asyncEngines i, maxWarpsPerSm i+ @2021, maxBlocksPerSm i+ @2021, maxThreadsPerBlock i,"
        " maxBlockDimX i, maxBlockDimY i, maxBlockDimZ i, maxGridDimX i, maxGridDimY i,"
        " maxGridDimZ i, computeMajor i+ @2021, computeMinor i+ @2021, smMajor i, smMinor i,"
        " deviceId i <2021, numaNodeId i @2026.4",
        lost={
            "name": "the names of GPUs",
            "busLocation": "where GPUs are on the bus",
            "cuDevice": "which GPU has which CUDA device number",
            _LIMITS: "the occupancy of kernels",
            "smCount": "which kernels leave SMs without work",
            "clockRate": "the clocks of GPUs",
        },
    ),
    _table(
        "TARGET_INFO_CUDA_DEVICE",
        "which GPU a process worked on",
        "gpuId i!, cudaId i!*, pid i!*, uuid t @2025.6.1, numMultiprocessors i @2025.6.1",
    ),
    _table(
        "TARGET_INFO_CUDA_STREAM",
        "priorities of streams and which are default ones",
        "streamId i!*, hwId i*, vmId i*, processId i!*, contextId i!*, priority i*, flag i*",
        lost={
            "priority": "priorities of streams",
            "flag": "which streams are default ones",
        },
    ),
    _table(
        "TARGET_INFO_NVTX_CUDA_STREAM",
        "names that the program gave to streams",
        "name t!*, hwId i*, vmId i*, processId i!*, deviceId i*, contextId i!*, streamId i!*",
    ),
    _table(
        "TARGET_INFO_NVTX_CUDA_CONTEXT",
        "names that the program gave to contexts",
        "name t*, hwId i*, vmId i*, processId i*, deviceId i*, contextId i*",
    ),
    _table(
        "TARGET_INFO_NVTX_CUDA_DEVICE",
        "names that the program gave to GPUs",
        "name t*, hwId i*, vmId i*, deviceId i*",
    ),
    _table(
        "TARGET_INFO_CUDA_CONTEXT_INFO",
        "CUDA contexts",
        "nullStreamId i*, hwId i*, vmId i*, processId i*, deviceId i*, contextId i*,"
        " parentContextId i, isGreenContext i, numMultiprocessors i @2025.6.1,"
        " numTpcs i @2026.1.3, tpcMask t @2026.1.3, workqueueSharingScope i @2026.4,"
        " workqueueConcurrencyLimit i @2026.4",
    ),
    _table(
        "TARGET_INFO_CUDA_NULL_STREAM",
        "CUDA contexts",
        "streamId i*, hwId i*, vmId i*, processId i*, deviceId i*, contextId i*",
    ),
    _table(
        "ThreadNames",
        "names of threads",
        "nameId s!*, priority i+, globalTid i!",
        kind=Kind.THREAD,
        lost={"priority": "priorities of threads"},
    ),
    _table("PROCESSES", "names of processes", "globalPid i!, pid i, name t!"),
    _table("ProcessStreams", "output of the program", "globalPid i*, filenameId i*, contentId i*"),
    _table("UnwindMethodType", "how call stacks were found", "number i, name t*"),
    _table(
        "TARGET_INFO_SESSION_START_TIME",
        "when the session began",
        "utcEpochNs i!, utcTime t, localTime t, systemClockNs i @2025.6.1",
    ),
    _table(
        "TARGET_INFO_SYSTEM_ENV",
        "the machine",
        "globalVid i*, devStateName t*, name t!*, nameEnum i*, value t!*",
        kind=Kind.MACHINE_SETTING,
    ),
    _table(
        "ANALYSIS_DETAILS",
        Capability.DURATION,
        "globalVid i*, duration i!*, startTime i*, stopTime i*",
    ),
    _table(
        "DIAGNOSTIC_EVENT",
        "what nsys said about the capture",
        "timestamp i!*, timestampType i*, source i!*, severity i!*, text t!*, globalPid i",
    ),
    _table(
        "META_DATA_CAPTURE", "how it was captured", "name t!*, value t!", kind=Kind.CAPTURE_SETTING
    ),
    _table("META_DATA_EXPORT", "which nsys exported it", "name t!*, value t!"),
    _table("EXPORT_META_DATA", "which nsys exported it", "name t!*, value t!"),
)

TABLES: Final[Mapping[str, Table]] = {table.name: table for table in _TABLES}
"""Every table of which a column is read or known, by its name."""

_PREFIXES: Final = tuple(name[:-1] for name in TABLES if name.endswith("*"))
FAMILIES: Final = (
    "CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "MPI_", "CUDA_GRAPH_", "ENUM_NSYS_", *_PREFIXES,
)  # fmt: skip
"""How tables begin that nobody but nsys makes."""
_NOT_READ: Final = frozenset(
    (
        "ANALYSIS_FILE", "CUDA_GPU_MEMORY_POOL_EVENTS", "CUDA_HOST_CALLBACK",
        "DEMOTED_BYTES_EVENTS", "FECS_EVENTS", "GPU_CONTEXT_SWITCH_EVENTS",
        "GPU_MEMORY_BUDGET_EVENTS", "GPU_MEMORY_USAGE_EVENTS", "MEM_DECOMPRESS",
        "NVTX_EVENTS_PAYLOAD_SCHEMAS", "NVTX_EXPORT_TRANSLATION", "NVTX_SCOPES",
        "NV_LOAD_BALANCE_EVENTS", "NV_LOAD_BALANCE_MASTER_EVENTS", "OSRT_FILE_ACCESS_DESCRIPTORS",
        "OSRT_FILE_ACCESS_EVENTS", "SLI_P2P", "SLI_QUERIES", "SLI_STATS", "SOC_METRICS",
        "SYSCALL_CALLCHAINS", "TOTAL_BYTES_RESIDENT_IN_SEGMENT_EVENTS", "UCP_WORKERS",
    )
)  # fmt: skip
_FAMILIES_NOT_READ: Final = (
    "ENUM_", "TARGET_INFO_", "WDDM_", "VULKAN_", "DX11_", "DX12_", "D3D11_", "D3D12_", "OPENGL_",
    "OPENXR_", "GENERIC_EVENT", "NET_", "NVTX_PAYLOAD_", "DYNAMIC_NVTXPAYLOAD_", "PMU_",
    "UNCORE_PMU_", "PERF_EVENT_", "ETW_", "NVVIDEO_", "GPU_VIDEO_ENGINE_", "NVMEDIA_",
)  # fmt: skip


def declared(table: str) -> Table | None:
    """What is known about a table of a file, by its name there."""
    if table in TABLES:
        return TABLES[table]
    prefix = next((prefix for prefix in _PREFIXES if table.startswith(prefix)), None)
    return None if prefix is None else TABLES[f"{prefix}*"]


def is_known(table: str) -> bool:
    """Whether a table is read, or known and not needed."""
    return declared(table) is not None or table in _NOT_READ or table.startswith(_FAMILIES_NOT_READ)


def is_nsys_export(tables: Iterable[str]) -> bool:
    """Tells whether a database with these tables was written by nsys, fully or in part."""
    return any(table in TABLES or table.startswith(FAMILIES) for table in tables)
