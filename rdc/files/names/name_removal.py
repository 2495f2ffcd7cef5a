"""NameRemoval: takes one name from a duplicate, which is deleted, moved, or replaced by a symbolic link.

Both files are leased (rdc.files.names.leased_file) from before the comparison until the end. Each name
takes these steps:

1. `stage` writes the copy that `move` to another file system needs. The caller makes the copies of several
   names durable. `place` reads a copy back, compares it and gives it its name. The caller makes the
   directories of the copies durable.
2. `depart` checks that both files are as they were compared. Then it renames the duplicate: to a reserved
   name beside its own, for `move` to its destination, for a symbolic link by an exchange with that link.
3. It checks that the file renamed is the one compared, and that the file that stays still has its name. If
   not, the duplicate gets its name back.
4. The caller makes the directories durable.
5. `finish` checks both files once more, and removes the displaced duplicate. Only this step destroys
   anything.

The order of 2 and 3 protects the last copy. Two runs may have chosen each other's files. Each renames its
duplicate before it looks for the other file. So at least one of the two finds that file gone, and puts back.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from rdc.errors import FileError, printable
from rdc.files.base.durability import make_durable
from rdc.files.base.os_errors import changed
from rdc.files.base.syscalls import rename_exchange, rename_no_replace, rename_no_replace_between
from rdc.files.facts.content_digest import spans_with_data
from rdc.files.names.displaced_names import displaced_name
from rdc.files.names.seal_copy import copy_of, seal_like
from rdc.files.names.swap_names import put_back
from rdc.files.root.source_file import SPAN_BYTES
from rdc.model.times import real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.errors import RdcError
    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.names.leased_file import LeasedFile
    from rdc.files.replace.replacement import Replacement
    from rdc.files.root.root import Root

__all__ = ["Deletion", "MoveAway", "NameRemoval", "SymlinkSwap"]

_NOT_COMPARED = "the file that was compared"
_CANNOT = {errno.ENOSYS, errno.EINVAL}


class NameRemoval:
    """One name on its way out. Each call raises FileError and leaves the name with its file then."""

    doing = "remove it"

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

    @property
    def directories(self) -> list[Directory]:
        """Those whose names `depart` changed."""
        return [self.directory]

    def depart(self, *, first: bool) -> None:
        """Steps 2 and 3. `first`: no other name of this file was changed, so even its ctime must be as it
        was."""
        try:
            found = self._unlike_compared(self.directory, self.name)
            if found is not None:
                raise self._changed(found)
            if first:
                self.duplicate.check_exactly()
            self._rename()
        except FileNotFoundError as error:
            raise self._changed("that it is gone") from error
        except OSError as error:
            raise self._failure(error) from error
        try:
            self._check_departed()
        except FileError:
            raise
        except BaseException:
            self.undo()
            raise

    def check_departed(self) -> None:
        """Raise, and give the name back, unless both files are as they were compared."""
        self._check_departed()

    def finish(self) -> None:
        """Step 5."""
        self._check_departed()
        try:
            os.unlink(self.displaced, dir_fd=self.directory.fd)
        except OSError as error:
            raise self._failure(error) from error

    def undo(self) -> None:
        """Give the name back after `depart`, because something else failed. Never raises."""
        with suppress(OSError):
            self._give_back()

    # What the kinds of removal do in their own ways

    def _rename(self) -> None:
        raise NotImplementedError

    def _give_back(self) -> None:
        raise NotImplementedError

    def _departed_to(self) -> tuple[Directory, bytes]:
        return self.directory, self.displaced

    def _check_departed(self) -> None:
        """Raise, and give the name back, unless both files are as they were compared."""
        try:
            found = self._unlike_compared(*self._departed_to())
            if found is not None:
                self._give_back()
        except OSError as error:
            directory, name = self._departed_to()
            beside = " beside it" if directory is self.directory else ""
            raise self.root.refused(
                self.path,
                self.doing,
                expected=_NOT_COMPARED,
                found=os.strerror(error.errno or 0),
                advice=f"look at {printable(name)}{beside}, which holds what it was",
            ) from error
        if found is not None:
            raise self._changed(found)

    def _unlike_compared(self, directory: Directory, name: bytes) -> str | None:
        """What changed since the comparison, None if nothing did. Raises OSError."""
        if not self.duplicate.is_at(name, directory.fd):
            return "another file in its place"
        found = self.duplicate.describe_change()
        if found is not None:
            return found
        if not self.original.is_at(self._original_name, self.original_directory.fd):
            return "that the file it equals is gone"
        found = self.original.describe_change()
        return None if found is None else f"of the file it equals {found}"

    def _changed(self, found: str) -> RdcError:
        return changed(self.path, self.root.shown(self.path), _NOT_COMPARED, found)

    def _failure(self, error: OSError) -> RdcError:
        if error.errno == errno.EEXIST:
            name = printable(self._taken_name())
            found, advice = f"that {name} is taken", "look at what has that name, then rename or remove it"
        elif error.errno in _CANNOT:
            found = "a file system that cannot rename without overwriting"
            advice = "nothing was changed"
        else:
            return self.root.failure(error, self.path, self.doing)
        expected = "a free name for it"
        return self.root.refused(self.path, self.doing, expected=expected, found=found, advice=advice)

    def _taken_name(self) -> bytes:
        return self.displaced


class Deletion(NameRemoval):
    """Removes the name."""

    doing = "delete it"

    def _rename(self) -> None:
        rename_no_replace(self.name, self.displaced, self.directory.fd)

    def _give_back(self) -> None:
        rename_no_replace(self.displaced, self.name, self.directory.fd)


class SymlinkSwap(NameRemoval):
    """Puts a symbolic link in place of the name."""

    doing = "make it a symbolic link"

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
        self._link: os.stat_result | None = None

    def _rename(self) -> None:
        directory = self.directory.fd
        os.symlink(self._text, self.displaced, dir_fd=directory)
        try:
            self._link = os.stat(self.displaced, dir_fd=directory, follow_symlinks=False)
            self._check_leads()
            rename_exchange(self.displaced, self.name, directory)
        except BaseException:
            with suppress(OSError):
                if not self.duplicate.is_at(self.displaced, directory):
                    os.unlink(self.displaced, dir_fd=directory)
            raise

    def _check_leads(self) -> None:
        """Resolve the link, which may fail on the way, as in a directory that a mount hides."""
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

    def _give_back(self) -> None:
        if self._link is not None:
            put_back(self.displaced, self.name, self.directory.fd, self._link)


class MoveAway(NameRemoval):
    """Moves the name into another tree, where nothing is overwritten.

    Within a file system this is one rename. Otherwise the copy is complete and durable before the duplicate
    leaves its name.
    """

    doing = "move it"

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
        """The directory of the destination. Raises RdcError."""
        if self._destination_directory is None:
            self._destination_directory = self._into.locate(self._destination, fresh=True)[0]
        return self._destination_directory

    def stage(self) -> int | None:
        """Write the copy, if the destination is on another file system. Return its descriptor, for the caller
        to make it durable. Raises RdcError."""
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
        except OSError as error:
            self.drop()
            raise self._failure(error) from error
        except BaseException:
            self.drop()
            raise
        return copy.fileno()

    def place(self) -> Directory | None:
        """Compare the durable copy with the duplicate, and give it its name. Return the directory to be made
        durable then; None if there is no copy. Raises RdcError."""
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
            self.drop()
        return copy.directory

    def drop(self) -> None:
        """Remove a copy that did not get its name. Never raises."""
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.abandon()

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
        try:
            rename_no_replace(self.name, self.displaced, self.directory.fd)
        except BaseException:
            self.remove_copy()
            raise

    def _give_back(self) -> None:
        if self._copied is None:
            rename_no_replace_between(self._destination_name, self._there().fd, self.name, self.directory.fd)
            return
        rename_no_replace(self.displaced, self.name, self.directory.fd)
        self.remove_copy()

    def remove_copy(self) -> None:
        """Remove the copy if it is still the one made here. Never raises."""
        made, self._copied = self._copied, None
        if made is not None:
            with suppress(OSError, FileError):
                there = self._there().fd
                now = os.stat(self._destination_name, dir_fd=there, follow_symlinks=False)
                if (now.st_ino, now.st_mtime_ns) == (made.st_ino, made.st_mtime_ns):
                    os.unlink(self._destination_name, dir_fd=there)

    def _departed_to(self) -> tuple[Directory, bytes]:
        if self._copied is None:
            return self._there(), self._destination_name
        return self.directory, self.displaced

    def _taken_name(self) -> bytes:
        return self._into.shown(self._destination)
