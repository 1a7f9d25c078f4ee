"""Messages of the SDK or of stream-json as typed responses and usage.

Odd values become numbers or are left out with a note. Files and logs are unknown here.
"""
