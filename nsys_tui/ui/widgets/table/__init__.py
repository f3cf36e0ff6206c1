"""The virtual table: any number of rows, of which only those in view are made into text."""
