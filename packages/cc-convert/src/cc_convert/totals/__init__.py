"""Totals that the CLI noted, and the rows that they cover.

The lineage of forks, the processes of a session and the remainders belong here. Files are unknown here.
"""
