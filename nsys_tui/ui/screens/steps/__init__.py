"""The steps screen: ``screen`` puts it together."""
