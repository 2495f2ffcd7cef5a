"""What a source answers about its files: roots, trees, nodes, blocks and ranges, singly or in bundles."""

from __future__ import annotations

from blake3 import blake3

from rdc.errors import FileChangedError, FileError, ProtocolError, printable
from rdc.kernel import block_fingerprints
from rdc.limits import NODES_PER_ANSWER
from rdc.protocol.comparison import LEAF_WIDTH
from rdc.protocol.messages import (
    NO_TRAITS,
    BlockAnswer,
    BlockRequest,
    BundleRequest,
    DigestAnswer,
    DigestRequest,
    FileFailed,
    NodeAnswer,
    NodeRequest,
    RangeRequest,
    RootAnswer,
    RootRequest,
    TraitsAnswer,
    TraitsRequest,
    TreeAnswer,
    TreeRequest,
)
from rdc.protocol.origins import COARSE_BELOW, COARSE_FROM
from rdc.session.asked_files import AskedFiles
from rdc.session.commands import Send
from rdc.session.file_roots import FileRoots
from rdc.signature.records import SHORT_REFERENCE_BYTES, encode_records, group_references, root_reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.catalog.signer import FileSigner
    from rdc.files.confined import Root
    from rdc.files.source import SourceFile
    from rdc.protocol.messages import Message
    from rdc.session.bundle_source import SourceBundles
    from rdc.session.commands import Conversation
    from rdc.session.description import Description

__all__ = ["FileAnswers"]


class FileAnswers:
    """Of the files of one description. One file's failure is an answer, not the end of the session."""

    def __init__(
        self,
        root: Root,
        description: Description,
        secret: bytes,
        signer: FileSigner,
        listen: Callable[[], Conversation[None]],
        *,
        pack: bool,
    ) -> None:
        """`secret`: the session's 16-byte key for short references. `listen`: lets the user see what the
        destination tells while a long answer is sent. `pack`: literals may be compressed."""
        self._root = root
        self._description = description
        self._secret = secret
        self._signer = signer
        self._listen = listen
        self._pack = pack
        self._files = AskedFiles(root, description, signer)
        self._roots = FileRoots(root, description, signer, self._files)
        self._bundles: SourceBundles | None = None

    def answer(self, message: Message, round_: int) -> Conversation[None]:
        """ProtocolError for what is no question about files."""
        if isinstance(message, BlockRequest):
            yield from self._for_one(message.file, self._send_blocks(message, round_), round_)
        elif isinstance(message, RangeRequest):
            yield from self._for_one(message.file, self._send_ranges(message, round_), round_)
            self._forget(message.file)
        elif isinstance(message, BundleRequest):
            yield from self._for_one(message.bundle, self._send_bundle(message, round_), round_)
        elif isinstance(message, RootRequest):
            yield from self._send_roots(message, round_)
        elif isinstance(message, DigestRequest):
            yield from self._send_digest(message, round_)
        elif isinstance(message, TraitsRequest):
            yield from self._send_traits(message, round_)
        elif isinstance(message, TreeRequest):
            for file in message.files:
                yield from self._for_one(file, self._send_tree(file, message, round_), round_)
        elif isinstance(message, NodeRequest):
            yield from self._for_one(message.file, self._send_nodes(message, round_), round_)
        else:
            raise ProtocolError(f"a source was sent {type(message).__name__}")

    def _for_one(self, file: int, answer: Conversation[None], round_: int) -> Conversation[None]:
        try:
            yield from answer
        except FileError as error:
            self._forget(file)
            yield Send(FileFailed(file, error.code, str(error)), round_)

    def _send_roots(self, message: RootRequest, round_: int) -> Conversation[None]:
        # Short references are for files that were only touched, at one end or the other: that they are to be
        # compared once more with the same ctimes here is rare, and a row in the catalog for each is not.
        found = yield from self._roots.find(message.files, round_, keep=message.width > SHORT_REFERENCE_BYTES)
        if found.files:
            references = group_references(found.roots, self._secret, message.width, message.group)
            told = message.group == 1 and message.width > SHORT_REFERENCE_BYTES
            sizes = tuple(found.sizes) if told else ()
            yield Send(RootAnswer(tuple(found.files), sizes, references, message.group), round_)

    def _send_digest(self, message: DigestRequest, round_: int) -> Conversation[None]:
        found = yield from self._roots.find(message.files, round_, keep=True)
        if found.files:
            yield Send(DigestAnswer(blake3(found.roots).digest()), round_)

    def _send_traits(self, message: TraitsRequest, round_: int) -> Conversation[None]:
        from rdc.similarity.coarse import coarse_traits

        files, sizes, roots, traits, coarse = [], [], bytearray(), bytearray(), bytearray()
        for file in message.files:
            try:
                with self._files.open(file) as source:
                    tree = self._files.sign(file, source).tree
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
        entry = self._files.entry(file)
        with self._root.open_read(entry.path) as source:
            signed, content = self._files.sign_whole(file, source)
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

            self._bundles = SourceBundles(self._root, self._secret, self._signer.params)
        yield Send(self._bundles.describe(message, self._description.manifest), round_)

    def _send_nodes(self, message: NodeRequest, round_: int) -> Conversation[None]:
        levels = self._files.signed(message.file).tree.levels
        # A tree made anew after the file changed may lack what the first one had. Where a peer makes such
        # numbers up, it is still this file alone that fails.
        if message.level + 1 >= len(levels) or message.nodes[-1] >= levels[message.level + 1].records:
            path = self._files.entry(message.file).path
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

        content = self._files.content(message.file)
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
        """The file or bundle that the ranges are of, if it is still the one that was signed and has them
        all."""
        from rdc.session.range_answers import end_of

        if self._bundles is not None and message.file >= len(self._description.manifest):
            return self._bundles.open(message)
        return self._files.open_again(message.file, end_of(message))

    def _forget(self, file: int) -> None:
        """Nothing more is going to be asked about this file or bundle."""
        if self._bundles is not None:
            self._bundles.forget(file)
        self._files.forget(file)
