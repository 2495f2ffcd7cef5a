"""Many files signed side by side, results in order, memory bounded."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from rdc.errors import FileError
from rdc.records import dataclass
from rdc.typed import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from rdc.catalog.signer import FileSigner
    from rdc.files.source import SourceFile
    from rdc.model.entries import Identity
    from rdc.signature.tree import SignatureTree
    from rdc.threads import Task

__all__ = ["SignTask", "Signed", "sign_in_order"]

K = TypeVar("K")

BATCH_FILES = 64
"""Small files a worker takes at a time: a hand-over costs about as much as signing one of them."""

BATCH_BYTES = 4 << 20
"""Bytes after which a batch is full; a file that fills one alone is shared between the threads instead."""


@dataclass(frozen=True, slots=True)
class SignTask(Generic[K]):
    key: K
    """What the caller knows the file by."""
    size: int
    """Bytes, as listed: a hint for the distribution of work."""
    opener: Callable[[], SourceFile]
    """Opens it for reading, in whatever thread its turn comes. Raises FileError."""


@dataclass(frozen=True, slots=True)
class Signed(Generic[K]):
    """One file's signature, or why there is none."""

    key: K
    root: bytes
    """b"" where there is none."""
    tree: SignatureTree | None
    """None also where only roots were asked for and the catalog knew this one."""
    identity: Identity | None
    """Of the file that was signed."""
    error: FileError | None
    known: bool
    """From the catalog: the file was not read."""


def sign_in_order(
    signer: FileSigner, tasks: Iterable[SignTask[K]], *, roots_only: bool
) -> Generator[Signed[K], None, None]:
    """See FileSigner.sign_many."""
    if signer.workers == 1:
        for task in tasks:
            yield _sign(signer, task, roots_only)
        return
    stopped = threading.Event()
    flying: deque[Task[list[Signed[K]]] | list[Signed[K]]] = deque()
    try:
        for batch in _batches(tasks):
            # A large file is worked on by all threads at once, between the batches, not in one of them.
            alone = len(batch) == 1 and batch[0].size >= BATCH_BYTES
            flying.append(
                [_sign(signer, batch[0], roots_only)]
                if alone
                else signer.pool().submit(_run, signer, batch, roots_only, stopped)
            )
            while len(flying) > 2 * signer.workers:
                yield from _results(flying.popleft())
        while flying:
            yield from _results(flying.popleft())
    finally:
        # Also when the caller stops iterating or a signal arrives: no thread goes on with files nobody wants.
        stopped.set()
        for one in flying:
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
    """OutOfSpaceError and the like are not the file's: they end the iteration."""
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
