"""Comparison of one file's new version with its bases, from the tree's nodes down to blocks.

The nodes tell which chunks the bases have. The block search then finds parts of the other chunks, as long as
it pays. The result is a recipe: what to copy from where, and what to fetch.
"""

from __future__ import annotations

from collections import deque

from rdc.errors import ProtocolError
from rdc.limits.wire import NODES_PER_MESSAGE
from rdc.plan.descent import Descent, Fetch, literal_rows
from rdc.protocol.messages.comparison import LEAF_WIDTH
from rdc.protocol.messages.registry import NodeRequest, TreeRequest
from rdc.session.delta.block_search import FileGaps
from rdc.session.delta.round_trip_budget import FEW_BYTES, rounds_left, rounds_left_for_few
from rdc.session.runtime.commands import Send
from rdc.signature.records import SHORT_REFERENCE_BYTES, decode_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.plan.descent import Part
    from rdc.protocol.messages.registry import NodeAnswer, TreeAnswer
    from rdc.session.landing.transfer_context import TransferContext
    from rdc.session.runtime.commands import Conversation
    from rdc.session.trees.signed_file import SignedFile

__all__ = ["LEAF_BLOCK", "FileComparison"]

LEAF_BLOCK = 1024
"""Bytes of the first blocks asked for, together with a file's tree."""

LEAF_REQUEST = TreeRequest((0,), SHORT_REFERENCE_BYTES, LEAF_BLOCK)


class FileComparison:
    """One file between the answer to its TreeRequest and its recipe.

    Call `ask_nodes` until it asks for nothing more, then `begin_blocks` once, then `ask_blocks` until it asks
    for nothing more. After that `parts` is complete.
    """

    __slots__ = (
        "_bases",
        "_context",
        "_descent",
        "_file",
        "_fingerprints",
        "_search",
        "_size",
        "_width",
        "asked_nodes",
        "masked",
        "parts",
    )

    def __init__(
        self, context: TransferContext, message: TreeAnswer, width: int, bases: Sequence[SignedFile]
    ) -> None:
        """`width`: bytes of a reference. `bases`: at least one. Raises ProtocolError for a malformed tree."""
        self._context = context
        self._file = message.file
        self._size = message.size
        self._width = width
        self._bases = bases
        self._descent: Descent | None = None
        self._fingerprints = message.fingerprints
        """Fingerprints of all blocks of the file; empty once nodes are requested."""
        self.asked_nodes: deque[int] = deque()
        """The last node of each open request."""
        self._search: FileGaps | None = None
        self.parts: tuple[Part, ...] = ()
        """The parts of the recipe, as far as they are known."""
        self.masked = False
        """Blocks were matched with masked x86 displacements."""
        if message.fingerprints and not message.records:
            if message.height or message.size > context.signer.params.max_size:
                raise ProtocolError(
                    f"a tree of file {message.file}, of {message.size} bytes, without records"
                )
            # The file is one chunk, and has no reference to compare.
            self.parts = (Fetch(b"", message.size, 1),)
        else:
            trees = [base.tree for base in bases]
            self._descent = Descent(trees, context.secret, width, message.size)
            self._descent.start(message.height, decode_records(message.records, width))

    def ask_nodes(self, round_: int) -> Conversation[bool]:
        """Requests the nodes of the next level. Returns False if there are none: all chunks are compared."""
        if self._descent is None:
            return False
        asking = self._descent.asking
        if not asking:
            self.parts, self._descent = self._descent.recipe(), None
            return False
        self._fingerprints = b""
        for i in range(0, len(asking), NODES_PER_MESSAGE):
            nodes = tuple(asking[i : i + NODES_PER_MESSAGE])
            self.asked_nodes.append(nodes[-1])
            yield Send(NodeRequest(self._file, self._descent.level, nodes, self._width), round_)
        return True

    def take_nodes(self, message: NodeAnswer) -> bool:
        """Compares nodes. Returns whether the level is complete. Raises ProtocolError if none were asked."""
        if self._descent is None or not self.asked_nodes:
            raise ProtocolError(f"nodes of file {message.file} that were not asked for")
        if message.nodes[-1] == self.asked_nodes[0]:
            self.asked_nodes.popleft()
        records = [decode_records(data, self._width) for data in message.records]
        return self._descent.answer(message.level, message.nodes, records)

    def begin_blocks(self, round_: int, *, few_files: bool) -> None:
        """Starts the block search in chunks that no base has.

        Raises FileError if a base has changed or is gone, ProtocolError if the fingerprints do not fit.
        """
        few = few_files and sum(literal_rows(self.parts)[1::2]) <= FEW_BYTES
        rounds = rounds_left_for_few(round_) if few else rounds_left(round_)
        context = self._context
        search = FileGaps(self._file, context.root, context.secret, self.parts, self._bases, rounds)
        self._search = search
        known = self.parts[0] if len(self.parts) == 1 else None
        if not (self._fingerprints and isinstance(known, Fetch) and known.count == 1):
            return
        block = LEAF_REQUEST.block_of(self._size)
        if len(self._fingerprints) != -(-self._size // block) * LEAF_WIDTH:
            raise ProtocolError(f"{len(self._fingerprints)} bytes of fingerprints for a file of {self._size}")
        search.begin(block, self._fingerprints)

    def ask_blocks(self, round_: int) -> Conversation[int]:
        """Requests smaller blocks of what is unmatched. Returns the number of requests, 0 if no more pay."""
        if self._search is None:
            return 0
        asked = yield from self._search.ask(round_)
        if not asked:
            self.parts, self.masked, self._search = self._search.parts(), self._search.masked, None
        return asked

    def take_blocks(self, fingerprints: bytes) -> None:
        """Takes the answer to the oldest block request. Raises FileError if a base has changed or is gone."""
        if self._search is None:
            raise ProtocolError(f"blocks of file {self._file} that were not asked for")
        self._search.take(fingerprints)
