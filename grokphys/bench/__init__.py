"""`grokphys bench`: every benchmark against a reference, on the same work and in the same run.

This package holds the benchmarks that users run, their references, and the measurement of time.
"""
