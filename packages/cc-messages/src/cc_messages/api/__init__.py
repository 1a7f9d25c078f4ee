"""The Messages API as data: requests, conversations, responses, errors, models and cost.

Values and pure functions, and the request for token counts. Does not know processes, pools or servers.
"""
