"""`grokphys bench`: speed relative to references that are timed in the same run.

This package holds the benchmarks that users run, their references, and the measurement of time.
"""
