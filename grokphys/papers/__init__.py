"""The tables and figures of the papers: recipes that make them, rules that judge them, and their pages."""
