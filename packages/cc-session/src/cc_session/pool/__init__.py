"""The pool: warm processes, leased with an empty conversation each time.

Limits of number, memory and time belong here, and the assignment of processes to leases. The Messages API is unknown
here.
"""
