"""Compares two trees, and finds what they have in common, for comparisons of rdc with rsync."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b

BLOCK = 4096
"""Bytes: of zeros, so many are a hole with -S."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An entry as it is found; `said` is what two copies must have in common."""

    kind: int
    mode: int
    mtime_ns: int
    owners: tuple[int, int]
    said: bytes
    """Digest of a file, target of a link."""
    size: int
    inode: int
    names: int
    ctime_ns: int
    room: int
    """Bytes on the disk."""
    attributes: tuple[tuple[str, bytes], ...]
    access: tuple[tuple[str, bytes], ...]
    """ACLs."""

    def _attributes(self, owners: bool) -> set[tuple[str, bytes]]:
        """Return the attributes that rdc keeps: without owners, none of those that only root may set."""
        return {pair for pair in self.attributes if owners or pair[0].startswith("user.")}

    def _mode(self, owners: bool) -> int:
        """Return the mode that rdc keeps. Without owners it has no set-id bits, which rsync keeps: they would
        be another user's."""
        return self.mode if owners else self.mode & ~(stat.S_ISUID | stat.S_ISGID)

    def same(self, other: Seen, *, owners: bool, attributes: bool, access: bool, now: int) -> bool:
        return (
            (not attributes or self._attributes(owners) == other._attributes(owners))
            and (not access or self.access == other.access)
            and self.kind == other.kind
            and self._mode(owners) == other._mode(owners)
            and self.said == other.said
            and self.size == other.size
            and (not owners or self.owners == other.owners)
            and (
                self.mtime_ns == other.mtime_ns
                or (self.kind == stat.S_IFDIR and self.mtime_ns > now < other.mtime_ns)
            )
        )


View = dict[bytes, Seen]


def view(top: bytes) -> View:
    """All of `top`, which is b"", in order of paths."""
    found: View = {b"": _seen(top)}
    for place, directories, files in os.walk(top):
        for name in directories + files:
            path = os.path.join(place, name)
            found[path[len(top) + 1 :]] = _seen(path)
    return dict(sorted(found.items()))


def _seen(path: bytes) -> Seen:
    here, said = os.lstat(path), b""
    if stat.S_ISREG(here.st_mode):
        with open(path, "rb") as file:
            said = blake2b(file.read(), digest_size=16).digest()
    elif stat.S_ISLNK(here.st_mode):
        said = os.readlink(path)
    size = here.st_size if stat.S_ISREG(here.st_mode) else 0
    extended = [
        (name, os.getxattr(path, name, follow_symlinks=False))
        for name in sorted(os.listxattr(path, follow_symlinks=False))
    ]
    access = tuple(pair for pair in extended if pair[0].startswith("system.posix_acl_"))
    return Seen(
        stat.S_IFMT(here.st_mode), stat.S_IMODE(here.st_mode), here.st_mtime_ns, (here.st_uid, here.st_gid),
        said, size, here.st_ino, here.st_nlink, here.st_ctime_ns, here.st_blocks * 512,
        tuple(pair for pair in extended if pair not in access), access,
    )  # fmt: skip


def zeros(top: bytes, path: bytes) -> int:
    """Bytes of a file in whole blocks of zeros."""
    with open(os.path.join(top, path), "rb") as file:
        return BLOCK * sum(block == bytes(BLOCK) for block in iter(lambda: file.read(BLOCK), b""))


def linked(found: View) -> set[frozenset[bytes]]:
    """Names that are one file."""
    groups: dict[int, set[bytes]] = {}
    for path, here in found.items():
        if here.kind not in (stat.S_IFDIR, stat.S_IFLNK) and here.names > 1:
            groups.setdefault(here.inode, set()).add(path)
    return {frozenset(names) for names in groups.values() if len(names) > 1}


def differences(
    wanted: View, found: View, words: Collection[str], *, now: int, unread: Mapping[bytes, set[bytes]]
) -> list[str]:
    """`unread`: what some paths may also hold."""
    lines = []
    for path in sorted(wanted.keys() | found.keys()):
        one, other = wanted.get(path), found.get(path)
        if one is not None and other is not None and other.said in unread.get(path, ()):
            one = replace(one, said=other.said)
        if (
            one is None
            or other is None
            or not one.same(
                other,
                owners="--no-owner" not in words,
                attributes="-X" in words,
                access="-A" in words,
                now=now,
            )
        ):
            lines.append(f"{path!r}:\n  rsync {one}\n  rdc   {other}")
    return lines


def taken_as_equal(source: View, held: View, *, by_size: bool = False) -> dict[bytes, set[bytes]]:
    """Return, for names of one file, what is found under any of them with its size and mtime: the one that is
    looked at decides what all of them get."""
    found: dict[bytes, set[bytes]] = {}
    for names in linked(source):
        there = [held[name] for name in names if name in held]
        same = {
            one.said
            for one in there
            for name in names
            if one.size == source[name].size and (by_size or one.mtime_ns == source[name].mtime_ns)
        }
        # rdc may also have looked at none of them, and got what the source has.
        same |= {source[name].said for name in names}
        found.update(dict.fromkeys(names, same))
    return found
