"""Everything that logs say, as sections: tables for text, programs and a screen."""
