"""Every table and figure of the three papers: recipes that make them, rules that judge them, and pages."""
