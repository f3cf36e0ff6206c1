"""Step lines of every trainer, ownership of steps, windows and averages."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from loglines import body, info, init, nemo, read
from paths import LOGS, needs_logs

from nsys_tui.errors import UsageError
from nsys_tui.logs import read_logs
from nsys_tui.logs.figures import decimals, seconds
from nsys_tui.logs.sections.advice import advise
from nsys_tui.logs.steps import average_of, average_range

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_tui.logs.trainers.step_lines import StepLine

MS = 1_000_000


def only(folder: Path, *lines: str, **options: object) -> StepLine:
    (step,) = read(folder, list(lines), **options).step_lines
    return step


@pytest.mark.parametrize(
    ("line", "name", "step", "ns", "tflops"),
    [
        (nemo(45), "nemo", 45, 6_043 * MS, 1243),
        (f"0: {nemo(45)}", "nemo", 45, 6_043 * MS, 1243),
        (f"a-demo/0 [default0]:{nemo(7)}", "nemo", 7, 6_043 * MS, 1243),
        (f"[2025-10-17T11:33:02+08:00] {nemo(528)}", "nemo", 528, 6_043 * MS, 1243),
        ("Training epoch 1, iteration 3/9 | lr: 1e-4 | global_step: 12", "nemo", 3, None, None),
        (
            " [2024-08-21 10:19:42] iteration        4/   25000 | consumed samples:  4096 | "
            "elapsed time per iteration (ms): 270125.4 | throughput per GPU (TFLOP/s/GPU): 449.6 | "
            "learning rate: 7.5E-08 | lm loss: 2.120380E+00 |",
            "megatron",
            4,
            270_125_400_000,
            Fraction("449.6"),
        ),
        (
            "\x1b[32m[20251202 06:56:28][rank-7/8][INFO ]\x1b[0m : iteration 4408/ 5000 | elapsed "
            "time per iteration (ms): 13100.0/13240.9 | throughput per GPU (TFLOP/s/GPU): "
            "579.4/573.6 | lm loss: 4.1E-03 |",
            "megatron",
            4408,
            13_100 * MS,
            Fraction("579.4"),
        ),
        (
            "steps: 10 loss: 8.4012 iter time (s): 0.512 samples/sec: 125.000",
            "deepspeed-pipeline",
            10,
            512 * MS,
            None,
        ),
        (
            "Step 7 | loss:1.93 lr:2e-05 tokens_per_second_per_gpu:2001.5 peak_memory_active:10.5 ",
            "torchtune",
            7,
            None,
            None,
        ),
        (
            " iteration        6/      10 | elapsed time per iteration (ms): 306.5 | "
            "samples per second: 835.199 | TFLOPs: 33.65 |",
            "megatron",
            6,
            306_500_000,
            Fraction("33.65"),
        ),
        (
            "step    1/21479 | loss 11.007906 (+nanz)| norm 16.3235 (+nanz)| lr 2.86e-06 | "
            "2734.72 ms | -100.0% bf16 MFU | 167751 tok/s",
            "llm.c",
            1,
            2_734_720_000,
            None,
        ),
        (
            "step 2/10: train loss 4.3 (acc 0.1) (44.57 ms, 91886 tok/s)",
            "llm.c",
            2,
            44_570_000,
            None,
        ),
        (
            "step    1/10 | train loss 4.30 | norm 1.0 | lr 3.00e-04 | (44.57 ms | 91886 tok/s)",
            "llm.c",
            1,
            44_570_000,
            None,
        ),
        ("step 3: train loss 4.3 (took 1200.5 ms)", "llm.c", 3, 1_200_500_000, None),
        (
            "iter 340: loss 5.4983, time 33785.52ms, mfu 0.96%",
            "nanogpt",
            340,
            33_785_520_000,
            Fraction(312 * 96, 10_000),
        ),
        ("iter 0: loss 9.1, time 10.00ms, mfu -100.00%", "nanogpt", 0, 10 * MS, None),
        (
            " 67%|######   | 20/30 [31:21<13:11, 79.11s/it]",
            "huggingface",
            20,
            94_050 * MS,  # 31:21 over 20 steps: the bar's own rate is smoothed
            None,
        ),
        ("20/30 [00:10<00:05,  2.00it/s]", "huggingface", 20, 500 * MS, None),
        (
            "{'loss': -9.49e-06, 'grad_norm': 0.1, 'epoch': 0.67}",
            "huggingface-dict",
            -1,
            None,
            None,
        ),
        (
            "2: 2026-01-16 06:33:23,797 [INFO] __main__: Batch 0 Loss: 11.07265, Speed: 1.17 "
            "samples/sec, lr: 0.000031",
            "fsdp",
            0,
            None,
            None,
        ),
    ],
)
def test_step_lines(
    tmp_path: Path, line: str, name: str, step: int, ns: int | None, tflops: Fraction | None
) -> None:
    found = only(tmp_path, line)
    assert (found.format, found.step, found.step_ns, found.tflops) == (name, step, ns, tflops)


@pytest.mark.parametrize(
    "line",
    [
        "iteration 5 of something else",
        "step 250: train loss 4.0, val loss 4.1",
        "val loss 11.006021",
        "Batch 3 of 7",
        "iter 5: loss",
        "steps: 1/2",
        info("Channel 20/30 : 0 1"),
    ],
)
def test_lines_that_close_no_step(tmp_path: Path, line: str) -> None:
    assert read(tmp_path, [line, info(body())]).step_lines == ()


def test_progress_bars_share_a_line(tmp_path: Path) -> None:
    bars = "\r".join(f"{n}/30 [00:1{n}<00:05,  2.00it/s]" for n in range(3))
    assert [step.step for step in read(tmp_path, [bars]).step_lines] == [1, 2]


def test_a_bar_redrawn_very_often_before_a_message(tmp_path: Path) -> None:
    bars = "\r".join(f"{n}/999 [00:{n % 60:02}<00:05,  2.00it/s]" for n in range(999))
    result = read(tmp_path, [f"{bars}\r{info(init('0x1', 0, 1))}", info(body())])
    assert len(result.step_lines) == 998
    assert result.files[0].header_lines == 2


def test_fsdp_step_time_is_the_time_between_stamps(tmp_path: Path) -> None:
    line = "2026-01-16 06:33:{} [INFO] __main__: Batch {} Loss: 1.0, Speed: 6.08 samples/sec, lr: 1"
    result = read(tmp_path, [line.format("23,797", 0), line.format("24,456", 1)])
    assert [step.step_ns for step in result.step_lines] == [None, 659 * MS]


def test_llmc_tflops_from_the_model_table(tmp_path: Path) -> None:
    table = [
        "| max_sequence_length T | 1024                                               |",
        "| num_layers L          | 12                                                 |",
        "| channels C            | 768                                                |",
        "| num_parameters        | 124475904                                          |",
        "| num_processes         | 8                                                  |",
    ]
    line = "step 2/9 | loss 1.0 (+nanz)| norm 1.0 | lr 1e-3 | 300.00 ms | 1% bf16 MFU | {} tok/s"
    found = only(tmp_path, *table, line.format(1_700_000))
    flops = 6 * 124475904 + 6 * 12 * 768 * 1024
    assert found.tflops == Fraction(1_700_000 * flops, 8 * 10**12)
    assert found.estimated
    given = only(tmp_path, line.format(1_000_000), flops_per_token=10**9)
    assert given.tflops == 1000


def test_totals_of_a_run(tmp_path: Path) -> None:
    lines = [
        "total average iteration time: 2528.192759 ms",
        "time per iteration: 100.0000ms, MFU: 50.00%",
        "{'train_runtime': 606.0988, 'train_steps_per_second': 0.033, 'epoch': 4.0}",
        "  train_runtime            = 5:57:27.49",
        "***** train metrics *****",
    ]
    totals = read(tmp_path, lines).run_totals
    assert [(t.format, t.line, t.step_ns, t.tflops) for t in totals] == [
        ("llm.c", 1, 2_528_192_759, None),
        ("nanogpt", 2, 100 * MS, 156),
        ("huggingface", 3, 30_304_940_000, None),  # 20 steps: the only number near 0.033/s
        ("huggingface", 4, None, None),
    ]
    assert dict(totals[3].values) == {"train_runtime": "5:57:27.49"}


def test_averages_take_only_lines_that_have_the_figure(tmp_path: Path) -> None:
    bare = "Training epoch 0, iteration 0/99 | lr: 1"
    result = read(tmp_path, [bare, nemo(1, "1.5", "100"), nemo(2, "2.5", "nan")])
    found = average_of(result)
    assert found is not None
    assert (found.steps, found.timed, found.rated) == (3, 2, 1)
    assert (found.step_ns, found.tflops) == (2_000 * MS, 100)


@needs_logs
def test_each_trainer_is_kept_apart() -> None:
    result = read_logs([LOGS / "trainer-lines-mixed.log"])
    counts: dict[str, list[int]] = {}
    for step in result.step_lines:
        counts.setdefault(step.format, []).append(step.step)
    assert counts == {
        "megatron": [4, 10, 4408, 6],
        "nemo": [28, 1, 528],
        "llm.c": [1, 2, 61, 1],
        "nanogpt": [340],
        "huggingface-dict": [3],
        "fsdp": [1],
    }
    nemo_only = read_logs([LOGS / "trainer-lines-mixed.log"], trainer="nemo")
    found = average_of(nemo_only)
    assert found is not None
    assert found.step_ns == Fraction((189 + 7549 + 2443) * MS, 3)


def test_a_line_closes_its_step(tmp_path: Path) -> None:
    lines = [
        info(body(op_count=0)),
        nemo(3),
        info(body(op_count=1)),
        info(body(op_count=2)),
        nemo(4),
    ]
    lines.append(info(body(op_count=3)))
    assert read(tmp_path, lines).calls.select().step.tolist() == [3, 4, 4, -1]
    inside = read(tmp_path, lines, steps=(4, 4))
    assert inside.calls.select().op_count.tolist() == [1, 2]
    assert inside.window is not None
    assert (inside.window.lines, inside.window.steps) == (3, (4,))


def test_legacy_window_holds_the_next_steps(tmp_path: Path) -> None:
    lines = []
    for step in range(43, 53):
        lines += [info(body(op_count=step)), nemo(step)]
    result = read(tmp_path, lines, legacy_window=True)
    assert result.calls.select().op_count.tolist() == [46, 47, 48, 49, 50, 51]
    assert result.window is not None
    assert (result.window.first, result.window.last, result.window.lines) == (45, 50, 12)
    assert result.window.step_lines == (45, 46, 47, 48, 49, 50)
    assert average_range(result) == (45, 49)
    other = read(tmp_path, lines, legacy_window=True, steps=(44, 45))
    assert other.calls.select().op_count.tolist() == [45, 46]
    assert average_range(other) == (44, 45)


def test_a_step_line_glued_to_a_call_closes_before_it(tmp_path: Path) -> None:
    lines = [info(body(op_count=0)), nemo(7) + info(body(op_count=1)), nemo(8)]
    result = read(tmp_path, lines)
    assert [step.step for step in result.step_lines] == [7, 8]
    assert result.calls.select().step.tolist() == [7, 8]


def test_several_ranks_may_print_the_same_step(tmp_path: Path) -> None:
    lines = [info(body()), nemo(1), info(body()), nemo(1), info(body()), nemo(2)]
    assert read(tmp_path, lines).calls.select().step.tolist() == [1, 1, 2]


def test_files_without_step_lines_take_their_partners_steps(tmp_path: Path) -> None:
    speaking = [info(init("0xa", 0, 2))]
    silent = [info(init("0xb", 1, 2), pid=2)]
    for step in range(3):
        speaking += [info(body(op_count=step, comm="0xa", nranks=2)), nemo(step)]
        silent += [info(body(op_count=step, comm="0xb", nranks=2), pid=2)]
    silent.append(info(body(op_count=99, comm="0xb", nranks=2), pid=2))
    result = read(tmp_path, speaking, silent)
    assert result.calls.select().step.tolist() == [0, 1, 2, 0, 1, 2, -1]
    inside = read(tmp_path, speaking, silent, steps=(1, 1))
    assert inside.calls.select().rank.tolist() == [0, 1]


def test_a_guess_at_partners_carries_steps_and_says_so(tmp_path: Path) -> None:
    speaking = [info(body(comm="0xa", nranks=2)), nemo(1)]
    silent = [info(body(comm="0xb", nranks=2), pid=2), info(body(op_count=9, comm="0xb"), pid=2)]
    result = read(tmp_path, speaking, silent, steps=(1, 1))
    assert result.every_call.select().step.tolist() == [1, 1, -1]
    assert len(result.calls) == 2
    said = "\n".join(one.text for one in advise(result))
    assert "is a guess" in said
    assert "1 calls of files without step lines" in said


def test_a_window_needs_step_lines(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no step lines"):
        read(tmp_path, [info(body())], steps=(1, 2))
    with pytest.raises(UsageError, match="megatron"):
        read(tmp_path, [info(body()), nemo(1)], steps=(1, 2), trainer="megatron")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 3), "0.333333"),
        (Fraction(2, 3), "0.666667"),
        (Fraction(10**30, 7), "142857142857142857142857142857.142857"),
        (Fraction(0), "0.000000"),
    ],
)
def test_decimals_are_exact(value: Fraction, text: str) -> None:
    assert decimals(value) == text


def test_seconds_from_ns() -> None:
    assert seconds(6_047_500_000) == "6.047500"
    assert seconds(None) is None


def test_composer_tells_a_step_on_several_lines(tmp_path: Path) -> None:
    lines = []
    for step in (1, 2):
        lines += [
            f"[epoch=3][batch={step}/90]:",
            "\t Train time/batch: 4",
            f"\t Train loss/train/total: 8.{step}",
            info(body()),
            f"\t Train throughput/samples_per_sec: {step}.25",
            "\t Train throughput/tokens_per_sec: 20082.8418",
            "\t Train throughput/device/tokens_per_sec: 1255.5",
        ]
    result = read(tmp_path, lines)
    assert [
        (one.format, one.epoch, one.step, one.samples_per_s, one.tokens_per_s, one.loss, one.line)
        for one in result.step_lines
    ] == [
        ("composer", 3, 1, Fraction(5, 4), Fraction(2511, 2), 8.1, 1),
        ("composer", 3, 2, Fraction(9, 4), Fraction(2511, 2), 8.2, 8),
    ]
    assert all(one.step_ns is None for one in result.step_lines)  # its rates are rounded
