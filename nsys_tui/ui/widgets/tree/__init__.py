"""The virtual tree: the table's grid over a columnar tree with folds."""
