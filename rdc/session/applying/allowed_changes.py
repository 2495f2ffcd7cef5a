"""Removes from a comparison the changes that options, names, hard links or the root forbid."""

from __future__ import annotations

from rdc.errors import ExitCode, printable
from rdc.files.base.relative_path import join
from rdc.files.base.temporary_names import refused_rows
from rdc.lean.records import dataclass, replace
from rdc.model.entries import DEVICES, NODES, Kind
from rdc.plan.compare import Change, Comparison, Difference
from rdc.plan.equal_times import time_limits, with_clamped_times, with_equal_times
from rdc.plan.name_clashes import name_clashes
from rdc.progress import Problem
from rdc.session.landing.partial_files import refused_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from rdc.files.root.root import Root
    from rdc.model.entries import Listing
    from rdc.model.sync import SyncOptions
    from rdc.session.applying.applying_context import ApplyingContext
    from rdc.tree.hard_links import LinkTable

__all__ = ["AllowedChanges", "ComparedDirectory", "without_rows"]


@dataclass(frozen=True, slots=True)
class ComparedDirectory:
    """One directory under comparison."""

    path: bytes
    first: int
    """Row of its first entry in the source's manifest."""
    listing: Listing
    """As the source has it."""
    existing: Listing
    """As the destination has it."""

    def with_equal_times(self, options: SyncOptions) -> ComparedDirectory:
        """Return this directory with the times that --modify-window takes for the existing ones."""
        listing = with_equal_times(self.listing, self.existing, options)
        return self if listing is self.listing else replace(self, listing=listing)

    def with_clamped_times(self, root: Root) -> tuple[ComparedDirectory, frozenset[int]]:
        """Return this directory with the times that its file system can hold, and the rows of the files whose
        content has to be compared for that."""
        clamped = with_clamped_times(
            self.listing, self.existing, lambda: time_limits(root.file_system_type(self.path))
        )
        if clamped.wanted is self.listing:
            return self, clamped.files
        return replace(self, listing=clamped.wanted), clamped.files


class AllowedChanges:
    """Decides which differences of a directory a run may act on."""

    def __init__(self, context: ApplyingContext) -> None:
        self._root = context.at.root
        self._options = context.at.options
        self._extraneous = context.extraneous
        self._events = context.at.events
        self._storage = context.at.storage
        self._links = context.links
        self._skipped = context.skipped
        self._narrows = context.at.options.narrows
        self._uses_content = context.at.uses_content

    def narrow(self, directory: ComparedDirectory, comparison: Comparison) -> tuple[Comparison, Set[int]]:
        """Removes the changes that options, reserved or clashing names, hard links or an append-only root
        forbid.

        Also returns the rows of directories that are lost by that.
        """
        path, first, listing = directory.path, directory.first, directory.listing
        lost: Set[int] = frozenset()
        if not NODES.isdisjoint(listing.kinds):
            comparison = self._without_forbidden_nodes(directory, comparison)
        if self._narrows:
            comparison, lost = self._without_skipped(directory, comparison)
        if reserved := refused_rows(listing.names):
            refused = self._refuse_reserved(path, first, listing, reserved)
            comparison, lost = without_rows(comparison, refused), lost | refused
        # Names that both sides have do not clash: the file system keeps them apart.
        makes = any(decision.existing_row < 0 for decision in comparison.decisions)
        if makes and (
            alike := name_clashes(
                (*listing.names, *map(directory.existing.names.__getitem__, comparison.extra))
            )
        ):
            comparison, clashing = self._without_clashes(directory, comparison, alike)
            lost = lost | clashing
        if self._links is not None:
            comparison = self._without_links(comparison, first, listing, self._links)
        if self._root.append_only:
            comparison, blocked = self._only_new(path, listing, comparison)
            lost = lost | blocked
        return comparison, lost

    def _without_skipped(
        self, directory: ComparedDirectory, comparison: Comparison
    ) -> tuple[Comparison, Set[int]]:
        """Removes the changes that options such as --update and --existing skip; see `narrow`."""
        from rdc.plan.skip_options import narrow

        narrowed = narrow(
            comparison,
            directory.listing,
            directory.existing,
            options=self._options,
            preserved=self._storage.preserved,
            path=directory.path,
        )
        if narrowed.skipped:
            self._extraneous.note_difference()
        if self._skipped is not None:
            self._skipped.add(directory.first + row for row in narrowed.left)
        return narrowed.comparison, narrowed.without

    def _without_forbidden_nodes(self, directory: ComparedDirectory, comparison: Comparison) -> Comparison:
        """Names the fifos, sockets and devices that this side does not make, and removes their changes."""
        listing, made = directory.listing, self._root.writes.nodes
        rows = {row for row, kind in enumerate(listing.kinds) if kind in NODES and kind not in made}
        for row in sorted(rows):
            entry = join(directory.path, listing.names[row])
            what = "device" if listing.kinds[row] in DEVICES else "fifo or socket"
            text = f"{printable(entry)}: skipped, no {what} is made on the receiving side"
            self._events.report(Problem(ExitCode.OK, entry, text))
        if rows and self._skipped is not None:
            self._skipped.add(directory.first + row for row in rows)
        return without_rows(comparison, rows) if rows else comparison

    def _refuse_reserved(
        self, path: bytes, first: int, listing: Listing, rows: Sequence[int]
    ) -> frozenset[int]:
        """Reports the entries in `rows`, whose names rdc reserves, and returns the rows.

        Nothing is made, changed or linked under such a name or below such a directory.
        """
        for row in rows:
            entry = join(path, listing.names[row])
            self._events.report(Problem(ExitCode.PARTIAL, entry, refused_name(entry)))
        if self._skipped is not None:
            self._skipped.add(first + row for row in rows)
        return frozenset(rows)

    def _without_clashes(
        self, directory: ComparedDirectory, comparison: Comparison, alike: Sequence[Sequence[int]]
    ) -> tuple[Comparison, Set[int]]:
        """Reports the entries whose names are one here, and returns what remains and their rows.

        `alike`: groups of rows that may be; those of `comparison.extra` count on after the source's.
        """
        from rdc.session.applying.clashing_names import clashes

        clashing = clashes(
            self._root,
            directory.path,
            directory.listing,
            directory.existing,
            comparison.extra,
            alike,
            dry_run=self._options.dry_run,
        )
        refused = frozenset(row for clash in clashing for row in clash.rows)
        kept = {row for clash in clashing for row in clash.kept}
        for clash in clashing:
            for row in clash.rows:
                name = directory.listing.names[row]
                entry = join(directory.path, name)
                said = clash.refusal(name, self._root.shown(entry), names_all=self._uses_content)
                self._events.report(Problem(ExitCode.PARTIAL, entry, said))
        if self._skipped is not None:
            self._skipped.add(directory.first + row for row in refused)
        extra = tuple(row for row in comparison.extra if row not in kept)
        return without_rows(replace(comparison, extra=extra), refused), refused

    def _without_links(
        self, comparison: Comparison, first: int, listing: Listing, links: LinkTable
    ) -> Comparison:
        """Removes the changes of files that become hard links to another file."""
        skipped = self._skipped
        rows = {
            links.files[at] - first
            for at in links.between(first, first + len(listing))
            if skipped is None or skipped.is_linked(links.files[at], links.firsts[at])
        }
        return without_rows(comparison, rows) if rows else comparison

    def _only_new(self, path: bytes, listing: Listing, comparison: Comparison) -> tuple[Comparison, Set[int]]:
        """Below an append-only root: the changes that are allowed, and the rows of directories that an entry
        of another kind blocks. Each entry that differs and stays is reported once.

        A directory's mtime does not count as a difference here: each new entry changes it, and rdc does not
        set it.
        """
        possible, blocked = [], set()
        refused = set(comparison.touched)
        for decision in comparison.decisions:
            is_directory = listing.kinds[decision.row] == Kind.DIRECTORY
            if decision.change in (Change.CREATE, Change.CHECK):
                possible.append(decision)
            elif not (is_directory and decision.difference == Difference.TIME):
                refused.add(decision.row)
                if is_directory and decision.change is Change.REPLACE:
                    blocked.add(decision.row)
        for row in sorted(refused):
            self.refuse(join(path, listing.names[row]))
        return Comparison(tuple(possible), comparison.extra, (), comparison.checked), blocked

    def refuse(self, path: bytes) -> None:
        """Reports that the append-only root does not let the entry at `path` change."""
        error = self._root.append_only_refusal(path, "change it")
        self._events.report(Problem(error.code, path, str(error)))


def without_rows(comparison: Comparison, rows: Set[int]) -> Comparison:
    """Removes the changes of these rows of the source's listing."""
    return Comparison(
        tuple(decision for decision in comparison.decisions if decision.row not in rows),
        comparison.extra,
        tuple(row for row in comparison.touched if row not in rows),
        tuple(row for row in comparison.checked if row not in rows),
    )
