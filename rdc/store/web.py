"""Reads ranges of the files that a static web server has. Nothing that a server sends is believed.

A request ends within a time that follows from the bytes that come, whatever the server does: a timer ends its
connection. Only bytes of the body put that off, so one that sends heads for ever, between parts of a body
too, gains nothing. No body is read beyond what was asked for. Redirects are not followed and compressed
bodies are refused, so a signature covers what was fetched from the address that the user named.

A proxy is used if the environment names one, by the names and rules of curl and urllib. It is no more trusted
than a server: TLS goes through it.
"""

from __future__ import annotations

import http.client
import os
import re
import socket
import ssl
import threading
import time
from base64 import b64encode
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.lean.records import Record
from rdc.store.place import INDEX_NAME
from rdc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_SECONDS = 60.0
"""The time that a server may be silent, unless the user says otherwise."""

SLOWEST = 16 << 10
"""Bytes of a body a second, below which a server is given up. It has the timeout once on top."""

PIECE_BYTES = 256 << 10

_RANGE = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/(?:[0-9]{1,15}|\*)")
_PROXY_PORT = 1080
"""The port of a proxy whose address names none, as in curl."""

_REDIRECTS = {301, 302, 303, 307, 308}


class _SecureConnection(http.client.HTTPSConnection):
    """A connection whose handshake another thread can end."""

    def __init__(
        self, host: str, port: int | None, timeout: float, context: ssl.SSLContext, name: str
    ) -> None:
        """`name`: of the server, also if `host` is a proxy."""
        super().__init__(host, port, timeout=timeout, context=context)
        self._own_context = context
        self._name = name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)  # asks a proxy for the way through it, too
        secured = self._own_context.wrap_socket(
            self.sock, server_hostname=self._name, do_handshake_on_connect=False
        )
        self.sock = secured
        secured.do_handshake()


class _Deadline:
    """The time at which a connection is ended unless that is put off. `begin` and `stop` are called in
    turns."""

    def __init__(self, end: Callable[[], None]) -> None:
        """`end`: ends the connection, in another thread."""
        self._end = end
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._at = 0.0
        self.is_past = False
        """True if the connection was ended."""

    def begin(self, seconds: float) -> None:
        with self._lock:
            self.is_past = False
            self._at = time.monotonic() + seconds
            self._wait(seconds)

    def put_off(self, seconds: float) -> None:
        """End it that long from now. Raises TimeoutError if it is too late."""
        now = time.monotonic()
        with self._lock:
            if self.is_past or now > self._at:
                raise TimeoutError
            self._at = now + seconds

    def stop(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None

    def _wait(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._look)
        self._timer.daemon = True
        self._timer.start()

    def _look(self) -> None:
        with self._lock:
            if self._timer is not threading.current_thread():
                return  # it was stopped meanwhile
            left = self._at - time.monotonic()
            if left > 0:
                self._wait(left)
                return
            self.is_past = True
            self._end()


class _Proxy(Record):
    """The proxy between here and a server."""

    host: str
    port: int
    headers: dict[str, str]
    """The headers for the proxy: the user's name and password, if the environment gives them."""


def _proxy_for(scheme: str, host: str, port: int) -> _Proxy | None:
    """Return the proxy that the environment names for a server; None for none. Raises UsageError for one that
    cannot be used."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None  # the module takes a while to load
    from urllib.request import getproxies_environment, proxy_bypass

    proxies = getproxies_environment()
    said = proxies.get(scheme) or proxies.get("all")
    if not said or proxy_bypass(f"{host}:{port}"):
        return None
    advice = f"rdc speaks to proxies of http://HOST:PORT; no_proxy={host} goes without one"
    try:
        found = urlsplit(said if "://" in said else f"http://{said}")
        name, port = found.hostname, found.port or _PROXY_PORT
    except ValueError as error:
        raise UsageError(f"{scheme}_proxy: no address of a proxy: {error}; {advice}") from error
    if found.scheme.lower() != "http" or not name:
        kind = printable(found.scheme[:20])
        raise UsageError(f"{scheme}_proxy: expected a proxy of http://, found {kind}://; {advice}")
    headers = {}
    if found.username is not None:
        user = f"{unquote(found.username)}:{unquote(found.password or '')}".encode()
        headers["Proxy-Authorization"] = "Basic " + b64encode(user).decode()
    return _Proxy(name, port, headers)


class WebFiles:
    """The files below one address, read over one connection."""

    def __init__(self, url: str, *, timeout: float = 0, notice: Callable[[str], None] = lambda text: None):
        """`timeout`: seconds that a server may be silent; 0: TIMEOUT_SECONDS. `notice`: takes what a user
        should know. Raises UsageError for an address that cannot be one of a store."""
        self.url = url.rstrip("/")
        self._timeout = timeout or TIMEOUT_SECONDS
        self._notice = notice
        try:
            found = urlsplit(self.url)
            self.host, self.port = found.hostname or "", found.port
        except ValueError as error:
            raise UsageError(f"{printable(url)}: no address of a store: {error}") from error
        if not self.host or found.query or found.fragment or not found.path.isascii():
            raise UsageError(
                f"{printable(url)}: expected https://HOST/PATH/@latest/, without ? and #, and with %XX for"
                " letters that are not ASCII"
            )
        if found.username is not None:
            raise UsageError(
                f"{printable(found.hostname or '')}: rdc sends no password to a web server; leave it out"
            )
        self._secure = found.scheme.lower() == "https"
        self._path = found.path
        self._proxy = _proxy_for(found.scheme.lower(), self.host, self.port or self.default_port)
        self._connection: http.client.HTTPConnection | None = None
        self.requests = 0
        self.received = 0
        """Bytes of all bodies and heads."""
        self._lacks_ranges = False
        self._deadline = _Deadline(self._abort)

    @property
    def default_port(self) -> int:
        return 443 if self._secure else 80

    def close(self) -> None:
        """Close the connection. May be called again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def whole(self, path: bytes, most: int) -> bytes:
        """Return a file of at most `most` bytes. Raises RdcError."""
        parts: list[bytes] = []
        self._request(path, None, most, lambda _, data: parts.append(data))
        return b"".join(parts)

    def fetch(
        self, path: bytes, start: int, stop: int, size: int, take: Callable[[int, bytes], None]
    ) -> None:
        """Give the bytes [start, stop) of a file of `size` bytes to `take`, with the offset of each part.

        A server without ranges sends the whole file, which is given to `take`. Raises RdcError.
        """
        self._request(path, (start, stop), size, take)

    def _request(
        self, path: bytes, wanted: tuple[int, int] | None, most: int, take: Callable[[int, bytes], None]
    ) -> None:
        shown = f"{self.url}/{path.decode()}"
        began = self._connection is not None
        while True:
            self._deadline.begin(self._timeout)
            try:
                self._exchange(path, wanted, most, shown, take)
            except (http.client.HTTPException, OSError, ValueError) as error:
                late = self._deadline.is_past
                self.close()
                # A server may have closed a connection that nobody used for a while.
                if began and not late and isinstance(error, ConnectionError):
                    began = False
                    continue
                raise self._failure(shown, error, late=late) from error
            except BaseException:
                self.close()
                raise
            finally:
                self._deadline.stop()
            return

    def _abort(self) -> None:
        connection = self._connection
        with suppress(OSError, AttributeError):
            if connection is not None:
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _failure(self, shown: str, error: Exception, *, late: bool) -> RdcError:
        if late or isinstance(error, TimeoutError):
            return RdcError(
                f"{shown}: the server is too slow or silent (--timeout={self._timeout:g}); run again",
                code=ExitCode.TIMEOUT,
            )
        if isinstance(error, ssl.SSLError):
            return RdcError(
                f"{shown}: the server's certificate or TLS is not accepted: {printable(str(error))}",
                code=ExitCode.UNREACHABLE,
            )
        code = ExitCode.UNREACHABLE if self.received == 0 else ExitCode.STREAM
        why = printable(str(error)[:200]) or type(error).__name__
        by = "" if self._proxy is None else f" by proxy {self._proxy.host}:{self._proxy.port}"
        return RdcError(f"{shown}: cannot read it{by}: {why}; run again", code=code)

    def _open(self) -> http.client.HTTPConnection:
        if self._connection is None:
            proxy, port, timeout = self._proxy, self.port or self.default_port, self._timeout
            where = (self.host, port) if proxy is None else (proxy.host, proxy.port)
            if self._secure:
                context = ssl.create_default_context()
                self._connection = _SecureConnection(*where, timeout, context, self.host)
                if proxy is not None:
                    self._connection.set_tunnel(self.host, port, proxy.headers)
            else:
                self._connection = http.client.HTTPConnection(*where, timeout=timeout)
        return self._connection

    def _exchange(
        self,
        path: bytes,
        wanted: tuple[int, int] | None,
        most: int,
        shown: str,
        take: Callable[[int, bytes], None],
    ) -> None:
        connection = self._open()
        headers = {"User-Agent": f"rdc/{__version__}"}
        if wanted is None:
            headers["Cache-Control"] = "no-cache"
        else:
            headers["Range"] = f"bytes={wanted[0]}-{wanted[1] - 1}"
        target = f"{self._path}/{path.decode()}"
        if self._proxy is not None and not self._secure:
            headers |= self._proxy.headers
            target = f"{self.url}/{path.decode()}"
        self.requests += 1
        connection.request("GET", target, headers=headers)
        with connection.getresponse() as response:
            self.received += sum([len(name) + len(value) + 4 for name, value in response.getheaders()]) + 20
            self._check_head(response, shown, is_index=path == INDEX_NAME)
            if wanted is None:
                self._take(response, 0, None, most, shown, take)
            elif response.status == 206:
                self._check_range(response, wanted, shown)
                self._take(response, wanted[0], wanted[1] - wanted[0], most, shown, take)
            else:
                if not self._lacks_ranges and wanted != (0, most):
                    self._lacks_ranges = True
                    self._notice(f"{self.url}: the server sends no parts of files, so packs come whole")
                self._take(response, 0, most, most, shown, take)
            if response.will_close:
                self.close()

    def _check_head(self, response: http.client.HTTPResponse, shown: str, *, is_index: bool) -> None:
        status = response.status
        if status in _REDIRECTS:
            there = printable((response.getheader("Location") or "nowhere")[:300])
            raise self._refused(shown, "the file", f"a redirect to {there}", "name the store's new address")
        if status == 404 and is_index:
            advice = "check the address; rdc store put --publish writes it"
            raise self._refused(shown, "the index of a published store", "none (404)", advice)
        if status == 404:
            advice = "the index is of another time than the files: run again, or tell who publishes the store"
            raise self._refused(shown, "a file of the store", "none (404)", advice)
        if status not in (200, 206):
            found = f"status {status} {printable(response.reason[:80])}"
            raise self._refused(shown, "the file", found, "ask who runs the server")
        coding = (response.getheader("Content-Encoding") or "identity").lower()
        if coding != "identity":
            advice = "turn off compression and other changes for the store at the server"
            raise self._refused(shown, "the file as it is", f"coding {printable(coding[:40])}", advice)

    def _check_range(self, response: http.client.HTTPResponse, wanted: tuple[int, int], shown: str) -> None:
        said = response.getheader("Content-Range") or ""
        found = _RANGE.fullmatch(said)
        if found is None or (int(found[1]), int(found[2])) != (wanted[0], wanted[1] - 1):
            expected = f"bytes {wanted[0]}-{wanted[1] - 1}"
            found_text = printable(said[:80]) or "no range"
            raise self._refused(shown, expected, found_text, "the server's ranges cannot be used")

    def _take(
        self,
        response: http.client.HTTPResponse,
        at: int,
        length: int | None,
        most: int,
        shown: str,
        take: Callable[[int, bytes], None],
    ) -> None:
        """Give a body to `take`. `length`: what it must have; None: at most `most` bytes."""
        said = response.length
        if said is not None and (said > most if length is None else said != length):
            raise self._wrong_length(shown, length, most, f"{said}")
        length = said if length is None else length
        limit = most if length is None else length
        began, left = time.monotonic(), limit
        self._deadline.put_off(self._timeout)
        while data := response.read1(min(PIECE_BYTES, left + 1)):
            ends = began + self._timeout + (limit - left + len(data)) / SLOWEST
            self._deadline.put_off(min(self._timeout, ends - time.monotonic()))
            self.received += len(data)
            if len(data) > left:
                raise self._wrong_length(shown, length, most, "more")
            take(at, data)
            at, left = at + len(data), left - len(data)
        if self._deadline.is_past:
            raise TimeoutError  # a connection that was ended looks like one that has
        if length is not None and left:
            raise self._wrong_length(shown, length, most, f"{length - left}")

    def _wrong_length(self, shown: str, length: int | None, most: int, found: str) -> RdcError:
        expected = f"at most {most} bytes" if length is None else f"{length} bytes"
        advice = "the server or a cache has another version of it: run again later"
        return self._refused(shown, expected, found, advice)

    def _refused(self, shown: str, expected: str, found: str, advice: str) -> RdcError:
        return RdcError(f"{shown}: expected {expected}, found {found}; {advice}", code=ExitCode.STREAM)
