"""Collectives: their calls, the kernels they became, bandwidth, and skew between ranks."""
