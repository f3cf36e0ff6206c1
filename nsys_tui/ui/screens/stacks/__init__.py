"""The stacks screen: ``screen`` puts it together."""
