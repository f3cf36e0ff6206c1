"""The overview screen: ``screen`` puts it together."""
