"""Extended attributes and ACLs of both sides: read with a listing, and set after all other steps.

Loaded by runs that were asked for them. Entries name their sets by digests, and each set is held once.
"""

from __future__ import annotations

import errno
import os
import stat

from blake3 import blake3

from rdc.errors import ExitCode, FileChangedError, FileError, RdcError, printable
from rdc.files.base.metadata import identity_of, stat_entry
from rdc.files.base.paths import join
from rdc.files.facts.xattrs import (
    attribute_kinds_of,
    read_directory_attributes,
    read_entry_attributes,
    write_entry_attributes,
)
from rdc.lean.records import replace
from rdc.limits import ATTRIBUTE_SET_BYTES, ATTRIBUTES_PENDING_BYTES
from rdc.model.entries import Kind
from rdc.model.preserved import (
    ACCESS_ACL,
    AttributeKinds,
    bits_before_acl,
    mode_with_acl,
    pack_attributes,
    unpack_attributes,
)
from rdc.progress import Problem
from rdc.uniting.file_systems import keeps_permissions, lasting
from rdc.uniting.rows import DIGEST_BYTES, DIRECTORY, FILE, Stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rdc.files.root.root import Root
    from rdc.model.preserved import Attributes, Preserved
    from rdc.uniting.ancestor_file import StoredAncestor
    from rdc.uniting.describe import Listing
    from rdc.uniting.plan import SetAttributes
    from rdc.uniting.rows import Ancestor

_SET = "set its extended attributes"


def asked_kinds(*, xattrs: bool, acls: bool) -> AttributeKinds:
    """Return the kinds that -X and -A ask for. Those that only root can set are as powerful as owners, and
    take no part either."""
    found = AttributeKinds.USER if xattrs else AttributeKinds.NONE
    return found | AttributeKinds.ACL if acls else found


def kept_kinds(asked: AttributeKinds, roots: Iterable[Root], *, modes: bool) -> AttributeKinds:
    """Return the kinds that the file systems of all roots keep. `modes`: whether both keep permissions, of
    which an ACL is more."""
    found = asked if modes else asked & ~AttributeKinds.ACL
    for root in roots:
        found &= attribute_kinds_of(root) & root.storage.facts.keeps.attributes
    return found


def told_kinds(asked: AttributeKinds, one: Preserved, other: Preserved) -> AttributeKinds:
    """Return the kinds that take part between two machines, by what both sides told that they keep."""
    found = asked & one.attributes & other.attributes
    return found if keeps_permissions(one.also(other)) else found & ~AttributeKinds.ACL


def keeps_of(root: Root) -> Preserved:
    """Return what the file system of a root keeps, with the kinds of attributes that can be set there."""
    keeps = root.storage.facts.keeps
    return replace(keeps, attributes=keeps.attributes & attribute_kinds_of(root))


def are_as(ancestor: StoredAncestor, sets: AttributeSets, found: Mapping[bytes, bytes]) -> bool:
    """Return whether the sets of a tree are those that were agreed."""
    agreed = ancestor.attributes(sets.kinds)
    if agreed is None or len(agreed) < ancestor.count:
        return False
    return sets_digest({path: digest for path, digest in agreed.items() if digest}) == sets_digest(found)


def lost_notice(lost: AttributeKinds) -> Problem:
    """Return the notice that kinds that were asked for take no part."""
    names = [
        name
        for kind, name in ((AttributeKinds.USER, "extended attributes"), (AttributeKinds.ACL, "ACLs"))
        if kind in lost
    ]
    text = f"{' and '.join(names)} take no part: the file system of one side keeps none"
    return Problem(ExitCode.OK, b"", text)


class AttributeSets:
    """The sets of attributes of both sides, by digest."""

    def __init__(self, kinds: AttributeKinds) -> None:
        """`kinds`: those that take part."""
        self.kinds = kinds
        self._packed: dict[bytes, bytes] = {b"": b""}
        self._guards: dict[bytes, int] = {}
        self._excluding: set[bytes] = set()
        self._bytes = 0

    @property
    def has_acls(self) -> bool:
        """Return whether ACLs take part."""
        return AttributeKinds.ACL in self.kinds

    def add(self, attributes: Attributes) -> bytes:
        """Hold a set, and return its digest; b"" for none. Raises RdcError if all are too many bytes."""
        packed = pack_attributes(attributes)
        if not packed:
            return b""
        digest: bytes = blake3(packed).digest(DIGEST_BYTES)
        if digest not in self._packed:
            self._bytes += len(packed)
            if self._bytes > ATTRIBUTES_PENDING_BYTES:
                raise RdcError(
                    f"both sides have more than {ATTRIBUTES_PENDING_BYTES} bytes of different extended"
                    " attributes; nothing was done: leave out -X and -A, or exclude a part of the tree",
                    code=ExitCode.PARTIAL,
                )
            self._packed[digest] = packed
            acl = dict(attributes).get(ACCESS_ACL)
            if acl is not None:
                self._guards[digest] = bits_before_acl(acl)
                if mode_with_acl(0, acl) & stat.S_IRWXU != stat.S_IRWXU:
                    self._excluding.add(digest)
        return digest

    def of(self, digest: bytes) -> Attributes:
        """Return a set that is held."""
        return unpack_attributes(self._packed[digest])

    def guard(self, digest: bytes) -> int | None:
        """Return the rights of group and others that an entry may grant before it has the access ACL of a
        set; None for a set without one."""
        return self._guards.get(digest)

    def excludes_owner(self, digest: bytes) -> bool:
        """Return whether the access ACL of a set denies its owner something."""
        return digest in self._excluding


def read_sets(listing: Listing, sets: AttributeSets) -> dict[bytes, bytes]:
    """Return the digest of the set of each file and directory of a listing that has attributes.

    An entry whose set cannot be read, or is too large, takes no part in the run. Raises RdcError.
    """
    found: dict[bytes, bytes] = {}
    root = listing.root
    for path, directory in list(listing.directories.items()):
        kinds = directory.listing.kinds
        try:
            for row, name, there in read_directory_attributes(
                root, path, directory.listing.names, sets.kinds
            ):
                if kinds[row] not in (FILE, DIRECTORY):
                    continue
                below = join(path, name)
                if isinstance(there, OSError):
                    _bar(listing, below, there.strerror or type(there).__name__)
                elif len(pack_attributes(there)) > ATTRIBUTE_SET_BYTES:
                    _bar(listing, below, f"more than {ATTRIBUTE_SET_BYTES:,} bytes")
                else:
                    found[below] = sets.add(there)
        except FileChangedError:
            listing.bar(path, "it has just changed")
        except FileError as error:
            if not path:
                raise
            _bar(listing, path, str(error))
    return found


def _bar(listing: Listing, path: bytes, why: str) -> None:
    shown = printable(listing.root.shown(path))
    text = f"{shown}: cannot read its extended attributes: {why}; it takes no part"
    listing.report(Problem(ExitCode.PARTIAL, path, text))
    listing.bar(path, "its extended attributes cannot be read")


def give_rows(listing: Listing, sets: Mapping[bytes, bytes], base: Mapping[bytes, Ancestor]) -> None:
    """Give the rows of a listing the digests of their sets.

    A set that is not as in `base` counts only if the entry is still the one that was listed: otherwise it
    may be that of another one, and what was removed with an entry would be taken away from its copy.
    """
    for path, row in list(listing.rows.items()):
        digest = sets.get(path, b"")
        before = base.get(path)
        known = before.attributes if before is not None else None
        if row.kind in (FILE, DIRECTORY) and digest != (known or b""):
            try:
                now = listing.root.perform(path, "look at it", stat_entry, reading=True)
            except FileError:
                listing.bar(path, "it has just changed")
                continue
            identity = identity_of(now)
            listed = row.listed
            same = listed is None or (
                identity.inode == listed.inode or not listing.root.stable.inode
                if row.kind == DIRECTORY
                else listing.root.check.is_still(listed, identity)
            )
            if not same:
                listing.bar(path, "it has just changed")
                continue
        if digest:
            listing.rows[path] = row._replace(attributes=digest)


def sets_digest(sets: Mapping[bytes, bytes]) -> bytes:
    """Return the digest of all sets of a tree, with paths."""
    state = blake3()
    for path in sorted(sets):
        state.update(b"%b\0%b" % (path, sets[path]))
    digest: bytes = state.digest(DIGEST_BYTES)
    return digest


def give_to_new(fd: int, wanted: Attributes, *, needed: bool) -> None:
    """Give a file that has no name yet its attributes, so that no kill leaves it in its place without them.

    `needed`: the file replaces one with attributes, of which nothing else may have a copy. Then this raises
    OSError; otherwise what fails is found, and said, by `set_attributes` later.
    """
    try:
        mode = stat.S_IMODE(os.fstat(fd).st_mode)
        lends = wanted and os.geteuid() != 0 and not mode & stat.S_IWUSR
        if lends:
            os.fchmod(fd, mode | stat.S_IWUSR)
        for name, value in sorted(wanted, key=lambda pair: pair[0] == ACCESS_ACL):
            os.setxattr(fd, name, value)
        if lends and ACCESS_ACL not in dict(wanted):
            os.fchmod(fd, mode)
    except OSError as error:
        if needed and error.errno == errno.ENOSPC:
            # Many file systems have room for one block of attributes, and report that as a full disk.
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG)) from error
        if needed:
            raise


def set_attributes(root: Root, step: SetAttributes, sets: AttributeSets, known: Stamp | None) -> int | None:
    """Do a step, if the entry and its attributes are still what was listed, and return the mode that its ACL
    gives it, or that it has without the one that it had; None: there is and was none.

    `known`: what a step of this run noted of the entry; None: none was there. Raises FileError.
    """
    kind, listed = Kind(step.row.kind), step.row.listed

    def is_meant(found: os.stat_result) -> bool:
        now = identity_of(found)
        if kind is Kind.DIRECTORY:
            if step.before is None or listed is None or not root.stable.inode:
                return True
            return now.inode == listed.inode
        if known is None:
            return listed is None or root.check.is_still(listed, now)
        stamp = lasting(Stamp(now.size, 0, now.mtime_ns, now.inode, now.ctime_ns), root.stable)
        ctime_ns = known.ctime_ns and stamp.ctime_ns
        return stamp._replace(ctime_ns=ctime_ns) == known._replace(mode=0)

    wanted = sets.of(step.wanted)
    directory, name = root.locate(step.path)
    try:
        present = read_entry_attributes(directory.fd, name, sets.kinds)
    except OSError as error:
        raise root.failure(error, step.path, _SET) from error
    if step.before is not None and present not in (sets.of(step.before), wanted):
        raise root.refused(
            step.path,
            _SET,
            expected="those that were listed",
            found="others",
            advice="they stay; the next run looks at them again",
        )
    mode = step.mode | step.row.stamp.mode & 0o7000 if step.before is not None else step.mode
    write_entry_attributes(root, step.path, kind, wanted, sets.kinds, mode, is_meant=is_meant)
    acl = dict(wanted).get(ACCESS_ACL)
    if acl is not None:
        return mode_with_acl(mode, acl)
    return mode if ACCESS_ACL in dict(present) else None
