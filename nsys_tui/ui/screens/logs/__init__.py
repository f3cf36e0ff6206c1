"""The logs screen: ``screen`` puts it together."""
