"""Decides which way the content of each file comes, and passes each answer to the part that asked.

Files that nothing local can help with come whole: new ones without a base, changed ones of another size and
at most WHOLE_BYTES, all with --whole-file or where contents may not be compared, and the rest of a session
with too many wrong guesses. For other files of another size, and those of the same size whose contents were
found to differ, rdc.session.transfer.way_choice decides by the line. The rest come by delta: large ones
singly, many small ones in bundles. Every way compares a 32-byte digest before it hands a file over for
commit: the digest of a whole file, or the Merkle root of a rebuilt file.
"""

from __future__ import annotations

from rdc.errors import ProtocolError
from rdc.files.replace.replacement import KEEP_BYTES
from rdc.limits import BUNDLE_FILES_LEAST, BUNDLED_FILE_BYTES
from rdc.plan.ways import WHOLE_BYTES
from rdc.protocol import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from rdc.protocol.connection import Received
    from rdc.session.runtime.commands import Conversation
    from rdc.session.transfer.bundle import Bundles
    from rdc.session.transfer.content_checks import ContentChecks
    from rdc.session.transfer.delta import DeltaFiles
    from rdc.session.transfer.destination import DeferredFiles, Destination, Transfer
    from rdc.session.transfer.renames import LocalContent, RemovedFiles
    from rdc.session.transfer.way_choice import WayChoice
    from rdc.session.transfer.whole import WholeFiles


class Transfers:
    """All files in transfer. `pump` sends requests, `take` passes on answers.

    Files are named by their rows in the source's manifest. Each way of transfer is imported and made on first
    use: most runs need one or two of the five, and importing all takes longer than the work of many runs.
    """

    def __init__(self, context: Destination) -> None:
        self._context = context
        self._progress = context.progress
        self._in_use: list[Transfer] = []
        """The transfers in order of rank."""
        self._takers: dict[type[messages.Message], list[Transfer]] = {}
        """The parts that may have asked for a message, by its type."""
        self._wholes: WholeFiles | None = None
        self._deltas: DeltaFiles | None = None
        self._bundles: Bundles | None = None
        self._checks: ContentChecks | None = None
        self._local_content: LocalContent | None = None
        self._small: list[tuple[int, int]] = []
        """Changed files with their sizes, too few so far for a bundle."""
        self._choice: WayChoice | None = None
        self._line = context.line
        self._deferred: DeferredFiles | None = None
        self._planned = False

    def _use(self, transfer: Transfer) -> None:
        """Add a way of transfer to the list."""
        self._in_use = sorted((*self._in_use, transfer), key=lambda one: one.rank)
        for kind in transfer.answers:
            self._takers[kind] = [one for one in self._in_use if kind in one.answers]

    def wholes(self) -> WholeFiles:
        if self._wholes is None:
            from rdc.session.transfer.whole import WholeFiles

            self._wholes = WholeFiles(self._context)
            self._use(self._wholes)
        return self._wholes

    def deltas(self) -> DeltaFiles:
        if self._deltas is None:
            from rdc.session.transfer.delta import DeltaFiles

            self._deltas = DeltaFiles(self._context, self.wholes)
            self._use(self._deltas)
        return self._deltas

    def bundles(self) -> Bundles:
        if self._bundles is None:
            from rdc.session.transfer.bundle import Bundles

            self._bundles = Bundles(self._context, self.deltas(), self._has_checks)
            self._use(self._bundles)
        return self._bundles

    def _has_checks(self) -> bool:
        """Return whether further files may be found to have changed."""
        return self._checks is not None and not self._checks.idle

    def checks(self) -> ContentChecks:
        if self._checks is None:
            from rdc.session.transfer.content_checks import ContentChecks

            if self._context.whole:
                wholes = self.wholes()
                self._checks = ContentChecks(self._context, wholes, wholes.add)
            else:
                self._checks = ContentChecks(self._context, self.bundles(), self._choose)
            self._use(self._checks)
        return self._checks

    def _choose(self, file: int, size: int) -> None:
        """Have the way of a changed file chosen."""
        if self._line is None or self._context.alternates is not None or size <= WHOLE_BYTES:
            self._update_by_delta(file, size)  # an alternate directory may have its content
            return
        if self._choice is None:
            from rdc.session.transfer.way_choice import WayChoice

            self._choice = WayChoice(self._context, self._line, self.wholes, self._update_by_delta)
            self._use(self._choice)
        self._choice.add(file, size)

    def _defer(self, file: int, bases: tuple[bytes, ...] = ()) -> None:
        if self._deferred is None:
            from rdc.session.transfer.destination import DeferredFiles

            self._deferred = DeferredFiles()
        self._deferred.add(file, bases)

    @property
    def idle(self) -> bool:
        """Return whether no request is outstanding and no file waits."""
        # no generator expression: the session asks after each message
        for transfer in self._in_use:
            if not transfer.idle:
                return False
        return not (self._deferred or self._small)

    def check(self, files: Sequence[int]) -> None:
        """Compare the contents of files that both sides have and update those that differ. Where content
        must not be compared, it updates all."""
        if not self._context.uses_content:
            for file, size in zip(files, self._context.manifest.sizes_of(files), strict=True):
                if self._context.landing.differs(file):
                    self.update(file, size)
        elif files:
            self.checks().demand(files)

    def update(self, file: int, size: int, bases: tuple[bytes, ...] = ()) -> None:
        """Update a file from the old version at its path and from the files at `bases`.

        `size`: of the new version, in bytes.
        """
        self._progress.count_total(size, compared=size > WHOLE_BYTES and not self._context.whole)
        is_whole = size <= WHOLE_BYTES or self._context.whole or self._context.guesses.spent
        if is_whole or (not bases and self._was_empty(file)):
            self.wholes().add(file, size)
        elif bases or self._context.landing.is_new(file):
            self.deltas().add(file, bases)
        else:
            self._choose(file, size)

    def _was_empty(self, file: int) -> bool:
        """Return whether nothing here can help with a changed file: its old version is empty."""
        context = self._context
        listed = context.landing.listed.of(file)
        if listed is None or listed.size or context.alternates is not None:
            return False
        return not context.partial_files.any_found

    def _update_by_delta(self, file: int, size: int) -> None:
        """Update a file from the old version at its path. `size`: of the new version, in bytes."""
        if size > BUNDLED_FILE_BYTES:
            self.deltas().add(file)
        else:
            self._small.append((file, size))
            if len(self._small) >= BUNDLE_FILES_LEAST or self._bundles is not None:
                self._bundle_small()

    def _bundle_small(self) -> None:
        """Hand the small changed files to the bundles."""
        for file, size in self._small:
            self.bundles().add(file, size)
        self._small = []

    def _start_small(self) -> None:
        """Update the small changed files of a run that has too few for a bundle, one by one."""
        if self._bundles is not None:
            self._bundle_small()  # together with those whose contents were checked
            return
        for file, _ in sorted(self._small):
            self.deltas().add(file)
        self._small = []

    def touch(self, files: Sequence[int], size: int) -> None:
        """Update files that have the right size but another mtime; their contents may be right.

        `size`: of all these files together, in bytes.
        """
        self._progress.count_total(size, compared=not self._context.whole)
        if self._context.whole:
            for file, its_size in zip(files, self._context.manifest.sizes_of(files), strict=True):
                self.wholes().add(file, its_size)
            return
        self.checks().touched(files)

    def create(self, file: int, path: bytes, size: int, bases: tuple[bytes, ...] = ()) -> None:
        """Fetch a new file.

        Resumes from a partial file if there is one; otherwise rebuilds it from a similar local file;
        otherwise fetches it whole. `bases`: local files that seem to have its content.
        """
        self._progress.count_total(size, compared=False)
        if self._context.dry and not self._is_compared(file):
            if self._planned or not self._context.seeks:
                self._context.landing.rehearse(file)
            else:
                self._defer(file)
        elif self._context.whole and not self._is_compared(file):
            self.wholes().add(file, size)
        elif (size > KEEP_BYTES and self._context.partial_files.of(path) is not None) or (
            self._context.alternates is not None and self._has_base_elsewhere(file, size)
        ):
            self._progress.compare_bytes += size
            self.deltas().add(file, bases)
        elif self._context.seeks and not self._planned:
            self._defer(file, bases)
        elif bases:
            self._progress.compare_bytes += size
            self.deltas().add(file, bases)
        else:
            self.wholes().add(file, size)

    def _has_base_elsewhere(self, file: int, size: int) -> bool:
        """Return whether an alternate directory has a base that pays, or whose content has to be compared."""
        alternates = self._context.alternates
        if alternates is None or not alternates.has_base(file):
            return False
        return size > WHOLE_BYTES or self._is_compared(file)

    def _is_compared(self, file: int) -> bool:
        """Return whether the content in an alternate directory is compared (--checksum), in a dry run,
        too."""
        alternates = self._context.alternates
        return alternates is not None and alternates.make_equal is not None and alternates.has_base(file)

    def plan_known(
        self,
        removed_files: Callable[[], RemovedFiles],
        *,
        rename: bool,
        names: Callable[[int], tuple[bytes, ...]] | None = None,
    ) -> None:
        """Note that all files are known and start the search for local content of new files.

        `removed_files`: the files that only the destination has; with `rename` the run will delete them.
        `names`: local paths that may have a new file's content.
        """
        self._planned = True
        if self._deferred:
            from rdc.session.transfer.renames import LocalContent

            self._local_content = LocalContent(
                self._context, self.deltas(), self.wholes(), removed_files(), rename=rename
            )
            self._use(self._local_content)
            self._local_content.seek(self._deferred, names=names)
        self._progress.plan_known()

    def described(
        self, files: Sequence[int], width: int, blocks: messages.LikelyBlocks | None = None
    ) -> None:
        """Note that the source sends the trees of these files unasked. Changed ones among them come by
        delta, without a request for their tree; the trees of others are dropped. Call it before the first
        `pump` after `plan_known`. `width`: bytes of a reference in the trees. `blocks`: of files that come in
        bundles if they changed. Raises ProtocolError if they do not fit the listed sizes."""
        if files:
            trees = set(files)
            for file in self._release(trees):
                self.deltas().add(file)
            self.deltas().described(trees, width)
        if blocks is not None:
            # All are noted, those that have no way yet as well: the source repeats none in an answer.
            self.bundles().described(blocks)
            chosen = self._release(set(blocks.files))
            for file, size in zip(chosen, self._context.manifest.sizes_of(chosen), strict=True):
                self.bundles().add(file, size)

    def _release(self, files: AbstractSet[int]) -> list[int]:
        """Take back those of `files` whose way is not chosen yet."""
        chosen = [file for file, _ in self._small if file in files]
        self._small = [(file, size) for file, size in self._small if file not in files]
        for way in (self._choice, self._bundles, self._checks):
            if way is not None:
                chosen += way.release(files)
        return chosen

    def pump(self, round_: int) -> Conversation[None]:
        """Send the requests that may go now; after most messages there are none. Whole files are requested
        even before all files are known."""
        if self._planned and self._small:
            self._start_small()
        # A file that is added meanwhile has a later rank, and its turn in this loop.
        at = 0
        while at < len(self._in_use):
            transfer = self._in_use[at]
            at += 1
            if transfer.waits:
                yield from transfer.pump(round_, planned=self._planned)
            if self._planned and self._small:
                self._start_small()  # whose way was just chosen

    def move(self, spare: Callable[[bytes], None], round_: int) -> Conversation[None]:
        """Rename moved files before deletions begin. A dry run calls `spare` with their old paths."""
        if self._local_content is not None:
            yield from self._local_content.move(spare, round_)

    def take(self, received: Received) -> Conversation[None]:
        """Pass one answer to the part that asked. Raises ProtocolError for an unexpected message."""
        message = received.message
        if self._choice is not None:
            yield from self._choice.heard(message)
        deltas = self._deltas
        if isinstance(message, messages.FileFailed) and deltas is not None and deltas.stale.concerns(message):
            # Unasked messages, such as traits, are answered before later requests.
            yield from deltas.take(message, received.round + 1)
            return
        for transfer in self._takers.get(type(message), ()):
            if transfer.expects(message):
                yield from transfer.take(message, received.round + 1)
                return
        raise ProtocolError(f"a destination was sent {type(message).__name__}, which it did not ask for")

    def close(self) -> None:
        """Close all files. The next run resumes unfinished ones from their partial files."""
        for transfer in self._in_use:
            transfer.close()
