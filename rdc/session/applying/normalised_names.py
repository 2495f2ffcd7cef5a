"""Recognises entries that the destination's file system keeps under another form of their name, as HFS+ does.

Such a file system decomposes accented letters, and finds the entry by either form. So a listing of it has
other names than the source gave.
"""

from __future__ import annotations

from rdc.files.names.one_name import inode_at, names_as_listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rdc.files.root.root import Root

__all__ = ["as_named_by_source"]


def as_named_by_source(
    root: Root, path: bytes, wanted: Iterable[bytes], own: Sequence[bytes], *, dry_run: bool
) -> Sequence[bytes]:
    """Return `own`, the names in the directory at `path`, with the source's name of each entry that this file
    system renamed. `wanted`: the source's names.

    A name is exchanged only if a trial shows that the file system itself keeps the source's name so.
    Otherwise the entry is somebody else's, and the two names clash. A dry run leaves out the trial, because
    it writes nothing.
    """
    pairs = _equivalent(set(wanted).difference(own), set(own).difference(wanted))
    same = {one: other for one, other in pairs.items() if _is_one(root, path, one, other)}
    if same and not dry_run:
        listed = names_as_listed(root, path, tuple(same))
        same = {one: other for one, other in same.items() if other in listed and one not in listed}
    if not same:
        return own
    given = {other: one for one, other in same.items()}
    return tuple(given.get(name, name) for name in own)


def _equivalent(wanted: Iterable[bytes], own: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return the names of `wanted` that Unicode calls equivalent to one of `own`, with that one."""
    own_names = _by_decomposed(own)
    pairs = ((names, own_names.get(decomposed, ())) for decomposed, names in _by_decomposed(wanted).items())
    return {one[0]: other[0] for one, other in pairs if len(one) == len(other) == 1}


def _by_decomposed(names: Iterable[bytes]) -> dict[str, list[bytes]]:
    """Return the names by their decomposed form, without those in ASCII, which have one form only."""
    from unicodedata import normalize

    found: dict[str, list[bytes]] = {}
    for name in names:
        if not name.isascii():
            found.setdefault(normalize("NFD", name.decode("utf-8", "surrogateescape")), []).append(name)
    return found


def _is_one(root: Root, path: bytes, name: bytes, other: bytes) -> bool:
    inode = inode_at(root, path, name)
    return inode is not None and inode == inode_at(root, path, other)
