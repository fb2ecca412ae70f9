"""Ding et al., *Survival of the Fittest Representation*: its tables, its figures, and our claims."""
