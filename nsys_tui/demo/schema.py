"""Which tables and columns an nsys export has, in every generation that the demo can write.

A column is written as ``name type``, where the type is ``i`` INTEGER, ``r`` REAL or ``t`` TEXT and
``!`` means NOT NULL. ``@2024.5.1`` gives the product version that brought it, ``<2025.5.2`` the one
that dropped it. Columns stand in the order of the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Version = tuple[int, ...]

GENERATIONS: Final[dict[str, tuple[str, str]]] = {
    "2021": ("2021.3.1.54", ""),
    "2022.1": ("2022.1.1.61", "2.9.1"),
    "2022.4": ("2022.4.2.1", "3.0.0"),
    "2023.3": ("2023.3.3.42", "3.4.0"),
    "2023.4": ("2023.4.4.54", "3.7.2"),
    "2024.5": ("2024.5.1.113", "3.13.2"),
    "2025.1": ("2025.1.3.140", "3.17.2"),
    "2025.5": ("2025.5.2.266", "3.24.0"),
    "2026.2": ("2026.2.1.210", "3.25.0"),
}
"""Generation -> (product version, schema version; empty before exports named one)."""

CURRENT: Final = "2026.2"

_TYPES: Final = {"i": "INTEGER", "r": "REAL", "t": "TEXT"}

_CHAIN = (
    "symbol i!, module i!, kernelMode i, thumbCode i, unresolved i, specialEntry i, originalIP i,"
    " unwindMethod i, stackDepth i!"
)
_WHERE = "deviceId i!, contextId i!, greenContextId i @2023.4.4, streamId i!, correlationId i"
_MPI = "start i!, end i!, globalTid i, textId i, commHandle i"
_GPU_LIMITS = (
    "constantMemory i, maxIPC i, maxRegistersPerBlock i, maxShmemPerBlock i,"
    " maxShmemPerBlockOptin i, maxShmemPerSm i, maxRegistersPerSm i, threadsPerWarp i,"
    " asyncEngines i, maxWarpsPerSm i, maxBlocksPerSm i, maxThreadsPerBlock i, maxBlockDimX i,"
    " maxBlockDimY i, maxBlockDimZ i, maxGridDimX i, maxGridDimY i, maxGridDimZ i,"
    " computeMajor i, computeMinor i, smMajor i, smMinor i"
)

_TABLES: Final[dict[str, str]] = {
    "StringIds": "id i! pk, value t!",
    "ProcessStreams": "globalPid i!, filenameId i!, contentId i!",
    "TARGET_INFO_SYSTEM_ENV @2022.1": (
        "globalVid i! <2023.1, globalVid i @2023.1, devStateName t!, name t!, nameEnum i!, value t!"
    ),
    "TARGET_INFO_SESSION_START_TIME @2022.1": (
        "utcEpochNs i, utcTime t, localTime t, systemClockNs i @2025.6.1"
    ),
    "ANALYSIS_DETAILS @2022.1": "globalVid i!, duration i!, startTime i!, stopTime i!",
    "PROCESSES @2022.1": "globalPid i, pid i, name t",
    "ThreadNames": "nameId i!, priority i, globalTid i",
    "DIAGNOSTIC_EVENT @2024.2.3": (
        "timestamp i!, timestampType i!, source i!, severity i!, text t!, globalPid i"
    ),
    "UnwindMethodType <2023.3.1": "number i pk, name t!",
    "SCHED_EVENTS": (
        "start i!, cpu i!, isSchedIn i!, globalTid i, threadState i @2024.5.1,"
        " threadBlock i @2024.5.1"
    ),
    "COMPOSITE_EVENTS": "id i! pk, start i!, cpu i, threadState i, globalTid i, cpuCycles i!",
    "SAMPLING_CALLCHAINS": f"id i!, {_CHAIN}, PRIMARY KEY (id; stackDepth)",
    "PROFILER_OVERHEAD": (
        "start i!, end i!, globalTid i, correlationId i <2022.1.1, nameId i!,"
        " returnValue i! <2025.5.2, overheadType i! @2025.5.2"
    ),
    "OSRT_API": (
        "start i!, end i!, eventClass i!, globalTid i, correlationId i <2022.1.1, nameId i!,"
        " returnValue i!, nestingLevel i, callchainId i!, argumentsId i! @2025.5.1"
    ),
    "OSRT_CALLCHAINS": f"id i!, {_CHAIN}, PRIMARY KEY (id; stackDepth)",
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start i!, end i!, eventClass i!, globalTid i, correlationId i, nameId i!,"
        " returnValue i!, callchainId i"
    ),
    "CUDA_CALLCHAINS": (
        "id i!, symbol i!, module i!, unresolved i, originalIP i, stackDepth i!,"
        " PRIMARY KEY (id; stackDepth)"
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        f"start i!, end i!, {_WHERE}, globalPid i, demangledName i!, shortName i!,"
        " mangledName i @2022.1.1, launchType i, cacheConfig i, registersPerThread i!,"
        " gridX i!, gridY i!, gridZ i!, blockX i!, blockY i!, blockZ i!,"
        " staticSharedMemory i!, dynamicSharedMemory i!, localMemoryPerThread i!,"
        " localMemoryTotal i!, gridId i!, sharedMemoryExecuted i, graphNodeId i,"
        " sharedMemoryLimitConfig i, qmdBulkReleaseDone i @2025.5.1,"
        " qmdPreexitDone i @2025.5.1, qmdLastCtaDone i @2025.5.1, graphId i @2025.5.1,"
        " clusterX i @2025.5.1, clusterY i @2025.5.1, clusterZ i @2025.5.1,"
        " clusterSchedulingPolicy i @2025.5.1, maxPotentialClusterSize i @2025.5.1,"
        " maxActiveClusters i @2025.5.1, sharedMemoryRequestedPercentage i @2025.6.3,"
        " tensorSizeMinusOneElements t! @2026.1.3"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        f"start i!, end i!, {_WHERE}, globalPid i, bytes i!, copyKind i!, deprecatedSrcId i,"
        " srcKind i, dstKind i, srcDeviceId i, srcContextId i, dstDeviceId i, dstContextId i,"
        " migrationCause i, graphNodeId i, virtualAddress i @2022.1.1, copyCount i @2025.1.3"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "start i!, end i!, deviceId i!, contextId i!, greenContextId i @2024.5.4, streamId i!,"
        " correlationId i, globalPid i, value i!, bytes i!, graphNodeId i, memKind i"
    ),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        f"start i!, end i!, {_WHERE}, globalPid i, deprecatedSyncType i @2025.1.1, syncType i!,"
        " eventId i!, eventSyncId i @2025.1.1"
    ),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (
        f"timestamp i @2025.5.1, {_WHERE}, globalPid i, eventId i!, eventSyncId i @2025.5.1"
    ),
    "CUPTI_ACTIVITY_KIND_OVERHEAD @2025.5.2": (
        "start i!, end i!, eventClass i!, globalTid i, correlationId i, nameId i, overheadType i!"
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (
        "start i!, end i!, deviceId i!, contextId i!, greenContextId i @2023.4.4, streamId i!,"
        " correlationId i, globalPid i, graphId i!, graphExecId i!"
    ),
    "CUDA_GRAPH_EVENTS": (
        "start i!, end i!, eventClass i!, globalTid i, nameId i!, graphNodeId i! <2022.4,"
        " originalGraphNodeId i <2022.4, graphId i @2022.4, originalGraphId i @2022.4,"
        " graphExecId i @2022.4"
    ),
    "CUDA_GRAPH_NODE_EVENTS @2022.4": (
        "start i!, end i!, eventClass i!, globalTid i, nameId i!, graphNodeId i!,"
        " originalGraphNodeId i"
    ),
    "CUDA_GPU_MEMORY_USAGE_EVENTS": (
        "start i!, globalPid i!, deviceId i!, contextId i!, address i!, pc i!, bytes i!,"
        " memKind i!, memoryOperationType i!, name t, correlationId i, streamId i @2023.3,"
        " localMemoryPoolAddress i @2023.3, localMemoryPoolReleaseThreshold i @2023.3,"
        " localMemoryPoolSize i @2023.3, localMemoryPoolUtilizedSize i @2023.3,"
        " importedMemoryPoolAddress i @2023.3, importedMemoryPoolProcessId i @2023.3"
    ),
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": (
        "start i!, globalPid i!, address i!, originalFaultPc i, CpuInstruction i!, module i,"
        " unresolvedFaultPc i"
    ),
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": (
        "start i!, end i!, globalPid i!, deviceId i!, address i!, numberOfPageFaults i!,"
        " faultAccessType i!"
    ),
    "CUDNN_EVENTS": "start i!, end i!, eventClass i!, globalTid i, nameId i!",
    "CUBLAS_EVENTS": "start i!, end i!, eventClass i!, globalTid i, nameId i!",
    "NVTX_EVENTS": (
        "start i!, end i, eventType i!, rangeId i, category i, color i, text t, globalTid i,"
        " endGlobalTid i, textId i, domainId i, uint64Value i, int64Value i, doubleValue r,"
        " uint32Value i, int32Value i, floatValue r, jsonTextId i, jsonText t,"
        " binaryData t @2024.6.2"
    ),
    "NVTX_PAYLOAD_SCHEMAS @2026.2": (
        "domainId i, schemaId i, name t, type i, flags i, numEntries i, payloadSize i, alignTo i"
    ),
    "NVTX_PAYLOAD_SCHEMA_ENTRIES @2026.2": (
        "domainId i!, schemaId i!, idx i!, flags i, type i, name t, description t,"
        " arrayOrUnionDetail i, offset i"
    ),
    "TARGET_INFO_GPU": (
        "vmId i!, id i!, name t, busLocation t, isDiscrete i, l2CacheSize i, totalMemory i,"
        " memoryBandwidth i, clockRate i, smCount i, pwGpuId i, uuid t, luid i, chipName t,"
        f" cuDevice i, ctxswDevPath t, ctrlDevPath t, revision i, nodeMask i, {_GPU_LIMITS}"
    ),
    "TARGET_INFO_CUDA_NULL_STREAM <2023.4.4": (
        "streamId i!, hwId i!, vmId i!, processId i!, deviceId i!, contextId i!"
    ),
    "TARGET_INFO_CUDA_DEVICE @2025.1.1": (
        "gpuId i, cudaId i!, pid i!, uuid t @2025.6.1, numMultiprocessors i @2025.6.1"
    ),
    "TARGET_INFO_CUDA_CONTEXT_INFO @2023.4.4": (
        "nullStreamId i!, hwId i!, vmId i!, processId i!, deviceId i!, contextId i!,"
        " parentContextId i, isGreenContext i, numMultiprocessors i @2025.6.1,"
        " numTpcs i @2026.1.3, tpcMask t @2026.1.3"
    ),
    "TARGET_INFO_CUDA_STREAM": (
        "streamId i!, hwId i!, vmId i!, processId i!, contextId i!, priority i!, flag i!"
    ),
    "TARGET_INFO_NVTX_CUDA_DEVICE": "name t!, hwId i!, vmId i!, deviceId i!",
    "TARGET_INFO_NVTX_CUDA_CONTEXT": (
        "name t!, hwId i!, vmId i!, processId i!, deviceId i!, contextId i!"
    ),
    "TARGET_INFO_NVTX_CUDA_STREAM": (
        "name t!, hwId i!, vmId i!, processId i!, deviceId i!, contextId i!, streamId i!"
    ),
    "TARGET_INFO_GPU_METRICS": "typeId i!, sourceId i!, typeName t!, metricId i!, metricName t!",
    "GPU_METRICS": "rawTimestamp i, timestamp i, typeId i!, metricId i!, value i!",
    "TARGET_INFO_NETWORK_METRICS": (
        "metricsListId i!, metricsIdx i!, name t!, description t!, unit t!"
    ),
    "TARGET_INFO_NIC_INFO @2023.1.2": (
        "globalId i <2023.4.4, GUID i @2023.4.4, stateName t!, nicId i!, name t!, deviceId i!,"
        " vendorId i!, linkLayer i!"
    ),
    "NET_NIC_METRIC": (
        "start i!, end i!, globalId i!, portId i!, metricsListId i!, metricsIdx i!, value i!"
    ),
    "MPI_RANKS": "globalTid i!, rank i!",
    "MPI_COMMUNICATORS": (
        "rank i, timestamp i, commHandle i, parentHandle i, localRank i, size i, groupRoot i,"
        " groupRootUid i, members t"
    ),
    "MPI_P2P_EVENTS": f"{_MPI}, commUid i, tag i, remoteRank i, size i, requestHandle i",
    "MPI_START_WAIT_EVENTS": "start i!, end i!, globalTid i, textId i, requestHandle i",
    "MPI_COLLECTIVES_EVENTS": f"{_MPI}, rootRank i, size i, recvSize i, requestHandle i",
    "MPI_OTHER_EVENTS": "start i!, end i!, globalTid i, textId i",
    "META_DATA_CAPTURE @2023.3.1": "name t!, value t",
    "META_DATA_EXPORT @2023.3.1": "name t!, value t",
    "EXPORT_META_DATA @2022.1.1 <2023.3.1": "name t!, value t",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column as nsys declares it."""

    name: str
    affinity: str
    not_null: bool
    primary: bool

    @property
    def sql(self) -> str:
        """The column's part of ``CREATE TABLE``."""
        return (
            f'"{self.name}" {self.affinity}'
            + (" NOT NULL" if self.not_null else "")
            + (" PRIMARY KEY" if self.primary else "")
        )


@dataclass(frozen=True, slots=True)
class Table:
    """One table of one generation."""

    name: str
    columns: tuple[Column, ...]
    key: str
    """A ``PRIMARY KEY (...)`` clause over several columns, or an empty string."""

    @property
    def sql(self) -> str:
        """The ``CREATE TABLE`` statement."""
        parts = [column.sql for column in self.columns] + ([self.key] if self.key else [])
        return f'CREATE TABLE "{self.name}" ({", ".join(parts)})'


def parse_version(text: str) -> Version:
    """``2025.5.2.266`` as a tuple that compares."""
    return tuple(int(part) for part in text.split("."))


def _applies(marks: list[str], version: Version) -> bool:
    since = [parse_version(mark[1:]) for mark in marks if mark.startswith("@")]
    until = [parse_version(mark[1:]) for mark in marks if mark.startswith("<")]
    return all(version >= edge for edge in since) and all(version < edge for edge in until)


def _table(name: str, spec: str, version: Version) -> Table:
    columns, key = [], ""
    for part in spec.split(","):
        words = part.split()
        if words[0] == "PRIMARY":
            key = part.strip().replace(";", ",")
        elif _applies(words, version):
            columns.append(
                Column(words[0], _TYPES[words[1][0]], words[1].endswith("!"), "pk" in words)
            )
    return Table(name, tuple(columns), key)


def tables(generation: str = CURRENT) -> dict[str, Table]:
    """The tables (without enumerations) that an export of that generation may hold, by name.

    Raises:
        KeyError: the generation is not in ``GENERATIONS``.
    """
    version = parse_version(GENERATIONS[generation][0])
    found = {}
    for head, spec in _TABLES.items():
        name, *marks = head.split()
        if _applies(marks, version):
            found[name] = _table(name, spec, version)
    return found


def known_columns() -> dict[str, frozenset[str]]:
    """Every column name that any generation has, by table."""
    return {
        head.split()[0]: frozenset(
            part.split()[0] for part in spec.split(",") if not part.strip().startswith("PRIMARY")
        )
        for head, spec in _TABLES.items()
    }
