"""Trainers and servers: real excerpts against figures counted by hand, and small made logs."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import pytest
from loglines import body, info, logs_json, read
from paths import LOGS, needs_logs

from nsys_tui.errors import UsageError
from nsys_tui.logs import read_logs
from nsys_tui.logs.nccl.hangs import find_hangs
from nsys_tui.logs.others.servers import throughput
from nsys_tui.logs.sections.section import LogAnswer
from nsys_tui.logs.sections.tables import SECTIONS
from nsys_tui.logs.steps import all_averages, average_of, epoch_averages
from nsys_tui.logs.trainers.step_lines import distinct
from nsys_tui.logs.trainers.trainer_table import own_trainer

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.logs import LogResult
    from nsys_tui.logs.figures import Spread
    from nsys_tui.logs.steps import Average

MS = 10**6
FORMATS = LOGS / "formats"
needs_formats = pytest.mark.skipif(
    not FORMATS.is_dir(), reason="needs the real excerpts in ../shared/logs/formats, absent here"
)


def real(name: str) -> LogResult:
    return read_logs([FORMATS / f"{name}.log"])


def figures(spread: Spread | None, places: int = 6) -> tuple[float, ...]:
    assert spread is not None
    parts = (spread.mean, spread.median, spread.min, spread.max)
    return tuple(round(float(part), places) for part in parts)


def main_average(result: LogResult) -> Average:
    found = average_of(result)
    assert found is not None
    return found


@needs_formats
@pytest.mark.parametrize(
    ("name", "trainer", "steps", "warmup", "seconds"),
    [
        ("megatron-1", "megatron", (5, 1, 5), (1,), (75.045225, 75.216, 74.4949, 75.254)),
        ("deepspeed-1", "deepspeed", (52, 10, 520), (), (0.762133, 0.746, 0.7391, 1.5679)),
        ("nanotron-1", "nanotron", (15, 1, 15), (1,), (0.05698, 0.009225, 0.00873, 0.673)),
        ("litgpt-1", "litgpt", (10, 1, 10), (1,), (0.48061, 0.51414, 0.26075, 0.60303)),
        ("maxtext-1", "maxtext", (10, 0, 9), (0, 1), (5.633625, 5.668, 5.402, 5.669)),
        ("aws-fsdp-1", "fsdp", (6, 0, 5), (0,), (3.2, 3.0, 3.0, 4.0)),
        ("lightning-1", "lightning", (7, 25, 125), (), (4.688, 4.64, 4.44, 5.12)),
        ("hf-trainer-2", "huggingface", (16, 1, 16), (1,), (57.4, 56.0, 53.0, 62.0)),
    ],
)
def test_steps_of_real_excerpts(
    name: str,
    trainer: str,
    steps: tuple[int, int, int],
    warmup: tuple[int, ...],
    seconds: tuple[float, ...],
) -> None:
    found = main_average(real(name))
    assert found.format == trainer
    assert (found.steps, found.first, found.last) == steps
    assert found.warmup == warmup
    assert tuple(round(one / 1e9, 6) for one in figures(found.step)) == seconds


@needs_formats
def test_rates_of_real_excerpts() -> None:
    titan = main_average(real("torchtitan-1"))
    assert (titan.steps, titan.lines, titan.first, titan.step) == (1, 9, 1990, None)
    assert figures(titan.tokens) == (6785, 6785, 6785, 6785)
    deepspeed = main_average(real("deepspeed-1"))
    assert figures(deepspeed.samples) == (171.908635, 171.675607, 171.136926, 181.556374)
    nanotron = main_average(real("nanotron-1"))
    assert figures(nanotron.tokens) == (49990.071429, 55450, 761, 58700)
    megatron = real("megatron-1")
    whole = main_average(megatron)
    assert whole.step_ns == Fraction(75_239_240 * 1000)
    assert round(float(whole.tflops or 0), 6) == 149.136
    assert {row.format for row in all_averages(megatron)} == {"megatron", "deepspeed"}
    assert megatron.trainer == "megatron"


@needs_formats
def test_a_rounded_rate_and_the_run_time_leave_one_number_of_steps() -> None:
    (total,) = real("hf-trainer-1").run_totals
    assert (total.copies, total.steps, total.step_ns) == (16, 2, 136_507_450_000)
    total = real("hf-trainer-2").run_totals[0]
    assert (total.copies, total.steps, total.step_ns) == (4, 16, 57_443_562_500)


@needs_formats
def test_epochs_of_lightning() -> None:
    rows = epoch_averages(real("lightning-1"))
    seconds = [114, 117, 111, 116, 128]
    assert [row.step_ns for row in rows] == [Fraction(s * 10**9, 25) for s in seconds]


@needs_formats
def test_servers_of_real_excerpts() -> None:
    rows = throughput(real("vllm-1").servers)
    assert [(row.engine, row.run, row.lines) for row in rows] == [
        ("000", 0, 10),
        ("000", 1, 3),
        ("000", 2, 7),
    ]
    assert figures(rows[0].generation) == (4199.1, 5122.4, 829.2, 6297.4)
    assert figures(rows[0].prompt) == (2711.95, 1220.85, 0, 9687.7)
    assert (rows[0].most_running, rows[0].most_waiting) == (256, 261)
    (row,) = throughput(real("sglang-1").servers)
    assert (row.lines, row.warmup) == (11, 1)
    assert figures(row.generation) == (78.346, 78.77, 77.1, 79.51)
    (total,) = real("vllm-1").run_totals
    values = dict(total.values)
    assert values["Output token throughput (tok/s)"] == "4215.38"
    assert values["Median TPOT (ms)"] == "52.99"


TRAINERS: dict[str, tuple[str, str]] = {
    "torchtitan": (
        "[titan] 2025-03-04 00:00:{at:02},000 - root - INFO - step: {n:2}  loss:  9.5  grad_norm: "
        "1.2 memory: 4.0GiB(5.0%)  tps: {tokens:,}  tflops: 40.25  mfu: 12.90%",
        "stamps",
    ),
    "deepspeed": (
        "[2025-03-04 00:00:{at:02},000] [INFO] [timer.py:260:stop] epoch=0/micro_step={n}/"
        "global_step={n}, RunningAvgSamplesPerSec=1.5, CurrSamplesPerSec=2.5, MemAllocated=1GB",
        "stamps",
    ),
    "nanotron": (
        "03/04/2025 00:00:{at:02} [INFO|DP=0|PP=0|TP=0]: iteration: {n} / 90 | consumed_tokens: "
        "1.2K | elapsed_time_per_iteration_ms: {k}K | tokens_per_sec: 9 | "
        "tokens_per_sec_per_gpu: {tokens} | lm_loss: 5.3 | model_tflops_per_gpu: 40.25",
        "printed",
    ),
    "litgpt": (
        "Epoch 1 | iter {n} step {n} | loss train: 1.6, val: n/a | iter time: {ms} ms (step)",
        "printed",
    ),
    "maxtext": (
        "completed step: {n}, seconds: {k}, TFLOP/s/device: 40.25, Tokens/s/device: {tokens}.0, "
        "total_weights: 8, loss: 12.0",
        "printed",
    ),
    "megatron": (
        "[default7]: iteration {n:8}/  99 | consumed samples: 8 | elapsed time per iteration (s): "
        "{k} | lm loss: 1.9E+00 | samples per second: 9.490 | TFLOPs: 40.25 |",
        "printed",
    ),
    "olmo": (
        "[2025-03-04 00:00:{at:02}] INFO     [olmo.train:816, rank=0] [step={n}/90]\n"
        "    train/CrossEntropyLoss=11.25\n    throughput/device/tokens_per_second={tokens:,}",
        "stamps",
    ),
    "clu": (
        "I0304 00:00:{at:02}.140852 1234 logging_writer.py:48] [{n}] loss=2.5, "
        "steps_per_sec={rate:.12g}",
        "printed",
    ),
    "fairseq": (
        "2025-03-04 00:00:00 | INFO | train_inner | epoch 001:   {n} / 90 loss=9.2, wps={tokens}, "
        "ups=0.04, wpb=5, num_updates={n}, lr=2e-05, gnorm=3.23, train_wall=1, wall={at}",
        "stamps",
    ),
    "modded-nanogpt": ("step:{n}/90 train_loss:2.5 train_time:{at}000ms step_avg:9.99ms", "stamps"),
    "detectron2": (
        "[03/04 00:00:{at:02} d2.utils.events]:  eta: 0:03:35  iter: {n}  total_loss: 1.36  "
        "loss_cls: 0.65  time: 9.99  data_time: 0.11  lr: 3.8e-06  max_mem: 433M",
        "stamps",
    ),
    "dllogger": (
        "DLL 2025-03-04 00:00:{at:02}.562594 - epoch    1 | iter   {n}/19 | loss 36.9 | 9 items/s",
        "stamps",
    ),
    "verl": (
        "(TaskRunner pid=12) step:{n} - actor/pg_loss:0.01 - " + "critic/x:1.25 - " * 500 + ""
        "timing_s/gen:0.5 - timing_s/step:{k}.0 - perf/throughput:{tokens}.0",
        "printed",
    ),
    "vision": (
        "Epoch: [0][ {n:3}/1424]  Time  {k}.000 (99.99)  Data 0.001 (0.7)  Loss 6.9e+00 (6.9)",
        "printed",
    ),
    "paddle": (
        "[2025-03-04 00:00:00,797] [    INFO] - loss: 3.2, learning_rate: 2e-05, global_step: {n}, "
        "interval_runtime: 9.9, interval_tokens_per_second_per_device: {tokens}.0, "
        "interval_steps_per_second: {rate:.12g}, epoch: 0.0265",
        "printed",
    ),
    "mindformers": (
        "2025-03-04 00:00:00,173 - [core/callback.py:529] - INFO - {{ Epoch:[  1/  2], step:[ {n:4}"
        "/   19], loss: 10.633, per_step_time: {ms}ms, lr: 1e-05, train_throughput_per_npu: 40.25T",
        "printed",
    ),
    "step": (
        "step {n:05d}/00090 (0.05%) | loss: 9.31 | dt: {ms}.00ms | tok/sec: {tokens:,} |"
        " mfu: 45.60 | total time: 0.00m",
        "printed",
    ),
}
TIMES = (40, 3, 2, 4, 3, 2, 3, 3, 2, 3)
"""Seconds of steps 1 to 10: the first compiles."""


def made_log(name: str) -> list[str]:
    form, _ = TRAINERS[name]
    at, lines = 0, []
    for n, seconds in enumerate(TIMES, 1):
        at += seconds if n > 1 else 0
        lines.append(
            form.format(n=n, at=at, k=seconds, ms=seconds * 1000, tokens=8000 + n, rate=1 / seconds)
        )
    return lines


@pytest.mark.parametrize("name", TRAINERS)
def test_steps_of_made_logs(tmp_path: Path, name: str) -> None:
    found = main_average(read(tmp_path, made_log(name)))
    assert (found.format, found.steps, found.first, found.last) == (name, 10, 1, 10)
    assert found.warmup == (1,)
    assert found.step is not None
    after = [Fraction(s * 10**9) for s in TIMES[1:]]
    assert (found.step.mean, found.step.median) == (mean(after), median(after))
    assert found.step.p95 == Fraction(36 * 10**8)  # between the 8th and 9th of nine: 3 + 0.6
    assert found.approximate is (TRAINERS[name][1] == "stamps")
    if "{tokens" in TRAINERS[name][0]:
        assert found.tokens is not None
        assert found.tokens.median == 8006
    if "40.25" in TRAINERS[name][0]:
        assert found.tflops == Fraction("40.25")


def test_a_log_that_starts_late_has_no_warmup(tmp_path: Path) -> None:
    late = [line.replace("step: ", "step: 10") for line in made_log("maxtext")[1:]]
    assert main_average(read(tmp_path, late)).warmup == ()


def test_the_user_says_how_long_the_warmup_is(tmp_path: Path) -> None:
    lines = made_log("maxtext")
    assert main_average(read(tmp_path, lines, warmup=0)).warmup == ()
    assert main_average(read(tmp_path, lines, warmup=3)).warmup == (1, 2, 3)


def test_epochs_are_kept_apart(tmp_path: Path) -> None:
    line = "Training epoch {}, iteration {}/4 | train_step_timing in s: {} | TFLOPS_per_GPU: 1"
    lines = []
    for epoch in (0, 1):
        for step in range(5):
            seconds = f"{epoch + 1}.5"
            lines += [info(body(op_count=epoch * 5 + step)), line.format(epoch, step, seconds)]
    result = read(tmp_path, lines)
    assert [(row.epoch, row.steps, row.step_ns) for row in epoch_averages(result)] == [
        (0, 5, 1_500 * MS),
        (1, 5, 2_500 * MS),
    ]
    found = main_average(result)
    assert (found.steps, found.lines, found.step_ns) == (10, 10, 2_000 * MS)
    second = read(tmp_path, lines, epoch=1, steps=(2, 3))
    assert second.calls.select().op_count.tolist() == [7, 8]
    assert main_average(second).step_ns == 2_500 * MS
    both = read(tmp_path, lines, steps=(2, 3))
    assert both.calls.select().op_count.tolist() == [2, 3, 7, 8]
    said = [one["text"] for one in logs_json(both)["advice"]]
    assert "the window holds steps of 2 epochs; --epoch chooses one" in said


def bar(done: int, every: int, since: int, *, front: str = "", rate: str = "1.00s/it") -> str:
    clock = f"{since // 60:02}:{since % 60:02}"
    return f"\r{front}{done * 100 // every:3}%|###  | {done}/{every} [{clock}<09:59, {rate}]"


def test_bars_of_four_processes_are_one_run(tmp_path: Path) -> None:
    bars = [bar(n, 4, 60 * n + n % 2, rate="99.99s/it") for n in range(5)]
    text = "".join("".join(bars) + bars[-1] + "\n" for _ in range(4))
    result = read(tmp_path, text)
    found = main_average(result)
    assert (found.steps, found.lines, found.first, found.last) == (4, 4, 1, 4)
    assert [step.step_ns for step in result.step_lines] == [61 * 10**9, 59 * 10**9] * 2


def test_a_first_step_that_lasts_longer_is_no_part_of_the_others(tmp_path: Path) -> None:
    result = read(tmp_path, "".join(bar(n, 40, n * 5 + 9 * (n > 0)) for n in range(41)))
    found = average_of(result)
    assert found is not None
    assert found.step is not None
    assert (found.warmup, found.step.mean) == ((1,), 5_000 * MS)
    assert found.step_ns == Fraction(209 * 1_000 * MS, 40)


def test_whole_seconds_are_read_over_long_spans_only(tmp_path: Path) -> None:
    text = "".join(bar(n, 60, n * 2) for n in range(61))
    timed = [step for step in read(tmp_path, text).step_lines if step.step_ns]
    assert [(step.step, step.over, step.step_ns) for step in timed] == [
        (25, 25, 2_000 * MS),
        (50, 25, 2_000 * MS),
        (60, 10, 2_000 * MS),
    ]


@pytest.mark.parametrize(
    "front",
    [
        "Loading safetensors checkpoint shards: 100% Completed | ",
        "Processed prompts: 100%|####| ",
        "Downloading ",
    ],
)
def test_bars_that_are_no_trainers(tmp_path: Path, front: str) -> None:
    lines = [f"{front}4/4 [00:02<00:00,  1.62it/s]", info(body())]
    assert read(tmp_path, lines).step_lines == ()


@pytest.mark.parametrize(
    ("line", "trainer", "step", "ns"),
    [
        (
            "iter 7 step 3: loss 1.6463, iter time: 820.31ms (optimizer.step)",
            "litgpt",
            7,
            820_310_000,
        ),
        (
            "iteration: 9 / 15 | consumed_tokens: 5K | time_per_iteration_ms: 1.5K | lm_loss: 5.2",
            "nanotron",
            9,
            1_500 * MS,
        ),
        ("completed step: 3, seconds: 3.565, TFLOP/s: 1.5, loss: 2.0", "maxtext", 3, 3_565 * MS),
        (
            "step  3/9 | loss     nan (+nanz)| norm nan (+nanz)| 30.5 ms | 9 tok/s",
            "llm.c",
            3,
            30_500_000,
        ),
        (
            "[2025-03-04 02:45:08][INFO][training:1251] -  iteration=       1/  317892 | consumed_"
            "samples=256 | elapsed_time_per_iteration_ms=17711.5 | lm loss=11.2 | TFLOPs=144.87 |",
            "megatron",
            1,
            17_711_500_000,
        ),
        (
            "[2022-09-21 05:43:59,508] [    INFO] - [train] epoch: 0, batch: 1, loss: 11.0, "
            "avg_batch_cost: 0.71029 sec, speed: 1.41 step/s, ips: 11533 tokens/s",
            "paddle",
            1,
            710_290_000,
        ),
        (
            "[2021/12/04 05:16:13] root INFO: [epoch 0, iter 20][TRAIN]avg_samples: 32.0 , "
            "avg_reader_cost: 0.001 sec, avg_batch_cost: 0.0125 sec, avg_ips: 2560.0 images/sec",
            "paddle",
            20,
            12_500_000,
        ),
        (
            "[2025/03/04 05:16:13] ppocr INFO: epoch: [3/40], global_step: 900, lr: 0.0005, "
            "avg_reader_cost: 0.001 s, avg_batch_cost: 0.25 s, avg_samples: 32, ips: 128 samples/s",
            "paddle",
            900,
            250 * MS,
        ),
        (
            "{ step:[    2/   10], loss:  11.7, per_step_time:    710ms }",
            "mindformers",
            2,
            710 * MS,
        ),
        (
            " samples/sec: 51.2 | iteration 10/ 50 | elapsed time per iteration (ms): 900.5 | "
            "approx flops per GPU: 150.3TFLOPS | lm_loss: 7.1E+00 |",
            "megatron",
            10,
            900_500_000,
        ),
        (
            "2025-03-04 18:44:23,494 - mmdet - INFO - Epoch [2][1200/7517]\tlr: 0.1, eta: 1 day, "
            "4:44:04, time: 0.593, data_time: 0.031, memory: 6836, loss: 0.46",
            "vision",
            1200,
            593 * MS,
        ),
        (
            "Epoch: [0]  [ 103/5005]  eta: 4:43:31  lr: 0.1  img/s: 13.6  loss: 6.8 (6.9)  "
            "time: 2.5401  data: 0.0336  max mem: 3524",
            "vision",
            103,
            2_540_100_000,
        ),
        (
            "Train: 3 [  50/6672 (  1%)]  Loss: 6.9 (6.9)  Time: 0.734s,  261.4/s  (0.7s,  258/s)",
            "vision",
            50,
            734 * MS,
        ),
        (
            "2025/03/04 10:00:25 - mmengine - INFO - Iter(train) [ 100/2000]  lr: 1.0e-03  "
            "eta: 1:00:00  time: 0.4120  data_time: 0.0100  memory: 4000  loss: 2.4",
            "vision",
            100,
            412 * MS,
        ),
        (
            "2025-03-04 10:00:25,123 - mmseg - INFO - Iter [150/40000]\tlr: 1.0e-03, eta: 4:00:00, "
            "time: 0.310, data_time: 0.010, memory: 4000, loss: 2.4",
            "vision",
            150,
            310 * MS,
        ),
        (
            "[03/04/2025-10:00:00] [TRT-LLM] [I] iter = 11, global_rank = 0, rank = 0, "
            "currank_total_requests = 8/8, host_step_time = 13.5ms, prev_device_step_time = N/A, "
            "timestamp = 2025-03-04 10:00:01, states = {'num_ctx_requests': 0}",
            "tensorrt-llm",
            11,
            13_500_000,
        ),
        (
            "[TRT-LLM] [I] iter = 7, global_rank = 1, rank = 1, currank_total_requests = 0/0, "
            "elapsed_time = 0.0050625s, timestamp = 2025-03-04 10:00:01",
            "tensorrt-llm",
            7,
            5_062_500,
        ),
        ("1|57|Loss: 0.061: 100%|####| 57/57 [20:46<00:00, 21.88s/it]", "tqdm", 57, 21_859_649_123),
        ("steps:  5%|#   | 100/2000 [00:57<18:14,  1.74it/s, avr_loss=0.1]", "tqdm", 100, 570 * MS),
    ],
)
def test_older_and_newer_forms(tmp_path: Path, line: str, trainer: str, step: int, ns: int) -> None:
    (found,) = read(tmp_path, [line]).step_lines
    assert (found.format, found.step, found.step_ns) == (trainer, step, ns)


@pytest.mark.parametrize(
    "line",
    [
        "step 100, t = 0.1, dt: 1e-4",  # of a simulation
        "Epoch [1/10], Step [100/600], Loss: 0.1",
        "04/21 21:03:53 - mmengine - INFO - Epoch(val) [1][10/90]  time: 0.010  data_time: 0.000",
        "2025-03-04 07:12:55 | INFO | valid | epoch 001 | loss 9.1 | wps 3000 | num_updates 100",
        "max_step: 500 tokens_per_second: 3",
        "03/04 21:03:53 - mmengine - INFO - Iter(val) [10/90]  time: 0.010  data_time: 0.000",
        "step:0 - val-core/acc/mean@1:0.508",
    ],
)
def test_lines_that_are_like_steps(tmp_path: Path, line: str) -> None:
    assert read(tmp_path, [line, info(body())]).step_lines == ()


def test_a_mean_over_many_steps_counts_as_many_in_the_median(tmp_path: Path) -> None:
    lines = ["step:{}/900 train_time:{}ms step_avg:0ms".format(*at) for at in MANY_STEPS]
    found = main_average(read(tmp_path, lines))
    assert found.step is not None
    assert (found.step.median, found.step.p95, found.step.max) == (2 * MS, 2 * MS, 60 * MS)
    assert found.step.mean == Fraction((99 * 2 + 60) * MS, 100)


@pytest.mark.parametrize("name", ["torchtitan", "dllogger", "olmo"])
def test_a_collectors_stamp_is_not_the_trainers(tmp_path: Path, name: str) -> None:
    lines = "\n".join(made_log(name)).split("\n")
    flushed = [f"2025-03-04T00:09:00.5Z stdout F {line}" for line in lines]
    plain, found = (main_average(read(tmp_path, text)) for text in (lines, flushed))
    assert (found.step, found.tokens) == (plain.step, plain.tokens)


def test_steps_of_one_stamp_share_the_time_to_the_next(tmp_path: Path) -> None:
    form = "2025-03-04 00:00:{:02},000 - root - INFO - step: {}  loss:  9.5  tps: 80"
    lines = [form.format(n // 4, n) for n in range(1, 41)]
    steps = read(tmp_path, lines).step_lines
    assert {step.step_ns for step in steps if step.step > 4} == {None, 250 * MS}
    assert sum(step.over for step in steps if step.step_ns is not None) == 39


def test_a_named_bar_behind_a_collectors_front(tmp_path: Path) -> None:
    line = "2025-03-04T00:09:00.5Z stdout F steps:   5%|#   | 100/2000 [00:57<18:14,  1.74it/s]"
    (step,) = read(tmp_path, [line]).step_lines
    assert (step.step, step.step_ns) == (100, 570 * MS)


MANY_STEPS = ((100, 0), (199, 198), (200, 258))


def test_a_block_of_metrics_after_its_dictionary_is_the_same_run(tmp_path: Path) -> None:
    lines = [
        "{'train_runtime': '219', 'train_steps_per_second': '0.183', 'epoch': '3'}",
        "***** train metrics *****",
        "  train_runtime          = 0:03:38.55",
        "  train_steps_per_second =      0.183",
    ]
    assert len(read(tmp_path, lines).run_totals) == 1
    other = lines[0].replace("219", "319")
    assert len(read(tmp_path, [other, *lines[1:]]).run_totals) == 2


def test_the_overview_of_a_serving_benchmark(tmp_path: Path) -> None:
    lines = ["=" * 20, "= PERFORMANCE OVERVIEW", "=" * 20, "Request Throughput (req/sec):   2.5"]
    (total,) = read(tmp_path, [*lines, "=" * 20, "Number of requests:  6"]).run_totals
    assert total.values == (("Request Throughput (req/sec)", "2.5"),)


def test_bars_of_other_work_and_of_a_resumed_run(tmp_path: Path) -> None:
    other = bar(9, 9, 500, front="Loading checkpoint shards: ")
    evaluation = bar(50, 50, 30, rate="1.60it/s")
    train = "".join(bar(n, 8, 60 * n, rate="60.00s/it") for n in range(9))
    result = read(tmp_path, other + "\n" + train + "\n" + evaluation + "\n")
    assert {step.step for step in result.step_lines} == set(range(1, 9))
    resumed = bar(500, 600, 4, rate="2.00s/it") + bar(550, 600, 104, rate="2.00s/it")
    steps = read(tmp_path, resumed).step_lines
    assert [(step.step, step.step_ns) for step in steps] == [(500, None), (550, 2_000 * MS)]


def test_losses_have_the_step_of_the_bar_beside_them(tmp_path: Path) -> None:
    lines = []
    for n in (25, 50, 75):
        lines.append(bar(n, 90, n * 4, rate="4.00s/it"))
        lines.append(f"{{'loss': 1.{n}, 'learning_rate': 1e-05, 'epoch': {n / 30:.2f}}}")
        lines.append(bar(n, 90, n * 4, rate="4.00s/it"))
    steps = read(tmp_path, lines).step_lines
    assert [s.step for s in steps if s.format == "huggingface-dict"] == [25, 50, 75]
    # Standard output came as one piece behind all bars: the bars say nothing, the epochs do.
    bars = [line for line in lines if line.startswith("\r")]
    losses = [line for line in lines if line.startswith("{")]
    end = "{'train_runtime': 360.0, 'train_steps_per_second': 0.25, 'epoch': 3.0}"
    steps = read(tmp_path, [*bars, *losses, end]).step_lines
    assert [s.step for s in steps if s.format == "huggingface-dict"] == [25, 50, 75]
    steps = read(tmp_path, [*bars, *losses]).step_lines
    assert [s.step for s in steps if s.format == "huggingface-dict"] == [-1, -1, -1]


def test_a_rate_that_leaves_several_numbers_of_steps_is_a_range(tmp_path: Path) -> None:
    line = "{'train_runtime': 21447.49, 'train_steps_per_second': 0.038, 'epoch': 4.0}"
    (total,) = read(tmp_path, [line]).run_totals
    assert (total.steps, total.step_ns) == (None, None)
    # 0.0375 to 0.0385 steps a second are 805 to 825 whole steps.
    runtime = Decimal("21447.49")
    assert total.step_range_ns == (
        round(runtime * 10**9 / 825),
        round(runtime * 10**9 / 805),
    )


def test_lines_of_other_processes_and_of_one_step(tmp_path: Path) -> None:
    one = made_log("torchtitan")
    both = [f"{rank}: {line}" for line in one for rank in range(3)]
    found = main_average(read(tmp_path, both))
    assert (found.steps, found.lines) == (10, 30)
    assert found.step == main_average(read(tmp_path, one)).step


def serving(stamp: str, generation: float, prompt: float = 0.0) -> str:
    return (
        f"INFO 09-04 {stamp} [loggers.py:123] Engine 001: Avg prompt throughput: {prompt} tokens/s,"
        f" Avg generation throughput: {generation} tokens/s, Running: 3 reqs, Waiting: 1 reqs"
    )


def test_runs_of_a_server_are_split_where_it_was_idle(tmp_path: Path) -> None:
    lines = [serving(f"01:00:{n}0", 100 + n) for n in range(4)]
    assert len(throughput(read(tmp_path, lines).servers)) == 1
    lines += [serving(f"01:09:{n}0", 300 + n) for n in range(3)]
    rows = throughput(read(tmp_path, lines).servers)
    assert [(row.run, row.lines) for row in rows] == [(0, 7), (1, 4), (2, 3)]
    assert [row.generation and row.generation.max for row in rows] == [302, 103, 302]


def test_a_pattern_of_ones_own(tmp_path: Path) -> None:
    lines = [f"it {n} done in {n * 10} ms at {n}.5 tflop" for n in range(1, 5)]
    pattern = own_trainer(r"it (?P<step>\d+) done in (?P<ms>\d+) ms at (?P<tflops>[\d.]+)")
    found = main_average(read(tmp_path, lines, pattern=pattern))
    assert (found.format, found.steps, found.step_ns) == ("own", 4, 25 * MS)
    assert found.tflops == 3


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "no regular expression"),
        (r"(?P<ms>\d+)", "none named step"),
        (r"(?P<step>\d+)(?P<speed>\d)", "speed"),
    ],
)
def test_patterns_that_are_refused(pattern: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        own_trainer(pattern)


def test_a_pattern_that_never_ends_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nsys_tui.logs.trainers.trainer_table.SECONDS", 0.05)
    pattern = own_trainer(r"(?P<step>\d+)(a+)+b")
    with pytest.raises(UsageError, match="takes more than"):
        read(tmp_path, ["1" + "a" * 60], pattern=pattern)


def test_a_table_of_steps_names_the_warmup(tmp_path: Path) -> None:
    result = read(tmp_path, made_log("maxtext"))
    table = SECTIONS["steps"].table(LogAnswer(result, find_hangs(result)))
    assert "maxtext: step 1 is warm-up; with it the mean is 6.500000 s" in table.notes
    found: dict[str, Any] = logs_json(result)["average"]
    assert (found["warmup"], found["step_s"]["median"]) == ([1], "3.000000")
    assert found["average_train_step_timing_s"] == "6.500000"


@needs_logs
def test_no_trainer_is_seen_in_a_log_of_nccl() -> None:
    assert read_logs([LOGS / "excerpt-megatron-tp2dp2-4xa100.log"]).step_lines == ()


FRONTS = (
    "3: ",
    "[default3]:",
    "[pod/train-0/pytorch] ",
    "2026-03-04T05:06:07.123Z ",
    "[1,3]<stdout>:",
    " 3: ",
    "trainer-1  | ",
    "node7: ",
    "2026-03-04T05:06:07.123456789Z stdout F ",
    "Mar  4 05:06:07 node7 train[4711]: ",
    "1772600767.123 ",
    "Loading: 9%|#  | 9/99 [00:01<00:09, 9.0it/s]\r",
)


@needs_formats
@pytest.mark.parametrize("front", FRONTS)
def test_what_a_launcher_puts_before_lines_changes_no_table(tmp_path: Path, front: str) -> None:
    for name in ("osu-1", "mpip-1", "vllm-1", "litgpt-1", "nccl-tests-1"):
        text = (FORMATS / f"{name}.log").read_text()
        path = tmp_path / name
        path.write_text("".join(front + line for line in text.splitlines(keepends=True)))
        bare, dressed = real(name), read_logs([path])
        for found in ("benchmarks", "mpip", "run_totals"):
            assert getattr(dressed, found) == getattr(bare, found), (name, found)
        assert bare.benchmarks or bare.mpip or bare.run_totals


@needs_formats
@pytest.mark.parametrize("name", ["osu-1", "mpip-1", "vllm-1", "nccl-tests-1", "litgpt-1"])
@pytest.mark.parametrize("how", ["other lines", "docker", "byte order mark"])
def test_tables_among_other_lines_and_in_other_files(tmp_path: Path, name: str, how: str) -> None:
    lines = (FORMATS / f"{name}.log").read_text().splitlines(keepends=True)
    path = tmp_path / name
    if how == "other lines":
        text = "".join(f"{line}UserWarning: 3 tensors\n" for line in lines)
    elif how == "docker":
        pieces = [piece for line in lines for piece in (line[:7], line[7:]) if piece]
        text = "".join(json.dumps({"log": p, "stream": "stdout"}) + "\n" for p in pieces)
    else:
        text = "\ufeff" + "".join(lines)
    path.write_text(text, encoding="utf-8")
    bare, dressed = real(name), read_logs([path])
    for found in ("benchmarks", "mpip", "run_totals"):
        mine, theirs = ([str(one) for one in getattr(each, found)] for each in (dressed, bare))
        assert [_unplaced(one) for one in mine] == [_unplaced(one) for one in theirs], found
    assert bare.benchmarks or bare.mpip or bare.run_totals


def _unplaced(text: str) -> str:
    return re.sub(r"line=\d+", "", text)


def test_a_record_of_docker_has_its_time(tmp_path: Path) -> None:
    record = '{"log":"Batch %d Loss: 1.0, Speed: 1.0 samples/sec, lr: 0.1\\n","time":"%sZ"}\n'
    path = tmp_path / "train-json.log"
    path.write_text("".join(record % (n, f"2026-03-04T05:06:{7 * n:02}.5") for n in range(5)))
    assert figures(main_average(read_logs([path])).step)[0] == 7e9


@needs_formats
def test_ranks_that_print_late_change_no_step(tmp_path: Path) -> None:
    lines = (FORMATS / "deepspeed-1.log").read_text().splitlines(keepends=True)
    path = tmp_path / "late.log"
    late = ["0: " + line + "1: " + before for before, line in pairwise(["", *lines])]
    path.write_text("".join(late) + "1: " + lines[-1])
    assert main_average(read_logs([path])).step == main_average(real("deepspeed-1")).step


def event(key: str, ms: int, value: object = None, **metadata: object) -> str:
    told = {"namespace": "", "time_ms": ms, "key": key, "value": value, "metadata": metadata}
    return f"0: :::MLLOG {json.dumps(told)}"


def test_mlperf_tells_intervals_and_rates_whose_unit_it_tells(tmp_path: Path) -> None:
    lines = [
        event("run_start", 1_000),
        *(
            event(f"block_{what}", 1_000 + 4_000 * at, samples_count=300 * at)
            for at in range(3)
            for what in (("stop", "start") if at else ("start",))
        ),
        event("tracked_stats", 9_000, {"throughput": 14214.659, "note": "x"}, step=600),
        event("eval_stop", 9_500),
        ":::MLLOG {torn",
        event("run_stop", 61_000, status="success"),
    ]
    result = read(tmp_path, lines)
    (total,) = result.run_totals
    assert (total.format, total.line, total.step_ns) == ("mlperf", 1, None)
    assert dict(total.values) == {
        "block s": "median of 2: 4",
        "block samples/s": "median of 2: 75",
        "throughput (no unit told)": "14214.7",
        "run s": "60",
    }
    assert result.step_lines == ()


@pytest.mark.parametrize("front", ["", "0: ", "[1,0]<stdout>:", "2025-03-04T00:09:00.5Z stdout F "])
def test_epochs_of_keras(tmp_path: Path, front: str) -> None:
    lines = [
        "Epoch 1/3",
        " 99/400 [=====>........................] - ETA: 9s - loss: 1.9000",
        "400/400 [==============================] - 26s 68ms/step - loss: 1.3148 - val_loss: 1.0",
        "Epoch 2/3",
        "400/400 ━━━━━━━━━━━━━━━━━━━━ 23s 796us/step - accuracy: 0.9 - loss: 0.9076",
        "50/50 ━━━━━━━━━━━━━━━━━━━━ 9s 99ms/step - accuracy: 0.9 - loss: 0.1",  # an evaluation
        "Epoch 3/3",
        "400/400 - 6s - 2s/step - accuracy: 0.8616 - loss: 0.25",
        "400/400 [==============================] - 3s 9ms/step",  # predictions
    ]
    steps = read(tmp_path, [front + line for line in lines]).step_lines
    assert [(one.epoch, one.step, one.over, one.step_ns, one.loss) for one in steps] == [
        (1, 400, 400, 68 * MS, 1.3148),
        (2, 800, 400, 796_000, 0.9076),
        (3, 1200, 400, 2_000 * MS, 0.25),
    ]


def test_bars_of_yolo_are_epochs(tmp_path: Path) -> None:
    row = "    {}/200      10.4G     0.46     0.23      0.8       1578        640: 100%|###| "
    lines = [
        row.format(151) + "99/99 [01:52<00:00,  1.14s/it]",
        "     Class     Images  Instances      mAP50-95): 100%|###| 32/32 [09:16<00:00,  1.9it/s]",
        row.format(152) + "99/99 [01:54<00:00,  1.16s/it]",
    ]
    steps = read(tmp_path, lines).step_lines
    assert [(one.format, one.epoch, one.step) for one in steps] == [
        ("yolo", 151, 99),
        ("yolo", 152, 99),
    ]
    assert [one.step_ns for one in steps] == [round(Fraction(s * 10**9, 99)) for s in (112, 114)]


def test_deepspeed_that_prints_no_samples(tmp_path: Path) -> None:
    form = (
        "[2025-03-04 00:00:{:02},500] [INFO] [logging.py:96:log_dist] [Rank 0] step={}, skipped=0, "
    )
    lines = [form.format(3 * n, 10 * n) + "lr=[1e-05], mom=[(0.9, 0.999)]" for n in range(1, 5)]
    found = main_average(read(tmp_path, lines))
    assert (found.format, found.step_ns, found.first, found.last) == ("deepspeed", 300 * MS, 10, 40)
    told = "[2025-03-04 00:00:{:02},900] [INFO] [timer.py:1:stop] epoch=0/micro_step={n}/"
    told += "global_step={n}, RunningAvgSamplesPerSec=1.5, CurrSamplesPerSec=2.5"
    more = [line for n, one in enumerate(lines, 1) for line in (one, told.format(3 * n, n=10 * n))]
    steps = read(tmp_path, more).step_lines
    assert [(one.step, one.epoch, one.samples_per_s) for one in steps] == [
        (n, 0, Fraction(5, 2)) for n in (10, 20, 30, 40)
    ]


def test_printed_times_go_before_those_of_stamps(tmp_path: Path) -> None:
    stamped = (
        "[2025-03-04 00:00:{0:02},500] [INFO] [logging.py:96:log_dist] [Rank 0] step={0}, skipped=0"
    )
    printed = " iteration {:8}/ 99 | elapsed time per iteration (ms): 900.5 | lm loss: 1.9E+00 |"
    lines = [stamped.format(n) for n in range(1, 9)] + [printed.format(4), printed.format(8)]
    assert read(tmp_path, lines).trainer == "megatron"


def test_tflops_on_the_line_above(tmp_path: Path) -> None:
    lines = []
    for n in (49, 50):
        lines += [
            f"Step Time : 9.11s GPU utilization: {600 + n}.5MODEL_TFLOP/s/GPU",
            f" iteration {n:8}/ 50 | elapsed time per iteration (ms): 9110.0 |",
        ]
    assert [one.tflops for one in read(tmp_path, lines).step_lines] == [
        Fraction("649.5"),
        Fraction("650.5"),
    ]


def test_what_one_process_leaves_out_another_tells(tmp_path: Path) -> None:
    lines = ["step:3/9 train_time:6000ms", "step:3/9 train_loss:2.5 train_time:6000ms"]
    (step,) = distinct(read(tmp_path, lines).step_lines)
    assert step.loss == 2.5


def test_rates_say_whether_they_are_of_one_gpu(tmp_path: Path) -> None:
    titan = "2025-03-04 00:00:01,000 - root - INFO - step: 1  loss:  9.5  tps: 80"
    (said,) = logs_json(read(tmp_path, [titan]))["in_short"]
    assert said == "torchtitan: 80.0 tokens/s per GPU, step 1"
    llmc = "step 3/9: train loss 1.5 (acc 2.0) (30.5 ms, 90 tok/s)"
    (said,) = logs_json(read(tmp_path, [llmc]))["in_short"]
    assert said == "llm.c: step 0.030500 s, 90.0 tokens/s, step 3"


def test_bars_of_a_few_seconds_tell_no_time(tmp_path: Path) -> None:
    assert [one.step_ns for one in read(tmp_path, bar(9, 9, 3)).step_lines] == [None]
    assert [one.step_ns for one in read(tmp_path, bar(9, 9, 9)).step_lines] == [1_000 * MS]
    first = bar(1, 9, 3, rate="3.61s/it")
    assert [one.step_ns for one in read(tmp_path, first).step_lines] == [3_610 * MS]


def test_a_server_that_was_idle_is_no_slow_one(tmp_path: Path) -> None:
    lines = [
        "[2026-08-23 09:06:20 TP0] Prefill batch, #new-seq: 1, input throughput (token/s): 49.5",
        "[2026-08-23 09:06:21 TP0] Decode batch, #running-req: 1, gen throughput (token/s): 3.25",
        "[2026-08-23 09:06:22 TP0] Decode batch, #running-req: 1, gen throughput (token/s): 140.75",
    ]
    (row,) = throughput(read(tmp_path, lines).servers)
    assert (row.lines, row.warmup) == (3, 1)
    assert figures(row.generation) == (140.75,) * 4
    assert figures(row.prompt) == (49.5,) * 4


def test_a_collectors_stamp_is_not_the_servers(tmp_path: Path) -> None:
    form = (
        "2025-03-04T00:09:00.5Z stdout F INFO 07-03 23:{}:00 [loggers.py:87] Engine 000: Avg prompt"
    )
    form += " throughput: 0.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 1 reqs"
    lines = [form.format(minute) for minute in (10, 11, 12, 50, 51)]
    rows = throughput(read(tmp_path, lines).servers)
    assert [(row.run, row.lines) for row in rows] == [(0, 5), (1, 3), (2, 2)]


def test_two_lines_of_a_server_in_one(tmp_path: Path) -> None:
    line = "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: {} tokens/s, Running: 3"
    torn = f"INFO 07-03 23:23:53 {line.format(597.0)}INFO 07-03 23:23:58 {line.format(589.0)} reqs"
    (row,) = throughput(read(tmp_path, [torn]).servers)
    assert figures(row.generation) == (593, 593, 589, 597)


@pytest.mark.parametrize("title", ["Result", "All Result"])
def test_totals_lead_where_no_step_is_told(tmp_path: Path, title: str) -> None:
    line = (
        "{'train_runtime': 273.0, 'train_samples_per_second': 3.6, 'train_steps_per_second': 0.007}"
    )
    result = read(tmp_path, [line])
    assert logs_json(result)["in_short"] == ["huggingface: average step 136.500000 s (2 steps)"]
    block = f"============ Serving Benchmark {title} ============\n"
    block += "Output token throughput (tok/s):         4215.38\nMedian TTFT (ms):      10041.30"
    result = read(tmp_path, block)
    assert logs_json(result)["in_short"] == [
        "serving benchmark: Output token throughput (tok/s) 4215.38, Median TTFT (ms) 10041.30"
    ]
    answer = LogAnswer(result, find_hangs(result))
    assert SECTIONS["benchmarks"].has_rows(answer)
    assert not SECTIONS["steps"].has_rows(answer)


@pytest.mark.parametrize(
    ("seconds", "rate", "ns"),
    [("13", "23.54", 10**9 / 23.54), ("02", "142.31", 10**9 / 142.31), ("13", "24.50", 13e9 / 311)],
)
def test_the_mean_rate_of_lightning_is_finer_than_its_seconds(
    tmp_path: Path, seconds: str, rate: str, ns: float
) -> None:
    bar = f"Epoch 0: 100%|█████| 311/311 [00:{seconds}<00:00, {rate}it/s, v_num=422]"
    (step,) = read(tmp_path, [bar]).step_lines
    assert step.step_ns == round(ns)


def test_rates_of_single_requests(tmp_path: Path) -> None:
    lines = [
        "prompt eval time =     100.00 ms /    40 tokens (    2.50 ms per token,   400.00 tokens"
        " per second)",
        "       eval time =    2000.00 ms /   100 tokens (   20.00 ms per token,    50.00 tokens"
        " per second)",
        "llama_print_timings:        eval time =  1000.00 ms /   60 runs   (   16.67 ms per token,"
        "    60.00 tokens per second)",
        "prompt eval rate:     260.00 tokens/s",
        "eval rate:            74.50 tokens/s",
    ]
    llama, ollama = throughput(read(tmp_path, lines).servers)
    rates = [
        (one.format, *(spread and spread.mean for spread in (one.prompt, one.generation)))
        for one in (llama, ollama)
    ]
    assert rates == [("llama.cpp", 400, 55), ("ollama", 260, 74.5)]


def test_what_a_benchmark_of_tensorrt_llm_tells_is_said(tmp_path: Path) -> None:
    lines = [
        "= PERFORMANCE OVERVIEW",
        "=" * 40,
        "Request Throughput (req/sec):                     43.2089",
        "Total Output Throughput (tokens/sec):             5530.7382",
        "",
    ]
    (said,) = logs_json(read(tmp_path, lines))["in_short"]
    assert said == (
        "serving benchmark: Total Output Throughput (tokens/sec) 5530.7382, "
        "Request Throughput (req/sec) 43.2089"
    )
