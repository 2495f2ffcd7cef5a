"""What every transfer of one session works with."""

from __future__ import annotations

from rdc.errors import ExitCode, FileError
from rdc.progress import Problem
from rdc.records import dataclass, replace
from rdc.session.commands import Flush

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.signer import FileSigner
    from rdc.files.confined import Root
    from rdc.files.source import SourceFile
    from rdc.model.entries import Identity, Metadata
    from rdc.session.commands import Conversation
    from rdc.session.landing import Landing
    from rdc.session.leftovers import Leftovers
    from rdc.session.news import News
    from rdc.session.tally import Tally
    from rdc.signature.tree import SignatureTree
    from rdc.tree.manifest import Manifest

__all__ = ["TransferContext"]

QUIET_BYTES = 1 << 20
"""A file up to this size is signed before anybody could want to know how far that is."""


@dataclass(frozen=True, slots=True)
class TransferContext:
    """The destination's tree and everything that files go through on their way into it."""

    root: Root
    entries: Manifest
    """The source's; files are named by their row in it."""
    landing: Landing
    leftovers: Leftovers
    secret: bytes
    """Key of the session's short references."""
    signer: FileSigner
    news: News
    tally: Tally
    pack: bool
    """Literals are to come compressed with what is around them."""
    fsync: bool
    """What lands is to be durable before it is reported."""
    dry: bool
    """Nothing is to be changed, only told."""
    seeks: bool
    """The destination has files already: the content of new ones may be among them."""

    def expected(self, file: int, path: bytes) -> Identity | None:
        """What a new version is going to replace; None: nothing."""
        if self.landing.is_new(file) or self.root.kind(path) is None:
            return None
        return self.root.identity(path)

    def metadata(self, file: int, mtime_ns: int | None) -> Metadata:
        """As listed, but for the mtime of a file that was changed between its listing and its reading."""
        metadata = self.entries.entry(file).metadata
        return metadata if mtime_ns is None else replace(metadata, mtime_ns=mtime_ns)

    def problem(self, path: bytes, error: FileError) -> None:
        """Reports that a file could not be written; 24 speaks of the source alone."""
        code = ExitCode.PARTIAL if error.code is ExitCode.VANISHED else error.code
        self.news.report(Problem(code, path, str(error)))

    def sign(
        self, source: SourceFile, size: int, round_: int, *, passing: bool = False
    ) -> Conversation[SignatureTree]:
        """The signature of a file held here; while it is read, the user is told how far that is, in terms of
        the new version's `size`. `passing`: the new version is going to replace it."""
        if source.size <= QUIET_BYTES:
            tree = self.signer.sign(source, passing=passing and not self.dry)
            if self.news.waits:
                yield from self.news.tell(round_)
                yield Flush()
            return tree
        work = self.signer.signing(source)
        try:
            while True:
                done = next(work)
                self.tally.comparing(min(done, size))
                if self.news.waits:
                    yield from self.news.tell(round_)
                    yield Flush()
        except StopIteration as stop:
            signed: SignatureTree = stop.value
            return signed
        finally:
            work.close()
