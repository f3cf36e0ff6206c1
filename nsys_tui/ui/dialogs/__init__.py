"""Dialogs over a screen: help, palette, pickers, prompts, the display panel."""
