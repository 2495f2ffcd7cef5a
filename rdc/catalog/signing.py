"""Signs many files in threads, with results in order and bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from rdc.errors import FileError
from rdc.lean.records import dataclass
from rdc.lean.typed import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Generator, Iterable, Iterator

    from rdc.catalog.signer import FileSigner
    from rdc.files.root.source_file import SourceFile
    from rdc.lean.threads import Task
    from rdc.model.entries import Identity
    from rdc.signature.tree import SignatureTree

__all__ = ["SignTask", "Signed", "sign_in_order"]

K = TypeVar("K")

BATCH_FILES = 64
"""Small files per batch for a worker: one hand-over costs about as much as signing one small file."""

BATCH_BYTES = 4 << 20
"""Bytes that fill a batch. A file that fills one alone is shared between the threads instead."""


@dataclass(frozen=True, slots=True)
class SignTask(Generic[K]):
    key: K
    """The caller's name for the file."""
    size: int
    """Bytes, as listed: a hint for distributing the work."""
    opener: Callable[[], SourceFile]
    """Opens the file for reading; called in the thread that signs it. Raises FileError."""


@dataclass(frozen=True, slots=True)
class Signed(Generic[K]):
    """One file's signature, or the error that prevented it."""

    key: K
    root: bytes
    """b"" if there is none."""
    tree: SignatureTree | None
    """None also if `roots_only` was set and the catalog knew the root."""
    identity: Identity | None
    """The state of the file that was signed."""
    error: FileError | None
    known: bool
    """Whether the signature came from the catalog and the file was not read."""


def sign_in_order(
    signer: FileSigner, tasks: Iterable[SignTask[K]], *, roots_only: bool = False
) -> Generator[Signed[K], None, None]:
    """Signs many files in parallel. Results come in the order of `tasks`, which is consumed along with them.

    A file's own failure is part of its result. At most a few batches of small files and one large file are in
    work at a time. Ending the iteration early stops the threads. `roots_only`: for a file that the catalog
    knows, only the root is looked up.
    """
    if signer.workers == 1:
        for task in tasks:
            yield _sign(signer, task, roots_only)
        return
    import threading

    stopped = threading.Event()
    in_flight: deque[Task[list[Signed[K]]] | list[Signed[K]]] = deque()
    try:
        for batch in _batches(tasks):
            # A large file is shared by all threads, so it is signed between batches and not in one of them.
            alone = len(batch) == 1 and batch[0].size >= BATCH_BYTES
            in_flight.append(
                [_sign(signer, batch[0], roots_only)]
                if alone
                else signer.pool().submit(_run, signer, batch, roots_only, stopped)
            )
            while len(in_flight) > 2 * signer.workers:
                yield from _results(in_flight.popleft())
        while in_flight:
            yield from _results(in_flight.popleft())
    finally:
        # This also runs if the caller stops iterating or a signal arrives: no thread continues with unneeded
        # files.
        stopped.set()
        for one in in_flight:
            if not isinstance(one, list):
                one.cancel()


def _batches(tasks: Iterable[SignTask[K]]) -> Iterator[list[SignTask[K]]]:
    batch: list[SignTask[K]] = []
    size = 0
    for task in tasks:
        if batch and (len(batch) >= BATCH_FILES or size + task.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(task)
        size += task.size
    if batch:
        yield batch


def _results(one: Task[list[Signed[K]]] | list[Signed[K]]) -> list[Signed[K]]:
    return one if isinstance(one, list) else one.result()


def _run(
    signer: FileSigner, batch: list[SignTask[K]], roots_only: bool, stopped: threading.Event
) -> list[Signed[K]]:
    results = []
    for task in batch:
        if stopped.is_set():
            break
        results.append(_sign(signer, task, roots_only, shared=False))
    return results


def _sign(signer: FileSigner, task: SignTask[K], roots_only: bool, *, shared: bool = True) -> Signed[K]:
    """Signs one file. Errors that are not the file's own, such as OutOfSpaceError, end the iteration."""
    try:
        with task.opener() as source:
            if roots_only:
                root = signer.catalog.root(source, signer.params)
                if root is not None:
                    return Signed(task.key, root, None, source.identity, None, True)
            else:
                known = signer.catalog.get(source, signer.params)
                if known is not None:
                    return Signed(task.key, known.root, known, source.identity, None, True)
            tree = signer.read(source, shared=shared)
            return Signed(task.key, tree.root, tree, source.identity, None, False)
    except FileError as error:
        return Signed(task.key, b"", None, None, error, False)
