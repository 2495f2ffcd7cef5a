"""Changed files that come together: forms bundles of them, and lands what was verified.

What does not go so is left to a descent of its own, which knows every case: files that are long, new or
changed meanwhile, and those of a bundle that turns out wrong.
"""

from __future__ import annotations

from itertools import accumulate

from rdc.errors import FileError, ProtocolError
from rdc.files.replacement import Replacement
from rdc.files.snapshot import Snapshot, SnapshotContent, identities_of, look
from rdc.limits import (
    BUNDLE_BYTES,
    BUNDLE_FILES,
    BUNDLE_FILES_LEAST,
    BUNDLED_FILE_BYTES,
    BUNDLES_HELD_BYTES,
    BUNDLES_IN_FLIGHT,
)
from rdc.plan.bundle import BundleLayout
from rdc.protocol.messages import (
    BlockAnswer,
    BundleAnswer,
    BundleRequest,
    Code,
    Correction,
    Data,
    FileEnd,
    FileFailed,
    Literals,
    Table,
    Targets,
)
from rdc.session.blanks import is_code
from rdc.session.bundle import Bundle
from rdc.session.commands import Flush, Send
from rdc.session.file_comparison import LEAF_BLOCK
from rdc.session.gaps import BLANK_BYTES
from rdc.session.rounds import rounds_left
from rdc.signature.records import SHORT_REFERENCE_BYTES, reference_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.files.snapshot import Look
    from rdc.protocol.messages import Message
    from rdc.session.bundle import Rebuilt
    from rdc.session.commands import Conversation
    from rdc.session.file_descents import FileDescents
    from rdc.session.transfer_context import TransferContext

__all__ = ["Bundles"]

_ABOUT_FILES = (BlockAnswer, Correction, Targets, Literals, Data, Code, Table, FileEnd, FileFailed)
"""Answers that name a file or a bundle."""


class Bundles:
    """At most BUNDLES_IN_FLIGHT at a time, with BUNDLES_HELD_BYTES of old versions in memory."""

    def __init__(self, context: TransferContext, descents: FileDescents) -> None:
        self._context = context
        self._descents = descents
        self._waiting: list[int] = []
        self._sizes = 0
        """Bytes of these."""
        self._bundles: dict[int, Bundle] = {}
        self._made = 0
        self._held = 0
        """Bytes of old versions in memory."""

    @property
    def idle(self) -> bool:
        return not (self._waiting or self._bundles)

    @property
    def waits(self) -> bool:
        """There may be something for `pump` to do."""
        return bool(self._waiting)

    def add(self, file: int, size: int) -> None:
        """Have this file, which has an old version and is to have `size`, brought up to date."""
        if size > BUNDLED_FILE_BYTES or self._context.landing.is_new(file):
            self._descents.add(file)
        else:
            self._waiting.append(file)
            self._sizes += size

    def pump(self, round_: int, *, more: bool) -> Conversation[None]:
        """Asks for as many bundles as there is room for. `more`: other files are going to be added soon, so
        that only full ones are worth it."""
        if more and self._sizes < 2 * BUNDLE_BYTES:
            return
        files, self._waiting, self._sizes = sorted(self._waiting), [], 0
        if len(files) < BUNDLE_FILES_LEAST:
            for file in files:
                self._descents.add(file)
            return
        asked = []
        groups = list(self._groups(files))
        while groups and len(self._bundles) < BUNDLES_IN_FLIGHT and not (more and len(groups) == 1):
            bundle = self._begin(groups.pop(0))
            if bundle is not None:
                asked.append(bundle)
                yield Send(bundle.request, round_)
        for group in groups:
            self._waiting += group
            self._sizes += sum(self._context.entries.sizes_of(group))
        yield Flush()
        for bundle in asked:
            for size in bundle.sizes:
                self._context.tally.compared(size)

    def _groups(self, files: Sequence[int]) -> Iterator[list[int]]:
        """Files that make a bundle each."""
        group: list[int] = []
        total = 0
        for file, size in zip(files, self._context.entries.sizes_of(files), strict=True):
            if len(group) == BUNDLE_FILES or total + size > BUNDLE_BYTES:
                yield group
                group, total = [], 0
            group.append(file)
            total += size
        if group:
            yield group

    def _begin(self, files: list[int]) -> Bundle | None:
        """Looks at the old versions. None: none is there as a small file."""
        context = self._context
        params = context.signer.params
        names, sizes = context.entries.paths(files), context.entries.sizes_of(files)
        order = BundleLayout.of(range(len(files)), sizes, params.max_size, LEAF_BLOCK).order
        paths = [names[row] for row in order]
        found: Look = look(context.root, paths)
        places, gone, at = [], set(), 0
        for place, (row, identity) in enumerate(zip(order, found.identities, strict=True)):
            start, at = at, at + (0 if identity is None else identity.size)
            # What an interrupted run left of it, or an old version that is empty or long, is for a descent.
            if start == at or context.leftovers.of(names[row]) is not None or self._is_code(found, start, at):
                self._descents.add(files[row])
                gone.add(row)
            else:
                places.append(place)
        if not places:
            return None
        if gone:
            found, paths = found.chosen(places), [paths[place] for place in places]
            rows = [row for row in range(len(files)) if row not in gone]
            files, sizes = [files[row] for row in rows], [sizes[row] for row in rows]
        identities = [identity for identity in found.identities if identity is not None]
        base = Snapshot(context.root, paths, identities, found.content)
        width = min(SHORT_REFERENCE_BYTES, reference_width(BUNDLE_BYTES, params.mean))
        request = BundleRequest(len(context.entries) + self._made, tuple(files), width, LEAF_BLOCK)
        self._made += 1
        bundle = self._bundles[request.bundle] = Bundle(request, sizes, base, context.secret, params)
        self._keep(base)
        return bundle

    def _is_code(self, found: Look, start: int, end: int) -> bool:
        """Whether the old version between these bytes is machine code that may be compared without its
        targets, for which it has to be alone: of pandas and scipy, whose modules have a few hundred KB, 11
        and 16 % more came in bundles (measured). What is text has no zeros."""
        if end - start < BLANK_BYTES or found.content.find(0, start, end) < 0:
            return False
        return is_code(SnapshotContent(self._context.root, found.content[start:end]))

    def _keep(self, base: Snapshot) -> None:
        if self._held + base.held > BUNDLES_HELD_BYTES:
            base.drop()
        self._held += base.held

    def concerns(self, message: Message) -> bool:
        """Whether this answer is about a bundle: an ordinal that no entry has names one."""
        if isinstance(message, _ABOUT_FILES):
            return message.file >= len(self._context.entries)
        return isinstance(message, BundleAnswer)

    def take(self, message: Message, round_: int) -> Conversation[None]:
        """Takes an answer that concerns a bundle."""
        if isinstance(message, BundleAnswer):
            yield from self._take_description(message, round_)
            return
        if not isinstance(message, _ABOUT_FILES):
            raise ProtocolError(f"{type(message).__name__} is no answer about a bundle")
        bundle = self._bundles.get(message.file)
        if bundle is None:
            raise ProtocolError(f"an answer about bundle {message.file}, of which nothing was asked")
        if isinstance(message, BlockAnswer):
            yield from self._take_blocks(bundle, message.fingerprints, round_)
        elif isinstance(message, Correction):
            bundle.take_correction(message)
        elif isinstance(message, FileFailed):
            self._take_failure(bundle)
        elif isinstance(message, Literals):
            self._take_literals(bundle, message.packed)
        elif isinstance(message, FileEnd):
            self._finish(bundle)
        elif isinstance(message, Targets):
            raise ProtocolError(f"targets of bundle {message.file}, whose blocks have theirs")
        else:
            bundle.take_data(message)

    def _take_description(self, message: BundleAnswer, round_: int) -> Conversation[None]:
        bundle = self._bundles[message.bundle]
        for row in message.without:
            self._descents.add(bundle.request.files[row])
        self._held -= bundle.base.held
        try:
            bundle.take(message, rounds_left(round_))
        except FileError:
            self._held += bundle.base.held
            self._give_up(bundle)
            return
        self._held += bundle.base.held
        yield from self._go_on(bundle, round_)

    def _take_blocks(self, bundle: Bundle, fingerprints: bytes, round_: int) -> Conversation[None]:
        bundle.open_requests -= 1
        try:
            if not bundle.failed:
                bundle.take_blocks(fingerprints)
        except FileError:
            bundle.failed = True
        if not bundle.open_requests:
            yield from self._go_on(bundle, round_)

    def _take_literals(self, bundle: Bundle, packed: bytes) -> None:
        try:
            bundle.unpack(packed)
        except FileError:
            self._give_up(bundle)
        else:
            self._finish(bundle)

    def _take_failure(self, bundle: Bundle) -> None:
        """The source could not go on with it: each file is asked for by itself, and the source's reason comes
        with the one that has it."""
        bundle.failed = True
        bundle.open_requests = max(0, bundle.open_requests - 1)
        if not bundle.open_requests:
            self._give_up(bundle)

    def _go_on(self, bundle: Bundle, round_: int) -> Conversation[None]:
        """The next questions about blocks, or the literals."""
        if bundle.failed:
            self._give_up(bundle)
            return
        bundle.open_requests = yield from bundle.ask(round_)
        if bundle.open_requests:
            return
        try:
            request = bundle.range_request(pack=self._context.pack)
        except FileError:
            self._give_up(bundle)
            return
        if request is None:
            self._finish(bundle)
        else:
            yield Send(request, round_)

    def _finish(self, bundle: Bundle) -> None:
        try:
            rebuilt = bundle.finish()
        except FileError:
            self._give_up(bundle)
            return
        self._land(bundle, rebuilt)
        self._end(bundle)

    def _land(self, bundle: Bundle, rebuilt: Rebuilt) -> None:
        """Hands over what was verified, but for files whose old version is another one by now."""
        context, base = self._context, bundle.base
        files, sizes, content = rebuilt.files, rebuilt.sizes, rebuilt.content
        changed, singly = context.landing.commit_versions(files, base.paths, base.identities, content)
        left = {*changed, *singly}
        context.tally.advance(sum([size for row, size in enumerate(sizes) if row not in left]))
        if singly:
            ends = list(accumulate(sizes))
            now = identities_of(context.root, base.paths)
            for row in singly:
                if now[row] == base.identities[row]:
                    self._land_one(files[row], base, row, content[ends[row] - sizes[row] : ends[row]])
                else:
                    changed.append(row)
        for row in sorted(changed):
            self._descents.add(files[row])
        context.tally.literal_bytes += rebuilt.literals
        context.tally.reused_bytes += len(content) - rebuilt.literals

    def _land_one(self, file: int, base: Snapshot, row: int, content: bytes) -> None:
        context, path = self._context, base.paths[row]
        try:
            with Replacement(context.root, path, expected_size=len(content)) as temporary:
                temporary.write(content)
                temporary.hand_over()
        except FileError as error:
            context.problem(path, error)
            return
        metadata = context.metadata(file, None)
        context.landing.commit(file, path, temporary, metadata, base.identities[row])
        context.tally.advance(len(content))

    def _give_up(self, bundle: Bundle) -> None:
        for file in bundle.layout.order:
            self._descents.add(file)
        self._end(bundle)

    def _end(self, bundle: Bundle) -> None:
        self._held -= bundle.base.held
        del self._bundles[bundle.request.bundle]
