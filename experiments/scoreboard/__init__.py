"""Every table and figure of the three papers as a row: the printed numbers, ours, and a verdict."""
