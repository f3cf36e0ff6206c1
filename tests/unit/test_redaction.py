"""Secrets go, and what merely looks like one stays."""

from __future__ import annotations

import pytest

from nsys_tui.names import both_ends, fit, normalise_nvtx
from nsys_tui.redaction import HIDDEN, holds_secret, redacted, redacted_command, redacted_lines

SECRET = "s3cr3tV4lue99"


@pytest.mark.parametrize(
    "text",
    [
        f"--api-key={SECRET}",
        f"--hf_token={SECRET}",
        f"WANDB_API_KEY={SECRET}",
        f"password: {SECRET}",
        f"https://me:{SECRET}@registry.example/x",
        f"Authorization: Bearer {SECRET}aaaa",
        f"hf_{SECRET}{SECRET}",
        f"sk-{SECRET}{SECRET}",
        f"ghp_{SECRET}{SECRET}{SECRET}",
        f"nvapi-{SECRET}{SECRET}",
        f"node1 --password {SECRET}",
        f"AccountKey={SECRET}==;EndpointSuffix=x",
        f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY----- {SECRET} cut",
        f'{{"api_key": "{SECRET}, with; more"}}',
        f"{{'aws_secret_access_key': '{SECRET}'}}",
        f'--config {{\\"token\\": \\"{SECRET}\\"}}',
        f'token="{SECRET}"',
        f"https://x.blob.example/y?sp=r&sig={SECRET}{SECRET}",
        f"-----BEGIN PGP PRIVATE KEY BLOCK----- {SECRET}",
        f"mpi_ghp_{SECRET}{SECRET}{SECRET}",
    ],
)
def test_what_names_or_forms_tell_is_hidden(text: str) -> None:
    assert HIDDEN in redacted(text)
    assert SECRET not in redacted(text)
    assert holds_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "python train.py --tokens 4096 --tokenizer gpt2",
        "python train.py --tokens 131072 --tokenizer meta-llama/Llama-3 --tokenizer_path=/data/tok",
        "forward num_tokens=1048576",
        "tokens_per_step: 1048576",
        "train --token --lr 0.0003",
        "gemm_key<float>(Tensor, int)",
        "monkey=banana",
        "https://example.org/a@b",
        "void softmax_token_kernel<4>(float*)",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text


def test_a_name_without_its_digits_or_cut_shows_no_piece_of_a_token() -> None:
    name = f"step 3 hf_{SECRET}{SECRET}"
    assert normalise_nvtx(name) == f"step # {HIDDEN}"
    assert normalise_nvtx("token 12 of step 3") == "token # of step #"
    assert fit(f"login hf_{SECRET}{SECRET}", 16) == f"login {HIDDEN}"
    assert both_ends(f"thread hf_{SECRET}{SECRET}", 18) == f"thread {HIDDEN}"


@pytest.mark.parametrize("part", ["a", "a-", "token", "key=", "x://a:", "sk-", "-token ", "\\"])
def test_texts_of_half_a_megabyte_take_linear_time(part: str) -> None:
    text = f"secret{part * (500_000 // len(part))} --token {SECRET}"
    assert SECRET not in redacted(text)


def test_a_key_without_an_end_takes_no_further_lines() -> None:
    assert redacted_lines(f"a\n-----BEGIN PRIVATE KEY----- {SECRET}\nb") == f"a\n{HIDDEN}\nb"


def test_the_word_after_a_flag_and_the_environment_on_a_command_line() -> None:
    words = ["env", f"MY_PASSWORD={SECRET}", "train", "--token", SECRET, "--lr", "3", "--token"]
    shown = redacted_command(words)
    assert shown == [
        *("env", f"MY_PASSWORD={HIDDEN}", "train", "--token", HIDDEN, "--lr", "3", "--token")
    ]
