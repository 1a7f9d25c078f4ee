"""Shared parts of the benchmarks: figures, statistics, reports, the command line. It imports no benchmark."""
