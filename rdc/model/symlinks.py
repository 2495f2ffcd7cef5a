"""Where a symlink leads, by its text alone."""

from __future__ import annotations

from rdc.records import dataclass

__all__ = ["LinkChoice", "leads_outside"]


@dataclass(frozen=True, slots=True)
class LinkChoice:
    """The symlinks that a source takes for what they lead to."""

    every: bool = False
    """All of them."""
    directories: bool = False
    """Those that lead to a directory."""
    unsafe: bool = False
    """Those that lead out of the tree."""


def leads_outside(target: bytes, path: bytes) -> bool:
    """Whether the symlink at `path`, with the text `target`, leads out of the tree, by rsync's rule.

    The text decides, and nothing is looked up: an absolute target leads outside, and so does one that goes up
    further than `path` is deep. One that goes up after it went down may pass another link, so it counts too,
    as does any that ends by going up.
    """
    if not target or target.startswith(b"/") or target.endswith(b"/.."):
        return True
    names = [name for name in target.split(b"/") if name]
    ups = 0
    while ups < len(names) and names[ups] == b"..":
        ups += 1
    return b".." in names[ups:] or ups > path.count(b"/")
