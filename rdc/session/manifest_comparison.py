"""Compares what two manifests have, directory by directory: only where they differ is anything looked at."""

from __future__ import annotations

from rdc.errors import ProtocolError, printable
from rdc.model.entries import EMPTY_LISTING, Kind
from rdc.protocol.columns import increasing
from rdc.session.directories import Announced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from rdc.model.kept import Kept
    from rdc.session.commands import Conversation
    from rdc.session.directories import Directories
    from rdc.session.extras import Extras
    from rdc.session.news import News
    from rdc.tree.manifest import Manifest

__all__ = ["compare_manifests"]


def compare_manifests(
    wanted: Manifest,
    own: Manifest,
    directories: Directories,
    extras: Extras,
    news: News,
    round_: int,
    *,
    kept: Kept,
    mount_points: AbstractSet[bytes],
) -> Conversation[None]:
    """Compares the directories in which the two manifests differ, parents first. `mount_points`: directories
    of which `wanted` says nothing.

    The source's, `wanted`, may be anything that has the digest it announced: what is acted on is checked
    here.
    """
    expected = directories.expected
    ours = {path: number for number, path in enumerate(own.directories)}
    ours_whole = wanted.taken_directories(own)
    for number, path in enumerate(wanted.directories):
        if wanted.number(path) != number:
            raise ProtocolError(f"two listings of {printable(path)!r}")
        mine = ours.pop(path, None)
        if path and ours_whole[number] and directories.keep(path):
            # Most directories of most trees.
            continue
        if path and path not in expected:
            if mine is not None and wanted.same(number, own, mine, kept):
                continue
            expected[path] = _announced(wanted, path)
        listing = wanted.listing(number)
        if not increasing(listing.names):
            raise ProtocolError(f"names in {printable(path)!r} are not strictly increasing")
        held = EMPTY_LISTING if mine is None else own.listing(mine)
        directories.compare(path, wanted.firsts[number], listing, held)
        yield from news.tell(round_)
    for path, mine in ours.items():
        # Directories that have entries here and none there: emptied, or gone with their parent's entry.
        if path in mount_points:
            # Or not gone into: what is in them there is not known.
            extras.stay = True
            continue
        if path in expected or wanted.is_directory(path):
            expected.setdefault(path, _announced(wanted, path))
            directories.compare(path, len(wanted), EMPTY_LISTING, own.listing(mine))
            yield from news.tell(round_)


def _announced(wanted: Manifest, path: bytes) -> Announced:
    """A directory whose parent has no differences of its own: it is there, and its metadata are right."""
    row = wanted.row(path)
    entry = None if row is None else wanted.entry(row)
    if entry is None or entry.kind != Kind.DIRECTORY:
        raise ProtocolError(f"a listing of {printable(path)!r}, which was not announced")
    return Announced(entry.metadata, False, False, False)
