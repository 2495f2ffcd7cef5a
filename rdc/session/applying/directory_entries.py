"""Changes directories as entries of their parents, and the root directory, which no listing names.

Their own metadata waits for the end of the run. Here a directory is made, is narrowed before anything lands
in it, and is reported.
"""

from __future__ import annotations

from rdc.lean.records import replace
from rdc.model.entries import Kind
from rdc.plan.compare import Change, Decision, Difference, difference
from rdc.plan.equal_times import time_limits, with_clamped_time, with_equal_time
from rdc.plan.itemize import copying_code, itemize, unchanged_code
from rdc.progress import ItemChanged
from rdc.session.applying.announced_directory import AnnouncedDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Metadata
    from rdc.session.applying.allowed_changes import AllowedChanges
    from rdc.session.applying.applying_context import ApplyingContext
    from rdc.session.applying.chosen_directories import ChosenDirectories
    from rdc.session.applying.directory_permissions import DirectoryPermissions

__all__ = ["DirectoryEntries"]


class DirectoryEntries:
    """Makes or keeps directories. Row numbers are rows of the source's manifest."""

    def __init__(
        self,
        context: ApplyingContext,
        permissions: DirectoryPermissions,
        chosen: ChosenDirectories,
        allowed: AllowedChanges,
    ) -> None:
        self._root = context.at.root
        self._dry = context.at.options.dry_run
        self._options = context.at.options
        self._lists_unchanged = (
            context.at.options.list_unchanged and context.links is None and context.xattrs is None
        )
        self._storage = context.at.storage
        self._alternates = context.at.alternates
        self._landing = context.at.landing
        self._events = context.at.events
        self._xattrs = context.xattrs
        self._permissions = permissions
        self._chosen = chosen
        self._allowed = allowed
        self.root_metadata = context.at.start.metadata
        """What the tree's root directory gets before its ACL."""

    def change(
        self,
        row: int,
        path: bytes,
        metadata: Metadata,
        decision: Decision | None,
        from_elsewhere: Difference | None,
    ) -> AnnouncedDirectory:
        """Makes or keeps a subdirectory. A new one touches its parent.

        `decision`: what its parent's comparison found; None if it is equal. `from_elsewhere`: how it differs
        from what an alternate directory has at its path.
        """
        new = decision is not None and decision.change in (Change.CREATE, Change.REPLACE)
        if self._chosen.keeps_own(path):
            return self._keep(path, metadata, decision if new else None)
        # long because each step depends on whether the directory is new, lost or narrowed
        lost = False
        if new and not self._dry:
            replaced = decision is not None and decision.change is Change.REPLACE
            replaces = self._landing.listed.of(row) if replaced else None
            lost = not self._permissions.make_directory(path, metadata, replaces=replaces)
        narrowed = False
        if new:
            metadata = self._permissions.guarded(row, metadata)
            if not lost and not self._dry:
                self._permissions.set_at_once(path, metadata)
        elif decision is not None or self._xattrs is not None:
            differing = Difference.NONE if decision is None else decision.difference
            metadata, narrowed = self._permissions.narrow_if_needed(row, path, metadata, differing)
        if decision is not None and not lost:
            code = itemize(Kind.DIRECTORY, decision, transferred=new, new=new)
            self._report(code, path, from_elsewhere if new else None)
        return AnnouncedDirectory(metadata, new, decision is not None or narrowed, lost)

    def _keep(self, path: bytes, metadata: Metadata, missing: Decision | None) -> AnnouncedDirectory:
        """Like `change` for a directory that keeps its own metadata. `missing`: how it is missing."""
        lost = missing is not None and not self._chosen.make_plain(path, missing)
        return AnnouncedDirectory(metadata, missing is not None, False, lost)

    def change_root(self, announced: AnnouncedDirectory) -> AnnouncedDirectory:
        """Compares the synced directory itself; rsync reports it as './'."""
        if announced.new:
            metadata = self._permissions.guarded(-1, announced.metadata)
            announced = replace(announced, metadata=metadata)
            if not self._dry:
                self._permissions.set_at_once(b"", metadata)
            decision = Decision(Change.CREATE, -1, -1, Difference.NONE)
        else:
            differing = self._root_difference(announced.metadata)
            if differing and self._storage.before_writing(b""):
                differing = self._root_difference(announced.metadata)
            if self._root.append_only:
                if differing not in (Difference.NONE, Difference.TIME):
                    self._allowed.refuse(b"")
                return announced
            announced = replace(announced, metadata=self._with_own_time(announced.metadata))
            metadata, narrowed = self._permissions.narrow_if_needed(-1, b"", announced.metadata, differing)
            announced = replace(announced, metadata=metadata, touched=announced.touched or narrowed)
            self.root_metadata = metadata
            if not differing:
                if self._lists_unchanged:
                    self._events.report(ItemChanged(unchanged_code(Kind.DIRECTORY), b"./"))
                return announced
            decision = Decision(Change.METADATA, -1, -1, differing)
        self._report_root(announced, decision)
        self.root_metadata = announced.metadata
        return replace(announced, touched=True)

    def _root_difference(self, wanted: Metadata) -> Difference:
        """How the root directory differs from `wanted`."""
        existing = self._root.metadata(b"")
        existing = with_equal_time(existing, wanted, self._options)
        existing = with_clamped_time(existing, wanted, lambda: time_limits(self._root.file_system_type(b"")))
        return difference(Kind.DIRECTORY, wanted, existing, preserved=self._storage.preserved)

    def _with_own_time(self, wanted: Metadata) -> Metadata:
        """`wanted` with the mtime that the root directory has, if both ends take the two for one time."""
        mtime, preserved = self._root.metadata(b"").mtime_ns, self._storage.preserved
        return replace(wanted, mtime_ns=mtime) if preserved.same_time(wanted.mtime_ns, mtime) else wanted

    def _report_root(self, announced: AnnouncedDirectory, decision: Decision) -> None:
        """Reports that the root directory is made or changes."""
        code = itemize(Kind.DIRECTORY, decision, transferred=announced.new, new=announced.new)
        elsewhere = self._alternates if announced.new else None
        known = (
            None
            if elsewhere is None
            else elsewhere.top_difference(announced.metadata, self._storage.preserved)
        )
        self._report(code, b"", known)
        if self._xattrs is not None:
            self._xattrs.note_root_reported()

    def _report(self, code: str, path: bytes, from_elsewhere: Difference | None) -> None:
        """Reports a directory by its code, or a new one by how it differs from one elsewhere: rsync is silent
        if it does not."""
        changed = code if from_elsewhere is None else copying_code(Kind.DIRECTORY, from_elsewhere)
        if changed is None:
            self._landing.changed += 1
        else:
            self._landing.report(ItemChanged(changed, (path or b".") + b"/"))
