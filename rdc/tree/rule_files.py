"""RuleFileReader: reads the rule files of a tree's directories, confined to the tree."""

from __future__ import annotations

import errno
import os
import stat

from rdc.errors import FileChangedError
from rdc.files.base.relative_path import join
from rdc.limits.wire import RULE_FILE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.root.root import Root

__all__ = ["RuleFileReader"]

# O_NONBLOCK: a fifo without a writer must not block the run.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class RuleFileReader:
    """Reads files by directory and name. A symlink is refused: it could name any file of the machine, whose
    lines would then show in messages."""

    def __init__(self, root: Root, *, base: bytes, above: bool) -> None:
        """`base`: the absolute path of the root. `above`: whether the directories above it may be read."""
        self._root = root
        self._base = base
        self._above = above

    def shown(self, path: bytes) -> str:
        """The path of a file as messages name it."""
        return os.fsdecode(self._root.shown(path))

    def read(self, directory: bytes, name: bytes) -> bytes | None:
        """The content of the file; None if there is none. Raises FileError if it cannot be read."""
        path = join(directory, name)
        try:
            found = self._root.perform(path, "read its filter rules", _opened, reading=True)
        except FileChangedError:
            return None  # the directory has vanished
        if found is None:
            return None
        if isinstance(found, str):
            raise self._refused(path, found)
        with open(found, "rb") as file:
            try:
                data = file.read(RULE_FILE_BYTES + 1)
            except OSError as error:
                raise self._root.failure(error, path, "read its filter rules") from error
        if len(data) > RULE_FILE_BYTES:
            raise self._refused(path, f"more than {RULE_FILE_BYTES} bytes")
        return data

    def tagged(self, directory: bytes, name: bytes, signature: bytes) -> bool:
        """Whether the directory has a regular file of that name that begins with the signature."""
        try:
            found = self._root.perform(join(directory, name), "read it", _opened, reading=True)
        except Exception:  # noqa: BLE001
            return False
        if not isinstance(found, int):
            return False
        with open(found, "rb") as file:
            try:
                return file.read(len(signature)) == signature
            except OSError:
                return False

    def above(self, directory: bytes) -> Iterator[bytes]:
        """The directories above `directory`, from the top of the file system, as absolute paths."""
        if not self._above:
            return
        parts = [part for part in os.path.join(self._base, self._root.real(directory)).split(b"/") if part]
        for count in range(len(parts)):
            yield b"/" + b"/".join(parts[:count])

    def read_above(self, directory: bytes, name: bytes) -> bytes | None:
        """Like `read` for a directory by its absolute path."""
        from rdc.files.root.root import Root

        root = Root.open(directory)
        try:
            return RuleFileReader(root, base=directory, above=False).read(b"", name)
        finally:
            root.close()

    def _refused(self, path: bytes, found: str) -> Exception:
        return self._root.refused(
            path,
            "read its filter rules",
            expected=f"a regular file of at most {RULE_FILE_BYTES} bytes",
            found=found,
            advice="what is below its directory was left alone",
        )


def _opened(name: bytes, parent: int) -> int | str | None:
    """A descriptor of a regular file, what else is there, or None for nothing."""
    try:
        fd = os.open(name, _FLAGS, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "a symlink"
        raise
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return "no regular file"
