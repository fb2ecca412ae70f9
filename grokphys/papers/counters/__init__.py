"""Models of data in which a statement of a paper is false, for statements that no shuffle makes false."""
