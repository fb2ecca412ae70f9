"""Liu et al., *Towards Understanding Grokking*: recipes of its figures and rules for its claims."""
