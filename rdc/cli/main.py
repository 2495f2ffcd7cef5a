"""Entry point of the `rdc` command."""

from __future__ import annotations

import sys


def entry() -> None:
    from rdc import __version__

    sys.stdout.write(f"rdc {__version__}\n")
