"""The source's bundles: it describes many small changed files at once, and answers about all as about one."""

from __future__ import annotations

from collections import OrderedDict

from blake3 import blake3

from rdc.errors import FileChangedError, FileError, ProtocolError
from rdc.files.bulk.snapshot import Snapshot, SnapshotContent, look
from rdc.kernel import block_fingerprints, short_references
from rdc.limits.sessions import (
    BUNDLE_BYTES,
    BUNDLED_FILE_BYTES,
    BUNDLES_CACHED_BYTES,
    BUNDLES_IN_FLIGHT,
)
from rdc.model.entries import Kind
from rdc.plan.bundle import BundleLayout
from rdc.protocol.messages import BundleAnswer
from rdc.protocol.messages.content import LEAF_WIDTH, SHORTEN
from rdc.session.source.range_answers import end_of
from rdc.signature.codec import sign_short
from rdc.signature.tree import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.chunking import ChunkParams
    from rdc.files.root.root import Root
    from rdc.protocol.messages import BlockRequest, BundleRequest, RangeRequest
    from rdc.tree.manifest import Manifest

__all__ = ["BundleAnswers"]


class BundleAnswers:
    """The last BUNDLES_IN_FLIGHT requested bundles, with BUNDLES_CACHED_BYTES of content in memory.

    Further content is read again when it is needed.
    """

    def __init__(self, root: Root, secret: bytes, params: ChunkParams) -> None:
        """`secret`: the session's, 16 bytes. `params`: chunk sizes."""
        self._root = root
        self._secret = secret
        self._params = params
        self._bundles: OrderedDict[int, Snapshot] = OrderedDict()
        self._cached = 0

    def describe(self, request: BundleRequest, manifest: Manifest) -> BundleAnswer:
        """Reads, signs and remembers a bundle. Raises ProtocolError for a wrong number, entries that are no
        regular files, and sizes that no bundle may have."""
        # long because it handles many files at once, and a call for each would cost more than the work
        files = request.files
        if request.bundle < len(manifest):
            raise ProtocolError(f"a bundle named {request.bundle}, which is an entry")
        if files[-1] >= len(manifest) or any(manifest.kinds[file] != Kind.FILE for file in files):
            raise ProtocolError(f"bundle {request.bundle} has an entry that is no listed regular file")
        sizes, mtimes, names = manifest.sizes_of(files), manifest.mtimes_of(files), manifest.paths(files)
        if sum(sizes) > BUNDLE_BYTES or not 0 < min(sizes) <= max(sizes) <= BUNDLED_FILE_BYTES:
            raise ProtocolError(
                f"bundle {request.bundle} has {sum(sizes)} bytes, or none or too many of a file"
            )
        layout = BundleLayout.of(range(len(files)), sizes, self._params.max_size, request.block)
        paths = [names[row] for row in layout.order]
        found = look(self._root, paths)
        left_out = [
            row
            for row, identity in zip(layout.order, found.identities, strict=True)
            if identity is None or (identity.size, identity.mtime_ns) != (sizes[row], mtimes[row])
        ]
        if left_out:
            left = [index for index, row in enumerate(layout.order) if row not in left_out]
            found, paths = found.chosen(left), [paths[index] for index in left]
            remaining = [row for row in range(len(files)) if row not in left_out]
            layout = BundleLayout.of(
                remaining, [sizes[row] for row in remaining], self._params.max_size, request.block
            )
        identities = [identity for identity in found.identities if identity is not None]
        self._remember(request.bundle, Snapshot(self._root, paths, identities, found.content))
        lengths, references = self._chunks(layout, found.content, request.width)
        return BundleAnswer(
            request.bundle,
            tuple(sorted(left_out)),
            blake3(found.content).digest(),
            lengths,
            references,
            self._fingerprints(layout, found.content, request.block),
        )

    def open(self, message: BlockRequest | RangeRequest) -> SnapshotContent:
        """The bundle that this is about. FileError where it is not remembered, cannot be read again, or is
        shorter than what is asked for."""
        bundle = self._bundles.get(message.file)
        if bundle is None:
            raise FileError(b"", f"bundle {message.file} is forgotten; its files are to be asked for singly")
        content = bundle.content()
        if content is None or end_of(message) > len(content):
            raise FileChangedError(b"", f"a file of bundle {message.file} changed while it was synced")
        return SnapshotContent(self._root, content)

    def forget(self, number: int) -> None:
        """Forgets a bundle: no more requests about it follow."""
        bundle = self._bundles.pop(number, None)
        if bundle is not None:
            self._cached -= bundle.cached_bytes

    def _remember(self, number: int, bundle: Snapshot) -> None:
        self.forget(number)
        if self._cached + bundle.cached_bytes > BUNDLES_CACHED_BYTES:
            bundle.drop()
        self._cached += bundle.cached_bytes
        self._bundles[number] = bundle
        while len(self._bundles) > BUNDLES_IN_FLIGHT:
            self.forget(next(iter(self._bundles)))

    def _chunks(self, layout: BundleLayout, content: bytes, width: int) -> tuple[tuple[int, ...], bytes]:
        """Returns lengths and short references of the chunks of files that are longer than a chunk."""
        if not layout.chunked:
            return (), b""
        end = layout.starts[layout.chunked]
        signed = sign_short(
            memoryview(content)[:end], layout.sizes[: layout.chunked], self._params, plain=True
        )
        references = short_references(self._secret, signed.digests, DIGEST_BYTES, width)
        return tuple(signed.lengths), references

    def _fingerprints(self, layout: BundleLayout, content: bytes, block: int) -> bytes:
        """Returns the fingerprints of all other files, with shorter blocks for the shortest ones."""
        first, last = layout.chunked, layout.shorter
        return self._of_blocks(content, layout, first, last, block) + self._of_blocks(
            content, layout, last, len(layout.order), block // SHORTEN
        )

    def _of_blocks(self, content: bytes, layout: BundleLayout, first: int, stop: int, block: int) -> bytes:
        """Returns the fingerprints of files [first, stop) of the layout."""
        some = content[layout.starts[first] : layout.starts[stop]]
        if not some:
            return b""
        return block_fingerprints(self._secret, some, block, LEAF_WIDTH, layout.sizes[first:stop])
