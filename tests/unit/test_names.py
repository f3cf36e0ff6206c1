from __future__ import annotations

import sqlite3
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import needs_reports, report_paths

from nsys_tui import names
from nsys_tui.names import NameStyle

KERNELS = {
    "void foo<int>(int) [clone .kd]": "foo",
    "void (anonymous namespace)::scale<float>(float*)": "scale",
    "void at::native::<unnamed>::norm<float, (bool)0>(int, const T1 *)": "at::native::norm",
    "ns::_GLOBAL__N__1a2b_4_file_cu::copy(int)": "ns::copy",
    "std::enable_if<(1>2), void>::type ns::foo<bar<(x)->y>>(int (*)(int))": "ns::foo",
    "thrust::agent::operator()<int>(int) const": "thrust::agent::operator()",
    "void a::operator< <int>(a, a)": "a::operator<",
    "ns::T::operator unsigned long() const": "ns::T::operator unsigned long",
    "run(int)::{lambda(int)#1}::operator()(int) const": "run::{lambda#1}::operator()",
    "run()::[lambda() (instance 3)]::operator ()() const": "run::[lambda]::operator()",
    "unsigned long* find(x)": "find",
    "reduce.constprop.0.isra.1": "reduce",
    "gemm_bf16_128x256_v1.2": "gemm_bf16_128x256_v1.2",
    "[CUDA memcpy HtoD]": "[CUDA memcpy HtoD]",
    "forward pass (x)": "forward pass",
    "": "",
    ")>>((": ")>>((",
}


@pytest.mark.parametrize(("demangled", "expected"), KERNELS.items())
def test_normalised_kernel_names(demangled: str, expected: str) -> None:
    assert names.normalise_kernel(demangled) == expected


@needs_reports
def test_last_component_is_the_short_name_that_nsys_itself_stored() -> None:
    seen = 0
    for path in report_paths():
        with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as connection:
            tables = {name for (name,) in connection.execute("select name from sqlite_master")}
            if "CUPTI_ACTIVITY_KIND_KERNEL" not in tables:
                continue
            pairs = connection.execute(
                "select distinct d.value, s.value from CUPTI_ACTIVITY_KIND_KERNEL k"
                " join StringIds d on d.id = k.demangledName"
                " join StringIds s on s.id = k.shortName"
            ).fetchall()
        for demangled, short in pairs:
            assert names.normalise_kernel(demangled).rpartition("::")[2] == short
        seen += len(pairs)
    assert seen > 100


@pytest.mark.parametrize(
    "name", ["(" * 99_999, "<" * 99_999, "([<{" * 25_000 + "}>])" * 25_000, "a.cold" * 16_000]
)
def test_names_of_100_000_characters_take_linear_time(name: str) -> None:
    start = time.process_time()
    names.normalise_kernel.__wrapped__(name[: len(name) // 10])
    tenth = time.process_time() - start
    start = time.process_time()
    names.normalise_kernel.__wrapped__(name)
    assert time.process_time() - start < 40 * tenth + 0.2


def test_styles() -> None:
    pair = ("k", "void ns::k<int>(int)")
    assert names.kernel_name(*pair, NameStyle.SHORT) == "k"
    assert names.kernel_name(*pair, NameStyle.NORMALISED) == "ns::k"
    assert names.kernel_name(*pair, NameStyle.FULL) == pair[1]
    assert names.kernel_name("", pair[1], NameStyle.SHORT) == "ns::k"
    assert names.kernel_name("k", "", NameStyle.FULL) == "k"


def test_layer_numbers_are_told_from_layer_norms() -> None:
    for name in ("Layer 0", "Layer 11", "layer_3", "Layer 4:"):
        assert names.is_layer_number(name)
    for name in ("LayerNorm fwd", "LayerNorm 3", "Layer", "Layer 3 attention", "Layers 3"):
        assert not names.is_layer_number(name)
    assert names.is_train_step("Train step 12")
    assert not names.is_train_step("Train step")
    assert not names.is_train_step("Train stepper 3")


def test_running_numbers_and_versions() -> None:
    assert names.strip_op_id("aten::add, seq = 45329, op_id = 990727") == "aten::add"
    assert names.strip_op_id("record_function, op_idx") == "record_function, op_idx"
    assert names.normalise_nvtx("step 12/400") == "step #/#"
    assert names.api_name("cudaLaunchKernel_v7000") == "cudaLaunchKernel"
    assert names.api_name("cudaGraphLaunch_v10000") == "cudaGraphLaunch"
    assert names.api_name("cudaGraphLaunch_v10000", nsys_compatible=True).endswith("_v10000")
    assert names.api_name("cuMemAlloc_v2") == "cuMemAlloc_v2"


LADDER = [
    (40, "void ns::gemm_bf16_128x256<int>(int)"),
    (30, "ns::gemm_bf16_128x256"),
    (20, "gemm_bf16_128x256"),
    (16, "gemm_bf16_128x2~"),
    (8, "gemm_bf~"),
    (3, "ge~"),
    (2, ""),
    (0, ""),
]


@pytest.mark.parametrize(("cells", "expected"), LADDER)
def test_a_label_goes_down_its_ladder(cells: int, expected: str) -> None:
    assert names.fit("void ns::gemm_bf16_128x256<int>(int)", cells) == expected


def test_what_a_sentence_cuts_off_a_name_is_marked() -> None:
    assert names.brief("main->test_copies", 16) == "main->test_copi~"
    assert (names.brief("", 9), names.fit("", 9)) == ("", "")
    assert names.brief("elementwise copy f32 vec", 21) == "elementwise copy f32~"
    assert names.brief("void ns::gemm_bf16<int>(int)", 9) == "gemm_bf16"
    assert names.brief("onnxruntime::Concat::Compute", 22) == "Concat::Compute"
    assert names.brief("onnxruntime::Concat::Compute", 9) == "Compute"
    loader = "enumerate(Loader)#_WorkersIter.__next__"
    assert [names.brief(loader, n) for n in (20, 12)] == ["enumerate(Loader)", "Loader"]
    assert names.brief("run(int)#1::operator()(long)", 12) == "run#1::oper~", "of a lambda"
    assert names.brief("run(Loader) and all that follows", 20) == "run", "of no method"


def test_a_label_ends_after_a_word_and_never_inside_an_identifier() -> None:
    assert names.fit("elementwise copy f32 vec", 18) == "elementwise copy"
    assert names.fit("gpt2_forward", 9) == "gpt2_for~"
    assert names.fit("to, op_id = 9", 4) == "to"
    assert names.fit("copy_, op_id = 9", 5) == "copy_"
    assert names.fit("SM Active", 6) == "SM Ac~"


def test_a_short_name_fits_whole_below_three_cells() -> None:
    assert names.fit("l0", 2) == "l0"
    assert names.fit("step 4", 5) == "4"
    assert names.fit("Train step 12", 8) == "step 12"


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30), st.integers(0, 20))
def test_fitted_and_padded_text_never_takes_more_cells(text: str, cells: int) -> None:
    assert names.cell_len(names.fit(text, cells)) <= cells
    assert names.cell_len(names.cut(text, cells)) <= cells
    assert names.cell_len(names.pad(text, cells)) == cells


def test_a_padded_text_keeps_no_beginning_of_a_secret() -> None:
    shown = names.pad("load hf_AbCdEfGhIjKlMnOpQrStUvWxYz and more", 20)
    assert shown == "load [redacted] and~"


def test_wide_and_combining_characters_count_as_cells() -> None:
    assert names.cell_len("前向") == 4
    assert names.cell_len("e\u0301") == 1
    assert names.cut("前向", 3) == "前"
    assert names.pad("前向传播", 6) == "前向~ "


def test_control_characters_are_shown() -> None:
    assert names.visible("a\x1b[2Jb\n") == "a␛[2Jb␊"
    assert names.visible("a\x1b[2J", ascii_only=True) == "a\\x1b[2J"
    assert names.visible("\x9b\u202e\udc80\x7f") == "\\x9b\\u202e\\x80␡"
    assert names.visible("café 前", ascii_only=True) == "cafe ?"
    assert names.visible("≈ steps (12)", ascii_only=True) == "~ steps (12)"
    assert names.visible("gemm<int>") == "gemm<int>"
    assert names.visible("\u0378\ufffe\u0601\u3164") == "\\u0378\\ufffe\\u0601\\u3164"
    assert names.visible("\u26a0\ufe0f \U0001f44d\U0001f3fd \ue0b0") == "\u26a0 \U0001f44d \ue0b0"


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(), max_size=30), st.booleans())
def test_shown_text_can_be_encoded_and_holds_no_control(text: str, ascii_only: bool) -> None:
    shown = names.visible(text, ascii_only)
    shown.encode("ascii" if ascii_only else "utf-8")
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in shown)


@pytest.mark.parametrize(
    "name",
    ["हिन्दी_कर्नेल", "தமிழ்_கோா", "বাংলা", "ไทยำ", "日本語", "\u1112\u1161\u11ab", "e\u0301", "क्षि"],
)
def test_a_name_takes_as_many_cells_here_as_in_the_library_of_screens(name: str) -> None:
    from rich.cells import cell_len as of_rich

    shown = names.visible(name)
    assert names.cell_len(shown) == of_rich(shown)
    assert all(of_rich(names.pad(shown, cells)) == cells for cells in range(8))


@pytest.mark.parametrize("cells", [12, 14, 20, 26])
def test_names_cut_to_some_cells_stay_apart(cells: int) -> None:
    given = ["gemm bf16 96x64x64 TN bias", "gemm bf16 192x64x64 TN bias", "softmax", "softmax"]
    shown = names.told_apart(given, cells)
    assert len(set(shown)) == 3
    assert shown[2:] == ["softmax"] * 2
    assert max(map(len, shown)) <= cells
    assert shown[0].startswith("gem")


def test_what_is_edited_keeps_its_places() -> None:
    assert names.visible_in_place("a\x1b\u202e\u26a0\n") == "a\u241b\ufffd\u26a0\u240a"
