"""Benchmarks: `harness` has figures and the command line, `arena` the contenders, all other modules a suite each."""
