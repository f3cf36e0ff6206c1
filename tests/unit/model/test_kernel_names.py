from __future__ import annotations

import sqlite3
import time

import pytest
from paths import needs_reports, report_paths

from nsys_tui.model.events import OpName, called
from nsys_tui.model.kernel_names import answers_to, called_by_key, short_names, variant_key
from nsys_tui.names import across

LAMBDA = "{lambda(int)#1}"
NAMES = {
    "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN": "gemm bf16 192x192x64 TN bias",
    "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_64x3_tn_align8": "gemm bf16 128x256x64 TN",
    "volta_sgemm_128x64_nn": "gemm f32 128x64 NN",
    "nvjet_sm100_tst_mma_192x160x64_4_32x160x64_cga1x2x1_2cta_h_bz_TNT": "gemm bf16 192x160x64 TN",
    "cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_64x64_32x5_nhwc_align4>"
    "(x)": "conv fprop tf32 64x64x32",
    "ncclKernel_AllGather_RING_LL_Sum_int8_t(x)": "AllGather ring LL",
    "ncclKernel_Reduce_RING_LL_Sum_int32_t(x)": "Reduce sum i32 ring LL",
    "void cub::detail::for_each::static_kernel<cub::policy_hub_t::policy_350_t, long, thrust::"
    "cuda_cub::__uninitialized_fill::functor<thrust::device_ptr<float>, float>>(T2, T3)": (
        "uninitialized_fill"
    ),
    "void at::native::index_elementwise_kernel<(int)128, (int)4, void at::native::gpu_index_kernel<"
    "void at::native::index_put_kernel_impl<at::native::OpaqueType<(int)4>>(at::TensorIterator &)"
    "::[lambda(char *, char *, long) (instance 1)]>(x)::[lambda(int) (instance 1)]>(long, T3)": (
        "elementwise index_put"
    ),
    "_Z16gpu_kernel_saxpy13CuDeviceArrayI7Float32Li1ELi1EES0_": "gpu_kernel_saxpy",
    "_Z27julia_broadcast_kernel_287615CuKernelContext13CuDeviceArrayI7Float64Li2ELi1EE": (
        "broadcast_kernel"
    ),
    "__omp_offloading_10302_1a2b3c_main_l57": "main l57",
    "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_kernel": (
        "gemm bf16 128x128x32 TN"
    ),
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<cute::C<2>,"
    " cute::C<1>, cute::C<1>>, cute::tuple<cute::C<128>, cute::C<256>, cute::C<64>>,"
    " cutlass::bfloat16_t, cute::tuple<long>>>(T1::Params)": "gemm bf16 128x256x64",
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128, (int)128, (int)64>>(P)": (
        "flash fwd hd128"
    ),
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)": "AllReduce sum bf16 ring LL",
    "ncclKernel_AllReduce_RING_LL_Sum_float(x)": "AllReduce sum f32 ring LL",
    "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::"
    "CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, cute::tuple<"
    "cute::C<128>, cute::C<176>, cute::C<64> >, 64, cutlass::bfloat16_t> > > >(flash::Params)": (
        "flash fwd hd64"
    ),
    "ncclDevKernel_SendRecv(x)": "SendRecv",
    "ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(x)": "AllReduce sum RSxLD AGxST bf16",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>,"
    " at::detail::Array<char*, 3> >(int, x)": "elementwise add f32",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float,"
    " at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()("
    "at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >(x)": (
        "reduce sum f32"
    ),
    "void at::native::elementwise_kernel<128, 4, void at::native::gpu_kernel_impl_nocast<"
    "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::"
    "binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&)::{lambda(int)#1}>(int)": (
        "elementwise mul bf16"
    ),
    "void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda("
    f"at::TensorIteratorBase&)::{LAMBDA.replace('int', 'float')}, std::array<char*, 2>>(int)": (
        "elementwise copy f32 to bf16"
    ),
    "triton_poi_fused_add_mul_3": "triton add mul",
    "triton_per_fused__softmax__to_copy_5": "triton reduce softmax to copy",
    "triton_softmax_12": "triton softmax",
    "input_reduce_fusion_3": "input reduce fusion",
    "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)": "NCCL generic 1",
    "loop_fusion": "loop fusion",
    "gemm_fusion_dot_265": "gemm fusion dot",
    "wrapped_transpose": "wrapped transpose",
    "void vllm::paged_attention_v2_kernel<__nv_bfloat16, unsigned char, 128, 16, 128,"
    " (vllm::Fp8KVCacheDataType)1, false, 512>(float *)": "paged attention v2 bf16 hd128",
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16,"
    " (vllm::Fp8KVCacheDataType)0>(long)": "reshape and cache flash bf16",
    "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, (bool)1>(x)": (
        "silu and mul bf16"
    ),
    "void vllm::moe::moe_align_block_size_kernel<int>(int)": "moe align block size",
    "void tensorrt_llm::kernels::generalRmsNorm<__nv_bfloat16, float, false>(x)": (
        "generalRmsNorm bf16"
    ),
    "void flashinfer::norm::RMSNormKernel<(unsigned int)8, __half>(x)": "RMSNorm f16",
    "void cusparse::csrmv_v3_kernel<std::integral_constant<bool, (bool)0>, int, int, double,"
    " double, double, double, void>(x)": "csrmv v3 f64",
    "void regular_fft<192u, EPT<12u, 16u>, 16u, 2u, (padding_t)6, (twiddle_t)0,"
    " (loadstore_modifier_t)2, (layout_t)1, unsigned int, double, HostConfigPlaceholder>(x)": (
        "fft regular 192 f64"
    ),
    "void regular_fft_r2c<(unsigned int)144, (EPT)12, (unsigned int)4, float>(x)": (
        "fft regular r2c 144 f32"
    ),
    "void DSE::vector_fft<(int)0, (int)1, (int)256, (int)16, (int)16, (int)1, float, float, float2>"
    "(x)": "fft vector f32",
    "typeinfo name for main::{lambda(sycl::_V1::handler&)#1}::operator()(sycl::_V1::handler&) const"
    "::{lambda(sycl::_V1::id<1>)#1}": "main",
    "Stencil<float>::run(sycl::_V1::queue&)::{lambda(sycl::_V1::handler&)#1}::operator()("
    "sycl::_V1::handler&) const::{lambda(sycl::_V1::nd_item<3>)#2}": "Stencil::run",
    "_ZTSZZ4mainENKUlRN4sycl3_V17handlerEE_clES2_EUlNS0_2idILi1EEEE_": "main",
    "_ZTSN12add_elementsIfEE": "add_elements",
    "_ZN3lbm6streamEPfS0_i": "stream",
    f"void clover::par_ranged2d_kernel<PdV_kernel(bool)::{LAMBDA}>(x)": "PdV",
    f"void par_for<Hydro::step(int)::{LAMBDA}>(int)": "step",
    f"void eval_lambda<std::unique_ptr<Frame, std::default_delete<Frame>> k2::Propagate<(int)32>"
    f"(int, Frame *)::{LAMBDA}>(int, T1)": "Propagate",
    f"void launch<Graph make::Closure(Graph &) const::{LAMBDA}, (int)2>(int)": "Closure",
    "void alpaka::detail::gpuKernel<pmacc::lockstep::LockStepKernel<pic::ComputeCurrent>,"
    " alpaka::ApiCudaRt>(T1)": "ComputeCurrent",
    "void quda::Kernel3D<quda::dslash_functor, quda::WilsonArg<float>>(T2)": "dslash_functor",
    "void launch_kernel<float>(T1)": "launch_kernel",
    "void cub::CUB_200500_NS::detail::transform::transform_kernel<cub::transform::policy_hub<"
    "false, thrust::tuple<float*>>::policy900, long, square<float>, float*>(T2)": "square",
    f"void RAJA::policy::cuda::impl::forall_cuda_kernel<RAJA::policy::cuda::cuda_exec<256>,"
    f" TRIAD::run(x)::{LAMBDA}, long>(x)": "TRIAD::run",
    "void Kokkos::Impl::cuda_parallel_launch_local_memory<Kokkos::Impl::ParallelFor<"
    "LAMMPS_NS::PairFunctor<int>, Kokkos::RangePolicy<Kokkos::Cuda>> >(x)": "PairFunctor",
    "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<"
    "thrust::cuda_cub::__transform::unary_transform_f<float*, float*, square<float>>, long>>(x)": (
        "thrust square"
    ),
    "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<"
    "thrust::cuda_cub::__uninitialized_fill::functor<thrust::device_ptr<double>>, int>>(x)": (
        "thrust uninitialized_fill"
    ),
    "void cub::CUB_200200_NS::DeviceReduceKernel<cub::P<float>, float*, int>(float*)": (
        "cub DeviceReduce f32"
    ),
    "fmhaSm100fKernel_QkvE4m3OBfloat16HQk576HV512HVPerCta256PagedKvDenseP64MultiCtasKvVarSeqQ8Kv128"
    "StaticSwapsAbForGen": "fmha e4m3 hd576 dense gen",
    "fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64VarSeqQ128Kv128PersistentContext": (
        "fmha bf16 hd128 causal context"
    ),
    "fmha_v2_flash_attention_fp16_64_16_S_160_sm80_kernel_nl": "fmha f16 hd160",
    "fmha_v2_flash_attention_bf16_64_128_S_qkv_128_causal_tma_ws_sm90_kernel": (
        "fmha bf16 hd128 causal"
    ),
    "fmha_v2_int8_384_64_sm86_kernel": "fmha i8 hd64",
    "fmha_cutlassB_f32_aligned_64x64_k64_dropout_sm80(x)": "fmha bwd f32 64x64",
    "bmm_E2m1_E2m1E2m1_Fp32_bA16_bB16_bC16_t128x8x512u2_s6_et64x8_m64x8x64_cga1x1x1_16dp256b_TN_"
    "transOut_schPd2x1x2x3_bN_swiGlu_dynB_sm100f": "bmm e2m1 128x8x512 TN",
    "cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_64x32x16_1x1x1_3_tnn_align1_bias_f32_relu": (
        "gemm f32 64x32x16 TN bias relu"
    ),
    "nvjet_sm100_ootst_128x128_256x7_4x1_2cta_v_bx_Avec16UE4M3_Bvec16UE4M3_TNT": (
        "gemm e2m1 128x128x256 TN"
    ),
    "void cutlass::device_kernel<flat::kernel::FlatKernelDeltaRule<flat::Mainloop<long>>>(x)": (
        "FlatKernelDeltaRule"
    ),
    "triton_poi_fused_0": "triton pointwise",
    "triton_per_fused_0": "triton reduce",
    "triton_poi_fused_add_0d1d2de": "triton add",
    "kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel_object_at__tensorptrbf16": (
        "RMSNorm"
    ),
    "__myl_SiluMul_myl0_12": "myelin SiluMul",
    "void at::native::<unnamed>::cunn_SoftMaxForwardReg<c10::BFloat16, float, c10::BFloat16,"
    " at::native::<unnamed>::LogSoftMaxForwardEpilogue, long, (int)5>(x)": "log softmax fwd bf16",
    "void <unnamed>::softmax_warp_backward<c10::BFloat16, c10::BFloat16, float, (int)9, (bool)0,"
    " (bool)0>(x)": "softmax bwd bf16",
    "void <unnamed>::softmax_warp_forward<float, float, float, (int)7, (bool)1, (bool)0>(x)": (
        "log softmax fwd f32"
    ),
    "void <unnamed>::scaled_masked_softmax_warp_backward<c10::Half, c10::Half, float, 10>(x)": (
        "scaled masked softmax bwd f16"
    ),
    "void at::native::vectorized_gather_kernel<(int)16, long>(x)": "gather",
    "void at::native::_scatter_gather_elementwise_kernel<(int)128, (int)8, void at::native::"
    "_cuda_scatter_gather_internal_kernel<(bool)1, float>::operator ()<at::native::ReduceAdd>(x)"
    "::[lambda(int) (instance 1)]>(int, T3)": "scatter add f32",
    "void at::native::_scatter_gather_elementwise_kernel<256, 4, at::native::"
    "_cuda_scatter_gather_internal_kernel<false, at::native::OpaqueType<4>, long>::operator()<"
    "at::native::TensorAssign>(x)::{lambda(int)#1}>(int)": "gather",
    "void at::native::<unnamed>::indexSelectLargeIndex<c10::Half, long, unsigned int, (int)2>(x)": (
        "index select f16"
    ),
    "void at::native::<unnamed>::CatArrayBatchedCopy_contig<at::native::<unnamed>::OpaqueType<"
    "(unsigned int)2>, unsigned int, (int)2, (int)128, (int)1>(x)": "cat",
    "void at::native::radixSortKVInPlace<(int)2, (int)-1, (int)32, (int)32, float, long>(x)": (
        "sort radix f32"
    ),
    "void at::native::sbtopk::gatherTopK<float, unsigned int, (int)2, (bool)0>(x)": "topk f32",
    "void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, (int)4, void"
    " at::native::templates::cuda::normal_and_transform<float, float, at::CUDAGeneratorImpl *, void"
    " at::native::templates::cuda::normal_kernel<at::CUDAGeneratorImpl *>(x)::[lambda() (instance"
    " 1)]>(x)>(x)": "random normal f32",
    "void at::native::<unnamed>::vectorized_layer_norm_kernel<c10::BFloat16, float, (bool)0>(x)": (
        "vectorized layer norm bf16"
    ),
    "void marlin::Marlin<(long)1125899906909960, (long)1125899907892224, (long)1125899906909960,"
    " (long)1125899906909960, (int)256, (int)1, (int)8, (int)8>(x)": "marlin bf16 u4b8",
    "void marlin_moe_wna16::Marlin<__half, (long)1125899906843648, (int)256>(x)": (
        "marlin moe f16 u4"
    ),
    "void deep_gemm::sm90_fp8_gemm_1d2d_impl<(cute::UMMA::Major)0, (unsigned int)0>(x)": (
        "deepgemm fp8 gemm 1d2d"
    ),
    "void deep_ep::internode_ll::combine<(int)3, (int)7168, (int)9>(void *)": "deepep combine",
    "std::enable_if<!T7, void>::type internal::gemvx::kernel<int, int, __nv_bfloat16>(T13)": (
        "gemv bf16"
    ),
    "void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &silu<float>>(x)": (
        "silu and mul bf16"
    ),
    "void mul_mat_q<(ggml_type)12, (int)128, (int)8, (bool)0>(const char *)": "mul mat q4_K",
    "ns::saxpy(double *, int)": "saxpy",
    "my_kernel": "my_kernel",
    "[CUDA memcpy HtoD]": "[CUDA memcpy HtoD]",
}


@pytest.mark.parametrize(("demangled", "expected"), NAMES.items())
def test_kernels_are_called_by_what_they_do(demangled: str, expected: str) -> None:
    assert short_names([("", demangled)]) == [expected]


def test_what_tells_two_kernels_apart_is_added_to_both() -> None:
    lambdas = [f"void k<f_kernel(int)::{{lambda(int)#{n}}}>(int)" for n in (1, 2)]
    assert short_names([("k", name) for name in lambdas]) == ["f #1", "f #2"]
    templates = [f"void build<{n}, 4>(int*)" for n in (64, 128)]
    assert short_names([("build", name) for name in templates]) == ["build 64", "build 128"]
    fusions = ["input_reduce_fusion", "input_reduce_fusion_7"]
    assert short_names([(one, one) for one in fusions]) == [
        "input reduce fusion", "input reduce fusion #7"
    ]  # fmt: skip
    functions = ["ns::scale(int)", "ns::scale(float)"]
    assert short_names([("scale", name) for name in functions]) == ["scale ~2", "scale"]


TRAITS = "Flash_fwd_kernel_traits<(int)64, (int)128, (int)128, (int)4, (bool)0, (bool)0>"


@pytest.mark.parametrize(
    ("kernel", "on", "words"),
    [
        ("flash_fwd_kernel", "01000100", "flash fwd hd64 causal"),
        ("flash_fwd_kernel", "0010010", "flash fwd hd64 local"),
        ("flash_fwd_kernel", "010001", "flash fwd hd64 causal"),
        ("flash_fwd_splitkv_kernel", "00000110", "flash fwd splitkv hd64 softcap"),
        ("flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", "10", "flash bwd dq_dk_dv hd64 1"),
    ],
)
def test_flags_of_flash_attention_are_told_in_words(kernel: str, on: str, words: str) -> None:
    flagged = [
        f"void flash::{kernel}<{TRAITS}, {', '.join(f'(bool){flag}' for flag in flags)}>(P)"
        for flags in (on, on.replace("1", "0"))
    ]
    with_words, without = short_names([("", name) for name in flagged])
    assert (with_words, without) == (words, words.rpartition(" ")[0] + " 0" * words.endswith("1"))


def test_one_kernel_recorded_twice_has_one_name() -> None:
    assert short_names([("k", "void k<1>(int)")] * 2) == ["k", "k"]


@needs_reports
def test_no_two_kernels_of_a_real_report_share_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    kept = dict[str, None]()
    seen = 0
    for path in report_paths():
        with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as connection:
            tables = {name for (name,) in connection.execute("select name from sqlite_master")}
            if "CUPTI_ACTIVITY_KIND_KERNEL" not in tables:
                continue
            pairs = connection.execute(
                "select distinct s.value, d.value from CUPTI_ACTIVITY_KIND_KERNEL k"
                " join StringIds d on d.id = k.demangledName"
                " join StringIds s on s.id = k.shortName"
            ).fetchall()
        shown = short_names(pairs)
        by_name = {(name, full) for name, (_, full) in zip(shown, pairs, strict=True)}
        assert len({name for name, _ in by_name}) == len({full for _, full in pairs}), path.name
        assert max(map(len, shown), default=0) <= 60
        kept |= dict.fromkeys(n for n, (short, _) in zip(shown, pairs, strict=True) if n == short)
        seen += len(pairs)
    with capsys.disabled():
        print(f"\n{seen} kernels, no two of a report alike; names left as they were:", *kept)
    assert seen > 100
    assert "elementwise_kernel" not in kept


@pytest.mark.parametrize(
    "name",
    [
        "void a<" + "b<" * 9000 + ">" * 9000 + ">(x)",
        "void x<" + "__nv_dl_tag<" * 1500 + ">(a)",
        "[lambda(" * 2000 + "<" * 100,
        "k<" + "lambda(" * 2500 + ">",
        "gemm_" + "12x13_" * 3000,
        "triton_red_fused_" + "_1" * 9000 + "_",
        "(" * 99_999,
    ],
)
def test_odd_names_take_little_time(name: str) -> None:
    begun = time.process_time()
    assert short_names([("", name), ("", f"{name} ")])
    assert time.process_time() - begun < 0.5


def test_names_compared_across_reports_do_not_depend_on_what_else_a_report_holds() -> None:
    names = [OpName("k", f"void k<f_kernel(int)::{{lambda(int)#{n}}}>(int)", "") for n in (1, 2)]
    assert called((*names,), across("short")) == ("f", "f")
    assert called((names[0],), across("short")) == ("f",)
    assert across("full") == "full"


ADDS = {
    "vector_add f32": "void vector_add<float>(float*)",
    "vector_add f64": "void vector_add<double>(double*)",
}


def test_kernels_of_several_reports_are_called_by_what_tells_them_apart() -> None:
    keys = {variant_key("vector_add", full): name for name, full in ADDS.items()}
    assert called_by_key({*keys, "alone\n"}) == {**keys, "alone\n": "alone"}
    one = variant_key("vector_add", ADDS["vector_add f32"])
    assert called_by_key({one}) == {one: "vector_add"}


@pytest.mark.parametrize("name", ADDS)
def test_a_kernel_answers_to_each_of_its_names_and_to_no_other(name: str) -> None:
    own, other = ADDS[name], next(full for called, full in ADDS.items() if called != name)
    for asked in (name, "vector_add", own):
        assert answers_to(asked, own, "vector_add")
    assert not answers_to(name, other, "vector_add")
    for asked in ("vector", f"{name} more", f"x{name}", "vector_add ", ""):
        assert not answers_to(asked, own, "vector_add")
