"""One file from its recipe to its new version: what no base has is fetched, and put with what they have."""

from __future__ import annotations

from array import array

from rdc.files.replace import Replacement
from rdc.files.source import HeldContent
from rdc.files.spool import Spool
from rdc.kernel import short_references
from rdc.limits import HELD_FILE_BYTES
from rdc.plan.descent import literal_rows
from rdc.session.code import Places
from rdc.session.literal_requests import literal_requests, range_requests, unpacked
from rdc.session.literals import literals_of
from rdc.session.open_base import OpenBase
from rdc.session.rebuild import Rebuild
from rdc.signature.digests import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.source import SourceFile
    from rdc.plan.descent import Part
    from rdc.protocol.messages import Code, Correction, Data, Literals, RangeRequest, Table, Targets
    from rdc.session.corrections import Corrections
    from rdc.session.signed_file import SignedFile
    from rdc.session.transfer_context import TransferContext

__all__ = ["FileFetch"]

READ_WHOLE_BYTES = 1 << 20
"""A base up to this size is in memory while the new version is made from it."""


class FileFetch:
    """Between a file's recipe and the hand-over of its temporary. Requests are sent by whoever it gives them
    to, in that order.

    What takes answers writes what they complete. It raises ChangedBaseError where a base is not what was
    signed any more, another MismatchError where bytes are not what was promised, and another FileError where
    the file cannot be written. After any of these there is only `restart`, which gives everything back.
    """

    __slots__ = (
        "_context",
        "_rebuild",
        "_root",
        "_width",
        "blank",
        "corrections",
        "file",
        "held",
        "known",
        "mask_bytes",
        "parts",
        "path",
        "places",
        "size",
        "sources",
    )

    def __init__(
        self,
        context: TransferContext,
        file: int,
        path: bytes,
        parts: Sequence[Part],
        held: Sequence[SignedFile],
        *,
        size: int,
        root: bytes,
        width: int,
        blank: bool = False,
    ) -> None:
        """`parts`: the recipe, of the bases `held`, with references of `width` bytes. `size`, `root`: of the
        new version. `blank`: it was put together from blocks without their targets."""
        self._context = context
        self.file = file
        self.path = path
        self.parts = parts
        self.held = held
        self.size = size
        self._root = root
        self._width = width
        self.blank = blank
        self.known = array("Q")
        """What literals that are on their way are packed with: offset and length by turns."""
        self.places: Places | None = None
        """Where literals that are on their way belong."""
        self.corrections: Corrections | None = None
        """What the source says of what was found, once its literals are asked for."""
        self.mask_bytes = 0
        """Kept in memory until what these are to say is here."""
        self.sources: list[SourceFile] = []
        """The bases, while the file is written."""
        self._rebuild: Rebuild | None = None

    @property
    def written(self) -> int:
        """Bytes of the new version that are in the temporary."""
        return 0 if self._rebuild is None else self._rebuild.temporary.size

    def requests(self, room: int, *, doubted: bool = False) -> list[RangeRequest]:
        """Asks for the ranges that no base has, and whether what blocks were found for is right; for the
        latter alone only if that is `doubted`. None: there is nothing to ask. `room`: bytes that may be kept
        in memory until the answers come. FileError when a base has changed or gone."""
        ranges = literal_rows(self.parts)
        if not (ranges or self.blank or doubted):
            return []
        asked = literal_requests(self, ranges, self._context, room)
        self.places, self.known, self.corrections = asked.places, asked.known, asked.corrections
        self.mask_bytes = asked.mask_bytes
        return asked.requests

    def deceived(self) -> bool:
        """Whether nothing was asked for, every block being found, and some of them are wrong. Then what was
        written goes; it is to be written again."""
        if self.corrections is not None or not self._started().deceived(self._root):
            return False
        self.restart()
        return True

    def mending(self) -> list[RangeRequest]:
        """Asks for chunks that are wrong after all, now that everything is written. None: all is well, or
        they were asked for before."""
        wrong = self._started().mend()
        if wrong:
            self.places = Places(wrong)
        return range_requests(self.file, wrong)

    def take_correction(self, message: Correction) -> None:
        if self.corrections is not None:
            self.corrections.take(message)

    def take_targets(self, message: Targets) -> None:
        if self.corrections is not None:
            self.corrections.take_targets(message)

    def take_data(self, message: Data | Code | Table) -> None:
        """Some literals, in order."""
        rebuild = self._started()
        if self.corrections is not None:
            self.corrections.settle()
        rebuild.push(literals_of(message, self.places))

    def take_literals(self, message: Literals) -> None:
        """All literals."""
        rebuild = self._started()
        literals = unpacked(self, message.packed)
        if self.corrections is not None:
            self.corrections.settle()
        rebuild.push(literals)

    def take_end(self) -> None:
        """All literals of one request are here."""
        if self.corrections is None:
            return
        # Where nothing is missing, nothing but this says that what was found is right.
        rebuild = self._started() if self.blank else self._rebuild
        self.corrections.end(self.written)
        if self.blank and rebuild is not None:
            rebuild.push(b"")

    def finish(self) -> Rebuild:
        """All of it is written and verified; its temporary is the caller's from here on."""
        rebuild = self._started()
        rebuild.finish(self._root)
        self._rebuild = None
        return rebuild

    def keep(self) -> None:
        """What is written stays for the next run to go on from."""
        if self._rebuild is not None:
            self._rebuild.temporary.keep()

    def restart(self) -> None:
        """What was written goes; it may be written again from the same parts."""
        if self._rebuild is not None:
            self._rebuild.temporary.abandon()
        for source in self.sources:
            source.close()
        self.sources = []
        self._rebuild = None

    def _started(self) -> Rebuild:
        """Starts writing, now that literals come: only a file at work has descriptors open."""
        if self._rebuild is None:
            root = self._context.root
            bases = []
            for held in self.held:
                if held.path == self.path:
                    held.check(root)
                source = held.open(root)
                if HELD_FILE_BYTES < source.size <= READ_WHOLE_BYTES and len(self.held) == 1:
                    # Most of it is going to be copied, in pieces.
                    with source:
                        content = source.pread(0, source.size)
                    source = HeldContent(root, held.path, held.identity, content)
                self.sources.append(source)
                bases.append(OpenBase(source, held.tree))
            self._rebuild = Rebuild(
                self.path,
                self._context.signer.params,
                Replacement(root, self.path, expected_size=self.size),
                self.parts,
                bases,
                _naming(self._context.secret, self._width),
                Spool,
                self.corrections,
            )
            self._rebuild.start()
        return self._rebuild


def _naming(secret: bytes, width: int) -> Callable[[bytes], bytes]:
    """What makes references of digests."""
    if width < DIGEST_BYTES:
        return lambda digests: short_references(secret, digests, DIGEST_BYTES, width)
    return lambda digests: digests
