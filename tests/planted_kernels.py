"""Planted runs by names of kernels: what moves data, and what does more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from machine import MS
from synth import Synth

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TORCH = "void at::native::"
_ARRAYS = "std::array<char*, 2>>(int, T2, T3)"
GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
COPY = (
    f"{_TORCH}unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda"
    f"(at::TensorIteratorBase&)::{{lambda(float)#1}}, {_ARRAYS}"
)
CAT = f"{_TORCH}(anonymous namespace)::CatArrayBatchedCopy_vectorized<unsigned int, 2>(char*)"
ADD = f"{_TORCH}vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, {_ARRAYS}"
GELU = f"{_TORCH}vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl, {_ARRAYS}"
LAYOUT = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, (bool)0>(T3, const T1*, T2*)"
OWN = "transpose_naive(float*, float const*, int, int)"
FUSED = "triton_poi_fused__to_copy_add_clone_gelu_3"
NORM = f"{_TORCH}(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int)"
SOFTMAX = "void softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false>(T1*)"
OPTIMIZER = (
    f"{_TORCH}(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "TensorListMetadata<4>, at::native::(anonymous namespace)::AdamW>(T1)"
)
FOREACH = (
    f"{_TORCH}(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "TensorListMetadata<3>, at::native::(anonymous namespace)::PointwiseOpListFunctor<float, 3, 3,"
    " 0>, std::multiplies<float>, float>(T1)"
)
REDUCE = (
    f"{_TORCH}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::sum_functor<float>,"
    " unsigned int, float, 4>>(T3)"
)
OTHERS = ("copy_if_kernel(int*)", "conv_transpose2d(float*)", "permute_attention(float*)")


def one_after_another(path: Path, names: Sequence[str] = (GEMM, COPY, COPY)) -> Synth:
    """Each of some kernels takes 1 ms, but the first one 6 ms; all of them 20 times."""
    synth = Synth(path).process(10, "train").gpu(0)
    start = 0
    for _ in range(20):
        for name in names:
            end = start + (6 * MS if name == names[0] else MS)
            synth.kernel(name, start, end, grid=(108, 1, 1))
            start = end
    return synth


def fused(path: Path) -> Synth:
    """As much time in kernels that compute, too, or are fused already."""
    return one_after_another(path, (GEMM, FUSED, NORM, SOFTMAX, OPTIMIZER, *OTHERS))


def apart(path: Path) -> Synth:
    """Elementwise kernels without a neighbour that they could be fused with."""
    return one_after_another(path, (GEMM, ADD, NORM, GELU))


def beside_others(path: Path) -> Synth:
    """Copies that nothing waits for: another stream computes all the time."""
    synth = one_after_another(path)
    return synth.kernel("solve", 0, 160 * MS, stream=8, grid=(108, 1, 1))
