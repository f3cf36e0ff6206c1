"""The events screen: ``screen`` puts it together."""
