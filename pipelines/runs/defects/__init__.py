"""A defect detection run: its parts, its judge, its words."""
