"""Full-text search in logs: passages of a line, cached texts of a log, matches."""
