"""A process that answers requests, one API call for each.

Launch, abilities, log of API calls, and parsing of a turn. This folder knows no HTTP requests.
"""
