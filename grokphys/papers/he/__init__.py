"""He, Wang, Chen and Yang 2026: the neurons of a two-layer network, their lottery, and grokking in stages.

Quotations, sections and figures are those of the web page on which the authors present the paper (arXiv
2602.16849). The page and the paper have the same abstract.
"""
