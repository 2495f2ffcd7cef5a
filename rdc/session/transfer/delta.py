"""Files by delta: a scheduler, and one generator a file.

`DeltaFile.bring_up_to_date` is the whole way of a file, top to bottom, in three stages:

1. `compare` (rdc.session.transfer.compare) finds which parts of the new version the bases have: the recipe.
2. `FileFetch` (rdc.session.transfer.rebuild) requests what is missing.
3. `Rebuild` (rdc.session.transfer.rebuild) writes and verifies the new version as the literals arrive.

The generator yields what a conversation may ask for (rdc.session.runtime.commands), and NEXT_ANSWER where it
waits for the next message about its file. `DeltaFiles` starts it and hands it the messages. Tree requests are
sent together, files wait until there is room, and equal contents are copied after everything else.

A first attempt compares by short references and searches blocks. If it fails, a second one compares by whole
digests. If that fails too, the file comes whole.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import chain
from operator import attrgetter

from rdc.errors import FileError, ProtocolError
from rdc.lean.records import Record
from rdc.limits import EQUAL_ROOTS, FILES_PER_MESSAGE
from rdc.plan.descent import Part, Reuse
from rdc.protocol import messages
from rdc.protocol.messages import (
    BlockAnswer,
    FileEnd,
    FileFailed,
    Literals,
    NodeAnswer,
    TreeAnswer,
    TreeRequest,
)
from rdc.session.runtime.commands import Conversation, Flush, Send
from rdc.session.transfer.bases import Bases, ChangedBaseError, FileBases, Recipe, SignedFile, sign_file
from rdc.session.transfer.compare import (
    NEXT_ANSWER,
    AskedFile,
    NextAnswer,
    Room,
    compare,
)
from rdc.session.transfer.destination import LEAF_BLOCK, Destination, FileQueue, Transfer
from rdc.session.transfer.rebuild import FileFetch, Rebuild
from rdc.session.trees.sites import MismatchError
from rdc.signature.codec import SHORT_REFERENCE_BYTES, reference_width
from rdc.signature.tree import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from rdc.model.entries import Metadata
    from rdc.protocol.messages.content import FileMessage
    from rdc.session.transfer.compare import Steps
    from rdc.session.transfer.whole import WholeFiles


class DeltaFile(AskedFile):
    """One file between its TreeRequest and its end."""

    __slots__ = ("_fetch", "_listed", "_shared", "allocated", "listed_size", "metadata", "root", "size")

    def __init__(
        self,
        shared: DeltaFiles,
        file: int,
        path: bytes,
        *,
        width: int,
        listed: Metadata | None = None,
        listed_size: int = 0,
        estimate: int = 0,
    ) -> None:
        """Take `listed` and `listed_size` of the new version. The others: as in AskedFile."""
        super().__init__(
            file, path, FileBases(file, path, listed_size, []), shared.room, width=width, estimate=estimate
        )
        self._shared = shared
        self._listed = listed
        self._fetch: FileFetch | None = None
        """The owner of the open temporary and bases, once the recipe is known."""
        self.listed_size = listed_size
        self.allocated: int | None = None
        """Bytes that the new version takes at the source, if it has holes there."""
        self.root = b""
        self.size = 0
        self.metadata: Metadata | None = None
        """Root, size and metadata of the new version, as the source signed it."""

    def bring_up_to_date(
        self, base: SignedFile | None = None, metadata: Metadata | None = None
    ) -> Steps[None]:
        """Return the whole way. The request for the tree was sent with those of other files.

        `base`: has the new content, as its root says. The file is then copied from it, without a request, and
        gets `metadata`.
        """
        # long because it is the way of a file from top to bottom
        shared, is_last, masked = self._shared, False, False
        parts: Sequence[Part]
        if base is not None:
            self.bases.signed = [base]
            self.root, self.size, self.metadata = base.tree.root, base.tree.size, metadata
        else:
            yield from shared.bases.sign(self.bases, self.round)  # while the source signs its own version
            shared.context.progress.comparing(self.listed_size, ends=True)
        while True:
            try:
                if base is not None:
                    parts = (Reuse(0, 0, base.tree.levels[0].records, base.tree.size, 1),)
                else:
                    tree = yield from self._take_tree()
                    if (yield from self._needs_no_content(tree)):
                        return
                    parts, masked = yield from compare(self, shared.context, tree)
                bases = self.bases.signed
                trees = list(map(attrgetter("tree"), bases))
                recipe = Recipe(self.file, self.path, parts, bases, trees, self.size, masked, self.allocated)
                self._fetch = FileFetch(shared.context, self, recipe, self.root, shared.bases)
                rebuild = yield from self._fetch.run()
                break
            except MismatchError as error:
                if isinstance(error, ChangedBaseError):
                    shared.bases.drop(self.bases)  # the next attempt signs them again, or does without
                else:
                    shared.context.guesses.failed([base.path for base in self.bases.signed])
            except FileError as error:
                shared.context.problem(self.path, error)
                self.leave()
                return
            yield from self._drop_answers()
            self._release()
            shared.bases.drop_outgrown(self.bases)
            if is_last:
                self._fetch_whole()
                return
            base, is_last, self.width = None, True, DIGEST_BYTES
            yield Send(TreeRequest((self.file,), self.width), self.round)
        self._commit(rebuild)

    def _take_tree(self) -> Steps[messages.TreeAnswer]:
        tree = yield NEXT_ANSWER
        if isinstance(tree, messages.Holes):
            self.allocated = tree.data
            tree = yield NEXT_ANSWER
        if not isinstance(tree, messages.TreeAnswer):
            raise ProtocolError(f"expected the tree of file {self.file}, found {type(tree).__name__}")
        self.root, self.size = tree.root, tree.size
        self.metadata = self._listed
        if tree.mtime_ns is not None or self.metadata is None:
            self.metadata = self._shared.context.metadata(self.file, tree.mtime_ns)
        return tree

    def _needs_no_content(self, tree: messages.TreeAnswer) -> Steps[bool]:
        """Return whether the way of the file ends here: it is right, comes otherwise, or stays as it is."""
        shared = self._shared
        if tree.size != self.listed_size and not shared.context.may_come(self.file, tree.size):
            self.leave()
            return True
        if not self.bases.signed:
            yield from shared.bases.sign(self.bases, self.round)
        if not self.bases.signed or shared.context.guesses.spent:
            self._fetch_whole()  # there is no old version that can be read, or that may be compared
            return True
        if self._is_equal() or (shared.context.alternates is not None and self._is_made_elsewhere()):
            return True
        first_attempt = self.width != DIGEST_BYTES
        if first_attempt and shared.duplicates.waits(self.file, tree.size, tree.root, tree.mtime_ns):
            self.leave()  # another file brings this content, and this one is copied from it later
            return True
        if shared.context.dry:
            self.leave()
            shared.context.landing.rehearse(self.file)
            return True
        return False

    def _is_equal(self) -> bool:
        """Return whether the old version has the content of the new one; then only its metadata are set."""
        first, context = self.bases.signed[0], self._shared.context
        if first.path != self.path or first.tree.root != self.root or self.metadata is None:
            return False
        self.leave()
        context.landing.same(self.file, self.metadata, first.identity)
        context.progress.arriving(self.size, ends=True)
        return True

    def _is_made_elsewhere(self) -> bool:
        """Return whether an alternate directory has the content, and the file is made from that
        (--checksum)."""
        alternates = self._shared.context.alternates
        if alternates is None or alternates.make_equal is None:
            return False
        base = next((one for one in self.bases.signed if one.reopen is not None), None)
        if base is None or base.tree.root != self.root or self.metadata != self._listed:
            return False
        if not alternates.make_equal(self.file):
            return False
        self.leave()
        self._shared.context.progress.arriving(self.size, ends=True)
        return True

    def _commit(self, rebuild: Rebuild) -> None:
        """Replace the old version with the new one, which is written and verified."""
        context = self._shared.context
        context.progress.literal_bytes += rebuild.literal_bytes
        context.progress.reused_bytes += rebuild.reused_bytes
        replaced = context.landing.listed.of(self.file)
        self.leave()
        if self.metadata is not None:
            context.landing.commit(self.file, self.path, rebuild.temporary, self.metadata, replaced)
        context.progress.arriving(self.size, ends=True)

    # How it ends.

    def _fetch_whole(self) -> None:
        self.leave()
        self._shared.wholes().add(self.file)

    def leave(self, *, failed: bool = False) -> None:
        """Release everything; open answers are dropped as they come. `failed`: the source could not answer
        the oldest request."""
        if failed and self.unanswered:
            self.unanswered.popleft()
        if self.unanswered:
            self._shared.stale.expect(self.file, self.unanswered)
        self._release()
        self._shared.bases.drop(self.bases, ends=True)
        self.room.count(-1, -self.estimate)

    def interrupt(self) -> None:
        """End the session. What is written stays for the next run, unless the partial file holds more."""
        if self._fetch is not None and (self.bases.outgrown or self.bases.leftover is None):
            self._fetch.keep()
        self._release()
        self._shared.bases.drop(self.bases)

    def _release(self) -> None:
        """Release what the current attempt holds open."""
        if self._fetch is not None:
            self._fetch.close()
        self._fetch = None

    def _drop_answers(self) -> Steps[None]:
        """Drop the answers to the requests of a failed attempt."""
        while self.unanswered:
            message = yield NEXT_ANSWER
            if isinstance(message, messages.BlockAnswer | messages.Literals | messages.FileEnd):
                self.unanswered.popleft()


class DeltaFiles(Transfer):
    """Files wait, start when there is room, and get the messages that are about them."""

    rank = 3
    answers = (
        *messages.answers_to(
            messages.TreeRequest, messages.NodeRequest, messages.BlockRequest, messages.RangeRequest
        ),
        # These answer whole files, too.
        messages.Data,
        FileEnd,
        FileFailed,
        messages.Holes,
    )

    def __init__(self, context: Destination, wholes: Callable[[], WholeFiles]) -> None:
        """`wholes`: makes the part that fetches whole files, at the first call."""
        self.context = context
        self.wholes = wholes
        self.bases = Bases(context)
        self.duplicates = DuplicateContents(context)
        self.room = Room()
        self.stale = StaleAnswers()
        self._mean = context.signer.params.mean
        self._waiting = FileQueue()
        self._unasked = FileQueue()
        """Waiting files whose trees come unasked."""
        self._unasked_width = SHORT_REFERENCE_BYTES
        self._files: dict[int, DeltaFile] = {}
        self._steps: dict[int, Steps[None]] = {}
        """The files in work, and how far each is."""

    @property
    def idle(self) -> bool:
        waiting = self._waiting or self._unasked or self.duplicates.waiting
        return not (waiting or self._files or self.stale.files)

    @property
    def waits(self) -> bool:
        """Files wait for `pump`."""
        return bool(self._waiting or self._unasked or self.duplicates.waiting)

    def add(self, file: int, bases: tuple[bytes, ...] = ()) -> None:
        """Add a file to be brought up to date from its old version and from the files at `bases`."""
        if bases:
            self.bases.name(file, bases)
        self._waiting.append(file)

    def described(self, files: AbstractSet[int], width: int) -> None:
        """Note that the trees of these files come unasked. Files that do not wait need none: theirs are
        dropped. `width`: bytes of a reference in the trees."""
        self._unasked_width = width
        waiting = list(self._waiting)
        self._waiting.clear()
        for file in waiting:
            # A file that has further bases is asked for by its chunks, which are found in every base.
            unasked = file in files and not self.bases.further(file)
            (self._unasked if unasked else self._waiting).append(file)
        for file in files - set(self._unasked):
            self.stale.expect(file, (None,))

    def copy(
        self, file: int, base: SignedFile, round_: int, *, mtime_ns: int | None = None
    ) -> Conversation[None]:
        """Make a file from `base`, which has its content. `mtime_ns`: in place of the listed one."""
        path = self.context.manifest.entry(file).path
        one = DeltaFile(self, file, path, width=SHORT_REFERENCE_BYTES)
        steps = one.bring_up_to_date(base, self.context.metadata(file, mtime_ns))
        yield from self._advance(one, steps, round_)

    def pump(self, round_: int, *, planned: bool) -> Conversation[None]:
        """Start as many waiting files as there is room for, once all files are known."""
        if not planned:
            return
        unasked = [self._enter(file, self._unasked_width) for file in self._unasked]
        self._unasked.clear()
        starting: dict[tuple[int, int], list[DeltaFile]] = {}
        while self._waiting and self.room.has_room:
            one = self._enter(self._waiting.popleft())
            # Chunks are found in every base, and x86 code is compared with masked displacements.
            block = LEAF_BLOCK if one.listed_size <= self.context.signer.params.max_size else 0
            starting.setdefault((one.width, block), []).append(one)
        for (width, block), files in starting.items():
            for first in range(0, len(files), FILES_PER_MESSAGE):
                asked = sorted(map(attrgetter("file"), files[first : first + FILES_PER_MESSAGE]))
                yield Send(TreeRequest(tuple(asked), width, block), round_)
        if starting or unasked:
            # The source signs its versions now, so ours are signed at the same time.
            yield Flush()
            for one in chain(unasked, *starting.values()):
                yield from self._advance(one, one.bring_up_to_date(), round_)
        elif self.duplicates.waiting and not self._files and self.wholes().idle:
            yield from self._copy_duplicates(round_)

    def _enter(self, file: int, width: int = 0) -> DeltaFile:
        """Make the state of a file that is about to be requested. `width`: bytes of a reference; 0: as
        its size needs."""
        entry, mean = self.context.manifest.entry(file), self._mean
        # About 50 bytes a chunk on each side, and as much again for the lookup.
        estimate = 4096 + entry.size // int(mean) * 100
        width = width or reference_width(entry.size, mean)
        one = DeltaFile(
            self,
            file,
            entry.path,
            width=width,
            listed=entry.metadata,
            listed_size=entry.size,
            estimate=estimate,
        )
        self._files[file] = one
        return one

    def _copy_duplicates(self, round_: int) -> Conversation[None]:
        """Copy files whose content was fetched for another path."""
        duplicates = self.duplicates
        for copied in duplicates.drained():
            base = yield from duplicates.base(copied, round_)
            if base is None:
                self.wholes().add(copied.file)
            else:
                yield from self.copy(copied.file, base, round_, mtime_ns=copied.mtime_ns)

    def expects(self, message: FileMessage) -> bool:
        return message.file in self._files or self.stale.concerns(message)

    def take(self, message: FileMessage, round_: int) -> Conversation[None]:
        """Give a message to the file that it is about."""
        one = None if self.stale.concerns(message) else self._files.get(message.file)
        if one is not None and not isinstance(message, FileFailed):
            return self._advance(one, self._steps[one.file], round_, message)
        return self._end_early(one, message)

    def _end_early(self, one: DeltaFile | None, message: FileMessage) -> Conversation[None]:
        """Take a failure, or a message about a file that was given up earlier, which was reported then."""
        if one is None:
            self.stale.drop(message)
        elif isinstance(message, FileFailed):
            one.leave(failed=True)
            self._end(one)
            self.context.unsent(message)
        yield from ()

    def close(self) -> None:
        """Release everything. Parts of unfinished files stay for the next run to resume from."""
        for one in self._files.values():
            one.interrupt()
        for steps in self._steps.values():
            steps.close()

    def _advance(
        self, one: DeltaFile, steps: Steps[None], round_: int, message: FileMessage | None = None
    ) -> Conversation[None]:
        """Run a file until it waits for its next message, or has ended. `message`: about it; None at its
        start."""
        one.round = round_
        self._files[one.file], self._steps[one.file] = one, steps
        try:
            step = steps.send(message)
            while not isinstance(step, NextAnswer):
                step = steps.send((yield step))
        except StopIteration:
            self._end(one)

    def _end(self, one: DeltaFile) -> None:
        del self._files[one.file]
        self._steps.pop(one.file).close()


class StaleAnswers:
    """The answers that still arrive but are no longer of use: by file, one for each request that was sent.
    Only the answer to a request of nodes comes in several messages."""

    def __init__(self) -> None:
        self.files: dict[int, deque[int | None]] = {}

    def expect(self, file: int, ends: Sequence[int | None]) -> None:
        """Note requests of a file whose answers are no longer of use, in the order they were sent. `ends`:
        the last node of each NodeRequest, None for any other request."""
        if ends:
            self.files[file] = deque(ends)

    def concerns(self, message: FileMessage) -> bool:
        """Return whether this message belongs to such a request."""
        ends = self.files.get(message.file)
        if ends is None:
            return False
        if isinstance(message, FileEnd):
            return not message.digest  # with one it is of the whole file, which was asked for instead
        return not isinstance(message, NodeAnswer) or ends[0] is not None

    def drop(self, message: FileMessage) -> bool:
        """Drop a message that belongs to such a request; False: it does not."""
        if not self.concerns(message):
            return False
        ends = self.files[message.file]
        if isinstance(message, NodeAnswer):
            ended = message.nodes[-1] == ends[0]
        else:
            ended = isinstance(message, BlockAnswer | FileEnd | FileFailed | Literals | TreeAnswer)
        if ended:
            ends.popleft()
            if not ends:
                del self.files[message.file]
        return True


EQUAL_BYTES = 4096
"""Smaller content is simply fetched again: remembering it costs about as much."""


class DuplicateFile(Record):
    """A file that waits for another file with the same new content."""

    file: int
    first: int
    """The other file, which was requested before."""
    size: int
    """The size that its TreeAnswer announced, in bytes."""
    root: bytes
    """The root of both files, 32 bytes."""
    mtime_ns: int | None
    """The mtime of its TreeAnswer."""


class DuplicateContents:
    """Roots of files that are being fetched, and the files that wait until one of them is committed.

    If a first file fails, the files that wait for it are fetched. Each is copied only if the first file then
    has the root and size that were announced.
    """

    def __init__(self, context: Destination) -> None:
        self._context = context
        self._first: dict[bytes, int] = {}
        self.waiting: list[DuplicateFile] = []
        """The files that wait for another."""
        self._last: tuple[int, SignedFile | None] | None = None
        """The first file that was signed last: files with equal content are copied one after another."""

    def waits(self, file: int, size: int, root: bytes, mtime_ns: int | None) -> bool:
        """Tell whether another file with this root was requested before. If so, this file waits for it."""
        if size < EQUAL_BYTES:
            return False
        first = self._first.get(root)
        if first is None and len(self._first) < EQUAL_ROOTS:
            self._first[root] = file
        if first is None or first == file:
            return False
        self.waiting.append(DuplicateFile(file, first, size, root, mtime_ns))
        return True

    def drained(self) -> list[DuplicateFile]:
        """Commit what is pending and take all files that wait. Call it when no other file is in work."""
        self._context.landing.flush()
        waiting, self.waiting = self.waiting, []
        return sorted(waiting, key=lambda copied: (copied.first, copied.file))

    def base(self, copied: DuplicateFile, round_: int) -> Conversation[SignedFile | None]:
        """Return the first file of `copied` if it has the announced content, else None."""
        if self._last is None or self._last[0] != copied.first:
            self._last = (copied.first, (yield from self._sign(copied.first, round_)))
        first = self._last[1]
        if first is None or (first.tree.root, first.tree.size) != (copied.root, copied.size):
            return None
        return first

    def _sign(self, file: int, round_: int) -> Conversation[SignedFile | None]:
        """Sign a committed file. Returns None if it cannot be read."""
        entry = self._context.manifest.entry(file)
        try:
            reopen = partial(self._context.landing.open, entry.path)
            with reopen() as source:
                tree = yield from sign_file(self._context, source, entry.size, round_)
                return SignedFile(entry.path, source.identity, tree, reopen=reopen)
        except FileError:
            return None
