"""The kernels screen: ``screen`` puts it together."""
