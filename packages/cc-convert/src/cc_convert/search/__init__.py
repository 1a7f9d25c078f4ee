"""Full-text search in logs: passages in a line, cached texts of a log, matches."""
