"""Results that are not in the papers: recipes for their tables and figures, and the claims about them."""
