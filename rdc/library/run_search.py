"""Finds equal ranges of different files for `rdc dedupe --chunks`. Reads and chunks every file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from rdc.catalog.signer import FileSigner
from rdc.catalog.signing import SignTask, sign_in_order
from rdc.duplicates.group import is_below
from rdc.duplicates.runs import ChunkedFile, RunFinder
from rdc.errors import ExitCode, FileError
from rdc.files.base.relative_path import join
from rdc.files.facts.block_sharing_volume import volume_of
from rdc.model.entries import Kind
from rdc.model.instances import EqualRuns, RootedPath
from rdc.progress import Problem
from rdc.tree.filters import FilteredTree
from rdc.tree.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.store import SignatureStore
    from rdc.duplicates.run_totals import DedupeReporter
    from rdc.files.facts.block_sharing_volume import Volume
    from rdc.library.dedupe_operands import Operands
    from rdc.progress import Event
    from rdc.tree.filters import FilterList

__all__ = ["RunSearch"]


class RunSearch:
    """Walks the trees and signs their files. Errors go to `problem`, other events to `reporter`."""

    def __init__(
        self,
        operands: Operands,
        filters: FilterList,
        catalog: SignatureStore | None,
        min_size: int,
        reporter: DedupeReporter,
        problem: Callable[[FileError], None],
    ) -> None:
        self._operands = operands
        self._filters = filters
        self._signer = FileSigner(catalog=catalog)
        self._min_size = max(1, min_size)
        self._reporter = reporter
        self._problem = problem

    def runs(self) -> Iterator[list[EqualRuns]]:
        """Yields the equal ranges of each file."""
        finder = RunFinder()
        # Protected files come first, so that other files share with them.
        files = sorted(self._files(), key=lambda item: not self._protected(item[0]))
        tasks = (self._task(location, size) for location, size in files)
        for signed in sign_in_order(self._signer, tasks):
            if signed.error is not None:
                self._problem(signed.error)
            elif signed.tree is not None and signed.identity is not None:
                try:
                    volume = self._volume(signed.key)
                except FileError as error:
                    self._problem(error)
                    continue
                protected = self._protected(signed.key)
                yield finder.add(
                    ChunkedFile(signed.key, volume.id, volume.block_size, signed.tree, protected)
                )
        self._signer.close()
        if finder.forgotten:
            text = f"{finder.forgotten:,} chunks were too many to remember: some equal parts were not found"
            self._reporter(Problem(ExitCode.OK, b"", text))

    def _files(self) -> Iterator[tuple[RootedPath, int]]:
        """Yields each regular file once, with its listed size."""
        for number, operand in enumerate(self._operands.all):
            root = operand.tree.root
            filters = self._filters.at_source(FilteredTree(root, operand.only or b""))
            for directory in Walk(root, filters, self._walked(root.shown), operand.only):
                if operand.only is not None and directory.path:
                    break
                listing = directory.listing.unpacked()
                for name, kind, size in zip(listing.names, listing.kinds, listing.sizes, strict=True):
                    if kind == Kind.FILE and size >= self._min_size:
                        yield RootedPath(number, join(directory.path, name)), size

    def _task(self, location: RootedPath, size: int) -> SignTask[RootedPath]:
        return SignTask(
            location, size, partial(self._operands.all[location.root].tree.root.open_read, location.path)
        )

    def _walked(self, shown: Callable[[bytes], bytes]) -> Callable[[Event], None]:
        def report(event: Event, /) -> None:
            if isinstance(event, Problem) and event.code is not ExitCode.OK:
                self._problem(FileError(shown(event.path), event.message, code=event.code))

        return report

    def _protected(self, location: RootedPath) -> bool:
        real = self._operands.all[location.root].tree.real_path(location.path)
        return any(is_below(real, top) for top in self._operands.keep)

    def _volume(self, location: RootedPath) -> Volume:
        root = self._operands.all[location.root].tree.root
        with root.open_read(location.path) as source:
            try:
                return volume_of(source.fileno())
            except OSError as error:
                raise root.failure(error, location.path, "look at its file system", reading=True) from error
