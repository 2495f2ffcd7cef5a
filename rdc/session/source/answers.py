"""Answers of a source about its files: roots, trees of digests, and who answers the rest."""

from __future__ import annotations

from array import array
from collections import OrderedDict

from blake3 import blake3

from rdc.errors import FileChangedError, FileError, ProtocolError, printable
from rdc.files.base.directory_descriptors import is_unchanged
from rdc.files.bulk.open_many import MemoryFile, most_opened
from rdc.kernel import block_fingerprints, take_rows
from rdc.lean.records import Record
from rdc.limits import (
    BUNDLED_FILE_BYTES,
    CACHED_CONTENT_BYTES,
    CACHED_FILE_BYTES,
    NODES_PER_ANSWER,
    OPENED_FILES_LEAST,
    ROOTS_REMEMBERED,
    SOURCE_TREES_BYTES,
    TOP_RECORDS,
)
from rdc.model.entries import Identity, Kind
from rdc.protocol import messages
from rdc.protocol.messages import FileFailed
from rdc.protocol.messages.content import COARSE_BELOW, COARSE_FROM, LEAF_WIDTH
from rdc.session.binaries import looks_like
from rdc.session.runtime.commands import Conversation, Send
from rdc.session.source.range_answers import (
    BundleAnswers,
    announced_holes,
    cached_fingerprints,
    end_of,
    packed_ranges,
    ranges,
    read_fingerprints,
)
from rdc.session.source.tree_description import Demand, Description, no_file
from rdc.signature.codec import SHORT_REFERENCE_BYTES, encode_records, group_references, root_reference
from rdc.signature.tree import DIGEST_BYTES, SignatureTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rdc.catalog.signer import FileSigner
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.session.trees.small_file_digests import DigestCache, SmallFileDigests
    from rdc.tree.manifest import Entry


# Signatures of the source's files: each file is signed once, and cached between requests.

SIGNED_OBJECT_BYTES = 2048
"""Memory in bytes of a cached tree besides its columns, its dictionary entry included. The objects take 1,350
to 2,150 bytes (measured)."""


class SourceSignature(Record):
    """The signature of one version of a file."""

    tree: SignatureTree
    identity: Identity
    memory: int
    """Bytes of memory that it takes."""
    path: bytes


class SourceSignatures:
    """Signatures by row in the manifest.

    The last signatures that fit into SOURCE_TREES_BYTES are cached, but at least one. The content of small
    files is cached too, up to CACHED_CONTENT_BYTES. All answers about a file are about one version. A later
    version raises FileChangedError, or is signed again if no earlier answer depends on the old one.
    """

    def __init__(self, root: Root, description: Description, signer: FileSigner) -> None:
        self._root = root
        self._description = description
        self._signer = signer
        self._signed: OrderedDict[int, SourceSignature] = OrderedDict()
        self._signed_bytes = 0
        self._contents: dict[int, bytes] = {}
        """Content of small signed files, while there is room."""
        self._contents_bytes = 0

    def __contains__(self, file: int) -> bool:
        """Tell whether the signature of `file` is cached."""
        return file in self._signed

    def entry(self, file: int) -> Entry:
        """Return the manifest's entry. Raises ProtocolError unless it is a regular file."""
        manifest = self._description.manifest
        entry = manifest.entry(file) if file < len(manifest) else None
        if entry is None or entry.kind != Kind.FILE:
            raise no_file(file)
        return entry

    def open(self, file: int) -> SourceFile:
        """Open the current version. Raises FileError if it cannot be read."""
        return self._root.open_read(self.entry(file).path)

    def open_again(self, file: int, end: int) -> SourceFile:
        """Open the signed version, or the current one if no signature is cached.

        Raises FileChangedError if the file changed since it was signed, or has fewer than `end` bytes.
        """
        signed = self._signed.get(file)
        path = self.entry(file).path if signed is None else signed.path
        content = self._contents.get(file)
        source: SourceFile
        if signed is not None and content is not None:
            source = MemoryFile(self._root, path, signed.identity, content)
        else:
            source = self._root.open_read(path)
        if signed is not None and not is_unchanged(signed.identity, source.identity):
            why = "changed while it was synced"
        elif end > source.size:
            why = "shorter than when it was signed"
        else:
            return source
        source.close()
        raise FileChangedError(path, f"{printable(path)}: {why}")

    def signed(self, file: int) -> SourceSignature:
        """Return the cached signature, or sign the current version. Raises FileError."""
        signed = self._signed.get(file)
        if signed is None:
            with self.open(file) as source:
                signed = self.sign(file, source)
        return signed

    def content(self, file: int) -> bytes:
        """Return the content of the signed version, or b"" if it is not cached."""
        return self._contents.get(file, b"")

    def sign(self, file: int, source: SourceFile) -> SourceSignature:
        """Sign the open version, unless its signature is cached. Raises FileError."""
        cached = self._signed.get(file)
        if cached is not None and is_unchanged(cached.identity, source.identity):
            return cached
        self.forget(file)
        tree = self._signer.sign(source)
        signed = SourceSignature(tree, source.identity, tree.memory + SIGNED_OBJECT_BYTES, source.path)
        self._signed[file] = signed
        self._signed_bytes += signed.memory
        while self._signed_bytes > SOURCE_TREES_BYTES and len(self._signed) > 1:
            self.forget(next(iter(self._signed)))
        return signed

    def sign_whole(self, file: int, source: SourceFile) -> tuple[SourceSignature, bytes]:
        """Do what `sign` does; also return the content of a small file, and cache it if there is room."""
        if source.size > CACHED_FILE_BYTES:
            return self.sign(file, source), b""
        spans: list[bytes] = []
        source.on_span = spans.append
        signed = self.sign(file, source)
        content = b"".join(spans)
        if not content and source.size:
            # The catalog knew the tree, so signing did not read the file.
            content = source.pread(0, source.size)
            source.check_unchanged()
        if file not in self._contents and self._contents_bytes + len(content) <= CACHED_CONTENT_BYTES:
            self._contents[file] = content
            self._contents_bytes += len(content)
        return signed, content

    def forget(self, file: int) -> None:
        """Drop signature and content of a file from the cache."""
        signed = self._signed.pop(file, None)
        if signed is not None:
            self._signed_bytes -= signed.memory
        self._contents_bytes -= len(self._contents.pop(file, b""))


# Roots of the source's files: small files are read in bulk, the others one by one.

_NO_FILE = bytes(kind != Kind.FILE for kind in range(256))
"""A table for bytes.translate: 1 for every kind that is no regular file."""


class Rooted(Record):
    """Files with their roots."""

    files: list[int]
    sizes: list[int]
    """Bytes of each file."""
    roots: bytearray
    """DIGEST_BYTES per file, back to back."""


class FileRoots:
    """Finds roots of files of one description."""

    def __init__(
        self, root: Root, description: Description, signer: FileSigner, files: SourceSignatures
    ) -> None:
        """`files`: signs those that are not read in bulk."""
        self._root = root
        self._description = description
        self._signer = signer
        self._files = files
        self._read: DigestCache | None = None
        """Digests of small files that do not go into the catalog."""

    def find(self, files: Sequence[int], round_: int, *, keep: bool) -> Conversation[Rooted]:
        """Return the roots of all `files` that can be read, and send FileFailed for the others.

        `keep`: small files go into the catalog too. Raises ProtocolError for entries that are no files.
        """
        found = Rooted([], [], bytearray())
        most = most_opened()
        for at in range(0, len(files), most):
            part = files[at : at + most]
            many = self._many(part, keep=keep)
            if not many.missing:
                found.files.extend(part)
                found.sizes.extend(many.sizes)
                found.roots.extend(many.roots)
                continue
            missing = set(many.missing)
            for row, file in enumerate(part):
                size, root = many.sizes[row], many.roots[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES]
                if row in missing:
                    try:
                        with self._files.open(file) as source:
                            size, root = source.size, self._one(file, source)
                    except FileError as error:
                        yield Send(FileFailed(file, error.code, str(error)), round_)
                        continue
                found.files.append(file)
                found.sizes.append(size)
                found.roots.extend(root)
        return found

    def _many(self, files: Sequence[int], *, keep: bool) -> SmallFileDigests:
        """Read small files in bulk and return their sizes and roots. Other files are `missing`."""
        from rdc.session.trees.small_file_digests import SmallFileDigests, small_file_digests

        if len(files) < OPENED_FILES_LEAST:
            return SmallFileDigests.none(len(files), [0] * len(files))
        manifest = self._description.manifest
        entries, kinds = len(manifest), manifest.kinds
        if files[-1] >= entries or any(take_rows(kinds, 1, array("Q", files)).translate(_NO_FILE)):
            raise no_file(next(file for file in files if file >= entries or kinds[file] != Kind.FILE))
        if self._read is None and not keep and len(manifest) <= ROOTS_REMEMBERED:
            from rdc.session.trees.small_file_digests import DigestCache

            self._read = DigestCache(len(manifest))
        keep, memory = keep or self._read is None, None if keep else self._read
        with small_file_digests(self._root, manifest, files, self._signer, keep=keep, memory=memory) as found:
            return found

    def _one(self, file: int, source: SourceFile) -> bytes:
        """Return the root of one file, from the catalog if it knows the file."""
        known = self._signer.catalog.root(source, self._signer.params)
        return known or self._files.sign(file, source).tree.root


# The source's answers to requests about files: roots, trees, nodes, blocks, ranges and bundles.


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

    def tell_blocks(self, files: Sequence[int], block: int, round_: int) -> Conversation[None]:
        """Send the fingerprints of the blocks of these files unasked, `block` bytes as in a BundleRequest.
        BundleAnswers about them need none then."""
        if self._bundles is None:
            self._bundles = BundleAnswers(self._root, self._secret)
        likely = self._bundles.tell_blocks(files, block, self._description.manifest)
        if likely is not None:
            yield Send(likely, round_)

    def forget_told(self) -> None:
        """Note that the destination dropped the blocks that were sent unasked. It does so when it asks for
        the whole listing again."""
        if self._bundles is not None:
            self._bundles.forget_told()

    def answer(self, message: messages.Message, round_: int) -> Conversation[None]:
        """Answer one request. Raises ProtocolError for messages that are no request about files."""
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
        """Send an answer about one file; a FileError in it becomes FileFailed."""
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
        from rdc.similarity.traits import coarse_traits

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
            if asked.block and 0 < tree.size <= BUNDLED_FILE_BYTES and not self._is_masked(source):
                data = content or source.pread(0, tree.size)
                if not content:
                    source.check_unchanged()
                fingerprints = block_fingerprints(self._secret, data, asked.block_of(tree.size), LEAF_WIDTH)
        if holes is not None:
            yield Send(holes, round_)
        records, height = b"", 0
        if not fingerprints:
            height = tree.described_by(TOP_RECORDS)
            level = tree.levels[height]
            records = encode_records(level, range(level.records), self._secret, asked.width)
        # The mtime of the version that was read, if it is not the listed one.
        found = signed.identity.mtime_ns
        mtime = None if entry.metadata.mtime_ns == found else found
        answer = messages.TreeAnswer(file, tree.size, tree.root, height, mtime, records, fingerprints)
        yield Send(answer, round_)

    def _is_masked(self, source: SourceFile) -> bool:
        """Tell whether the file is compared with masked displacements, which takes chunks."""
        return source.size > self._signer.params.max_size and looks_like(source)

    def _send_bundle(self, message: messages.BundleRequest, round_: int) -> Conversation[None]:
        if self._bundles is None:
            self._bundles = BundleAnswers(self._root, self._secret)
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
        content = self._files.content(message.file)
        if message.end <= len(content):
            # The content in memory is the signed version, which the request is about.
            found = cached_fingerprints(content, message, self._secret)
        else:
            with self._opened_again(message) as source:
                found = read_fingerprints(source, message, self._secret)
        yield Send(messages.BlockAnswer(message.file, found), round_)

    def _send_ranges(self, message: messages.RangeRequest, round_: int) -> Conversation[None]:
        with self._opened_again(message) as source:
            if message.pack and self._pack:
                yield from packed_ranges(source, message, self._secret, round_)
            else:
                yield from ranges(source, message, self._secret, round_, code=self._pack, listen=self._listen)

    def _opened_again(self, message: messages.BlockRequest | messages.RangeRequest) -> SourceFile:
        """Open the file or bundle of a request. Raises FileError if it changed since it was signed, or is
        too short."""
        if self._bundles is not None and message.file >= len(self._description.manifest):
            return self._bundles.open(message)
        return self._files.open_again(message.file, end_of(message))

    def _forget(self, file: int) -> None:
        """Forget a file or bundle: no more requests about it follow."""
        if self._bundles is not None:
            self._bundles.forget(file)
        self._files.forget(file)
