"""Results that no paper has: recipes that make its tables and figures, and what is claimed of them."""
