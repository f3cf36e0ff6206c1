"""The fleet screen: ``screen`` puts it together."""
