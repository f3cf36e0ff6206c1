"""NVTX paths, the GPU work that belongs to them, and the tree made of both."""
