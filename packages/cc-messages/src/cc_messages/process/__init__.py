"""A process that answers requests, one API call for each.

Its launch, its abilities, its log of API calls and the reading of its turn belong here. HTTP is unknown here.
"""
