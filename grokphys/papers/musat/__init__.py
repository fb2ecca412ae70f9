"""Musat, *Clustering and Alignment*: its tables, its figures, and our claims."""
