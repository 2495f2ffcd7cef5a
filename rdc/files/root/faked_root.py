"""FakedRoot: the destination of --fake-super."""

from __future__ import annotations

import os
import stat
from functools import partial

from rdc.files.base.metadata import ANYTHING, Anything, Attempt, Expected, Shortfall, kind_of, stat_entry
from rdc.files.root.listing_view import FORMAT_OF_KIND, Faked, faked_at, set_faked_on_name, set_faked_open
from rdc.files.root.root import Root
from rdc.limits import PATH_BYTES
from rdc.model.entries import DEVICES, Identity, Kind, Metadata, major_and_minor
from rdc.model.preserved import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Chosen


_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FakedRoot(Root):
    """A Root whose entries stand for others, as rdc.files.root.listing_view says. Needs no rights of root.

    Its ReadPolicy fakes, and its WritePolicy writes singly."""

    def narrow_directory(
        self, path: bytes, metadata: Metadata, *, owner: bool, chosen: Chosen | None = None
    ) -> None:
        super().narrow_directory(path, metadata, owner=False)

    def replace_symlink(
        self,
        path: bytes,
        target: bytes,
        metadata: Metadata | None = None,
        *,
        owner: bool = False,
        expected: Expected = ANYTHING,
    ) -> None:
        """Make `path` a file that stands for a symlink, like Root.replace_symlink."""
        if not target or b"\0" in target or len(self.munged(target)) > PATH_BYTES:
            raise self.refused(
                path,
                "make the link",
                expected="a link target without NUL bytes",
                found=repr(target[:40]),
                advice="this link is left alone",
            )
        content = self.munged(target)
        self._stand_for(path, stat.S_IFLNK, (0, 0), content, metadata, owner=owner, expected=expected)

    def replace_node(
        self,
        path: bytes,
        kind: Kind,
        number: int,
        metadata: Metadata,
        *,
        owner: bool,
        expected: Expected = ANYTHING,
    ) -> None:
        """Make `path` an empty file that stands for a special file, like Root.replace_node."""
        device = major_and_minor(number) if kind in DEVICES else (0, 0)
        self._stand_for(path, FORMAT_OF_KIND[kind], device, b"", metadata, owner=owner, expected=expected)

    def _stand_for(
        self,
        path: bytes,
        format_: int,
        device: tuple[int, int],
        content: bytes,
        metadata: Metadata | None,
        *,
        owner: bool,
        expected: Expected,
    ) -> None:
        kind = kind_of(format_)
        timed = metadata is not None and kind not in self.reads.untimed
        wanted = metadata or Metadata(0o777, 0, os.geteuid(), os.getegid())

        def make(aside: bytes, parent: int) -> None:
            fd = os.open(aside, _CREATE, 0o600, dir_fd=parent)
            try:
                if content:
                    os.write(fd, content)
                    os.fsync(fd)  # its name must never lead to a link without a target
                found = os.fstat(fd)
            finally:
                os.close(fd)
            faked = Faked(format_, *device, found.st_uid, found.st_gid)
            set_faked_on_name(aside, parent, wanted, owner=owner, new=faked, timed=timed)

        self._replace(path, f"make the {kind.name.lower()}", kind, make, None, owner=owner, expected=expected)
        if self.storage.settles and metadata is not None:
            self.set_metadata(path, kind, metadata, owner=owner)

    def set_on_open(
        self, fd: int, made: os.stat_result, metadata: Metadata, *, owner: bool, attempt: Attempt
    ) -> None:
        def keep() -> None:
            set_faked_open(fd, metadata, owner=owner, timed=self.storage.times_files)

        attempt(Shortfall.MODE, keep)

    def settle(self, path: bytes, directory: int, metadata: Metadata, *, owner: bool, size: int) -> None:
        """Set once more what a new file stands for, like Root.settle."""
        name = path.rpartition(b"/")[2]

        def keep() -> None:
            now = stat_entry(name, directory)
            if stat.S_ISREG(now.st_mode) and now.st_size == size:
                set_faked_on_name(name, directory, metadata, owner=owner, timed=self.storage.times_files)

        self.storage.attempts(path)(Shortfall.MODE, keep)

    def set_metadata(
        self,
        path: bytes,
        kind: Kind,
        metadata: Metadata,
        *,
        owner: bool,
        expected: Identity | Anything = ANYTHING,
        chosen: Chosen | None = None,
    ) -> None:
        """Set what this user may set, and keep the rest, like Root.set_metadata."""
        faked = faked_at(self, path)

        def apply(name: bytes, parent: int) -> None:
            now = stat_entry(name, parent)
            found = kind_of(now.st_mode if faked is None else faked.mode)
            if found != kind:
                raise self.refused(
                    path,
                    "set its metadata",
                    expected=f"a {kind.name.lower()}",
                    found=f"a {found.name.lower()}",
                    advice="run again once nothing else changes this tree",
                )
            self.require(path, now, expected, "set its metadata")
            wanted = metadata
            if chosen is not None and faked is not None:
                mtime = packed_time(now.st_mtime_ns)
                shown = Metadata(stat.S_IMODE(faked.mode), mtime, faked.uid, faked.gid)
                wanted = self.storage.onto_found(metadata, shown, kind)
            elif chosen is not None:
                wanted = chosen(metadata, now)
            keep = partial(set_faked_on_name, name, parent, wanted, owner=owner)
            self.storage.attempts(path)(Shortfall.MODE, partial(keep, timed=kind not in self.reads.untimed))

        self.perform(path, "set its metadata", apply)
