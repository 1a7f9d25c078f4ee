"""Totals that the CLI noted, and the rows that they cover.

Covers the lineage of forks, the processes of a session and the remainders, but no files.
"""
