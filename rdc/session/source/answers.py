"""The source's answers to requests about files: roots, trees, nodes, blocks, ranges and bundles."""

from __future__ import annotations

from blake3 import blake3

from rdc.errors import FileChangedError, FileError, ProtocolError, printable
from rdc.kernel import block_fingerprints
from rdc.limits.wire import NODES_PER_ANSWER
from rdc.protocol import messages
from rdc.protocol.messages.content import COARSE_BELOW, COARSE_FROM, LEAF_WIDTH
from rdc.session.runtime.commands import Send
from rdc.session.source.file_roots import FileRoots
from rdc.session.source.holes import announced_holes
from rdc.session.source.signed_files import SourceSignatures
from rdc.signature.codec import SHORT_REFERENCE_BYTES, encode_records, group_references, root_reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rdc.catalog.signer import FileSigner
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.session.runtime.commands import Conversation
    from rdc.session.source.bundle_answers import BundleAnswers
    from rdc.session.source.demand import Demand
    from rdc.session.source.tree_description import Description

__all__ = ["FileAnswers"]


class FileAnswers:
    """Answers requests about the files of one description.

    If a file cannot be read, the answer is FileFailed, and the session goes on.
    """

    def __init__(
        self,
        root: Root,
        description: Description,
        secret: bytes,
        signer: FileSigner,
        listen: Callable[[], Conversation[None]],
        demand: Demand,
        *,
        pack: bool,
    ) -> None:
        """`secret`: the session's 16-byte key for short references. `listen`: shows the destination's events
        to the user while a long answer is sent. `demand`: limits what may be requested. `pack`: literals may
        be compressed."""
        self._root = root
        self._description = description
        self._secret = secret
        self._signer = signer
        self._listen = listen
        self._demand = demand
        self._pack = pack
        self._files = SourceSignatures(root, description, signer)
        self._roots = FileRoots(root, description, signer, self._files)
        self._bundles: BundleAnswers | None = None
        self._senders: Mapping[type[messages.Message], Callable[..., Conversation[None]]] = {
            messages.BlockRequest: self._answer_blocks,
            messages.BundleRequest: self._answer_bundle,
            messages.DigestRequest: self._send_digest,
            messages.NodeRequest: self._answer_nodes,
            messages.RangeRequest: self._answer_ranges,
            messages.RootRequest: self._send_roots,
            messages.TraitsRequest: self._send_traits,
            messages.TreeRequest: self._answer_trees,
        }

    def answer(self, message: messages.Message, round_: int) -> Conversation[None]:
        """Answers one request. Raises ProtocolError for messages that are no request about files."""
        send = self._senders.get(type(message))
        if send is None:
            raise ProtocolError(f"a source was sent {type(message).__name__}")
        yield from send(message, round_)

    def _answer_blocks(self, message: messages.BlockRequest, round_: int) -> Conversation[None]:
        return self._for_one(message.file, self._send_blocks(message, round_), round_)

    def _answer_ranges(self, message: messages.RangeRequest, round_: int) -> Conversation[None]:
        yield from self._for_one(message.file, self._send_ranges(message, round_), round_)
        self._forget(message.file)

    def _answer_bundle(self, message: messages.BundleRequest, round_: int) -> Conversation[None]:
        return self._for_one(message.bundle, self._send_bundle(message, round_), round_)

    def _answer_trees(self, message: messages.TreeRequest, round_: int) -> Conversation[None]:
        for file in message.files:
            yield from self._for_one(file, self._send_tree(file, message, round_), round_)

    def _answer_nodes(self, message: messages.NodeRequest, round_: int) -> Conversation[None]:
        return self._for_one(message.file, self._send_nodes(message, round_), round_)

    def _for_one(self, file: int, answer: Conversation[None], round_: int) -> Conversation[None]:
        """Sends an answer about one file; a FileError in it becomes FileFailed."""
        try:
            yield from answer
        except FileError as error:
            self._forget(file)
            yield Send(messages.FileFailed(file, error.code, str(error)), round_)

    def _send_roots(self, message: messages.RootRequest, round_: int) -> Conversation[None]:
        # Short references ask about files that were only touched. They are rarely compared again with the
        # same ctimes, so catalog rows for them would cost more than they save.
        found = yield from self._roots.find(message.files, round_, keep=message.width > SHORT_REFERENCE_BYTES)
        if found.files:
            references = group_references(found.roots, self._secret, message.width, message.group)
            sends_sizes = message.group == 1 and message.width > SHORT_REFERENCE_BYTES
            sizes = tuple(found.sizes) if sends_sizes else ()
            yield Send(messages.RootAnswer(tuple(found.files), sizes, references, message.group), round_)

    def _send_digest(self, message: messages.DigestRequest, round_: int) -> Conversation[None]:
        found = yield from self._roots.find(message.files, round_, keep=True)
        if found.files:
            yield Send(messages.DigestAnswer(blake3(found.roots).digest()), round_)

    def _send_traits(self, message: messages.TraitsRequest, round_: int) -> Conversation[None]:
        from rdc.similarity.coarse import coarse_traits

        files, sizes, roots, traits, coarse = [], [], bytearray(), bytearray(), bytearray()
        for file in message.files:
            try:
                with self._files.open(file) as source:
                    tree = self._files.sign(file, source).tree
                    near = COARSE_FROM <= tree.size < COARSE_BELOW
                    larger = coarse_traits(source.pread(0, tree.size)) if near else b""
            except FileError as error:
                yield Send(messages.FileFailed(file, error.code, str(error)), round_)
                continue
            files.append(file)
            sizes.append(tree.size)
            roots += root_reference(tree.root, self._secret, SHORT_REFERENCE_BYTES)
            traits += tree.traits or messages.NO_TRAITS
            if near:
                coarse += larger or messages.NO_TRAITS
        if files:
            columns = bytes(roots), bytes(traits), bytes(coarse)
            yield Send(messages.TraitsAnswer(tuple(files), tuple(sizes), *columns), round_)

    def _send_tree(self, file: int, asked: messages.TreeRequest, round_: int) -> Conversation[None]:
        fingerprints = b""
        entry = self._files.entry(file)
        with self._root.open_read(entry.path) as source:
            holes = announced_holes(file, source)
            signed, content = self._files.sign_whole(file, source)
            tree = signed.tree
            if asked.block and 0 < tree.size <= self._signer.params.max_size:
                data = content or source.pread(0, tree.size)
                if not content:
                    source.check_unchanged()
                fingerprints = block_fingerprints(self._secret, data, asked.block_of(tree.size), LEAF_WIDTH)
        if holes is not None:
            yield Send(holes, round_)
        records = b""
        if not fingerprints:
            records = encode_records(tree.top, range(tree.top.records), self._secret, asked.width)
        # The mtime of the version that was read, if it is not the listed one.
        found = signed.identity.mtime_ns
        mtime = None if entry.metadata.mtime_ns == found else found
        answer = messages.TreeAnswer(file, tree.size, tree.root, tree.height, mtime, records, fingerprints)
        yield Send(answer, round_)

    def _send_bundle(self, message: messages.BundleRequest, round_: int) -> Conversation[None]:
        if self._bundles is None:
            from rdc.session.source.bundle_answers import BundleAnswers

            self._bundles = BundleAnswers(self._root, self._secret, self._signer.params)
        yield Send(self._bundles.describe(message, self._description.manifest), round_)

    def _send_nodes(self, message: messages.NodeRequest, round_: int) -> Conversation[None]:
        if message.file not in self._files:
            self._demand.compare(self._files.entry(message.file).size)
        levels = self._files.signed(message.file).tree.levels
        # If the file changed and was signed again, its tree may lack requested nodes. If the peer sent wrong
        # numbers, only this file fails.
        if message.level + 1 >= len(levels) or message.nodes[-1] >= levels[message.level + 1].records:
            path = self._files.entry(message.file).path
            raise FileChangedError(path, f"{printable(path)}: changed while it was synced; run again")
        above, level = levels[message.level + 1], levels[message.level]
        for start in range(0, len(message.nodes), NODES_PER_ANSWER):
            nodes = message.nodes[start : start + NODES_PER_ANSWER]
            records = tuple(
                encode_records(level, above.children(node), self._secret, message.width) for node in nodes
            )
            yield Send(messages.NodeAnswer(message.file, message.level, nodes, records), round_)

    def _send_blocks(self, message: messages.BlockRequest, round_: int) -> Conversation[None]:
        from rdc.session.source.range_answers import cached_fingerprints, read_fingerprints

        content = self._files.content(message.file)
        if message.end <= len(content):
            # The content in memory is the signed version, which the request is about.
            found = cached_fingerprints(content, message, self._secret)
        else:
            with self._opened_again(message) as source:
                found = read_fingerprints(source, message, self._secret)
        yield Send(messages.BlockAnswer(message.file, found), round_)

    def _send_ranges(self, message: messages.RangeRequest, round_: int) -> Conversation[None]:
        from rdc.session.source.range_answers import packed_ranges, ranges

        with self._opened_again(message) as source:
            if message.pack and self._pack:
                yield from packed_ranges(source, message, self._secret, round_)
            else:
                yield from ranges(source, message, self._secret, round_, code=self._pack, listen=self._listen)

    def _opened_again(self, message: messages.BlockRequest | messages.RangeRequest) -> SourceFile:
        """Opens the file or bundle of a request. Raises FileError if it changed since it was signed, or is
        too short."""
        from rdc.session.source.range_answers import end_of

        if self._bundles is not None and message.file >= len(self._description.manifest):
            return self._bundles.open(message)
        return self._files.open_again(message.file, end_of(message))

    def _forget(self, file: int) -> None:
        """Forgets a file or bundle: no more requests about it follow."""
        if self._bundles is not None:
            self._bundles.forget(file)
        self._files.forget(file)
