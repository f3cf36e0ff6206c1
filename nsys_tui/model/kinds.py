"""Kinds of rows that a report may hold, whatever the file calls the tables they are in."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What one row of a table is."""

    KERNEL = "kernel"
    MEMCPY = "memcpy"
    MEMSET = "memset"
    GRAPH = "graph"
    API = "api"
    SYNC = "sync"
    NVTX = "nvtx"
    OSRT = "osrt"
    SAMPLE = "sample"
    SCHEDULING = "scheduling"
    SAMPLE_CHAIN = "sample_chain"
    CUDA_CHAIN = "cuda_chain"
    OSRT_CHAIN = "osrt_chain"
    MEMORY = "memory"
    GPU_METRIC = "gpu_metric"
    MPI_P2P = "mpi_p2p"
    MPI_COLLECTIVE = "mpi_collective"
    MPI_START_WAIT = "mpi_start_wait"
    MPI_OTHER = "mpi_other"
    UCX_SUBMIT = "ucx_submit"
    UCX_PROGRESS = "ucx_progress"
    UCX = "ucx"
    PROFILER_OVERHEAD = "profiler_overhead"
    CUDA_OVERHEAD = "cuda_overhead"
    SYSCALL = "syscall"
    CUDNN = "cudnn"
    CUBLAS = "cublas"
    OPENACC_DATA = "openacc_data"
    OPENACC_LAUNCH = "openacc_launch"
    OPENACC_OTHER = "openacc_other"
    OPENMP = "openmp"
    UM_CPU_FAULT = "um_cpu_fault"
    UM_GPU_FAULT = "um_gpu_fault"
    NIC_METRIC = "nic_metric"
    SWITCH_METRIC = "switch_metric"
    NETWORK_METRIC_NAME = "network_metric_name"
    NIC = "nic"
    NIC_ID = "nic_id"
    VULKAN_CALL = "vulkan_call"
    VULKAN_RANGE = "vulkan_range"
    VULKAN_GPU_RANGE = "vulkan_gpu_range"
    OPENGL_DEBUG = "opengl_debug"
    OPENGL_GPU_RANGE = "opengl_gpu_range"
    DX11_RANGE = "dx11_range"
    DX12_RANGE = "dx12_range"
    DX12_GPU_RANGE = "dx12_gpu_range"
    DX12_CALL = "dx12_call"
    DX12_MEMORY = "dx12_memory"
    VIDEO_ENCODER = "video_encoder"
    VIDEO_DECODER = "video_decoder"
    VIDEO_JPEG = "video_jpeg"
    WDDM_QUEUE_START = "wddm_queue_start"
    WDDM_QUEUE_STOP = "wddm_queue_stop"
    WDDM_DMA_START = "wddm_dma_start"
    WDDM_DMA_STOP = "wddm_dma_stop"
    WDDM_CONTEXT = "wddm_context"
    WDDM_HARDWARE_QUEUE = "wddm_hardware_queue"
    CAPTURE_SETTING = "capture_setting"
    MACHINE_SETTING = "machine_setting"
    THREAD = "thread"


OPERATIONS = (
    Kind.KERNEL,
    Kind.MEMCPY,
    Kind.MEMSET,
    Kind.GRAPH,
    Kind.OPENGL_GPU_RANGE,
    Kind.VULKAN_GPU_RANGE,
    Kind.DX12_GPU_RANGE,
)
"""By the number of their ``OpKind``."""
MPI = (Kind.MPI_P2P, Kind.MPI_COLLECTIVE, Kind.MPI_START_WAIT, Kind.MPI_OTHER)
OPENACC = (Kind.OPENACC_DATA, Kind.OPENACC_LAUNCH, Kind.OPENACC_OTHER)
