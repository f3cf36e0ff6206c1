"""Rules that name kernels: what runs, on which type, in which tile, from a demangled name.

``RULES`` is the table: the first whose pattern is found in the function's own name says how it is
called. A kernel that only carries another function (a lambda, a functor) is called by what it
carries. Names are untrusted; all work is linear in their length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from nsys_tui.names import last_component, normalise_kernel

TYPES: Final = {
    name: short
    for short, names in {
        "f32": "float",
        "f64": "double",
        "f16": "half, __half, half_t, Half",
        "bf16": "__nv_bfloat16, nv_bfloat16, BFloat16, bfloat16_t",
        "e4m3": "__nv_fp8_e4m3, float_e4m3_t, Float8_e4m3fn",
        "e5m2": "__nv_fp8_e5m2, float_e5m2_t, Float8_e5m2",
        "tf32": "tfloat32_t",
        "i32": "int, int32",
        "u32": "unsigned int, uint32",
        "i64": "long, long long, int64",
        "u64": "unsigned long, unsigned long long, uint64",
        "i16": "short",
        "i8": "signed char, char, int8",
        "u8": "unsigned char, uint8",
        "bool": "bool",
        "c64": "complex<float>",
        "c128": "complex<double>",
    }.items()
    for name in names.split(", ")
}
"""C++ types as they are written in names, and what they are called here."""
_TYPE: Final = (
    r"(?:const )?(?:\w+::)*(" + "|".join(re.escape(t) for t in sorted(TYPES, key=len)[::-1]) + ")"
)
_TYPED: Final = re.compile(rf"[<(]{_TYPE}(?: ?[*&])*(?=[,>)])")
_WHOLE_TYPE: Final = re.compile(_TYPE)
_NUMBER: Final = re.compile(r"(\d+)[uUlL]{0,3}")
_CAST: Final = re.compile(r"\A\([\w ]+\)(?=-?\w)")
_WORD: Final = re.compile(r"-?\w+")
_LAMBDA: Final = re.compile(r"[\[{]lambda\(|__nv_h?dl_(?:wrapper_t|tag)|'lambda\d*'|\$_\d")
_INSTANCE: Final = re.compile(r"\(instance (\d+)\)\]|\)#(\d+)\}|'lambda(\d+)'|\$_(\d+)")
_TAGGED: Final = re.compile(r"__nv_h?dl_tag<.*?&\(?")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_SKIPPED: Final = re.compile(
    r"(?:void|const|unsigned|signed|operator|lambda|instance|enable_if|integral_constant"
    r"|T\d+|__nv_h?dl_\w+|gpu_kernel_impl\w*|gpu_kernel\w*|opmath_\w+|\w*gpu_kernel_with_\w+|gpu_index_kernel"
    r"|[AB]?(?:Unary|Binary)Functor|ReduceOp|func_wrapper_t|WelfordOpsWrapper"
    r"|\w*TensorListMetadata\w*|ParallelFor\w*|ParallelReduce|ParallelScan|CombinedFunctorReducer"
    r"|FunctorAnalysis|FunctorWrapper|\w*[Pp]olicy\w*|\w*Iterat\w*|\w*iterator\w*|\w*pointer|device_ptr"
    r"|for_each_f|\w*ary_transform_f|wrapped_function|no_stencil_tag|always_true_predicate"
    r"|LockStepKernel|KernelWithDynSharedMem|TrackExecutor|true|false"
    r"|unnamed|anonymous|namespace|std|array|Array|tuple|LaunchContext\w*|Range\d*d?|\w*exec_explicit\w*|\w*_exec\w*)\Z"
)
"""Words of a template argument that name no operation, but what it is wrapped in."""
_GENERIC: Final = re.compile(
    r"(?:run|apply|launch|execute|compute|call|forward|operator|main)\w*\Z"
)
_ENDS: Final = re.compile(
    r"(?:_?(?:gpu_)?kernel)?(?:_cuda|_gpu|_device)?(?:_?[Kk]ernel)?(?:_?[Ii]mpl)?\Z"
)
_OP_ENDS: Final = re.compile(
    r"(?:CUDA|_cuda)?(?:KernelImpl|_kernel_cuda|_kernel_impl|_kernel|Kernel|_functor|MathFunctor"
    r"|Functor|Ops|Op|_impl|_cuda)\Z"
)
_OP_BEGINS: Final = re.compile(r"CUDAFunctor(?:OnSelf|OnOther)?_|direct_(?=copy)")

Detail: TypeAlias = tuple[str, ...]
"""What may be added to a name, the most telling first; the same place means the same."""


class Named(NamedTuple):
    """A kernel's short name, and what may tell it from another of that name."""

    name: str
    details: Detail = ()

    @classmethod
    def of(cls, *words: str, details: Detail = ()) -> Named:
        """A name of some words, of which those that are not known are empty."""
        return cls(" ".join(filter(None, words)), details)


class Parts(NamedTuple):
    """A demangled name taken apart."""

    own: str
    """Qualified name of the function, without template arguments."""
    arguments: tuple[str, ...]
    """Its template arguments."""
    whole: str

    @property
    def base(self) -> str:
        """The function's name alone."""
        return last_component(self.own)


def argument(text: str) -> str:
    """A template argument in a word: ``(int)4`` as ``4``, ``__nv_bfloat16`` as ``bf16``."""
    plain = _CAST.sub("", text)
    if (whole := _WHOLE_TYPE.fullmatch(plain)) is not None:
        return TYPES[whole[1]]
    return plain if _WORD.fullmatch(plain) else _operation(plain)[0]


def of_number(text: str) -> str:
    """The digits of a template argument that is a number: ``128`` of ``(int)128`` and ``128u``."""
    match = _NUMBER.fullmatch(_CAST.sub("", text))
    return match[1] if match else ""


def types(text: str) -> str:
    """The types within a template argument that is more than a word."""
    return " ".join(TYPES[match[1]] for match in _TYPED.finditer(text))


_BRACKET: Final = re.compile(
    r"\boperator\s*(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|<=?|>=?)|->|[<>()\[\]{},]"
)
_PAIRS: Final = {">": "<", ")": "(", "]": "[", "}": "{"}
_SPLIT: Final = re.compile(rf"{_BRACKET.pattern}|[ ,]")


@lru_cache(maxsize=32768)
def parts_of(demangled: str) -> Parts:
    """Takes a demangled name apart."""
    text = demangled.partition(" [clone ")[0]
    depth: list[str] = []
    arguments, begin = list[str](), 0
    for match in _BRACKET.finditer(text):
        token = match.group()
        if token == "," and depth == ["<"]:
            arguments.append(text[begin : match.start()].strip())
            begin = match.end()
        elif token == "(" and not depth and text[match.end() : match.end() + 9] != "anonymous":
            break
        elif token in "<([{":
            if not depth and token == "<" and text[match.end() : match.end() + 8] != "unnamed>":
                arguments, begin = [], match.end()
            depth.append(token)
        elif token in _PAIRS and depth and depth[-1] == _PAIRS[token]:
            depth.pop()
            if not depth and token == ">" and begin:
                arguments.append(text[begin : match.start()].strip())
                begin = 0
    return Parts(normalise_kernel(demangled), tuple(a for a in arguments if a), demangled)


def _carrier(parts: Parts) -> str:
    """The template argument that holds what a kernel carries."""
    functions = [text for text in parts.arguments if _LAMBDA.search(text)]
    if functions:
        return functions[0]
    named = (text for text in parts.arguments if _operation(text)[0])
    return next(named, "")


def _function_at(text: str) -> int:
    """Where the function is named whose lambda it is: after wrappers, and the type it returns."""
    head, lambda_, _ = text.replace("{lambda(", "[lambda(").partition("::[lambda(")
    starts = [0]
    for match in _SPLIT.finditer(head.removesuffix(" const") if lambda_ else ""):
        if (token := match.group()) in "<([{":
            starts.append(match.end())
        elif token in " ,":
            starts[-1] = match.end()
        elif token in _PAIRS and len(starts) > 1:
            starts.pop()
    return starts[-1]


def _operation(text: str) -> tuple[str, int]:
    """The first word that names an operation, with its class if it alone says little; its end."""
    tag = _TAGGED.search(text)
    begin = _function_at(text) if tag is None else tag.end()
    above = ""
    for match in _IDENTIFIER.finditer(text, begin):
        word, after = match.group(), text[match.end() : match.end() + 2]
        if match.start() and text[match.start() - 1] in "'$)":
            continue
        if after == "::":
            above = word
        elif word == "functor" and above:
            return above.strip("_"), match.end()
        elif not (_SKIPPED.match(word) or word in TYPES or word in _TYPE_WORDS):
            generic = _GENERIC.match(word) and above and not _SKIPPED.match(above)
            return (f"{above}::{word}" if generic else word), match.end()
    return "", begin


_TYPE_WORDS: Final = frozenset(word for name in TYPES for word in re.findall(r"\w+", name))


def _type_after(text: str, place: int) -> str:
    match = _TYPED.search(text, max(place - 1, 0))
    return "" if match is None else TYPES[match[1]]


def _instances(text: str) -> str:
    """Numbers of the lambdas of a name, outermost first: ``#3.12``."""
    numbers = ["".join(filter(None, groups)) for groups in _INSTANCE.findall(text)]
    return f"#{'.'.join(numbers)}" if numbers else ""


def _plain_operation(word: str) -> str:
    plain = _OP_BEGINS.sub("", _OP_ENDS.sub("", word)) or word
    return plain.lower() if plain[:1].isupper() and plain[1:].islower() else plain


_COPY_INTO: Final = {"bfloat16_copy": "bf16", "float16_copy": "f16"}
"""Copies that convert, and the type that they write."""
_OPERANDS: Final = re.compile(rf"(?:[AB]Unary|Binary)Functor<{_TYPE}(?=,)")
"""The type that an operation is applied to, where what it computes in is another."""
_VARIANTS: Final = {"vectorized_": "vec", "unrolled_": "unrolled", "index_": "index"}


def _torch(label: str) -> Callable[[Parts, re.Match[str]], Named | None]:
    """``elementwise add f32``: the operation that a template of PyTorch applies, and on what."""

    def named(parts: Parts, match: re.Match[str]) -> Named | None:
        carrier = _carrier(parts)
        word, end = _operation(carrier)
        if not word:
            return None
        kind = match.groupdict().get("kind") or "strided"
        sizes = [size for a in parts.arguments if (size := argument(a)).isdigit()]
        variant = _VARIANTS.get(kind, kind)
        target = "self" if "OnSelf" in word else ""
        casts = "cast" if "gpu_kernel_impl<" in carrier else ""
        on = _OPERANDS.search(carrier)
        done, of_type = _plain_operation(word), TYPES[on[1]] if on else _type_after(carrier, end)
        if "OpaqueType<" in carrier:
            of_type = ""
        if into := _COPY_INTO.get(done):
            done, of_type = "copy", f"{of_type} to {into}"
        details = (variant, target, casts, _instances(carrier), "x".join(sizes))
        return Named.of(label, done, of_type, details=details)

    return named


def _carried(parts: Parts, match: re.Match[str]) -> Named | None:
    """``PdV``: the function whose lambda, or the functor that, a kernel carries."""
    carrier = _carrier(parts)
    word, _ = _operation(carrier)
    if not word:
        return None
    label = f"{match['label']} " if match.groupdict().get("label") else ""
    plain = _ENDS.sub("", word) or word
    return Named(label + plain, (_instances(carrier), _plain_operation(parts.base)))


def _lambda(parts: Parts, match: re.Match[str]) -> Named | None:
    """The same for kernels of any code, where a lambda stands in their template arguments."""
    return _carried(parts, match) if any(map(_LAMBDA.search, parts.arguments)) else None


_TRANSPOSED: Final = re.compile(r"_([ntNT]{2})[ntNT]?(?:_|\Z)")
_TILE: Final = re.compile(
    r"(?:tilesize|_)(\d+x\d+(?:x\d+)?)(?:_|\Z)(?:(?:ldg\d+_)?(?:\w{1,4}_)??(?:stages_)?(\d+)x\d+(?=_|\Z))?"
)
_DTYPES: Final = (
    ("bf16", r"bf16|nvjet_(?:sm\d+_)?t"),
    ("f16", r"(?<![a-z\d])f16|_h?hgemm|_h884|h16816|nvjet_(?:sm\d+_)?h|fp16"),
    ("tf32", r"tf32"),
    ("e4m3", r"e4m3|nvjet_(?:sm\d+_)?q"),
    ("e2m1", r"e2m1|nvjet_(?:sm\d+_)?o"),
    ("i8", r"i8|int8|_i16832"),
    ("f64", r"dgemm|f64|nvjet_(?:sm\d+_)?d"),
    ("f32", r"sgemm|f32|nvjet_(?:sm\d+_)?s(?!m\d)"),
)
_DTYPE: Final = tuple((name, re.compile(pattern)) for name, pattern in _DTYPES)


def dtype_in(text: str) -> str:
    """The type of data that a generated name tells."""
    return next((name for name, pattern in _DTYPE if pattern.search(text)), "")


_PRODUCT: Final = re.compile(r"gemm|conv|fprop|dgrad|wgrad")


def _gemm(parts: Parts, match: re.Match[str]) -> Named | None:
    """``gemm bf16 128x256x64 TN``: type, tile and layout as cuBLAS and CUTLASS write them."""
    text = next(filter(_PRODUCT.search, parts.arguments), parts.base)
    if "cutlass" in match.group() and not re.search(r"cutlass(?:3x)?_", text):
        return _cutlass(parts) or _carried(parts, match)
    text = last_component(text)
    tile = _TILE.search(text)
    if tile is None:
        return None
    size = tile[1] + (f"x{tile[2]}" if tile[2] and tile[1].count("x") == 1 else "")
    layout = _TRANSPOSED.search(text)
    way = next((w for w in ("fprop", "dgrad", "wgrad") if w in text), "")
    what = "conv" if way or "conv" in text else "gemm"
    extra = [w for w in ("bias", "relu", "gelu", "splitK") if f"_{w}" in text]
    words = (what, way, dtype_in(text), size, layout[1].upper() if layout else "", *extra)
    rest = text.replace(tile.group(), "_")
    return Named.of(*words, details=tuple(w for w in rest.split("_") if w))


_CUTE: Final = re.compile(r"tuple<((?:cute::)?C<(?:\(int\))?\d+> ?,? ?){3}>")
_LISTED_TYPE: Final = re.compile(rf"[<,] ?{_TYPE}(?=[,>])")
_SIZE: Final = re.compile(r"(\d+)>")


_ATTENTION: Final = re.compile(r"(?:FlashAttn|Fmha)(Fwd|Bwd)?")
ON: Final = re.compile(r"(?:\(bool\))?(1|true|0|false)")
_LISTED_FLAGS: Final = re.compile(r"arch::Sm\d+((?:, (?:\(bool\)[01]|true|false))+)")
_FLAGS_3: Final = ("causal", "local", "softcap", "varlen")
"""The first flags of the main loops of flash attention 3."""


def flags(values: Iterable[str], words: Sequence[str]) -> Detail:
    """The words of those template flags that are on."""
    on = (match[1] in ("1", "true") for value in values if (match := ON.fullmatch(value)))
    return tuple(word if is_on else "" for word, is_on in zip(words, on, strict=False))


def _cutlass(parts: Parts) -> Named | None:
    """A kernel of CUTLASS 3: its tile is a tuple of constants, as is its smaller cluster.

    The third side of the tile of an attention kernel is the size of a head.
    """
    tuples = [(_SIZE.findall(match.group()), match.end()) for match in _CUTE.finditer(parts.whole)]
    attention = _ATTENTION.search(parts.whole)
    what = re.search(r"(?i)gemm|conv", parts.whole)
    if not tuples or not (attention or what):
        return None
    size, end = max(tuples, key=lambda one: [len(number) for number in one[0]])
    match = _LISTED_TYPE.search(parts.whole, end)
    dtype, tile = TYPES[match[1]] if match else "", "x".join(size)
    if attention:
        words = ("flash", (attention[1] or "").lower(), f"hd{size[-1]}")
        listed = _LISTED_FLAGS.search(parts.whole)
        told = flags(listed[1].split(", ")[1:], _FLAGS_3) if listed else ()
        return Named.of(*words, details=(dtype, tile, *told))
    return Named.of(what[0].lower() if what else "", dtype, tile)


_REDUCTIONS: Final = frozenset(
    ("sum", "prod", "min", "max", "minmax", "avg", "premulsum", "sumpostdiv")
)
_FIXED_INT: Final = re.compile(r"(int\d+)_t(?=_|\Z)")
_BYTES: Final = ("int8", "uint8", "i8", "u8")
_ALGORITHMS: Final = frozenset(
    ("ring", "tree", "collnet", "direct", "chain", "nvls", "pat", "nvlstree")
)


def _nccl(parts: Parts, match: re.Match[str]) -> Named | None:
    """``AllReduce sum bf16 ring LL``: collective, reduction, type, algorithm, protocol.

    What only moves bytes has no reduction; older versions name one all the same.
    """
    told = _FIXED_INT.sub(r"\1", parts.base[match.end() - match.start() :])
    collective, *rest = told.replace("Generic", "NCCL generic").split("_")
    lower = {word.lower(): word for word in rest}
    reduction = [word for word in lower if word in _REDUCTIONS]
    algorithm = [word for word in lower if word in _ALGORITHMS]
    protocol = [word.upper() for word in lower if word in ("ll", "ll128", "simple")]
    used = {*reduction, *algorithm, "ll", "ll128", "simple"}
    types = [
        TYPES.get(type_word, type_word) for word, type_word in lower.items() if word not in used
    ]
    protocol = [word.capitalize() if word == "SIMPLE" else word for word in protocol]
    if "Reduce" not in collective:
        reduction, types = [], [word for word in types if word not in _BYTES]
    return Named.of(collective, *reduction, *types, *algorithm, *protocol)


def _triton(_: Parts, match: re.Match[str]) -> Named | None:
    """``triton add mul``: what was fused; the running number only where two are alike."""
    what = (match["what"] or "").replace("_", " ").split()
    kind = _FUSED.get(match["kind"]) or ("" if what else _BARE.get(match["kind"], "fused"))
    persistent = "persistent" if match["kind"] == "per" else ""
    return Named.of("triton", kind, *what, details=(persistent, f"#{match['number']}"))


_FUSED: Final = {"red": "reduce", "per": "reduce", "tem": "template"}
_BARE: Final = {"poi": "pointwise", "for": "foreach"}
"""What is said of a fused kernel whose name tells no operation."""


def _mangled(_: Parts, match: re.Match[str]) -> Named | None:
    """``saxpy`` of ``_Z5saxpyiPf``, the last of nested names, what a type of SYCL stands for.

    Julia's lose the number that each run has anew.
    """
    rest, words = match["parts"], list[str]()
    while (size := _LENGTH.match(rest)) and (match["nested"] or not words):
        end = size.end() + int(size[0])
        words.append(rest[size.end() : end])
        rest = rest[end:]
    julia = _JULIA.fullmatch(words[-1]) if words else None
    return Named(julia[1], (julia[2],)) if julia else Named(words[-1]) if words else None


_LENGTH: Final = re.compile(r"[1-9]\d{0,3}")
_JULIA: Final = re.compile(r"julia_(\w+?)_(\d+)")


def _region(_: Parts, match: re.Match[str]) -> Named | None:
    """``main l57``: a target region by its function and line, without the file's number on disk."""
    return Named(f"{match['what']} {match['line']}", (match["file"],))


def _library(parts: Parts, match: re.Match[str]) -> Named | None:
    """``cub DeviceReduce f32``: an algorithm of a library on a type."""
    plain = _ENDS.sub("", match["what"])
    of_type = _type_after("<" + ",".join(parts.arguments) + ">", 1)
    return Named.of(match["label"], plain, of_type)


class Rule(NamedTuple):
    """How kernels of one kind are called."""

    pattern: re.Pattern[str]
    """Searched in the function's own qualified name."""
    name: Callable[[Parts, re.Match[str]], Named | None]
    """The name; None leaves it to the rules below."""


def rules(
    *table: tuple[str, Callable[[Parts, re.Match[str]], Named | None]],
) -> tuple[Rule, ...]:
    """A table of rules from patterns and what names by them."""
    return tuple(Rule(re.compile(pattern), name) for pattern, name in table)


RULES: Final = rules(
    (r"\Anccl(?:Symk?)?(?:Dev)?Kernel_", _nccl),
    (
        r"\Atriton_(?P<kind>[a-z]{3})_fused__?(?:(?P<what>\w*?)_)?(?P<number>\d+)(?:[d_]\w*)?\Z",
        _triton,
    ),
    (r"\A_Z(?:TS)?Z*(?P<nested>N?)K?(?P<parts>\d\w*)\Z", _mangled),
    (r"\A__omp_offloading_(?P<file>[\da-f]+_[\da-f]+)_(?P<what>\w+)_(?P<line>l\d+)", _region),
    (r"\bnvjet_|\d(?:gemm|cudnn)|gemm_|cutlass|xmma_|_s\d+gemm|scudnn", _gemm),
    (
        r"\b(?P<kind>vectorized_|unrolled_|index_|legacy::)?elementwise_kernel\w*\Z",
        _torch("elementwise"),
    ),
    (r"\breduce_kernel\Z", _torch("reduce")),
    (r"\bmulti_tensor_apply_kernel\Z", _torch("multi tensor")),
    (r"\b(?P<label>cub)::(?:\w+::)*(?P<what>Device\w+)\Z", _library),
    (r"\bKokkos::|\bRAJA::", _carried),
    (
        r"(?:\A|::)(?i:(?:raw|gpu|cuda|hip|uniform|generic|static|global|launch|run|execute|apply"
        r"|action|impl|kernel|\dd)_?)+\Z",
        _carried,
    ),
    (r"\b(?P<label>thrust)::|\b(?P<label2>cub)::", _carried),
    (r"", _lambda),
)
"""What is tried, from top to bottom."""
