"""A command line of rdc, read as its verb reads it."""

from __future__ import annotations

from rdc.cli.environment import parse_words
from rdc.cli.options.sync_options import parse_sync, read_request
from rdc.cli.verb import load_verb
from rdc.duplicates.dedupe_command import parse_dedupe, read_dedupe


def parsed(words: list[str]) -> set[str]:
    """The keys of the options of a command line of rdc, as rdc itself reads it. UsageError if it cannot."""
    verb, *rest = words
    if verb == "sync":
        found = parse_sync(rest)
        if not found.has("--help"):
            read_request(found, lambda _: b"")
    elif verb == "dedupe":
        found = parse_dedupe(rest)
        if not found.has("--help"):
            read_dedupe(found, lambda _: b"{}")
    else:
        found = parse_words(rest, load_verb(verb).OPTIONS, {}, command=f"rdc {verb}")
    return {given.key for given in found.given}
