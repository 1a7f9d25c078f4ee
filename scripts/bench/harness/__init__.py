"""What all benchmarks share: figures, statistics, reports, the command line. It knows none of the benchmarks."""
