"""Transports over pipes: two descriptors, a server's own stdin and stdout, and a child process."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time

from rdc.errors import CommandMissingError, UsageError, printable
from rdc.lean.enums import signal
from rdc.lean.typed import Protocol
from rdc.transport.base import Exchange, timed_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.model.location import RemoteShell


_FOUND = (
    "exec sh -c 'command -v rdc >/dev/null ||"
    ' for p in "$HOME/.local/bin/rdc" "$HOME/.local/share/rdc/bin/rdc";'
    ' do test -x "$p" && exec "$p" serve --stdio; done;'
    " exec rdc serve --stdio'"
)
"""rdc on the far PATH, else in ~/.local/bin, where pipx, uv and a link put it, else where `rdc install` put
it. One word: the far user's shell reads it, and no shell expands what stands in single quotes."""


def shell_words(command: str) -> list[str]:
    """Return the words of a command line with a shell's quoting, without expansion. Raises ValueError if the
    quoting is invalid."""
    if command.isascii() and command.isprintable() and not any(mark in command for mark in "'\"\\"):
        return command.split()  # the same; shlex and the regular expressions it needs take 2.5 ms to load
    import shlex

    return shlex.split(command)


def remote_argv(host: str, shell: RemoteShell) -> list[str]:
    """Return the words of the remote shell, `host`, the words of the far program, "serve", "--stdio".

    The program is split at blanks with the shell's quoting, without expansion. A remote shell such as ssh
    passes the words to the far user's shell, which may expand them, as in rsync. Raises UsageError for a host
    that the remote shell would take for an option.
    """
    if not host or host.startswith("-"):
        raise UsageError(f"'{host}' is not a host name")
    try:
        program = shell_words(shell.program)
    except ValueError as error:
        raise UsageError(f"--remote-path '{shell.program}': {error}") from error
    words = [*shell.command, host, *program, "serve", "--stdio"]
    if program == ["rdc"] and shell.command and shell.command[0].rpartition("/")[2] == "ssh":
        # Other remote shells may start the words themselves, so only ssh is given a line for a shell.
        words = [*shell.command, host, _FOUND]
    if not shell.command or not program:
        raise UsageError("-e and --remote-path need a command")
    if any("\0" in word for word in words):
        raise UsageError("the remote shell's command line holds a NUL byte")
    return words


# A transport over two file descriptors: non-blocking, with one poll for both directions.

READ_BYTES = 256 << 10
"""Bytes per read: a quarter of a full pipe, so a reply does not wait for the copy of a megabyte. After a full
read, content is arriving, and a whole pipe is read at once: each read wakes the writer."""

PIPE_BYTES = 1 << 20
"""Linux's largest pipe for a user without privileges. The default of 64 KiB costs one wake-up per 64 KiB."""


class PipeTransport:
    """Owns both descriptors and closes them. They differ; a single socket is passed twice, duplicated."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        # The flag belongs to the open file, which a parent shell may share. close() restores it.
        self._was_blocking = {fd: os.get_blocking(fd) for fd in (read_fd, write_fd)}
        for fd in self._was_blocking:
            os.set_blocking(fd, False)
            _enlarge(fd)
        self._read_bytes = READ_BYTES
        self._polls: dict[tuple[bool, bool], select.poll] = {}
        self._far_reads = True
        self._write_open = True
        self._closed = False

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when input arrives or the stream ends."""
        return self._read_fd

    @property
    def events(self) -> int:
        return select.POLLIN  # what was not written is the caller's, who waits in `exchange` for it to go

    def descriptors(self, *, reads: bool, writes: bool) -> dict[int, int]:
        polled = {self._read_fd: select.POLLIN} if reads else {}
        if writes:
            polled[self._write_fd] = select.POLLOUT
        return polled

    def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
        # Most writes fit and need no poll first.
        written = self._write(outgoing) if outgoing else 0
        if written and not want_input:
            return Exchange(written, b"", False)
        ready = self._poll(not written and bool(outgoing), want_input, 0 if written else timeout)
        if not ready and not written:
            if timeout:
                raise timed_out(timeout)
            return Exchange(0, b"", False)
        if ready & select.POLLOUT:
            written = self._write(outgoing)
        if not ready & select.POLLIN:
            return Exchange(written, b"", False)
        try:
            received = os.read(self._read_fd, self._read_bytes)
        except (BlockingIOError, InterruptedError):
            return Exchange(written, b"", False)
        except OSError:
            # A reset connection or a hung-up terminal ends the stream as a close does.
            received = b""
        self._read_bytes = READ_BYTES if len(received) < READ_BYTES else PIPE_BYTES
        return Exchange(written, received, not received)

    def _poll(self, want_output: bool, want_input: bool, timeout: float | None) -> int:
        """Return the requested ones of POLLIN and POLLOUT that are ready. An error or a hang-up counts as
        ready: the next call reports it."""
        poll = self._polls.get((want_output, want_input))
        if poll is None:
            poll = self._polls[want_output, want_input] = select.poll()
            if want_input:
                poll.register(self._read_fd, select.POLLIN)
            if want_output:
                poll.register(self._write_fd, select.POLLOUT)
        ready = 0
        for fd, events in poll.poll(None if timeout is None else timeout * 1000):
            asked = select.POLLIN if fd == self._read_fd else select.POLLOUT
            ready |= asked if events & ~(select.POLLIN | select.POLLOUT) else events
        return ready

    def _write(self, outgoing: memoryview) -> int:
        if not self._far_reads:
            return len(outgoing)
        try:
            return os.write(self._write_fd, outgoing)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            # EPIPE, ECONNRESET: the remote side has stopped reading. Python ignores SIGPIPE, so the error
            # arrives here.
            self._far_reads = False
            return len(outgoing)

    def close_write(self) -> None:
        if self._write_open:
            self._write_open = self._far_reads = False
            self._shut(self._write_fd)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.close_write()
            self._shut(self._read_fd)

    def _shut(self, fd: int) -> None:
        with contextlib.suppress(OSError):
            os.set_blocking(fd, self._was_blocking[fd])
        with contextlib.suppress(OSError):
            os.close(fd)


def _enlarge(fd: int) -> None:
    try:
        from fcntl import F_SETPIPE_SZ, fcntl
    except ImportError:
        return  # not Linux
    # Sockets and terminals refuse this, and so does the kernel above the user's share of pipe pages.
    with contextlib.suppress(OSError):
        fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES)


# Transports over the pipes of a remote shell: a server's own stdin and stdout, and those of a child.

EXIT_SECONDS = 5.0
"""Seconds that a child may take to exit after its input ends: a remote side may have files to flush."""

TERMINATE_SECONDS = 2.0
"""Seconds that a child may then ignore SIGTERM."""

LOOK_SECONDS = 0.02
"""Between two looks at a child, where the system cannot tell that it has ended."""

LISTED_FDS = 1024
"""Descriptors that are tried where the system does not list those that are open."""


class StdioTransport(PipeTransport):
    """A server's end, on this process's stdin and stdout.

    Both move to new descriptors. Descriptor 1 becomes a copy of stderr, and descriptor 0 reads nothing. A
    stray print or a child process can thus neither write into the stream nor read from it.
    """

    def __init__(self, read_fd: int = 0, write_fd: int = 1) -> None:
        if write_fd == 1:
            sys.stdout.flush()
        super().__init__(os.dup(read_fd), os.dup(write_fd))
        if write_fd == 1:
            os.dup2(2, 1)
        else:
            os.close(write_fd)
        if read_fd == 0:
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.close(nothing)
        else:
            os.close(read_fd)


class Process(Protocol):
    """A child process, as the dialler's end needs it."""

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while the child runs."""

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the child's end, for at most `timeout` seconds (None: without limit), and return its exit
        code as `poll` does."""

    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class SignalledProcess:
    """Sends signals to a process by its id, but none after its end: the id may be another one's by then."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while the process runs."""
        raise NotImplementedError

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)


def start_process(argv: Sequence[str], stdin: int, stdout: int) -> Process:
    """Start `argv` with these descriptors, which the caller closes, and this process's stderr. OSError or
    ValueError if it cannot be started."""
    return _Child(argv, stdin, stdout)


class _Child(SignalledProcess):
    """A child process, started without subprocess: loading that module, with the regular expressions and
    locales that it loads, took longer than starting a child, and each remote sync waited for it.

    The signals that Python ignores have their default actions in the child. It inherits no descriptors but
    its three.
    """

    def __init__(self, argv: Sequence[str], stdin: int, stdout: int) -> None:
        self._code: int | None = None
        pid = os.posix_spawnp(
            argv[0],
            list(argv),
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, stdin, 0),
                (os.POSIX_SPAWN_DUP2, stdout, 1),
                *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inherited()),
            ],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
        super().__init__(pid)

    def poll(self) -> int | None:
        return self._ended(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int | None:
        if timeout is None:
            return self._ended(0)
        if self.poll() is None:
            self._wait_for_end(timeout)
        return self.poll()

    def _ended(self, options: int) -> int | None:
        if self._code is None:
            try:
                pid, status = os.waitpid(self._pid, options)
            except ChildProcessError:
                self._code = 0  # SIGCHLD is ignored, so the system keeps no status
            else:
                self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def _wait_for_end(self, timeout: float) -> None:
        """Sleep until the end wakes us: to look at intervals would add one to each remote sync."""
        try:
            ending = os.pidfd_open(self._pid)
        except (AttributeError, OSError):  # no Linux, or a kernel that refuses it
            end = time.monotonic() + timeout
            while self.poll() is None and (left := end - time.monotonic()) > 0:
                time.sleep(min(left, LOOK_SECONDS))
            return
        try:
            ended = select.poll()
            ended.register(ending, select.POLLIN)
            ended.poll(timeout * 1000)
        finally:
            os.close(ending)


def _inherited() -> list[int]:
    """Return the descriptors above 2 that a child would inherit: those that this process has from its own
    parent, since Python makes none. One of a lock, say, must not stay open in a remote shell that lives on.
    """
    try:
        fds = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        fds = [*range(LISTED_FDS)]
    found = []
    for fd in fds:
        with contextlib.suppress(OSError):  # not open, as that of the listing
            if fd > 2 and os.get_inheritable(fd):
                found.append(fd)
    return found


class ChildTransport(PipeTransport):
    """The dialler's end: it starts `argv`, whose stdin and stdout are the stream and whose stderr is this
    process's.

    The child stays in this process group: a remote shell may ask for a password on the terminal, which only
    the foreground group may read, and Ctrl-C must reach both. CommandMissingError if `argv[0]` cannot be
    started.
    """

    start: Callable[[Sequence[str], int, int], Process] = staticmethod(start_process)

    def __init__(self, argv: Sequence[str]) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        try:
            self._process = self.start(argv, theirs_in, theirs_out)
        except (OSError, ValueError) as error:
            os.close(ours_in)
            os.close(ours_out)
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise CommandMissingError(f"cannot start {printable(argv[0])}: {reason}") from error
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        super().__init__(ours_in, ours_out)

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while the child runs. Never waits."""
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit status after at most `timeout` seconds (EXIT_SECONDS by default); None if the child
        still runs. It explains an end of the stream."""
        return self._process.wait(EXIT_SECONDS if timeout is None else timeout)

    def close(self) -> None:
        """End the stream in both directions, wait EXIT_SECONDS for the child's exit, then terminate it."""
        super().close()
        if self.wait() is None:
            self._process.terminate()
            if self.wait(TERMINATE_SECONDS) is None:
                self._process.kill()
                self._process.wait()
