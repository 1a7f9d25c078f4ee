"""Record the answers of a real API in a cassette, and replay them.

The modules know no pytest, no CLI and no scripted answers.
"""
