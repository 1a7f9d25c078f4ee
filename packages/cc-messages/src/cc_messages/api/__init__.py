"""The Messages API as data: requests, events, errors, headers, models, limits and cost.

These are values and pure functions, and one request for token counts. Processes, pools and servers are unknown here.
"""
