"""Rows that the programs of findings store, from which an interrupted program continues."""

import json


def completed(path, parts):
    """Return the rows in a JSON file, after those of missing parts were computed and stored, part by part.

    Each of the parts is a mapping of column names to values, which one of its rows and none of others
    has, and a function without arguments that returns these rows.
    """
    rows = json.loads(path.read_text()) if path.exists() else []
    for own, make in parts:
        if not any(own.items() <= row.items() for row in rows):
            rows += make()
            path.write_text("[" + ",\n".join(map(json.dumps, rows)) + "]\n")
    return rows
