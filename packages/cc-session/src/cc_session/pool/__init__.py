"""The pool: warm processes, lent with an empty conversation each time.

Limits of number, memory and time belong here, and the decision which lease gets which process. The Messages API is
unknown here.
"""
