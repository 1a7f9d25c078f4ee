"""The Messages API as data: requests, replies, events and errors, and their encodings for each cloud.

The lowest room: its modules know no server, no responder and no recording.
"""
