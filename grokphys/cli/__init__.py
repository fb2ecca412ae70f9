"""The command line: one file a command, whose signature is its options.

Here belongs what turns words into a call and a result into sentences. What a command computes stands in the
library, or in the package of the application that it opens (`grokphys.sweeps`, `grokphys.explorer`, …).
"""
