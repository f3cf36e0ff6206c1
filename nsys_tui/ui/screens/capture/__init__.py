"""The capture screen: ``screen`` puts it together."""
