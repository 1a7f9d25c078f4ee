"""The Messages API as data: requests, events, errors, headers, models, limits and cost.

Values and pure functions, and one request for token counts. This folder knows no processes, pools or servers.
"""
