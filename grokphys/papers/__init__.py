"""The tables and figures of the papers: recipes, rules that judge them, and pages that show them."""
