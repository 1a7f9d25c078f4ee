"""What all benchmarks share: figures, statistics, bounds, reports, the command line. It knows none of the benchmarks."""
