"""python -m tests.support.children.command_of_nobody WORDS: `rdc WORDS` as a user whom permissions bind."""

from __future__ import annotations

import sys

from tests.support.running.syncing import command
from tests.support.trees.unprivileged import as_nobody

if __name__ == "__main__":
    ended = as_nobody(lambda: command(*sys.argv[1:]))
    sys.stderr.write(ended.err)
    sys.exit(ended.code)
