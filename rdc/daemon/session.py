"""One session in a process of its own: limited by the kernel, ended by signals, recorded in the log."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from rdc.catalog.catalog import Catalog, user_catalog
from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog, SignatureStore
from rdc.chunking import SYNC_PARAMS
from rdc.daemon.access import granted_options, open_served, unite_rights
from rdc.daemon.log import Log, fault
from rdc.errors import ExitCode, RdcError, TrustError, UsageError, printable
from rdc.files.base.syscalls import ENOUGH_DESCRIPTORS
from rdc.files.depth import bound_depth
from rdc.files.root.policies import WriteQuota
from rdc.lean.records import Record, replace
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Open, Role
from rdc.session.runtime.driver import run
from rdc.session.serve import Admitted, Following, Meeting, answer, greeting
from rdc.session.trees.sites import ServedDirectory
from rdc.transport.base import Exchange, timed_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rdc.daemon.config import DaemonConfig, Limits, Module
    from rdc.session.runtime.commands import Conversation
    from rdc.transport.tls import TlsTransport


SLOTS_PER_MODULE = 4_096
"""Bytes per module in the lock file: the largest possible `connections`."""


class Slots:
    """An anonymous file in which each session locks one byte. POSIX record locks belong to a process and end
    with it, even if it is killed, so the count is never too high."""

    def __init__(self) -> None:
        self._fd = _file_without_name()
        self._numbers: dict[str, int] = {}

    def know(self, module: str) -> None:
        """Assign `module` its part of the file, in the daemon's main process, before sessions of it begin."""
        self._numbers.setdefault(module, len(self._numbers))

    def take(self, module: str, limit: int) -> bool:
        """Take a slot, in a session's process. False: `limit` other sessions are in the module."""
        first = self._numbers[module] * SLOTS_PER_MODULE
        for offset in range(first, first + min(limit, SLOTS_PER_MODULE)):
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
            except OSError:
                continue
            return True
        return False


def _file_without_name() -> int:
    """Return an empty file that is gone with its last descriptor. Raises OSError."""
    try:
        return os.memfd_create("rdc-slots")
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.ENOSYS:
            raise
        import tempfile

        with tempfile.TemporaryFile(prefix="rdc-slots-") as file:
            return os.dup(file.fileno())


# The end of a session from outside: SIGTERM and the signals of its limits.
#
# A signal arrives between any two instructions. An exception out of its handler could leave an unrecorded new
# file, or half a TLS record. So the handler only records the signal, and the session ends at its next
# exchange with the peer, several times a second. A session that computes longer is ended after FORCE_SECONDS
# wherever it is. The next run takes up or removes what it leaves.

FORCE_SECONDS = 3.0
"""Seconds from the signal to a forced end: well below the time after which the daemon or the kernel kills."""

SLICE_SECONDS = 0.25
"""Seconds of one wait for the peer, the longest delay before a signal is noticed."""


class Ending:
    """The first requested end. Later ones are dropped, so none interrupts the last messages."""

    def __init__(self, late: Callable[[], str]) -> None:
        """late: the message of a session whose time is over."""
        self._late = late
        self._error: RdcError | None = None
        self._reported = False

    def heed(self) -> None:
        """Install this object's handlers for the process's signals."""
        for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU):
            signal.signal(number, self._note)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def check(self) -> None:
        """Raise RdcError, once, if the session is to end."""
        if self._error is not None and not self._reported:
            self._reported = True
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise self._error

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self._error is not None:
            if number == signal.SIGALRM:
                self.check()
            return
        if number == signal.SIGTERM:
            self._error = RdcError(
                "the daemon ended the session: it stops, or trusts this key no more",
                code=ExitCode.INTERRUPTED,
            )
        elif number == signal.SIGALRM:
            self._error = RdcError(self._late(), code=ExitCode.BUSY)
        else:
            self._error = RdcError(
                "the session used more processor time than the daemon allows", code=ExitCode.BUSY
            )
        signal.setitimer(signal.ITIMER_REAL, FORCE_SECONDS)


class EndableTransport:
    """`inner` with a check for the session's end in each exchange."""

    def __init__(self, inner: TlsTransport, ending: Ending) -> None:
        self._inner = inner
        self._ending = ending

    def fileno(self) -> int:
        return self._inner.fileno()

    @property
    def events(self) -> int:
        return self._inner.events

    def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
        moved, began = self._moved, time.monotonic()
        while True:
            self._ending.check()
            if timeout == 0:
                return self._inner.exchange(outgoing, want_input, 0)
            left = SLICE_SECONDS if timeout is None else began + timeout - time.monotonic()
            if timeout is not None and left <= 0:
                raise timed_out(timeout)
            try:
                return self._inner.exchange(outgoing, want_input, min(left, SLICE_SECONDS))
            except RdcError as error:
                if error.code is not ExitCode.TIMEOUT:
                    raise
            if moved != self._moved:
                # Part of a record arrived: a slow line is not a silent one.
                moved, began = self._moved, time.monotonic()

    @property
    def _moved(self) -> int:
        return self._inner.bytes_sent + self._inner.bytes_received

    def close_write(self) -> None:
        self._inner.close_write()

    def close(self) -> None:
        self._inner.close()


LINGER_SECONDS = 2.0
"""Seconds for which further input of the peer is dropped, so that it can read why a session ended."""

CPU_GRACE_SECONDS = 10
"""Processor seconds beyond its limit that a session may use to end; then the kernel kills it."""

DEPTH_LEAST = 4
"""Calls in flight that a session may have with the fewest threads."""

STACK_BYTES = 1 << 20
"""Bytes of each thread's stack: it counts as allocated in full, and no code here recurses deeply."""


class Visitor(Record):
    """The peer of a session."""

    session: int
    """The session's number in the log."""
    name: str
    """The name of the key; the first in alphabetical order if it has several."""
    names: frozenset[str]
    pin: str
    address: str
    days_left: int | None
    """Days until the certificate expires; None if unknown."""


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
        """The message of a session whose time is over."""
        if not self.module:
            return "the session did not say in time what it wants"
        return "the session took longer than the daemon allows"

    def admit(self, open_: Open) -> Admitted:
        module = requested_module(open_, self._config.modules, self._visitor.names)
        admitted = admit_to_module(open_, module)
        if not self._slots.take(module.name, module.limits.connections):
            raise RdcError(
                f"module '{module.name}' is busy with {module.limits.connections} sessions; try again later",
                code=ExitCode.BUSY,
            )
        self.module = module.name
        bound(module.limits)
        self._connection.decoded_limit = module.limits.decompressed
        self._connection.entries.limit = entries_share(module.limits)
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


def requested_module(open_: Open, modules: Mapping[str, Module], names: frozenset[str]) -> Module:
    """Return the module that an Open names, if a peer trusted as `names` may use it.

    TrustError gives the same answer for a missing module and a forbidden one, so a peer learns no names.
    """
    name, _, _ = open_.path.partition(b"/")
    module = modules.get(os.fsdecode(name))
    if module is None or not module.allow & names:
        raise TrustError(f"there is no module '{printable(name)}' for this key")
    return module


def admit_to_module(open_: Open, module: Module) -> Admitted:
    """Return what a peer of `module` gets. TrustError for what the module forbids.

    The module's directory is opened again for each use. Otherwise an open session would prevent its unmount,
    and would continue in a file system that another one has replaced.
    """
    access = module.access
    options = granted_options(open_, access)
    idle = module.limits.idle_seconds
    if options.timeout > idle:
        raise UsageError(
            f"{access.title} gives up after {idle} seconds of silence: --timeout={idle} is the most it takes"
        )
    site = ServedDirectory(
        lambda: open_served(os.fsencode(module.path), access.title),
        access.title,
        os.fsencode(module.name),
        WriteQuota(module.limits.written),
        append_only=access.append_only,
    )
    _, _, path = open_.path.partition(b"/")
    options = replace(options, timeout=options.timeout or idle)
    return Admitted(site, path, options, uses_content=not access.write_only, rights=unite_rights(access))


def guarded(conversation: Conversation[None], on_fault: Callable[[Exception], object]) -> Conversation[None]:
    """Hold `conversation`, and turn any error besides RdcError into one, so that the peer receives a line.

    on_fault: receives an unexpected error.
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
    meeting: Meeting | None = None,
) -> ExitCode:
    """Serve one peer with a checked certificate to the end, in a process that does nothing else.

    SIGTERM ends the session: complete files are committed, and the next run does the rest.
    """
    threading.stack_size(STACK_BYTES)
    bound(config.limits)
    connection = Connection(False, greeting(SYNC_PARAMS))
    connection.decoded_limit = config.limits.decompressed
    connection.entries.limit = entries_share(config.limits)
    session = _Session(visitor, config, slots, connection, log)
    ending = Ending(lambda: session.late)
    ending.heed()
    signal.setitimer(signal.ITIMER_REAL, min(config.limits.open_seconds, config.limits.session_seconds))
    catalog = _catalog(config)
    signer = FileSigner(catalog=catalog, workers=config.limits.threads)
    code, message = ExitCode.OK, None
    try:
        conversation = guarded(answer(signer, session.admit, following, meeting=meeting), session.fault)
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


def entries_share(limits: Limits) -> int:
    """Return the bytes of a session's memory for the entries that its peer announces. A quarter remains for
    everything else, so too many entries are rejected with a message before an allocation fails."""
    return limits.memory * 3 // 4


def bound(limits: Limits) -> None:
    """Limit this process to a session's resources. Limits only decrease: a module cannot grant more than the
    daemon's own limits."""
    _lower(resource.RLIMIT_DATA, limits.memory, limits.memory)
    # Each call in flight takes a thread.
    bound_depth(max(limits.threads, DEPTH_LEAST))
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
    return Catalog(Path(config.catalog))
