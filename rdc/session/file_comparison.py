"""What is here of one file's new version: compared with its bases level by level, then below the chunk.

The nodes of its tree say which chunks the bases have. What is below the chunks that none has is asked for in
blocks, as long as those pay. What is left is the recipe: what to take from where, and what to fetch.
"""

from __future__ import annotations

from collections import deque

from rdc.errors import ProtocolError
from rdc.limits import NODES_PER_MESSAGE
from rdc.plan.descent import Descent, Fetch, literal_rows
from rdc.protocol.comparison import LEAF_WIDTH
from rdc.protocol.messages import NodeRequest, TreeRequest
from rdc.session.commands import Send
from rdc.session.gaps import FileGaps
from rdc.session.rounds import FEW_BYTES, rounds_left, rounds_left_for_few
from rdc.signature.records import SHORT_REFERENCE_BYTES, decode_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.plan.descent import Part
    from rdc.protocol.messages import NodeAnswer, TreeAnswer
    from rdc.session.commands import Conversation
    from rdc.session.signed_file import SignedFile
    from rdc.session.transfer_context import TransferContext

__all__ = ["LEAF_BLOCK", "FileComparison"]

LEAF_BLOCK = 1024
"""Bytes of the first blocks asked for, together with a file's tree."""

LEAF_REQUEST = TreeRequest((0,), SHORT_REFERENCE_BYTES, LEAF_BLOCK)


class FileComparison:
    """Between the answer to a file's TreeRequest and its recipe: `ask_nodes` until it asks for nothing more,
    then `begin_blocks` once, then `ask_blocks` until that asks for nothing more."""

    __slots__ = (
        "_context",
        "_descent",
        "_file",
        "_fingerprints",
        "_gaps",
        "_held",
        "_size",
        "_width",
        "asked_nodes",
        "blank",
        "parts",
    )

    def __init__(
        self, context: TransferContext, message: TreeAnswer, width: int, held: Sequence[SignedFile]
    ) -> None:
        """`width`: bytes of a reference. `held`: the bases, one at least."""
        self._context = context
        self._file = message.file
        self._size = message.size
        self._width = width
        self._held = held
        self._descent: Descent | None = None
        self._fingerprints = message.fingerprints
        """Of the blocks of the whole file, if there is nothing to ask before these are looked for."""
        self.asked_nodes: deque[int] = deque()
        """The last one of each request that is not answered yet."""
        self._gaps: FileGaps | None = None
        self.parts: tuple[Part, ...] = ()
        """The recipe, as far as it is known."""
        self.blank = False
        """It was put together from blocks without their targets."""
        if message.fingerprints and not message.records:
            if message.height or message.size > context.signer.params.max_size:
                raise ProtocolError(
                    f"a tree of file {message.file}, of {message.size} bytes, without records"
                )
            # One chunk, without a reference to compare.
            self.parts = (Fetch(b"", message.size, 1),)
        else:
            trees = [base.tree for base in held]
            self._descent = Descent(trees, context.secret, width, message.size)
            self._descent.start(message.height, decode_records(message.records, width))

    def ask_nodes(self, round_: int) -> Conversation[bool]:
        """Asks for the nodes of the next level. False: for none, it is known which chunks are here."""
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
        """Whether all that were asked for are here."""
        if self._descent is None or not self.asked_nodes:
            raise ProtocolError(f"nodes of file {message.file} that were not asked for")
        if message.nodes[-1] == self.asked_nodes[0]:
            self.asked_nodes.popleft()
        records = [decode_records(data, self._width) for data in message.records]
        return self._descent.answer(message.level, message.nodes, records)

    def begin_blocks(self, round_: int, *, few_files: bool) -> None:
        """Goes below the chunks that no base has. FileError when a base has changed or gone."""
        few = few_files and sum(literal_rows(self.parts)[1::2]) <= FEW_BYTES
        rounds = rounds_left_for_few(round_) if few else rounds_left(round_)
        context = self._context
        gaps = FileGaps(self._file, context.root, context.secret, self.parts, self._held, rounds)
        self._gaps = gaps
        known = self.parts[0] if len(self.parts) == 1 else None
        if not (self._fingerprints and isinstance(known, Fetch) and known.count == 1):
            return
        block = LEAF_REQUEST.block_of(self._size)
        if len(self._fingerprints) != -(-self._size // block) * LEAF_WIDTH:
            raise ProtocolError(f"{len(self._fingerprints)} bytes of fingerprints for a file of {self._size}")
        gaps.begin(block, self._fingerprints)

    def ask_blocks(self, round_: int) -> Conversation[int]:
        """Asks for smaller blocks of what is still unknown; how many answers there will be. None: more of
        them would not pay."""
        if self._gaps is None:
            return 0
        asked = yield from self._gaps.ask(round_)
        if not asked:
            self.parts, self.blank, self._gaps = self._gaps.parts(), self._gaps.blank, None
        return asked

    def take_blocks(self, fingerprints: bytes) -> None:
        """An answer to the oldest question about blocks. FileError when a base has changed or gone."""
        if self._gaps is None:
            raise ProtocolError(f"blocks of file {self._file} that were not asked for")
        self._gaps.take(fingerprints)
