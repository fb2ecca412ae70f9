"""`grokphys bench`: every benchmark against a reference, on the same work and in the same run.

Here belong the benchmarks that users run, their references, and how time is taken.
"""
