"""A text detection run: its parts, its judge, its words."""
