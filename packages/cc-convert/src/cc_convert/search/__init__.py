"""Text in logs: passages of lines, the texts that are kept of a log, and the search through them."""
