"""Gives a file its name back: from where it lies, or as a copy of a file with the same content.

Each return takes these steps, and those of many names share their syncs:

1. `stage` writes a copy aside, if one is needed. The caller makes copies durable.
2. `take` gives the name to the file.
3. The caller makes `directories` durable.
4. `finish` removes what the file replaces.

Nothing is overwritten: a name is taken only while it is free, or while the link that stands for the file has
it. In that case two names are exchanged, and what was displaced is looked at before it is removed.
"""

from __future__ import annotations

import errno
import os
from array import array
from contextlib import suppress

from blake3 import blake3

from rdc.errors import FileError, printable
from rdc.files.base.directory_descriptors import Closing
from rdc.files.base.metadata import has_default_acl
from rdc.files.base.paths import changed
from rdc.files.base.syscalls import rename_exchange, rename_no_replace, rename_no_replace_between
from rdc.files.base.taking_names import make_durable
from rdc.files.bulk.small_files import TEMPORARY_BYTES, extension
from rdc.files.depth import RowsSeen
from rdc.files.facts.file_facts import ContentDigest, spans_with_data
from rdc.files.facts.xattrs import write_attributes
from rdc.files.names.leased_files import LeasedFile, same_bytes
from rdc.files.names.name_change import copy_of, put_back, seal_like
from rdc.files.replace.replacement import Replacement
from rdc.files.root.source_file import SPAN_BYTES
from rdc.lean.records import Record
from rdc.model.entries import Metadata, little_endian
from rdc.model.preserved import ACCESS_ACL, Attributes, is_distant, real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile

_DOING = "bring it back"

_extension = extension()


class Digest(Record):
    """The digest that a content must have."""

    value: bytes
    of_all: bool
    """True if it is BLAKE3 of all bytes, and no ContentDigest."""

    def is_of(self, content: bytes) -> bool:
        """Return whether this is the whole content that was meant."""
        if self.of_all:
            return blake3(content).digest() == self.value
        digest = ContentDigest(len(content))
        digest.add(0, content)
        return digest.digest() == self.value

    def is_of_copy(self, copy: Replacement) -> bool:
        """Return whether this is the digest of a temporary, which is read from the disk or the page cache.
        Raises RdcError."""
        if self.of_all:
            hasher = blake3()
            for offset in range(0, copy.size, SPAN_BYTES):
                hasher.update(copy.pread(offset, min(SPAN_BYTES, copy.size - offset)))
            return hasher.digest() == self.value
        digest = ContentDigest(copy.size)
        for offset, length in spans_with_data((copy.fileno(),), copy.size, SPAN_BYTES):
            digest.add(offset, copy.pread(offset, length))
        return digest.digest() == self.value


class Returned(Record):
    """The metadata that a returned file gets besides its content."""

    metadata: Metadata
    attributes: Attributes
    atime_ns: int


class NameReturn:
    """One name that gets its file back. Each call raises RdcError, and the name is as before then."""

    def __init__(self, root: Root, path: bytes, directory: Directory, text: bytes = b"") -> None:
        """`directory`: that of `path`, opened a moment ago. `text`: of the symbolic link that may have the
        name."""
        root.check_change(path, _DOING)
        self.root = root
        self.path = path
        self.directory = directory
        self.name = path.rpartition(b"/")[2]
        self._text = text

    @property
    def directories(self) -> list[Directory]:
        """The entries whose names `take` changed."""
        return [self.directory]

    def stage(self) -> int | None:
        """Step 1. Return the descriptor of the copy, None if none is needed."""
        return None

    def take(self) -> None:
        """Step 2."""
        raise NotImplementedError

    def finish(self) -> None:
        """Step 4."""

    def drop(self) -> None:
        """Remove a copy that did not get the name. Never raises."""

    def _take(self, beside: bytes) -> None:
        with self.root.failing(self.path, _DOING):
            _take(beside, self.name, self.directory.fd, self._text)


class DisplacedReturn(NameReturn):
    """Renames the file that lies displaced beside its name."""

    def __init__(
        self, root: Root, path: bytes, directory: Directory, displaced: bytes, text: bytes = b""
    ) -> None:
        super().__init__(root, path, directory, text)
        self._displaced = displaced

    def take(self) -> None:
        self._take(self._displaced)


class OldReturn(NameReturn):
    """Gives the name back to the file that lies displaced beside it, from the hard link that took it."""

    def __init__(self, root: Root, path: bytes, directory: Directory, displaced: bytes) -> None:
        super().__init__(root, path, directory)
        self._displaced = displaced

    def take(self) -> None:
        with LeasedFile(self.root, self.path) as linked, self.root.failing(self.path, _DOING):
            # A lease does not protect names: the others may have been removed.
            if os.fstat(linked.fileno()).st_nlink < 2:
                raise self.root.refused(
                    self.path,
                    _DOING,
                    expected="a link to a file with other names",
                    found="that it is its only one",
                    advice=f"look at {printable(self._displaced)} beside it, and remove one of the two",
                )
            put_back(self._displaced, self.name, self.directory.fd, os.fstat(linked.fileno()))


class MovedReturn(NameReturn):
    """Renames the file that was moved, within a file system."""

    def __init__(self, root: Root, path: bytes, directory: Directory, moved: tuple[Root, bytes]) -> None:
        super().__init__(root, path, directory)
        self._into, self._moved = moved
        self._into.check_change(self._moved, _DOING)
        self._there, self._moved_name = self._into.locate(self._moved, fresh=True)

    @property
    def directories(self) -> list[Directory]:
        return [self.directory, self._there]

    def take(self) -> None:
        with self.root.failing(self.path, _DOING):
            rename_no_replace_between(self._moved_name, self._there.fd, self.name, self.directory.fd)

    @property
    def is_near(self) -> bool:
        """Return whether both directories are on one file system, as far as device numbers say."""
        return os.fstat(self._there.fd).st_dev == os.fstat(self.directory.fd).st_dev


class CopiedReturn(NameReturn):
    """A return that needs a copy. Subclasses say of what, and how it takes the name."""

    def __init__(
        self,
        root: Root,
        path: bytes,
        directory: Directory,
        returned: Returned,
        content: bytes | None,
        text: bytes = b"",
    ) -> None:
        """`content`: the whole content, if it is in memory."""
        super().__init__(root, path, directory, text)
        self.returned = returned
        self.content = content
        self._copy: Replacement | None = None
        self._staged: tuple[bytes, int] | None = None
        """Name and descriptor of a copy that was made among others (rdc.files.names.return_name)."""

    def stage(self) -> int:
        self._copy = copy = self._written()
        try:
            seal_like(copy, self.returned.metadata, self.returned.attributes)
            os.utime(copy.fileno(), ns=(self.returned.atime_ns, real_time(self.returned.metadata.mtime_ns)))
            self._check()
        except OSError as error:
            self.drop()
            raise self.root.failure(error, self.path, _DOING) from error
        except BaseException:
            self.drop()
            raise
        return copy.fileno()

    def _written(self) -> Replacement:
        """Return a temporary with the content. Raises RdcError."""
        if self.content is None:
            return self._copied()
        copy = Replacement(self.root, self.path, expected_size=len(self.content))
        copy.write(self.content)
        return copy

    def _copied(self) -> Replacement:
        """Return a copy of the source. Raises RdcError."""
        raise NotImplementedError

    def _check(self) -> None:
        """Raise FileError if the source is not what was copied."""

    def adopt(self, temporary: bytes, fd: int) -> None:
        """Take over a complete copy in place of `stage`. Another object closes the descriptor."""
        self._staged = temporary, fd

    def take(self) -> None:
        copy, staged = self._copy, self._staged
        if staged is None:
            if copy is None:
                raise ValueError("a copy takes its name once it is staged")
            staged = copy.temporary, copy.fileno()
        try:
            self._take_with(*staged)
        except OSError as error:
            raise self.root.failure(error, self.path, _DOING) from error
        finally:
            self.drop()

    def _take_with(self, beside: bytes, fd: int) -> None:
        """Give the name to the copy. Raises OSError, FileError."""
        _take(beside, self.name, self.directory.fd, self._text)
        self._renamed()

    def _renamed(self) -> None:
        """Take note that the copy's name is not its own any more."""
        self._staged = None
        if self._copy is not None:
            self._copy.renamed()

    def drop(self) -> None:
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.abandon()
        staged, self._staged = self._staged, None
        if staged is not None:
            with suppress(OSError):
                os.unlink(staged[0], dir_fd=self.directory.fd)


class CopyReturn(CopiedReturn):
    """Takes the name for a copy of a file, if that has the content that the name's file had."""

    def __init__(
        self,
        root: Root,
        path: bytes,
        directory: Directory,
        returned: Returned,
        *,
        source: SourceFile,
        digest: Digest,
        content: bytes | None = None,
        text: bytes = b"",
    ) -> None:
        """`source`: closed by the caller, after `stage`. `content`: has this digest."""
        super().__init__(root, path, directory, returned, content, text)
        self._source = source
        self._digest = digest

    def _copied(self) -> Replacement:
        copy = copy_of(self.root, self.path, self._source.fileno(), self._source.size)
        try:
            if copy.size != self._source.size or not self._digest.is_of_copy(copy):
                raise differs(self.root, self.path, self._source.path)
        except BaseException:
            copy.abandon()
            raise
        return copy


class Separation(CopiedReturn):
    """One name, a hard link to a leased file, that gets a copy of it. The file keeps its other names."""

    def __init__(
        self, root: Root, path: bytes, directory: Directory, linked: LeasedFile, content: bytes | None = None
    ) -> None:
        """`linked`: held by the caller until `finish`."""
        returned = Returned(linked.metadata, linked.attributes, linked.atime_ns)
        super().__init__(root, path, directory, returned, content)
        self._linked = linked
        self._beside = b""

    def _copied(self) -> Replacement:
        size = self._linked.identity.size
        copy = copy_of(self.root, self.path, self._linked.fileno(), size)
        if copy.size != size:
            copy.abandon()
            raise changed(self.path, self.root.shown(self.path), f"{size} bytes", "fewer")
        return copy

    def _check(self) -> None:
        # The copy is complete: no process wrote to the file while the lease held.
        self._linked.check()

    def _take_with(self, beside: bytes, fd: int) -> None:
        linked, directory, made = self._linked, self.directory.fd, os.fstat(fd)
        rename_exchange(beside, self.name, directory)
        # The temporary name belongs to the old link now, so abandoning the copy must not remove it.
        self._renamed()
        if not linked.is_at(beside, directory) or not linked.is_intact():
            put_back(beside, self.name, directory, made)
            raise changed(
                self.path, self.root.shown(self.path), "the hard link that was copied", "that it was changed"
            )
        self._beside = beside

    def finish(self) -> None:
        with self.root.failing(self.path, "remove the link that it replaced"):
            if self._beside and self._linked.is_at(self._beside, self.directory.fd):
                os.unlink(self._beside, dir_fd=self.directory.fd)


class SmallCopies(Closing):
    """Small files written aside together, in C on Linux, under temporary names until their returns take them.
    A context manager that closes them.

    A copy that meets any difficulty is left to CopiedReturn.stage, which handles and names every case.
    Without the C part all are.
    """

    def __init__(self, returns: Sequence[CopiedReturn]) -> None:
        """Stage those of the returns that have their content in memory and need nothing special. Each of
        these adopts its copy."""
        self.staged: list[CopiedReturn] = []
        self._fds = array("i")
        refusing: dict[int, bool] = {}
        chosen = [one for one in returns if _is_usual(one, refusing)]
        if _extension is None or not chosen:
            return
        for one in chosen:
            one.root.spend(one.path, len(one.content or b""), entries=1)
        metadata = [one.returned.metadata for one in chosen]
        contents = [one.content or b"" for one in chosen]
        depth = chosen[0].root.depths.writing
        packed, temporaries, seen = _extension.stage_small(
            array("i", [one.directory.fd for one in chosen]),
            b"".join([one.name + b"\0" for one in chosen]),
            little_endian(array("Q", map(len, contents))),
            little_endian(array("q", [one.mtime_ns for one in metadata])),
            little_endian(array("H", [one.mode for one in metadata])),
            little_endian(array("I", [one.uid for one in metadata])),
            little_endian(array("I", [one.gid for one in metadata])),
            True,
            b"".join(contents),
            0,
            os.urandom(4 * len(chosen)),
            None,
            0,
            depth.now,
        )
        depth.saw(RowsSeen(*seen))
        self._fds = array("i", packed)
        for row, one in enumerate(chosen):
            fd = self._fds[row]
            if fd < 0:
                continue
            temporary = temporaries[row * TEMPORARY_BYTES : (row + 1) * TEMPORARY_BYTES - 1]
            one.adopt(temporary, fd)
            try:
                write_attributes(fd, one.returned.attributes)
                os.utime(fd, ns=(one.returned.atime_ns, one.returned.metadata.mtime_ns))
            except OSError:
                one.drop()  # it is made again, alone
                continue
            self.staged.append(one)

    @property
    def fds(self) -> list[int]:
        """The descriptors of all copies."""
        return [fd for fd in self._fds if fd >= 0]

    def close(self) -> None:
        """Close the copies. Those that were not taken are removed by their returns."""
        fds, self._fds = self._fds, array("i")
        for fd in fds:
            if fd >= 0:
                with suppress(OSError):  # durable already
                    os.close(fd)


def _is_usual(one: CopiedReturn, refusing: dict[int, bool]) -> bool:
    """Return whether a copy can be made among others. `refusing`: by descriptor of a directory, whether new
    files in it get an ACL, which would admit others for a moment."""
    root, returned = one.root, one.returned
    if one.content is None or root.append_only or root.writes.undo is not None or root.writes.singly:
        return False
    if root.writes.sheds_acls or is_distant(returned.metadata.mtime_ns):
        return False
    if any(name == ACCESS_ACL for name, _ in returned.attributes):
        return False
    if not root.may_spend(len(one.content), entries=1):
        return False
    fd = one.directory.fd
    if fd not in refusing:
        try:
            refusing[fd] = has_default_acl(one.directory)
        except OSError:
            refusing[fd] = True
    return not refusing[fd]


def differs(root: Root, path: bytes, source: bytes) -> FileError:
    """Return the error of a name whose source, named by its path, has another content now."""
    found = f"another in {printable(source)}"
    return changed(path, root.shown(path), "the content that it had", found)


def is_link_with(name: bytes, directory: int, text: bytes) -> bool:
    """Return whether a name is a symbolic link with this text."""
    try:
        return bool(text) and os.readlink(name, dir_fd=directory) == text
    except OSError:
        return False


def remove_spare_link(root: Root, path: bytes, displaced: bytes, text: bytes) -> None:
    """Remove the link beside `path` that was made but never took the name. Raises RdcError."""
    root.check_change(path, "remove the link beside it")
    directory, _ = root.locate(path, fresh=True)
    with root.failing(path, "remove the link beside it"):
        if is_link_with(displaced, directory.fd, text):
            os.unlink(displaced, dir_fd=directory.fd)


def return_displaced(root: Root, path: bytes, displaced: bytes, text: bytes) -> None:
    """Rename the file `displaced`, beside `path`, back to it, durably. `text`: of the link that may have its
    name.

    Raises RdcError; the file then stays where it is.
    """
    one = DisplacedReturn(root, path, root.locate(path, fresh=True)[0], displaced, text)
    one.take()
    with root.failing(path, _DOING):
        make_durable([], [one.directory])


def remove_twin(into: Root, moved: bytes, root: Root, path: bytes) -> bool:
    """Remove the copy at `moved` of the file at `path`, if both are equal and at rest. Return whether it was
    removed. Raises RdcError."""
    into.check_change(moved, "remove the copy")
    with LeasedFile(into, moved) as copy, LeasedFile(root, path) as kept:
        if copy.identity.inode == kept.identity.inode and copy.facts.device == kept.facts.device:
            return False
        if not same_bytes(kept, copy):
            return False
        with into.failing(moved, "remove the copy"):
            make_durable([kept.fileno()])
            directory, name = into.locate(moved, fresh=True)
            copy.check()
            kept.check()
            if not copy.is_at(name, directory.fd):
                return False
            os.unlink(name, dir_fd=directory.fd)
    return True


def _take(beside: bytes, name: bytes, directory: int, text: bytes) -> None:
    """Rename `beside` to `name`, which is free or the link with `text`. Raises OSError, EEXIST if it is
    neither."""
    if not is_link_with(name, directory, text):
        rename_no_replace(beside, name, directory)
        return
    ours = os.stat(beside, dir_fd=directory, follow_symlinks=False)
    rename_exchange(beside, name, directory)
    if is_link_with(beside, directory, text):
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=directory)
        return
    # Another process moved a file to the name at the last moment: it is newer, and goes back.
    rename_exchange(beside, name, directory)
    if not os.path.samestat(os.stat(beside, dir_fd=directory, follow_symlinks=False), ours):
        rename_exchange(beside, name, directory)
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
