"""The tree that a sync sends: where it is, and what of it."""

from __future__ import annotations

import os

from rdc.errors import ExitCode, FileError, printable
from rdc.files.keeping import kept_by
from rdc.model.attributes import AttributeKinds
from rdc.protocol.messages import Start
from rdc.records import dataclass, replace
from rdc.session.announcement import entry_of
from rdc.session.place import ANYWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root
    from rdc.model.sync import SyncOptions
    from rdc.session.boundary import Boundary
    from rdc.session.place import Site

__all__ = ["SourceTree"]


@dataclass(frozen=True, slots=True)
class SourceTree:
    """What is to be sent: a directory's contents, or one entry of a directory."""

    root: Root
    only: bytes | None
    """The one entry, where the path had no trailing slash (rsync's rule)."""

    @classmethod
    def open(cls, path: bytes, site: Site = ANYWHERE) -> SourceTree:
        """Raises FileError when there is nothing at `path`."""
        name = entry_of(path)
        if not name:
            return cls(site.open(path), None)
        tree = cls(site.open(os.path.dirname(path) or b"."), name)
        if tree.root.kind(name) is None:
            tree.root.close()
            raise FileError(path, f"{printable(path)}: nothing there to sync from; check the path")
        return tree

    def boundary(self, options: SyncOptions) -> Boundary | None:
        """Where walks end, if they do."""
        if not options.one_file_system:
            return None
        from rdc.session.boundary import Boundary

        return Boundary(self.root, self.only or b"")

    def start(self, kinds: AttributeKinds = AttributeKinds.NONE) -> Start:
        """What the destination is told of it first. FileError when it has vanished. `kinds`: extended
        attributes that were asked for."""
        name = b"" if self.only is None else self.only
        found = self.root.metadata(name)
        kind = self.root.kind(name)
        if kind is None:
            raise FileError(name, f"{printable(name)}: vanished before it was synced", code=ExitCode.VANISHED)
        kept = kept_by(self.root, probe=False)
        if kinds:
            from rdc.files.entry_attributes import attribute_kinds_of

            kept = replace(kept, attributes=kinds & attribute_kinds_of(self.root))
        return Start(name, kind, found, kept)
