"""Where a removed duplicate goes: its path below the directory of `move`, or the text of its link."""

from __future__ import annotations

import os

from rdc.errors import FileError, printable
from rdc.files.base.durability import make_durable
from rdc.files.root.root import Root
from rdc.limits.paths import PATH_BYTES
from rdc.model.instances import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.base.directory_descriptors import Directory
    from rdc.instances.tree import Tree
    from rdc.model.instances import RootedPath
    from rdc.model.removal import RemovalOptions

__all__ = ["RemovalPaths"]


class RemovalPaths:
    """Paths of one run. They are a function of the trees and options, so a dry run gives the same."""

    def __init__(self, trees: Sequence[Tree], options: RemovalOptions) -> None:
        self._trees = trees
        self._options = options
        tops = [tree.real for number, tree in enumerate(trees) if number in options.sources]
        # Different names differ below the directory that all PATHs are in. So no two go to one place.
        self._common = os.path.commonpath(tops) if tops else b"/"
        self._into: Root | None = None
        self._changed: dict[bytes, Directory] = {}
        """Directories in which others were made, and that are not durable yet."""

    def destination(self, name: RootedPath, original: RootedPath) -> bytes:
        """Where the file at `name` goes, or the text of the link to `original`; b"" for `delete`.

        Raises FileError if it cannot go there.
        """
        if self._options.action is Action.MOVE:
            return self._destination(name)
        if self._options.action is Action.SYMLINK:
            return self._link_text(name, original)
        return b""

    def shown_destination(self, destination: bytes) -> bytes:
        if self._options.action is Action.MOVE:
            return os.path.join(self._options.destination, destination)
        return destination

    @property
    def destination_top(self) -> bytes:
        """The absolute path of the directory that `move` fills."""
        return self._options.destination

    def missing_parents(self, destination: bytes) -> list[bytes]:
        """The directories above `destination` that are not there, parents first."""
        return [path for path in _parents(destination) if not os.path.isdir(self.shown_destination(path))]

    def make_parents(self, destination: bytes) -> None:
        """Make the directories above `destination`. Raises RdcError."""
        into = self.into()
        for path in _parents(destination):
            if into.make_directory(path):
                self._changed[path] = into.locate(path, fresh=True)[0]

    def sync_made(self) -> None:
        """Make the directories durable that were made. Raises OSError."""
        changed, self._changed = self._changed, {}
        make_durable([], changed.values())

    def into(self) -> Root:
        """The directory that `move` fills; it is made if need be. Raises RdcError."""
        if self._into is None:
            self._into = Root.open(self._options.destination, create=True, writable=True)
        return self._into

    def close(self) -> None:
        if self._into is not None:
            self._into.close()

    def _destination(self, name: RootedPath) -> bytes:
        destination = os.path.relpath(self._trees[name.root].real_path(name.path), self._common)
        path = os.path.join(self._options.destination, destination)
        if os.path.lexists(path):
            raise self._refused(name, "move it", "a free name for it", f"that {printable(path)} is taken")
        return destination

    def _link_text(self, name: RootedPath, original: RootedPath) -> bytes:
        if original.root not in self._options.sources:
            raise self._refused(
                *(name, "make it a symbolic link", "an equal file below the PATHs"),
                "one outside of them, to which a link would lead out",
            )
        directory = os.path.dirname(self._trees[name.root].real_path(name.path))
        text = os.path.relpath(self._trees[original.root].real_path(original.path), directory)
        if len(text) >= PATH_BYTES:
            raise self._refused(
                name, "make it a symbolic link", f"a text below {PATH_BYTES} bytes", f"{len(text)}"
            )
        return text

    def _refused(self, name: RootedPath, doing: str, expected: str, found: str) -> FileError:
        root = self._trees[name.root].root
        return root.refused(
            name.path, doing, expected=expected, found=found, advice="the file was left alone"
        )


def _parents(path: bytes) -> list[bytes]:
    """The directories above a relative path, the topmost first."""
    parts = path.split(b"/")[:-1]
    return [b"/".join(parts[: count + 1]) for count in range(len(parts))]
