"""Log files as rows: sources, streams, the scan, the cache, events and titles.

A line is decoded only if it can count. Prices and reports are unknown here.
"""
