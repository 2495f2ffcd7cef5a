"""The source's half of a sync: describes its tree and answers what the destination asks about its files."""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

from blake3 import blake3

from rdc.errors import ExitCode, FileChangedError, FileError, ProtocolError, printable
from rdc.files.keeping import kept_by
from rdc.files.source import HeldContent
from rdc.kernel import block_fingerprints
from rdc.limits import (
    HELD_CONTENT_BYTES,
    HELD_FILE_BYTES,
    NODES_PER_ANSWER,
    OPENED_FILES,
    OPENED_FILES_LEAST,
    ROOTS_REMEMBERED,
    SOURCE_TREES_BYTES,
)
from rdc.model.entries import Kind
from rdc.model.kept import Kept
from rdc.protocol.comparison import LEAF_WIDTH
from rdc.protocol.messages import (
    NO_TRAITS,
    BlockAnswer,
    BlockRequest,
    BundleRequest,
    Describe,
    DigestAnswer,
    DigestRequest,
    Done,
    FileFailed,
    FileRequest,
    Hello,
    NodeAnswer,
    NodeRequest,
    Opened,
    RangeRequest,
    RootAnswer,
    RootRequest,
    RowsRequest,
    Start,
    TierRequest,
    TraitsAnswer,
    TraitsRequest,
    TreeAnswer,
    TreeRequest,
)
from rdc.protocol.origins import COARSE_BELOW, COARSE_FROM
from rdc.records import dataclass
from rdc.session.description import Description
from rdc.session.driver import Flush, Receive, Send
from rdc.session.file_sender import FileSender
from rdc.session.news import News
from rdc.session.place import ANYWHERE
from rdc.signature.records import SHORT_REFERENCE_BYTES, encode_records, group_references, root_reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.catalog.signer import FileSigner
    from rdc.files.confined import Root
    from rdc.files.source import SourceFile
    from rdc.model.entries import Identity
    from rdc.model.sync import SyncOptions
    from rdc.protocol.connection import Received
    from rdc.session.boundary import Boundary
    from rdc.session.bundle_source import SourceBundles
    from rdc.session.driver import Conversation
    from rdc.session.place import Site
    from rdc.session.root_memory import RootMemory
    from rdc.signature.tree import SignatureTree
    from rdc.tree.filters import FilterList
    from rdc.tree.manifest import Entry

__all__ = ["Source", "SourceTree"]

SIGNED_OBJECT_BYTES = 2048
"""Bytes of a remembered tree besides its columns: 1,350 to 2,150 were measured, and the look-up's own."""


@dataclass(frozen=True, slots=True)
class SourceTree:
    """What is to be sent: a directory's contents, or one entry of a directory."""

    root: Root
    only: bytes | None
    """The one entry, where the path had no trailing slash (rsync's rule)."""

    @classmethod
    def open(cls, path: bytes, site: Site = ANYWHERE) -> SourceTree:
        """Raises FileError when there is nothing at `path`."""
        name = os.path.basename(path)
        if name in (b"", b".", b".."):
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

    def start(self) -> Start:
        name = b"" if self.only is None else self.only
        found = self.root.metadata(name)
        kind = self.root.kind(name)
        if kind is None:
            raise FileError(name, f"{printable(name)}: vanished before it was synced", code=ExitCode.VANISHED)
        return Start(name, kind, found, kept_by(self.root, probe=False))


@dataclass(frozen=True, slots=True)
class _Signed:
    tree: SignatureTree
    identity: Identity
    memory: int
    """What remembering it takes: small files are many, and mostly objects."""
    path: bytes


@dataclass(frozen=True, slots=True)
class _Rooted:
    """Files and, one each, their sizes in bytes and their roots."""

    files: list[int]
    sizes: list[int]
    roots: list[bytes]


class Source:
    """One source conversation. `secret`: the session's 16-byte key for short references."""

    def __init__(
        self,
        tree: SourceTree,
        filters: FilterList,
        secret: bytes,
        signer: FileSigner,
        news: News,
        *,
        offer: bool | None = None,
        pack: bool = True,
        boundary: Boundary | None = None,
        hard_links: bool = False,
    ) -> None:
        """`offer`: this side dialled, and is to offer its manifest before it is asked, with owners or
        without: a guess at what the destination keeps, and a round trip less where it is right. `pack`:
        literals may be compressed."""
        self._offer = offer
        self._pack = pack
        self._tree = tree
        self._secret = secret
        self._signer = signer
        self._news = news
        self._description = Description(tree, filters, secret, news, boundary, hard_links=hard_links)
        self._sender = FileSender(tree.root, self._description, self._listen)
        self._heard: deque[Received] = deque()
        self._signed: OrderedDict[int, _Signed] = OrderedDict()
        self._signed_bytes = 0
        self._bundles: SourceBundles | None = None
        self._roots_read: RootMemory | None = None
        """Of small files that the catalog is not told of."""
        self._contents: dict[int, bytes] = {}
        """Of signed files that are small, as they were then, while there is room."""
        self._contents_bytes = 0

    def run(self, heard: Received | None = None) -> Conversation[Done]:
        """Describes the tree as it is asked to, answers, and ends with the destination's account. `heard`: a
        message that came already."""
        if heard is not None:
            self._heard.append(heard)
        offered = None
        if self._offer is not None:
            start = self._tree.start()
            yield Send(start, 0)
            yield Flush()
            guess = Kept(self._offer).both(start.kept)
            if (yield from self._description.offer(guess, 0, self._declined)):
                offered = guess
        describe, round_ = yield from self._described()
        if self._offer is None:
            start = self._tree.start()
            yield Send(start, round_)
        kept = describe.kept.both(start.kept)
        if not describe.whole and kept == offered:
            pass  # it is being looked into
        elif describe.whole:
            yield from self._description.send_listing(round_, self._poll)
        else:
            yield Flush()
            yield from self._description.offer(kept, round_, again=offered is not None)
        while True:
            received = self._heard.popleft() if self._heard else (yield Receive())
            if received is None:
                continue
            if isinstance(received.message, Done):
                return received.message
            yield from self._serve(received)

    def _described(self) -> Conversation[tuple[Describe, int]]:
        while True:
            received = self._heard.popleft() if self._heard else (yield Receive())
            if received is None or isinstance(received.message, Hello | Opened):
                continue
            if self._news.take(received.message):
                continue
            if not isinstance(received.message, Describe):
                raise ProtocolError(f"expected Describe, found {type(received.message).__name__}")
            return received.message, received.round + 1

    def _declined(self) -> Conversation[bool]:
        """Whether the destination has asked for the listing by now."""
        while (received := (yield Receive(wait=False))) is not None:
            self._heard.append(received)
        messages = [received.message for received in self._heard]
        return any(isinstance(message, Describe) and message.whole for message in messages)

    @property
    def files(self) -> int:
        """Regular files in the tree, after filters."""
        return self._description.files

    @property
    def total_bytes(self) -> int:
        """Their bytes."""
        return self._description.total_bytes

    def _poll(self) -> Conversation[None]:
        while (received := self._heard.popleft() if self._heard else (yield Receive(wait=False))) is not None:
            yield from self._serve(received)

    def _listen(self) -> Conversation[None]:
        """Shows the user what the destination tells meanwhile; what it asks has to wait for its turn. Open
        requests are bounded by the protocol, so what is heard is too."""
        if self._news.shown:
            while (received := (yield Receive(wait=False))) is not None:
                if not self._news.take(received.message):
                    self._heard.append(received)

    def _serve(self, received: Received) -> Conversation[None]:
        message, round_ = received.message, received.round + 1
        if self._news.take(message):
            return
        if isinstance(message, BlockRequest):
            yield from self._answer(message.file, self._send_blocks(message, round_), round_)
        elif isinstance(message, RangeRequest):
            yield from self._answer(message.file, self._send_ranges(message, round_), round_)
            self._forget(message.file)
        elif isinstance(message, BundleRequest):
            yield from self._answer(message.bundle, self._send_bundle(message, round_), round_)
        elif isinstance(message, TierRequest):
            yield from self._description.send_tier(message, round_)
        elif isinstance(message, RowsRequest):
            yield from self._description.send_rows(message, round_)
        elif isinstance(message, Describe) and message.whole:
            yield from self._description.send_listing(round_, self._poll)
        elif isinstance(message, RootRequest):
            yield from self._roots(message, round_)
        elif isinstance(message, DigestRequest):
            yield from self._send_digest(message, round_)
        elif isinstance(message, TraitsRequest):
            yield from self._send_traits(message, round_)
        elif isinstance(message, TreeRequest):
            for file in message.files:
                yield from self._answer(file, self._send_tree(file, message, round_), round_)
        elif isinstance(message, NodeRequest):
            yield from self._answer(message.file, self._send_nodes(message, round_), round_)
        elif isinstance(message, FileRequest):
            yield from self._sender.send(message.files, round_)
        else:
            raise ProtocolError(f"a source was sent {type(message).__name__}")

    def _answer(self, file: int, answer: Conversation[None], round_: int) -> Conversation[None]:
        """One file's failure is an answer, not the end of the session."""
        try:
            yield from answer
        except FileError as error:
            self._forget(file)
            yield Send(FileFailed(file, error.code, str(error)), round_)

    def _roots(self, message: RootRequest, round_: int) -> Conversation[None]:
        # Short references are for files that were only touched, at one end or the other: that they are to be
        # compared once more with the same ctimes here is rare, and a row in the catalog for each is not.
        found = yield from self._rooted(message.files, round_, keep=message.width > SHORT_REFERENCE_BYTES)
        if found.files:
            references = group_references(found.roots, self._secret, message.width, message.group)
            told = message.group == 1 and message.width > SHORT_REFERENCE_BYTES
            sizes = tuple(found.sizes) if told else ()
            yield Send(RootAnswer(tuple(found.files), sizes, references, message.group), round_)

    def _send_digest(self, message: DigestRequest, round_: int) -> Conversation[None]:
        found = yield from self._rooted(message.files, round_, keep=True)
        if found.files:
            yield Send(DigestAnswer(blake3(b"".join(found.roots)).digest()), round_)

    def _rooted(self, files: Sequence[int], round_: int, *, keep: bool) -> Conversation[_Rooted]:
        """Those of `files` that can be read; of the others it is said that they cannot. `keep`: the catalog
        is told of the small ones too."""
        found = _Rooted([], [], [])
        for at in range(0, len(files), OPENED_FILES):
            part = files[at : at + OPENED_FILES]
            sizes, roots = self._many_roots(part, keep=keep)
            for file, size, root in zip(part, sizes, roots, strict=True):
                if not root:
                    try:
                        with self._open(file) as source:
                            size, root = source.size, self._root(file, source)  # noqa: PLW2901
                    except FileError as error:
                        yield Send(FileFailed(file, error.code, str(error)), round_)
                        continue
                found.files.append(file)
                found.sizes.append(size)
                found.roots.append(root)
        return found

    def _many_roots(self, files: Sequence[int], *, keep: bool) -> tuple[list[int], list[bytes]]:
        """Sizes and roots of those of these files that go together; b"" for a root of the others."""
        if len(files) < OPENED_FILES_LEAST:
            return [0] * len(files), [b""] * len(files)
        from rdc.session.many_roots import many_roots

        manifest = self._description.manifest
        for file in files:
            if file >= len(manifest) or manifest.kinds[file] != Kind.FILE:
                raise _no_file(file)
        if self._roots_read is None and not keep and len(manifest) <= ROOTS_REMEMBERED:
            from rdc.session.root_memory import RootMemory

            self._roots_read = RootMemory(len(manifest))
        keep, memory = keep or self._roots_read is None, None if keep else self._roots_read
        with many_roots(self._tree.root, manifest, files, self._signer, keep=keep, memory=memory) as found:
            return found.sizes, found.roots

    def _root(self, file: int, source: SourceFile) -> bytes:
        """One that the catalog knows spares the chunk list too."""
        known = self._signer.catalog.root(source, self._signer.params)
        return known or self._sign(file, source).tree.root

    def _send_traits(self, message: TraitsRequest, round_: int) -> Conversation[None]:
        from rdc.similarity.coarse import coarse_traits

        files, sizes, roots, traits, coarse = [], [], bytearray(), bytearray(), bytearray()
        for file in message.files:
            try:
                with self._open(file) as source:
                    tree = self._sign(file, source).tree
                    near = COARSE_FROM <= tree.size < COARSE_BELOW
                    larger = coarse_traits(source.pread(0, tree.size)) if near else b""
            except FileError as error:
                yield Send(FileFailed(file, error.code, str(error)), round_)
                continue
            files.append(file)
            sizes.append(tree.size)
            roots += root_reference(tree.root, self._secret, SHORT_REFERENCE_BYTES)
            traits += tree.traits or NO_TRAITS
            if near:
                coarse += larger or NO_TRAITS
        if files:
            columns = bytes(roots), bytes(traits), bytes(coarse)
            yield Send(TraitsAnswer(tuple(files), tuple(sizes), *columns), round_)

    def _send_tree(self, file: int, asked: TreeRequest, round_: int) -> Conversation[None]:
        fingerprints = b""
        entry = self._entry(file)
        with self._tree.root.open_read(entry.path) as source:
            signed, content = self._sign_whole(file, source)
            tree = signed.tree
            if asked.block and 0 < tree.size <= self._signer.params.max_size:
                data = content or source.pread(0, tree.size)
                if not content:
                    source.check_unchanged()
                fingerprints = block_fingerprints(self._secret, data, asked.block_of(tree.size), LEAF_WIDTH)
        records = b""
        if not fingerprints:
            records = encode_records(tree.top, range(tree.top.records), self._secret, asked.width)
        # Of what was read, where it is not the listed one any more.
        found = signed.identity.mtime_ns
        mtime = None if entry.metadata.mtime_ns == found else found
        answer = TreeAnswer(file, tree.size, tree.root, tree.height, mtime, records, fingerprints)
        yield Send(answer, round_)

    def _send_bundle(self, message: BundleRequest, round_: int) -> Conversation[None]:
        if self._bundles is None:
            from rdc.session.bundle_source import SourceBundles

            self._bundles = SourceBundles(self._tree.root, self._secret, self._signer.params)
        yield Send(self._bundles.describe(message, self._description.manifest), round_)

    def _send_nodes(self, message: NodeRequest, round_: int) -> Conversation[None]:
        signed = self._signed.get(message.file)
        if signed is None:
            with self._open(message.file) as source:
                signed = self._sign(message.file, source)
        levels = signed.tree.levels
        # A tree made anew after the file changed may lack what the first one had. Where a peer makes such
        # numbers up, it is still this file alone that fails.
        if message.level + 1 >= len(levels) or message.nodes[-1] >= levels[message.level + 1].records:
            path = self._entry(message.file).path
            raise FileChangedError(path, f"{printable(path)}: changed while it was synced; run again")
        above, level = levels[message.level + 1], levels[message.level]
        for start in range(0, len(message.nodes), NODES_PER_ANSWER):
            nodes = message.nodes[start : start + NODES_PER_ANSWER]
            records = tuple(
                encode_records(level, above.children(node), self._secret, message.width) for node in nodes
            )
            yield Send(NodeAnswer(message.file, message.level, nodes, records), round_)

    def _send_blocks(self, message: BlockRequest, round_: int) -> Conversation[None]:
        from rdc.session.range_answers import held_fingerprints, read_fingerprints

        content = self._contents.get(message.file, b"")
        if message.end <= len(content):
            # As it was when it was signed, which is what was asked about.
            found = held_fingerprints(content, message, self._secret)
        else:
            with self._opened_again(message) as source:
                found = read_fingerprints(source, message, self._secret)
        yield Send(BlockAnswer(message.file, found), round_)

    def _send_ranges(self, message: RangeRequest, round_: int) -> Conversation[None]:
        from rdc.session.range_answers import packed_ranges, ranges

        with self._opened_again(message) as source:
            if message.pack and self._pack:
                yield from packed_ranges(source, message, self._secret, round_)
            else:
                yield from ranges(source, message, self._secret, round_, code=self._pack, listen=self._listen)

    def _opened_again(self, message: BlockRequest | RangeRequest) -> SourceFile:
        from rdc.session.range_answers import end_of

        """The file or bundle that the ranges are of, if it is still the one that was signed and has them
        all."""
        if self._bundles is not None and message.file >= len(self._description.manifest):
            return self._bundles.open(message)
        signed = self._signed.get(message.file)
        path = self._entry(message.file).path if signed is None else signed.path
        content = self._contents.get(message.file)
        source: SourceFile
        if signed is not None and content is not None:
            source = HeldContent(self._tree.root, path, signed.identity, content)
        else:
            source = self._tree.root.open_read(path)
        end = end_of(message)
        if signed is not None and source.identity != signed.identity:
            why = "changed while it was synced"
        elif end > source.size:
            why = "shorter than when it was signed"
        else:
            return source
        source.close()
        raise FileChangedError(path, f"{printable(path)}: {why}")

    def _entry(self, file: int) -> Entry:
        manifest = self._description.manifest
        entry = manifest.entry(file) if file < len(manifest) else None
        if entry is None or entry.kind != Kind.FILE:
            raise _no_file(file)
        return entry

    def _open(self, file: int) -> SourceFile:
        return self._tree.root.open_read(self._entry(file).path)

    def _sign(self, file: int, source: SourceFile) -> _Signed:
        """The file's tree, remembered within bounds: the destination asks about few files at a time."""
        kept = self._signed.get(file)
        if kept is not None and kept.identity == source.identity:
            return kept
        self._forget(file)
        tree = self._signer.sign(source)
        signed = _Signed(tree, source.identity, tree.memory + SIGNED_OBJECT_BYTES, source.path)
        self._signed[file] = signed
        self._signed_bytes += signed.memory
        while self._signed_bytes > SOURCE_TREES_BYTES and len(self._signed) > 1:
            self._forget(next(iter(self._signed)))
        return signed

    def _sign_whole(self, file: int, source: SourceFile) -> tuple[_Signed, bytes]:
        """As `_sign`, and the content of a small file: remembered with the tree while there is room."""
        if source.size > HELD_FILE_BYTES:
            return self._sign(file, source), b""
        spans: list[bytes] = []
        source.on_span = spans.append
        signed = self._sign(file, source)
        content = b"".join(spans)
        if not content and source.size:
            # Its tree was known.
            content = source.pread(0, source.size)
            source.check_unchanged()
        if file not in self._contents and self._contents_bytes + len(content) <= HELD_CONTENT_BYTES:
            self._contents[file] = content
            self._contents_bytes += len(content)
        return signed, content

    def _forget(self, file: int) -> None:
        if self._bundles is not None:
            self._bundles.forget(file)
        signed = self._signed.pop(file, None)
        if signed is not None:
            self._signed_bytes -= signed.memory
        self._contents_bytes -= len(self._contents.pop(file, b""))


def _no_file(file: int) -> ProtocolError:
    return ProtocolError(f"the far side asked for entry {file}, which is no listed regular file")
