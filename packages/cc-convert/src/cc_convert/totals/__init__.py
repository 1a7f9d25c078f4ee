"""Totals that the CLI noted, and the rows that they cover.

Covers lineages of forks, processes in a session, and remainders, but no files.
"""
