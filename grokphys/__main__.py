"""`python -m grokphys`, and the entry of the script `grokphys`."""

import sys


def command() -> int:
    """Run the command line as a process, and return its exit status, also if Ctrl-C comes during imports."""
    try:
        from grokphys.cli.main import command as run  # libraries take about a second to import

        return run()
    except KeyboardInterrupt:
        print("grokphys: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(command())
