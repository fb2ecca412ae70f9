"""`python -m grokphys`: the command line, for environments in which its script is not on the path."""

import sys

from grokphys.cli.main import command

if __name__ == "__main__":
    sys.exit(command())
