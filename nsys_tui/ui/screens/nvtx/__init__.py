"""The NVTX screen: ``screen`` puts it together."""
