"""What Textual does not do, or does slowly: one file each, with the version that was looked at.

Nothing here knows what the app shows: no screen, dialog or widget of ours. The private names of
Textual that these files and the screens rely on are listed in ``tests/unit/ui/test_textual.py``,
which fails with the names that are gone.
"""
