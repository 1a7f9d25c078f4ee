"""A process that answers requests, one API call for each.

Its launch, its abilities, its log of API calls and the parsing of its turn. This folder knows no HTTP requests.
"""
