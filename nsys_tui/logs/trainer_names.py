"""The trainers by name: for a command line that has not read any log yet."""

from typing import Final

TRAINERS: Final = (
    "nemo",
    "megatron",
    "llm.c",
    "nanogpt",
    "fsdp",
    "torchtitan",
    "deepspeed",
    "deepspeed-pipeline",
    "torchtune",
    "composer",
    "olmo",
    "nanotron",
    "litgpt",
    "maxtext",
    "keras",
    "paddle",
    "mindformers",
    "clu",
    "fairseq",
    "modded-nanogpt",
    "detectron2",
    "dllogger",
    "verl",
    "horovod",
    "vision",
    "step",
    "tqdm",
    "huggingface",
    "huggingface-dict",
    "lightning",
    "yolo",
    "own",
)
"""As ``--trainer`` takes them; ``own`` is that of ``--pattern``."""
