"""Ding et al., *Survival of the Fittest Representation*: recipes of its figures, and rules for its claims."""
