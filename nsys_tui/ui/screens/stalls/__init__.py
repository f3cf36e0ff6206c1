"""The stalls screen: ``screen`` puts it together."""
