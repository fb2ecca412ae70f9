"""Lines of code without docstrings, comments and blank lines: python tests/count_lines.py FOLDER ..."""

import ast
import collections
import io
import pathlib
import sys
import tokenize

SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def count(path):
    """Count the lines of code of a file."""
    source = path.read_text(encoding="utf-8")
    texts, lines = set(), set()
    for node in ast.walk(ast.parse(source)):
        for part in node.body if isinstance(getattr(node, "body", None), list) else ():
            value = part.value if isinstance(part, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                texts.update(range(part.lineno, part.end_lineno + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - texts)


def main(folders):
    """Print the lines of every folder, those below it included."""
    total = collections.Counter()
    for path in (path for folder in folders for path in pathlib.Path(folder).rglob("*.py")):
        found = count(path)
        total.update({str(folder): found for folder in path.parents if str(folder) != "."})
    for folder in sorted(total):
        print(f"{total[folder]:7d} {folder}")


if __name__ == "__main__":
    main(sys.argv[1:])
