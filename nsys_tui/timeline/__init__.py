"""The timeline without a terminal.

``model`` holds its state at one moment; the functions of ``moving``, ``stepping``, ``searching``,
``areas``, ``arranging``, ``marking`` and ``pointing`` give the next moment for one key; ``scene``
and ``painter`` make rows of cells of it. Nothing here knows Textual, a file or the clock: the
screen that asks for keys and draws the rows is ``ui/screens/timeline``.
"""
