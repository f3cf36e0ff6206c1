"""The widgets of the timeline: canvas, minimap and the line below them."""
