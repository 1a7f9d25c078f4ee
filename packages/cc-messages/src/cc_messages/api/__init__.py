"""The Messages API as data: requests, events, errors, headers, models, limits and cost.

Values and pure functions, and the request for token counts. Does not know processes, pools or servers.
"""
