"""NCCL and RCCL logs: their lines, the calls in them, who took part, and what does not fit."""
