"""NameChange: takes one name from a file that has the content of another, without losing any write.

The name becomes a hard link to the other file (Link), goes (Delete), becomes a symbolic link to it (Symlink),
or moves elsewhere with its file (Move). Both files are leased (rdc.files.names.leased_files) from before the
comparison until the end, so no process can write to them unnoticed; writers wait. Each name takes these
steps:

1. `stage` writes the copy that a move to another file system needs. The caller makes the copies of several
   names durable. `place` reads a copy back, compares it and gives it its name. The caller makes the
   directories of the copies durable.
2. `prepare` makes the link beside the name, where one takes its place.
3. `leave` checks that both files are as they were compared. Then it takes the name from its file in one step:
   by an exchange with the link beside it (RENAME_EXCHANGE), or by a rename that overwrites nothing, to the
   reserved name beside it (`displaced_name`) or to the destination of a move.
4. It checks that the file renamed is the one compared. Unless the name is a hard link by now, the file that
   stays must still have its name, too. If not, the name goes back to its file.
5. The caller makes the directories durable.
6. `finish` checks once more whether a process that opened the displaced file wants to write to it. If so, the
   file is put back; otherwise it is removed. Only this step destroys anything.

The order of 3 and 4 protects the last copy. Two runs may have chosen each other's files. Each renames its
duplicate before it looks for the other file. So at least one of the two finds that file gone, and puts back.

After the exchange with a hard link, opening the name opens the original file, as after any hard link. What
happens to that file from then on does not undo the exchange, because that would separate a writer from the
name it used. rename(2) over the name could replace steps 3 to 6, but it would silently destroy a file moved
there after the last check. DUPLICATES.md analyses kills and races.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
import time
from contextlib import suppress
from zlib import crc32

from rdc.errors import FileError, printable
from rdc.files.base.metadata import shed_acl
from rdc.files.base.paths import WithoutProcError, changed, has_proc
from rdc.files.base.syscalls import rename_exchange, rename_no_replace, rename_no_replace_between
from rdc.files.base.taking_names import make_durable
from rdc.files.facts.file_facts import spans_with_data
from rdc.files.facts.xattrs import write_attributes
from rdc.files.replace.replacement import Replacement
from rdc.files.root.source_file import SPAN_BYTES
from rdc.lean.records import replace
from rdc.model.preserved import ACCESS_ACL, AttributeKinds, Attributes, bits_before_acl, real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rdc.errors import RdcError
    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.names.leased_files import LeasedFile
    from rdc.files.root.root import Root
    from rdc.model.entries import Metadata

# Names of displaced files

_PREFIX = b".rdc-"
_is_displaced = re.compile(rb"\.rdc-[0-9a-f]{16}\.old").fullmatch


def displaced_name(target: bytes, size: int, metadata: Metadata) -> bytes:
    """Return a name beside `target` (one component). Half of it identifies the target, half the size and
    metadata that both files had.

    It is no temporary: a sweep may remove those at any time, but after a kill this entry may be the only file
    with its content. The name alone proves nothing, since anybody who can read the metadata can make it. Only
    a journal proves that a file was displaced (rdc.duplicates.journal).
    """
    mtime = metadata.mtime_ns & 0xFFFF_FFFF_FFFF_FFFF
    state = struct.pack("<QQIII", size, mtime, metadata.mode, metadata.uid, metadata.gid)
    return b"%s%08x%08x.old" % (_PREFIX, crc32(target), crc32(state))


def is_displaced(name: bytes) -> bool:
    """Return whether `name` (one component) has the form that `displaced_name` gives."""
    return name.startswith(_PREFIX) and _is_displaced(name) is not None


PUT_BACK_ATTEMPTS = 16
"""Attempts to exchange names back. Another process may move a file to the name each time."""


def put_back(beside: bytes, name: bytes, directory: int, ours: os.stat_result) -> None:
    """Give `name` back to the file that an exchange displaced to `beside`, and remove `ours` from there.

    `ours` is the file that the exchange put at `name`; removing it must lose nothing. Each exchange is
    checked afterwards. If it displaced `ours`, that is removed. Otherwise it displaced a file that another
    process moved there meanwhile. That file is newer than the one just put there, so it goes back in its
    turn. The file it displaces was replaced by its owner, and is removed as that would have done.

    Raises OSError; EBUSY after PUT_BACK_ATTEMPTS.
    """
    put: os.stat_result | None = None
    for _ in range(PUT_BACK_ATTEMPTS):
        here = os.stat(beside, dir_fd=directory, follow_symlinks=False)
        if os.path.samestat(here, ours):
            os.unlink(beside, dir_fd=directory)
            return
        try:
            rename_exchange(beside, name, directory)
        except FileNotFoundError:
            # Another process removed the name. It may have meant this file, but restoring it is safer than
            # losing it.
            try:
                rename_no_replace(beside, name, directory)
            except FileExistsError:
                continue
            return
        before, put = put, here
        if before is not None:
            now = os.stat(beside, dir_fd=directory, follow_symlinks=False)
            if os.path.samestat(now, before):
                os.unlink(beside, dir_fd=directory)
                return
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


# Copies

SECTOR_BYTES = 512
"""The unit of st_blocks, whatever the file system's block size is."""


def copy_of(root: Root, path: bytes, source: int, size: int) -> Replacement:
    """Return a temporary beside `path` with the first `size` bytes of the file open at `source`. Holes stay
    holes, and blocks are shared where the file system can.

    The temporary is shorter if the source is. Nothing is durable yet. Raises RdcError.
    """
    with root.failing(path, "copy into it"):
        taken = os.fstat(source).st_blocks * SECTOR_BYTES
    copy = Replacement(root, path, expected_size=size, allocated=taken if taken < size else None)
    try:
        copy.copy_from(source, 0, size)
    except BaseException:
        copy.abandon()
        raise
    return copy


def seal_like(copy: Replacement, metadata: Metadata, attributes: Attributes, *, owner: bool = True) -> None:
    """Give a copy its metadata and attributes. Nothing may be written to it afterwards, and the caller makes
    it durable. `owner`: it gets the owner. Raises OSError and FileError."""
    acl = dict(attributes).get(ACCESS_ACL)
    if acl is not None:
        # The ACL is written below with the other attributes. Until then its mask must not act as group bits.
        others = stat.S_IRWXG | stat.S_IRWXO
        metadata = replace(metadata, mode=metadata.mode & (~others | bits_before_acl(acl)))
    shed_acl(copy.fileno())
    copy.seal(metadata, owner=owner)
    if attributes or copy.root.storage.facts.keeps.attributes & AttributeKinds.USER:
        write_attributes(copy.fileno(), attributes)


# The changes

STALL_SECONDS = 0.5
"""The time for which a check before an exchange stays valid. A lease delays writers for at least one second,
whatever /proc/sys/fs/lease-break-time says."""

_COMPARED = "the file that was compared"
_NO_RENAME = ("a file system that cannot rename without overwriting", "nothing was changed")
_NO_EXCHANGE = (
    "a file system that cannot let two names change places",
    "hard links are not made here; without --hardlink, blocks are shared where that is possible",
)
_LINK_REFUSALS = {
    errno.ENOSYS: _NO_EXCHANGE,
    errno.EINVAL: _NO_EXCHANGE,
    errno.EMLINK: (
        "as many links to one file as this file system allows",
        "the other names stay as they are",
    ),
    errno.EEXIST: (
        "that its name beside it, .rdc-<16 hex digits>.old, is taken",
        "look at what has that name, then rename or remove it",
    ),
    errno.EXDEV: ("another file system, subvolume or mount", "hard links stay within one"),
    errno.EPERM: (
        "an immutable file, one of somebody else, or a file system without hard links",
        "run as its owner or as root; lsattr shows an 'i' where chattr -i helps",
    ),
    errno.EOPNOTSUPP: ("a file system without hard links", "nothing was changed"),
    errno.EROFS: ("a read-only file system", "mount it read-write and run again"),
}


class NameChange:
    """One name on its way from its file. Calls come in the order of the module docstring.

    The caller has compared the two LeasedFiles and holds them until the end. Each call raises FileError and
    leaves the name with a whole file. After an error nothing remains to be done.
    """

    doing = "remove it"
    removing = "remove it"
    """The action of `finish`."""

    def __init__(
        self,
        root: Root,
        path: bytes,
        duplicate: LeasedFile,
        original: LeasedFile,
        directories: tuple[Directory, Directory] | None = None,
    ) -> None:
        """`directories`: those of `path` and of the file that stays, opened a moment ago."""
        root.check_change(path, self.doing)
        self.root = root
        self.path = path
        self.duplicate = duplicate
        self.original = original
        if directories is None:
            there = original.root.locate(original.path, fresh=True)[0]
            directories = root.locate(path, fresh=True)[0], there
        self.directory, self.original_directory = directories
        self.name = path.rpartition(b"/")[2]
        self._original_name = original.path.rpartition(b"/")[2]
        self.displaced = displaced_name(self.name, duplicate.identity.size, duplicate.metadata)
        """The name beside it, which first belongs to a link that takes its place, and then to its file."""
        self.refusal: int | None = None
        """The errno of `prepare` if it failed."""

    @property
    def directories(self) -> list[Directory]:
        """The entries whose names change."""
        return [self.directory]

    def stage(self) -> int | None:
        """Step 1. Return the descriptor of a copy, for the caller to make it durable; None if none is needed.
        Raises RdcError."""
        return None

    def place(self) -> Directory | None:
        """Step 1, continued. Return the directory to be made durable then; None if there is no copy. Raises
        RdcError."""
        return None

    def discard(self) -> None:
        """Undo step 1. Never raises."""

    def depart(self, *, first: bool) -> None:
        """Do steps 2 to 4. `first`: as in `leave`."""
        self.prepare()
        self.leave(first=first)

    def prepare(self) -> None:
        """Step 2."""

    def leave(self, *, first: bool) -> None:
        """Do steps 3 and 4. `first`: no other name of this file was changed, so even its ctime must be as it
        was."""
        looked = time.monotonic()
        try:
            found = self._unlike_compared(self.directory, self.name)
            if found is not None:
                raise self._changed(found)
            if first:
                self._check_exactly()
            self._rename()
        except BaseException as error:
            self._unprepare()
            if isinstance(error, FileNotFoundError):
                raise self._changed("that it is gone") from error
            if isinstance(error, OSError):
                raise self._failure(error) from error
            raise
        # A lease delays a writer for at least a second, but this process may have been stopped for longer.
        stalled = time.monotonic() - looked > STALL_SECONDS
        try:
            self.check_departed(stalled=stalled)
        except FileError:
            raise
        except BaseException:
            self.undo()
            raise

    def check_departed(self, *, stalled: bool = False) -> None:
        """Raise, and give the name back, unless both files are as they were compared."""
        try:
            found = self._unlike_departed(stalled=stalled)
            if found is not None:
                self._give_back()
        except OSError as error:
            raise self._two_files(os.strerror(error.errno or 0)) from error
        if found is not None:
            raise self._changed(found)

    def finish(self) -> None:
        """Step 6."""
        self.check_departed()
        with self.root.failing(self.path, self.removing):
            os.unlink(self.displaced, dir_fd=self.directory.fd)

    def undo(self) -> None:
        """Give the name back after `leave`, because something else failed. Never raises."""
        with suppress(OSError):
            self._give_back()

    # What the kinds of change do in their own ways

    def _rename(self) -> None:
        raise NotImplementedError

    def _unprepare(self) -> None:
        """Undo the steps before `leave`. Never raises."""

    def _give_back(self) -> None:
        raise NotImplementedError

    def _check_exactly(self) -> None:
        self.duplicate.check_exactly()

    def _departed_to(self) -> tuple[Directory, bytes]:
        return self.directory, self.displaced

    def _unlike_departed(self, *, stalled: bool) -> str | None:
        """Return what changed since the comparison, after the name has left; None if nothing did. Raises
        OSError."""
        return self._unlike_compared(*self._departed_to())

    def _unlike_compared(self, directory: Directory, name: bytes) -> str | None:
        """Return what changed since the comparison; None if nothing did. Raises OSError."""
        if not self.duplicate.is_at(name, directory.fd):
            return "another file in its place"
        return self.duplicate.describe_change() or self._unlike_original()

    def _unlike_original(self) -> str | None:
        if not self.original.is_at(self._original_name, self.original_directory.fd):
            return "that the file it equals is gone"
        found = self.original.describe_change()
        return None if found is None else f"of the file it equals {found}"

    def _two_files(self, found: str) -> RdcError:
        directory, name = self._departed_to()
        beside = " beside it" if directory is self.directory else ""
        return self.root.refused(
            self.path,
            self.doing,
            expected=_COMPARED,
            found=found,
            advice=f"look at {printable(name)}{beside}, which has the old content",
        )

    def _changed(self, found: str) -> RdcError:
        return changed(self.path, self.root.shown(self.path), _COMPARED, found)

    def _failure(self, error: OSError) -> RdcError:
        name = printable(self._taken_name())
        taken = (f"that {name} is taken", "look at what has that name, then rename or remove it")
        refusals = {errno.EEXIST: taken, errno.ENOSYS: _NO_RENAME, errno.EINVAL: _NO_RENAME}
        return self._refused(error, refusals, "a free name for it")

    def _refused(
        self, error: OSError, refusals: Mapping[int, tuple[str, str]], expected: str, code: str = ""
    ) -> RdcError:
        refusal = refusals.get(error.errno or 0)
        if refusal is None or isinstance(error, WithoutProcError):
            return self.root.failure(error, self.path, self.doing)
        found, advice = refusal
        return self.root.refused(
            self.path, self.doing, expected=expected, found=f"{found}{code}", advice=advice
        )

    def _taken_name(self) -> bytes:
        return self.displaced


class Delete(NameChange):
    """Removes the name."""

    doing = removing = "delete it"

    def _rename(self) -> None:
        rename_no_replace(self.name, self.displaced, self.directory.fd)

    def _give_back(self) -> None:
        rename_no_replace(self.displaced, self.name, self.directory.fd)


class _Exchange(NameChange):
    """Puts a link in place of the name."""

    def prepare(self) -> None:
        try:
            self._make_link()
        except OSError as error:
            self.refusal = error.errno
            raise self._failure(error) from error

    def _make_link(self) -> None:
        """Make the link under the displaced name. Raises OSError and FileError."""
        raise NotImplementedError

    def _link(self) -> os.stat_result | None:
        """Return the stat of the link; None if it was not made."""
        raise NotImplementedError

    def _rename(self) -> None:
        rename_exchange(self.displaced, self.name, self.directory.fd)

    def _give_back(self) -> None:
        link = self._link()
        if link is not None:
            put_back(self.displaced, self.name, self.directory.fd, link)

    def _unprepare(self) -> None:
        # The link holds nothing of its own. If it stays, a later run removes it.
        with suppress(OSError):
            link = self._link()
            found = os.stat(self.displaced, dir_fd=self.directory.fd, follow_symlinks=False)
            if link is not None and os.path.samestat(found, link):
                os.unlink(self.displaced, dir_fd=self.directory.fd)


class Link(_Exchange):
    """Makes the name a hard link to the original."""

    doing = "link it"
    removing = "remove the file that it replaced"

    def undo(self) -> None:
        """Undo the change, as NameChange says. If the original file is being written to, the old file stays
        beside it for a later run."""
        with suppress(OSError):
            if self.original.is_intact():
                self._give_back()

    def _make_link(self) -> None:
        if not has_proc():
            raise WithoutProcError
        # The path through the descriptor links the file that was compared, whichever name it has now.
        os.link(b"/proc/self/fd/%d" % self.original.fileno(), self.displaced, dst_dir_fd=self.directory.fd)

    def _link(self) -> os.stat_result:
        return os.fstat(self.original.fileno())

    def _check_exactly(self) -> None:
        """Check nothing more: a link changes the ctimes of both files."""

    def _unlike_original(self) -> str | None:
        return self.original.describe_change()

    def _unlike_departed(self, *, stalled: bool) -> str | None:
        """Return what changed since the duplicate left its name; None if nothing did.

        If a process also wants to write to the original file, it may have opened it under this name. Then two
        writers each have a file of their own, and both files stay.
        """
        if not self.duplicate.is_at(self.displaced, self.directory.fd):
            return "another file in its place"
        if stalled and self.original.describe_rewrite() is not None:
            return "that the file it should become was written to"
        found = self.duplicate.describe_change()
        if found is not None and not self.original.is_intact():
            raise self._two_files("that both it and the file it became were written to")
        return found

    def _failure(self, error: OSError) -> RdcError:
        code = errno.errorcode.get(error.errno or 0, error.errno)
        return self._refused(error, _LINK_REFUSALS, "a place where names can be linked", f" ({code})")


class Symlink(_Exchange):
    """Puts a symbolic link in place of the name."""

    doing = removing = "make it a symbolic link"

    def __init__(
        self,
        root: Root,
        path: bytes,
        duplicate: LeasedFile,
        original: LeasedFile,
        text: bytes,
        directories: tuple[Directory, Directory] | None = None,
    ) -> None:
        super().__init__(root, path, duplicate, original, directories)
        self._text = text
        self._made: os.stat_result | None = None

    def _make_link(self) -> None:
        os.symlink(self._text, self.displaced, dir_fd=self.directory.fd)
        self._made = os.stat(self.displaced, dir_fd=self.directory.fd, follow_symlinks=False)

    def _link(self) -> os.stat_result | None:
        return self._made

    def _rename(self) -> None:
        # The link is followed, which may fail on the way, as in a directory that a mount hides.
        try:
            led = os.stat(self.displaced, dir_fd=self.directory.fd)
            leads = os.path.samestat(led, os.fstat(self.original.fileno()))
        except OSError:
            leads = False
        if not leads:
            raise self.root.refused(
                self.path,
                self.doing,
                expected="a link that leads to the file it equals",
                found="that it would lead elsewhere",
                advice="the file was left alone",
            )
        super()._rename()


class Move(NameChange):
    """Moves the name into another tree, where nothing is overwritten.

    Within a file system this is one rename. Otherwise the copy is complete and durable before the duplicate
    leaves its name.
    """

    doing = removing = "move it"

    def __init__(
        self,
        root: Root,
        path: bytes,
        duplicate: LeasedFile,
        original: LeasedFile,
        *,
        into: Root,
        destination: bytes,
        directories: tuple[Directory, Directory] | None = None,
    ) -> None:
        super().__init__(root, path, duplicate, original, directories)
        self._into = into
        self._destination = destination
        self._destination_name = destination.rpartition(b"/")[2]
        self._destination_directory: Directory | None = None
        self._copy: Replacement | None = None
        self._copied: os.stat_result | None = None

    @property
    def directories(self) -> list[Directory]:
        return [self._there(), self.directory]

    def _there(self) -> Directory:
        """Return the directory of the destination. Raises RdcError."""
        if self._destination_directory is None:
            self._destination_directory = self._into.locate(self._destination, fresh=True)[0]
        return self._destination_directory

    def stage(self) -> int | None:
        """Stage the file, as NameChange says: a copy is needed if the destination is on another file
        system."""
        try:
            device = os.fstat(self._there().fd).st_dev
        except OSError as error:
            raise self._failure(error) from error
        return None if device == self.duplicate.identity.device else self._stage()

    def _stage(self) -> int:
        if self.duplicate.links > 1:
            raise self.root.refused(
                self.path,
                self.doing,
                expected="a file with one name, as the other file system would get several files",
                found=f"{self.duplicate.links} names",
                advice="the file was left alone",
            )
        duplicate = self.duplicate
        self._copy = copy = copy_of(
            self._into, self._destination, duplicate.fileno(), duplicate.identity.size
        )
        try:
            seal_like(copy, duplicate.metadata, duplicate.attributes)
        except BaseException as error:
            self._drop()
            if isinstance(error, OSError):
                raise self._failure(error) from error
            raise
        return copy.fileno()

    def place(self) -> Directory | None:
        """Place the file, as NameChange says: the durable copy is compared with the duplicate, and gets its
        name."""
        copy, duplicate, size = self._copy, self.duplicate, self.duplicate.identity.size
        if copy is None:
            return None
        try:
            # From the disk, where the kernel lets go of what it remembers.
            os.posix_fadvise(copy.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            for offset, length in spans_with_data((copy.fileno(), duplicate.fileno()), size, SPAN_BYTES):
                if copy.pread(offset, length) != duplicate.pread(offset, length):
                    raise self._changed("that its copy differs")
            if copy.pread(size, 1):
                raise self._changed("that its copy differs")
            os.utime(copy.fileno(), ns=(duplicate.atime_ns, real_time(duplicate.metadata.mtime_ns)))
            rename_no_replace(copy.temporary, self._destination_name, copy.directory.fd)
            self._copied = os.fstat(copy.fileno())
            copy.renamed()
        except OSError as error:
            raise self._failure(error) from error
        finally:
            self._drop()
        return copy.directory

    def _drop(self) -> None:
        """Remove a copy that did not get its name. Never raises."""
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.abandon()

    def discard(self) -> None:
        """Discard the copy, as NameChange says. A copy that has its name goes if it is still the one made
        here."""
        self._drop()
        made, self._copied = self._copied, None
        if made is not None:
            with suppress(OSError, FileError):
                there = self._there().fd
                now = os.stat(self._destination_name, dir_fd=there, follow_symlinks=False)
                if (now.st_ino, now.st_mtime_ns) == (made.st_ino, made.st_mtime_ns):
                    os.unlink(self._destination_name, dir_fd=there)

    _unprepare = discard

    def finish(self) -> None:
        if self._copied is not None:
            super().finish()

    def _rename(self) -> None:
        if self._copied is None:
            try:
                rename_no_replace_between(
                    self.name, self.directory.fd, self._destination_name, self._there().fd
                )
                return
            except OSError as error:
                # Bind mounts and subvolumes have one device number, or one that says little.
                if error.errno != errno.EXDEV:
                    raise
            make_durable([self._stage()])
            there = self.place()
            make_durable([], [] if there is None else [there])
        rename_no_replace(self.name, self.displaced, self.directory.fd)

    def _give_back(self) -> None:
        if self._copied is None:
            rename_no_replace_between(self._destination_name, self._there().fd, self.name, self.directory.fd)
            return
        rename_no_replace(self.displaced, self.name, self.directory.fd)
        self.discard()

    def _departed_to(self) -> tuple[Directory, bytes]:
        if self._copied is None:
            return self._there(), self._destination_name
        return self.directory, self.displaced

    def _taken_name(self) -> bytes:
        return self._into.shown(self._destination)
