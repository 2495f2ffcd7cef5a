"""`python -m rdc` is the `rdc` command."""

from rdc.cli.main import entry

if __name__ == "__main__":
    entry()
