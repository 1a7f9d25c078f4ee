"""The pool: warm processes, leased with an empty conversation each time.

Limits on number, memory and time belong here, and the choice of a process for a lease. The Messages API is unknown
here.
"""
