"""The rights of each user in a tree, at every moment of a run: recorded by native/access_recorder.c, judged
here."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.project_paths import NATIVE

__all__ = ["USERS", "Look", "Seen", "State", "build_recorder", "exposures", "look", "states"]

_TEMPORARY = re.compile(r"\.rdc-([0-9a-f]{8})[0-9a-f]{8}\.tmp")
_ACL = "system.posix_acl_access"
_OWNER, _USER, _OWN_GROUP, _GROUP, _MASK = 1, 2, 4, 8, 16


@dataclass(frozen=True, slots=True)
class Seen:
    """One entry of a state."""

    kind: int
    mode: int
    uid: int
    gid: int
    inode: int
    size: int
    acl: bytes


Look = Mapping[str, Seen]
"""By path below the tree's top, which is ""."""


@dataclass(frozen=True, slots=True)
class State:
    """The tree right after a system call."""

    call: str
    entries: Look


@dataclass(frozen=True, slots=True)
class User:
    """One of those from whom entries are kept."""

    uid: int
    gids: frozenset[int]


UIDS, GIDS = (1001, 1002, 65534), (2001, 2002)
USERS = tuple(
    User(uid, frozenset(gids)) for uid in UIDS for gids in ((), (GIDS[0],), (GIDS[1],), GIDS, (65534,))
)


def build_recorder(place: Path) -> Path:
    """Compile the library that is to be preloaded."""
    library = place / "access_recorder.so"
    source = NATIVE / "access_recorder.c"
    command = [
        os.environ.get("CC", "cc"),
        "-std=c11",
        "-O1",
        "-shared",
        "-fPIC",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    subprocess.run([*command, source, "-o", library, "-ldl", "-lpthread"], check=True)
    return library


def look(top: Path) -> dict[str, Seen]:
    """Return a tree as the recorder sees it; {} if there is none."""
    found: dict[str, Seen] = {}
    if not top.is_dir():
        return found
    for place, directories, files in os.walk(top):
        for name in (".", *directories, *files):
            path = Path(place) if name == "." else Path(place) / name
            seen, acl = path.lstat(), b""
            if not stat.S_ISLNK(seen.st_mode):
                try:
                    acl = os.getxattr(path, _ACL)
                except OSError:
                    acl = b""
            key = "" if path == top else str(path.relative_to(top))
            found[key] = Seen(
                stat.S_IFMT(seen.st_mode),
                stat.S_IMODE(seen.st_mode),
                seen.st_uid,
                seen.st_gid,
                seen.st_ino,
                seen.st_size,
                acl,
            )
    return found


def states(log: Path) -> Iterator[State]:
    """Yield the states that the recorder wrote."""
    text = log.read_text() if log.exists() else ""
    for block in filter(None, text.split("\n\n")):
        call, *lines = block.split("\n")
        entries = {}
        for line in lines:
            kind, mode, uid, gid, inode, size, acl, path = line.split(" ", 7)
            entries[path] = Seen(
                int(kind, 8),
                int(mode, 8),
                int(uid),
                int(gid),
                int(inode),
                int(size),
                b"" if acl == "-" else bytes.fromhex(acl),
            )
        yield State(call[1:], entries)


def allowed(seen: Seen, user: User) -> int:
    """Return what a user, who is not the owner, may do: a sum of 4 (read), 2 (write) and 1 (execute,
    search)."""
    if not seen.acl:
        return seen.mode >> 3 & 7 if seen.gid in user.gids else seen.mode & 7
    entries = [
        (
            int.from_bytes(seen.acl[at : at + 2], "little"),
            int.from_bytes(seen.acl[at + 2 : at + 4], "little"),
            int.from_bytes(seen.acl[at + 4 : at + 8], "little"),
        )
        for at in range(4, len(seen.acl), 8)
    ]
    mask = next((bits for tag, bits, _ in entries if tag == _MASK), 7)
    for tag, bits, name in entries:
        if tag == _USER and name == user.uid:
            return bits & mask
    groups = [
        bits
        for tag, bits, name in entries
        if (tag == _GROUP and name in user.gids) or (tag == _OWN_GROUP and seen.gid in user.gids)
    ]
    if not groups:
        return seen.mode & 7
    either = 0
    for bits in groups:
        either |= bits
    return either & mask


def exposures(
    state: State, held: Look, wanted: Look, passed: set[object], *, runner: int, reach: bool = False
) -> Iterator[str]:
    """Yield where users may do more than the definition in CONSISTENCY.md allows. `held`: the tree as it was
    before the run, `wanted`: as it is to be. `passed`: what earlier states of the run were found to be right
    in; it grows. `runner`: uid of the process. `reach`: ignore entries that a user cannot reach."""
    landed = {
        path
        for path, seen in state.entries.items()
        if seen.kind != stat.S_IFDIR and not _is_old(path, seen, held) and not _is_tried(path, state, runner)
    }
    busy = {above for path in landed for above in _above(path)}
    moved = {seen.inode: seen for seen in held.values()}
    finals: dict[int, list[Seen]] = {}
    for seen in wanted.values():
        finals.setdefault(seen.size, []).append(seen)
    names: dict[int, list[str]] = {}
    for path, seen in state.entries.items():
        names.setdefault(seen.inode, []).append(path)
    for path, seen in state.entries.items():
        if seen.kind == stat.S_IFLNK or _is_tried(path, state, runner):
            continue
        old = _is_old(path, seen, held)
        bounds = [wanted[path]] if path in wanted else []
        strict = seen.kind == stat.S_IFDIR and path in busy
        if not reach and (path, seen, strict) in passed:
            continue
        passed.add((path, seen, strict))
        mark = _TEMPORARY.fullmatch(path.rpartition("/")[2])
        if mark:
            bounds = [
                entry
                for tree in (wanted, held)
                for name, entry in tree.items()
                if name
                and name.rpartition("/")[0] == path.rpartition("/")[0]
                and f"{zlib.crc32(name.rpartition('/')[2].encode()):08x}" == mark[1]
                and (tree is wanted or seen.inode == entry.inode)
            ]
            # One name more of a file that is elsewhere, which a kill may have left.
            bounds += [wanted[name] for name in names.get(seen.inode, []) if name in wanted]
            bounds += [moved[seen.inode]] if seen.inode in moved else []
        elif old and not (strict and path in wanted):
            bounds.append(held[path])
            if path not in wanted and seen.kind == stat.S_IFREG:
                # What it is to become by a rename.
                bounds += finals.get(seen.size, [])
        elif seen.inode in moved and path not in wanted:
            continue  # on its way through a place that is to be gone
        for user in USERS:
            if reach and not all(_lets_through(state.entries[above], user) for above in _above(path)):
                continue
            may = allowed(seen, user)
            if user.uid == seen.uid:
                if seen.uid == runner or any(bound.uid == user.uid for bound in bounds):
                    continue
                may = 7
            bound = 0
            for one in bounds:
                bound |= 7 if one.uid == user.uid else allowed(one, user)
            if may & ~bound:
                yield (
                    f"after {state.call}: {path!r} lets {user} do {may}, not {bound}:"
                    f" {seen}\n  held {held.get(path)}\n  wanted {wanted.get(path)}"
                )
                break
        for bit, key in ((stat.S_ISUID, "uid"), (stat.S_ISGID, "gid")):
            runs = seen.kind == stat.S_IFREG and seen.mode & bit
            may = any(one.mode & bit and getattr(one, key) == getattr(seen, key) for one in bounds)
            if runs and not may:
                yield f"after {state.call}: {path!r} runs as another: {seen}, {bounds}"


def _is_tried(path: str, state: State, runner: int) -> bool:
    """Return whether a path is in a directory that only its owner may enter, where a run tries modes."""
    above = path.rpartition("/")[0]
    if not _TEMPORARY.fullmatch(above.rpartition("/")[2]):
        return False
    directory = state.entries[above]
    return directory.uid == runner and not any(
        allowed(directory, user) for user in USERS if user.uid != runner
    )


def _lets_through(directory: Seen, user: User) -> bool:
    return user.uid == directory.uid or bool(allowed(directory, user) & 1)


def _is_old(path: str, seen: Seen, held: Look) -> bool:
    was = held.get(path)
    return was is not None and (was.inode, was.kind) == (seen.inode, seen.kind)


def _above(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path
