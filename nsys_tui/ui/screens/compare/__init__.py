"""The compare screen: ``screen`` puts it together."""
