"""A real directory that is filled, and then lives on, as a random generator says."""

from __future__ import annotations

import os
import random
import shutil
import stat
import struct
from contextlib import suppress

from tests.support.trees.random_contents import Contents
from tests.support.trees.tree_strategies import ODD_NAMES

__all__ = ["Changes"]

SUFFIXES = (b"", b".py", b".txt", b".so", b".db", b".gz", b".log", b".log.1", b".log.2", b".bin", b".img")
TARGETS = (b"a", b"../a", b"/", b".", b"..", b"nowhere/\n\xff", b"t" * 4000)
FILE_MODES = (0o644, 0o644, 0o644, 0o600, 0o755, 0o444, 0o4755, 0o2711, 0o000, 0o777)
DIRECTORY_MODES = (0o755, 0o755, 0o755, 0o700, 0o1777, 0o2775, 0o555, 0o000)
IDS = (0, 0, 1, 1000, 65_534)

CAPABILITY = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)
"""cap_net_raw=ep: linux/capability.h, revision 2."""

DEPTH = 8
TREE_PATH_BYTES = 3_000
"""Longer ones are not reached by name, and rsync, which is the reference, reaches no others."""


class Changes:
    """Works by names, and as root: modes keep it from nothing."""

    def __init__(self, rng: random.Random, contents: Contents, *, fresh: bool) -> None:
        self._rng = rng
        self._contents = contents
        self._fresh = fresh
        """True if files keep the time at which they were written."""

    def fill(self, top: bytes, entries: int) -> None:
        """Directories first, so that what follows is spread over them."""
        os.makedirs(top)
        for _ in range(entries // 8):
            self._new_directory(top)
        for _ in range(entries - entries // 8):
            with suppress(OSError):
                self._rng.choices((self._new_file, self._new_link, self._new_name), (20, 2, 1))[0](top)
        if self._rng.random() < 0.4:
            self._new_sources(top)

    def change(self, top: bytes, changes: int) -> None:
        steps = {
            self._new_file: 6, self._new_directory: 2, self._new_link: 1, self._new_name: 2, self._special: 1,
            self._edit: 16, self._rename: 5, self._copy: 3, self._remove: 4, self._become: 3, self._touch: 4,
            self._mode: 3, self._owner: 2, self._truncate: 3, self._grow: 3, self._holes: 2, self._swap: 2,
            self._attribute: 4, self._access: 3, self._rotate: 1, self._disguise: 2, self._sweep: 1,
            self._new_sources: 0.3, self._level: 0.3,
        }  # fmt: skip
        for step in self._rng.choices(list(steps), list(steps.values()), k=changes):
            # What one change leads to another need not find possible: too long, into itself, no such file.
            with suppress(OSError, shutil.Error):
                step(top)

    # Which

    def _walk(self, top: bytes) -> list[tuple[bytes, os.stat_result]]:
        """All below `top`, in order of paths: os.walk's order is the file system's."""
        found = []
        for place, directories, files in os.walk(top):
            for name in directories + files:
                path = os.path.join(place, name)
                found.append((path, os.lstat(path)))
        return sorted(found, key=lambda entry: entry[0])

    def _some(self, top: bytes, *, directory: bool = False) -> bytes:
        test = stat.S_ISDIR if directory else stat.S_ISREG
        found = [path for path, here in self._walk(top) if test(here.st_mode)]
        if directory:
            found.append(top)
        if not found:
            raise FileNotFoundError
        return self._rng.choice(found)

    def _any(self, top: bytes) -> bytes:
        found = [path for path, _ in self._walk(top)]
        if not found:
            raise FileNotFoundError
        return self._rng.choice(found)

    def _free(self, top: bytes) -> bytes:
        """A path where nothing is."""
        for _ in range(20):
            directory = self._some(top, directory=True)
            name = (
                self._rng.choice(ODD_NAMES)
                if self._rng.random() < 0.2
                else b"%c%d%b"
                % (self._rng.choice(b"abc"), self._rng.randrange(40), self._rng.choice(SUFFIXES))
            )
            path = os.path.join(directory, name)
            depth = path[len(top) :].count(b"/")
            if not os.path.lexists(path) and depth <= DEPTH and len(path) < TREE_PATH_BYTES:
                return path
        raise FileExistsError

    # What

    def _write(self, path: bytes, data: bytes, *, in_place: bool = False) -> None:
        """Write a file: in its inode, with the holes of a writer that seeks, or beside it and then
        renamed."""
        beside = path if in_place else os.path.join(os.path.dirname(path), b"beside")
        with open(beside, "r+b" if in_place else "wb") as file:
            if not in_place or self._rng.random() < 0.5:
                file.truncate(0)
                file.write(data)
            else:
                file.write(data)
                file.truncate(len(data))
        if not in_place:
            if os.path.lexists(path):
                os.chmod(beside, stat.S_IMODE(os.lstat(path).st_mode))
            os.rename(beside, path)
        self._stamp(path)

    def _stamp(self, path: bytes) -> None:
        if not self._fresh or self._rng.random() < 0.3:
            when = self._rng.randrange(10**9, 17 * 10**8) * 10**9 + self._rng.choice((0, 1, 123_456_789))
            os.utime(path, ns=(when, when), follow_symlinks=False)

    def _new_file(self, top: bytes) -> None:
        path = self._free(top)
        self._write(path, self._contents.new())
        os.chmod(path, self._rng.choice(FILE_MODES))

    def _new_sources(self, top: bytes) -> None:
        """Make many small files in a directory or two."""
        for _ in range(self._rng.choice((1, 2))):
            place = self._free(top)
            os.mkdir(place)
            for number in range(self._rng.choice((20, 80, 300))):
                self._write(os.path.join(place, b"m%d.py" % number), self._contents.small_text())

    def _new_directory(self, top: bytes) -> None:
        path = self._free(top)
        os.mkdir(path)
        os.chmod(path, self._rng.choice(DIRECTORY_MODES))

    def _new_link(self, top: bytes) -> None:
        path = self._free(top)
        os.symlink(self._rng.choice(TARGETS), path)
        self._stamp(path)

    def _new_name(self, top: bytes) -> None:
        os.link(self._some(top), self._free(top))

    def _special(self, top: bytes) -> None:
        os.mkfifo(self._free(top))

    def _edit(self, top: bytes) -> None:
        path = self._some(top)
        with open(path, "rb") as file:
            data = file.read()
        self._write(path, self._contents.edited(data), in_place=self._rng.random() < 0.5)

    def _sweep(self, top: bytes) -> None:
        """One word in all text."""
        for path, here in self._walk(top):
            if stat.S_ISREG(here.st_mode) and path.endswith((b".py", b".txt")):
                with open(path, "rb") as file:
                    data = file.read()
                changed = data.replace(b"self", b"this", self._rng.randint(1, 5))
                if changed != data:
                    self._write(path, changed)

    def _rename(self, top: bytes) -> None:
        old, new = self._any(top), self._free(top)
        if not new.startswith(old + b"/"):
            os.rename(old, new)

    def _copy(self, top: bytes) -> None:
        old, new = self._any(top), self._free(top)
        copy = self._rng.choice((shutil.copy, shutil.copy2))
        if os.path.isdir(old) and not os.path.islink(old):
            if not new.startswith(old + b"/"):
                place, copied = os.fsdecode(old), os.fsdecode(new)
                shutil.copytree(place, copied, symlinks=True, copy_function=copy, ignore=_specials)
        elif os.path.isfile(old):
            copy(old, new, follow_symlinks=False)

    def _remove(self, top: bytes) -> None:
        path = self._any(top)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def _become(self, top: bytes) -> None:
        """Put an entry of another kind under the same name."""
        path = self._any(top)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
        match self._rng.randrange(4):
            case 0:
                os.symlink(self._rng.choice(TARGETS), path)
            case 1:
                os.mkdir(path)
                self._write(os.path.join(path, b"a"), self._contents.new())
            case 2:
                os.mkfifo(path)
            case 3:
                self._write(path, self._contents.new())

    def _touch(self, top: bytes) -> None:
        path = self._any(top)
        when = self._rng.randrange(10**18, 17 * 10**17)
        os.utime(path, ns=(when, when), follow_symlinks=False)

    def _mode(self, top: bytes) -> None:
        path = self._any(top)
        if not os.path.islink(path):
            os.chmod(path, self._rng.choice(DIRECTORY_MODES if os.path.isdir(path) else FILE_MODES))

    def _attribute(self, top: bytes) -> None:
        """Links have only those of root."""
        path = self._any(top)
        name = self._rng.choice(("user.a", "user.b c", "trusted.a", "security.capability"))
        if self._rng.random() < 0.3:
            os.removexattr(path, name, follow_symlinks=False)
        elif name == "security.capability":
            if stat.S_ISREG(os.lstat(path).st_mode):
                os.setxattr(path, name, CAPABILITY)
        else:
            value = self._rng.choice((b"", b"v", b"\0\xff\n", self._rng.randbytes(900)))
            os.setxattr(path, name, value, follow_symlinks=False)

    def _access(self, top: bytes) -> None:
        """An ACL, of a directory also for what is made in it."""
        path = self._any(top)
        name = "system.posix_acl_" + self._rng.choice(("access", "access", "default"))
        if self._rng.random() < 0.3:
            os.removexattr(path, name, follow_symlinks=False)
            return
        rows = [(1, self._rng.randrange(8), -1), *((2, self._rng.randrange(8), user) for user in (1, 1000)),
                (4, self._rng.randrange(8), -1), (8, self._rng.randrange(8), 65_534),
                (16, self._rng.randrange(8), -1), (32, self._rng.randrange(8), -1)]  # fmt: skip
        entries = [struct.pack("<HHI", tag, rights, who & 0xFFFF_FFFF) for tag, rights, who in rows]
        os.setxattr(path, name, struct.pack("<I", 2) + b"".join(entries), follow_symlinks=False)

    def _owner(self, top: bytes) -> None:
        os.lchown(self._any(top), self._rng.choice(IDS), self._rng.choice(IDS))

    def _truncate(self, top: bytes) -> None:
        path = self._some(top)
        os.truncate(path, self._rng.randint(0, os.path.getsize(path)))
        self._stamp(path)

    def _grow(self, top: bytes) -> None:
        path = self._some(top)
        with open(path, "ab") as file:
            file.write(self._contents.new())
        self._stamp(path)

    def _holes(self, top: bytes) -> None:
        """A new file with holes, or a hole at the end of an old one."""
        path = self._free(top) if self._rng.random() < 0.5 else self._some(top)
        with open(path, "ab") as file:
            for _ in range(self._rng.randint(1, 4)):
                file.truncate(file.seek(0, os.SEEK_END) + self._rng.choice((1, 4096, 100_000, 1_000_000)))
                file.seek(0, os.SEEK_END)
                file.write(self._contents.new()[: self._rng.choice((0, 10, 5_000))])
        self._stamp(path)

    def _swap(self, top: bytes) -> None:
        one, other = self._some(top), self._some(top)
        aside = os.path.join(top, b"aside")
        os.rename(one, aside)
        os.rename(other, one) if other != one else None
        os.rename(aside, other)

    def _rotate(self, top: bytes) -> None:
        """Rotate files as logs are: each moves on by one name, and the first begins again."""
        path = self._some(top)
        for number in (3, 2, 1):
            older = path + b".%d" % number
            newer = path + b".%d" % (number - 1) if number > 1 else path
            if os.path.isfile(newer):
                os.rename(newer, older)
        self._write(path, self._contents.small_text())

    def _disguise(self, top: bytes) -> None:
        """Write other content of the same size and mtime."""
        path = self._some(top)
        here = os.stat(path)
        with open(path, "r+b") as file:
            file.seek(self._rng.randrange(here.st_size or 1))
            if here.st_size:
                file.write(b"\x5a")
        os.utime(path, ns=(here.st_atime_ns, here.st_mtime_ns))

    def _level(self, top: bytes) -> None:
        """All files of a directory with one size and one mtime: no quick check tells them from each other."""
        directory = self._some(top, directory=True)
        for name in sorted(os.listdir(directory))[:30]:
            path = os.path.join(directory, name)
            if os.path.isfile(path) and not os.path.islink(path):
                os.truncate(path, 5_000)
                os.utime(path, ns=(10**18, 10**18))


def _specials(place: str, names: list[str]) -> list[str]:
    """Return the fifos, from which copying would read for ever."""
    return [name for name in names if stat.S_ISFIFO(os.lstat(os.path.join(place, name)).st_mode)]
