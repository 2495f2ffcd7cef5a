"""One session, in a process of its own: bounded by the kernel, ended by signals, told of in the log."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

from rdc.catalog.location import user_catalog
from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.chunking.params import SYNC_PARAMS
from rdc.daemon.ending import EndableTransport, Ending
from rdc.daemon.log import fault
from rdc.daemon.modules import admit, requested_module
from rdc.errors import ExitCode, RdcError
from rdc.files.descriptors import ENOUGH_DESCRIPTORS
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Open, Role
from rdc.records import dataclass
from rdc.session.driver import run
from rdc.session.serve import Admitted, answer, greeting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.catalog.store import SignatureStore
    from rdc.daemon.config import DaemonConfig, Limits
    from rdc.daemon.log import Log
    from rdc.daemon.slots import Slots
    from rdc.session.commands import Conversation
    from rdc.session.serve import Following
    from rdc.transport.tls import TlsTransport

__all__ = ["Visitor", "bound", "guarded", "serve_session"]

LINGER_SECONDS = 2.0
"""How long what the peer still sends is taken and dropped, so that it gets to read why a session ended."""

CPU_GRACE_SECONDS = 10
"""Processor time a session may use past its limit to end in order; then the kernel kills it."""

STACK_BYTES = 1 << 20
"""Of each thread: it counts as allocated in full, and nothing here recurses deeply."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who is at the other end."""

    session: int
    """The number by which the log knows the session."""
    name: str
    """What the key is trusted as; the first in the alphabet where it has several names."""
    names: frozenset[str]
    pin: str
    address: str
    days_left: int | None
    """Until the certificate expires; None: who knows."""


class _Session:
    def __init__(
        self, visitor: Visitor, config: DaemonConfig, slots: Slots, connection: Connection, log: Log
    ) -> None:
        self._visitor = visitor
        self._config = config
        self._slots = slots
        self._connection = connection
        self._log = log
        self.began = time.monotonic()
        self.module = ""

    @property
    def late(self) -> str:
        """What is said of a session whose time is over."""
        if not self.module:
            return "the session did not say in time what it wants"
        return "the session took longer than the daemon allows"

    def admit(self, open_: Open) -> Admitted:
        module = requested_module(open_, self._config.modules, self._visitor.names)
        admitted = admit(open_, module)
        if not self._slots.take(module.name, module.limits.connections):
            raise RdcError(
                f"module '{module.name}' is busy with {module.limits.connections} sessions; try again later",
                code=ExitCode.BUSY,
            )
        self.module = module.name
        bound(module.limits)
        self._connection.decoded_limit = module.limits.decompressed
        left = module.limits.session_seconds - (time.monotonic() - self.began)
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.001))
        self._log(
            "info",
            "open",
            session=self._visitor.session,
            peer=self._visitor.name,
            module=module.name,
            path=open_.path,
            role="send" if open_.role is Role.SOURCE else "receive",
            delete=str(open_.options.delete).lower(),
            dry_run=str(open_.options.dry_run).lower(),
        )
        return admitted

    def fault(self, error: Exception) -> None:
        self._log("error", "internal", session=self._visitor.session, message=fault(error))


def guarded(conversation: Conversation[None], on_fault: Callable[[Exception], object]) -> Conversation[None]:
    """As `conversation`; what it raises besides RdcErrors becomes one, so that the peer is told a line.

    `on_fault` takes an error that should not be.
    """
    try:
        yield from conversation
    except RdcError:
        raise
    except MemoryError:
        raise RdcError(
            "the session needs more memory than the daemon allows it", code=ExitCode.FILE_IO
        ) from None
    except Exception as error:  # a peer hears nothing of our insides; the log has all of it
        on_fault(error)
        raise RdcError("internal error; the daemon's log says more", code=ExitCode.USAGE) from error


def serve_session(
    transport: TlsTransport,
    visitor: Visitor,
    config: DaemonConfig,
    slots: Slots,
    log: Log,
    following: Following | None = None,
) -> ExitCode:
    """Serves one peer whose certificate was checked, to the end. For a process that does nothing else.

    SIGTERM ends it in order: what is complete lands, what is not stays for the next run.
    """
    threading.stack_size(STACK_BYTES)
    bound(config.limits)
    connection = Connection(False, greeting(SYNC_PARAMS))
    connection.decoded_limit = config.limits.decompressed
    session = _Session(visitor, config, slots, connection, log)
    ending = Ending(lambda: session.late)
    ending.heed()
    signal.setitimer(signal.ITIMER_REAL, min(config.limits.open_seconds, config.limits.session_seconds))
    catalog = _catalog(config)
    signer = FileSigner(catalog=catalog, workers=config.limits.threads)
    code, message = ExitCode.OK, None
    try:
        conversation = guarded(answer(signer, session.admit, following), session.fault)
        endable = EndableTransport(transport, ending)
        run(conversation, connection, endable, timeout=config.limits.idle_seconds)
    except RdcError as error:
        code, message = error.code, str(error)
    except MemoryError:
        code, message = ExitCode.FILE_IO, "out of the memory that limits.memory allows"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        with suppress(RdcError):
            transport.linger(LINGER_SECONDS if code else 0.1)
            transport.close()
        with suppress(RdcError, MemoryError):
            catalog.close()
    refused = code in (ExitCode.REFUSED, ExitCode.BUSY) and not session.module
    log(
        "info" if code is ExitCode.OK else "warning",
        "refused" if refused else "close",
        session=visitor.session,
        peer=visitor.name,
        module=session.module or None,
        code=int(code),
        received=transport.bytes_received,
        sent=transport.bytes_sent,
        rounds=connection.max_round,
        seconds=round(time.monotonic() - session.began, 3),
        message=message,
    )
    return code


def bound(limits: Limits) -> None:
    """Bind this process to what a session may use. Limits only ever sink: what a module allows beyond the
    daemon's own limits is not granted."""
    _lower(resource.RLIMIT_DATA, limits.memory, limits.memory)
    _lower(resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + CPU_GRACE_SECONDS)
    # The daemon may have more, for its handshakes.
    _lower(resource.RLIMIT_NOFILE, ENOUGH_DESCRIPTORS, ENOUGH_DESCRIPTORS)


def _lower(what: int, soft: int, hard: int) -> None:
    _, now = resource.getrlimit(what)
    if now != resource.RLIM_INFINITY:
        hard = min(hard, now)
    resource.setrlimit(what, (min(soft, hard), hard))


def _catalog(config: DaemonConfig) -> SignatureStore:
    if config.catalog is None:
        return user_catalog(os.environ)
    if config.catalog == "off":
        return NoCatalog()
    from rdc.catalog.catalog import Catalog

    return Catalog(Path(config.catalog))
