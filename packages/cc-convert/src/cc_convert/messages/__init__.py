"""Convert messages from the SDK or stream-json to typed responses and usage.

Odd values become numbers or are left out with a note. This package knows no files and no logs.
"""
