"""Log files as rows: sources, streams, the scan, the cache, events and titles.

A line is decoded only if it can count. This package knows no prices and no reports.
"""
