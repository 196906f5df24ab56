"""What a replay came to, for people: tables, plots, a page."""
