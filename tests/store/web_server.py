"""A web server on loopback for published stores: one that works, and those that do not."""

from __future__ import annotations

import functools
import http.server
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, repeat
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

__all__ = ["BAD_SERVERS", "WebServer"]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, server: WebServer, *given: Any) -> None:
        self.owner = server
        super().__init__(*given)

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        owner = self.owner
        owner.proxy_users.append(self.headers.get("Proxy-Authorization"))
        name = urlsplit(self.path).path  # as a proxy, it is asked for an address
        path = owner.replaced.get(name.rpartition("/")[2], owner.top / name.lstrip("/"))
        said = self.headers.get("Range")
        owner.requests.append((self.path, said))
        if not path.is_file():
            self.send_error(404)
            return
        data, wanted = path.read_bytes(), None
        if said is not None:
            found = re.fullmatch(r"bytes=([0-9]+)-([0-9]+)", said)
            assert found is not None, said
            wanted = int(found[1]), int(found[2])
        owner.answer(self, data, wanted)

    def do_CONNECT(self) -> None:
        """Be a proxy: join the client with the server that it names."""
        self.owner.requests.append((self.path, None))
        self.owner.proxy_users.append(self.headers.get("Proxy-Authorization"))
        self.close_connection = True
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as server:
            self.send_response(200)
            self.end_headers()
            self.wfile.flush()
            back = threading.Thread(target=_carry, args=(server, self.connection), daemon=True)
            back.start()
            _carry(self.connection, server)
            back.join()

    def give(self, status: int, body: bytes, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.owner.sent += len(body)
        self.wfile.write(body)


def _carry(one: socket.socket, other: socket.socket) -> None:
    """Pass on what one end sends, until it ends."""
    with suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    with suppress(OSError):
        other.shutdown(socket.SHUT_WR)


Answer = Callable[[_Handler, bytes, "tuple[int, int] | None"], None]


def _with_ranges(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    if wanted is None:
        handler.give(200, data)
        return
    first, last = wanted
    said = f"bytes {first}-{last}/{len(data)}"
    handler.give(206, data[first : last + 1], Content_Range=said)


def _wrong_range(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    handler.give(200 if wanted is None else 206, data, Content_Range=f"bytes 0-{len(data) - 1}/{len(data)}")


def _no_range_said(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    handler.give(200 if wanted is None else 206, data)


def _too_long(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    first, last = wanted or (0, len(data) - 1)
    body = data[first : last + 1] + (b"" if wanted is None else b"more")
    handler.give(200 if wanted is None else 206, body, Content_Range=f"bytes {first}-{last}/{len(data)}")


def _cut_off(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    first, last = wanted or (0, len(data) - 1)
    body = data[first : last + 1]
    half = body[: len(body) // 2]
    handler.give(
        200 if wanted is None else 206, half, len(body), Content_Range=f"bytes {first}-{last}/{len(data)}"
    )
    handler.close_connection = True


def _zipped(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    handler.give(200, data, Content_Encoding="gzip")


def _elsewhere(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    handler.give(302, b"", Location="http://127.0.0.1/\x1b[31mst/")


def _failing(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    handler.give(503, b"busy")


def _endless(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    """Send no length and no end, as long as somebody reads."""
    handler.send_response(200)
    handler.end_headers()
    handler.close_connection = True
    try:
        while True:
            handler.wfile.write(data[:1] * 65536)
    except OSError:
        pass


def _endless_head(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    handler.close_connection = True
    try:
        while True:
            handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)
    except OSError:
        pass


def _silent(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    handler.close_connection = True
    handler.rfile.read(1)  # until the reader gives up


def _drip(handler: _Handler, parts: Iterator[bytes]) -> None:
    """Send parts one after the other, never fast, until the reader gives up."""
    handler.close_connection = True
    try:
        for part in parts:
            handler.wfile.write(part)
            time.sleep(0.02)
    except OSError:
        pass


def _dripping_chunk_head(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    """Send the head of a part of a body that never comes, byte by byte: no read is silent for long."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    _drip(handler, chain((b"1;",), repeat(b"x")))


def _dripping_after_a_start(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    """Send enough at once for a long time at the slowest rate, then the head of a part that never comes."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    size = 4 << 20
    handler.wfile.write(b"%x\r\n" % size + bytes(size) + b"\r\n")
    _drip(handler, chain((b"1;",), repeat(b"x")))


def _crawling(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    """Send a body of the right length, byte by byte."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    _drip(handler, (data[at : at + 1] for at in range(len(data))))


def _no_http(handler: _Handler, data: bytes, wanted: tuple[int, int] | None) -> None:
    handler.wfile.write(b"\x00\xff" * 100)
    handler.close_connection = True


BAD_SERVERS: dict[str, tuple[Answer, str]] = {
    "wrong range": (_wrong_range, "expected bytes"),
    "no range said": (_no_range_said, "found no range"),
    "too long": (_too_long, "another version"),
    "cut off": (_cut_off, "another version"),
    "gzip": (_zipped, "found coding gzip"),
    "redirect": (_elsewhere, "name the store's new address"),
    "failing": (_failing, "found status 503"),
    "endless": (_endless, "expected at most"),
    "endless head": (_endless_head, "too slow or silent"),
    "silent": (_silent, "too slow or silent"),
    "dripping chunk head": (_dripping_chunk_head, "too slow or silent"),
    "dripping after a start": (_dripping_after_a_start, "too slow or silent"),
    "crawling": (_crawling, "too slow or silent"),
    "no HTTP": (_no_http, "cannot read it"),
}
"""What each does wrong, and words of the message about it."""


class WebServer:
    """Serves a directory while it is used as a context manager, and counts."""

    def __init__(self, top: Path, answer: Answer = _with_ranges, tls: ssl.SSLContext | None = None) -> None:
        self.top = top
        self.answer = answer
        self.requests: list[tuple[str, str | None]] = []
        """The path and the range of each request."""
        self.proxy_users: list[str | None] = []
        """What each request says to a proxy of who asks."""
        self.sent = 0
        """Bytes of all bodies."""
        self.replaced: dict[str, Path] = {}
        """Files that are served in place of others, by name."""
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, self))
        self._server.daemon_threads = True
        self._scheme = "http"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
            self._scheme = "https"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @classmethod
    def without_ranges(cls, top: Path) -> WebServer:
        """Return a server that sends whole files only."""
        return cls(top, lambda handler, data, wanted: handler.give(200, data))

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def __enter__(self) -> WebServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
