"""Measures a scan of an object store that makes each call wait.

Question:  what does waiting for a store cost a scan, and what do calls in flight save? What does an object
           cost that is listed, and one that is read?
Metrics:   wall: seconds, with those of the start; cpu: user and system seconds of rdc; memory: its largest
           process. Most requests that the store had at a time. Medians of interleaved runs.
Beside:    --depth=1, which has one call in flight for each thread that reads.
Corpora:   a store in a process of its own, on loopback, whose objects are made from their names. It answers
           after --wait seconds. Cases: directories x objects in each x bytes of an object.
Commands:  .venv/bin/python -m bench.objects [--wait 0.02] [--runs 3]
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import multiprocessing
import os
import urllib.parse
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.harness import RDC, Table, arguments, in_turns, machine, medians, run

PAGE = 1000
"""Names in one answer."""

LIST = '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'


@dataclass(frozen=True, slots=True)
class Case:
    directories: int
    objects: int
    """The number in each directory."""
    size: int
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.directories:,} x {self.objects:,} x {self.size:,} bytes"
        return " ".join((text, *self.options))


CASES = (
    Case(20, 100, 4_000),
    Case(1_000, 3, 4_000),
    Case(1, 40, 2_000_000),
    Case(1, 4, 64 << 20),
    Case(10, 20_000, 4_000, ("--sample=0.01%",)),
)


class Store:
    """Answers list_objects_v2 and get_object for one bucket."""

    def __init__(self, case: Case, wait: float) -> None:
        self._case = case
        self._wait = wait
        self._now = 0
        self._content = functools.lru_cache(8)(self._made)
        self.most = 0
        """Most requests at a time."""

    def _made(self, key: str) -> bytes:
        seed = hashlib.blake2b(key.encode()).digest()
        return (seed * (self._case.size // len(seed) + 1))[: self._case.size]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                url = urllib.parse.urlsplit(head[0].split(" ")[1])
                self._now += 1
                self.most = max(self.most, self._now)
                await asyncio.sleep(self._wait)
                self._now -= 1
                key = urllib.parse.unquote(url.path).removeprefix("/bucket").lstrip("/")
                if key:
                    answer = self._object(key, fields.get("range"))
                else:
                    answer = _answer(self._page(dict(urllib.parse.parse_qsl(url.query))).encode())
                writer.write(answer)
                await writer.drain()
        writer.close()

    def _object(self, key: str, wanted: str | None) -> bytes:
        content = self._content(key)
        if wanted is not None:
            first, last = map(int, wanted.removeprefix("bytes=").split("-"))
            content = content[first : last + 1]
        return _answer(content, f'ETag: "{_version(key)}"\r\n')

    def _page(self, asked: dict[str, str]) -> str:
        if asked.get("max-keys") == "1":
            return f"{LIST}</ListBucketResult>"
        prefix, begin = asked["prefix"], int(asked.get("continuation-token", 0))
        of_top = prefix == "data/"
        total = self._case.directories if of_top else self._case.objects
        rows = range(begin, min(begin + PAGE, total))
        if of_top:
            found = [f"<CommonPrefixes><Prefix>data/{row:06}/</Prefix></CommonPrefixes>" for row in rows]
        else:
            found = [self._entry(f"{prefix}{row:06}") for row in rows]
        more = begin + PAGE < total
        token = f"<NextContinuationToken>{begin + PAGE}</NextContinuationToken>" if more else ""
        ends = f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}</ListBucketResult>"
        return f"{LIST}{''.join(found)}{ends}"

    def _entry(self, key: str) -> str:
        return (
            f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>&quot;{_version(key)}&quot;</ETag><Size>{self._case.size}</Size></Contents>"
        )


def _version(key: str) -> str:
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


def _answer(content: bytes, fields: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n{fields}\r\n".encode() + content


def _run_store(case: Case, wait: float, pipe: Any) -> None:
    """Serve as the main function of the store's process."""

    async def run() -> None:
        store = Store(case, wait)
        server = await asyncio.start_server(store.serve, "127.0.0.1", 0, backlog=500)
        pipe.send(server.sockets[0].getsockname()[1])
        async with server:
            await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
            pipe.send(store.most)

    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class Waited:
    wall: float
    cpu: float
    memory: int
    most: int


def measured(case: Case, wait: float, depth: str) -> Waited:
    """One scan of a fresh store."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_run_store, args=(case, wait, there))
    process.start()
    words = [*RDC, "scan", "--no-catalog", "--no-zstd", "-q", depth, *case.options, "s3://bucket/data"]
    environ = {
        **os.environ,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{here.recv()}",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    cost = run(words, env=environ)
    here.send(None)
    most = here.recv()
    process.join()
    return Waited(cost.wall, cost.cpu, cost.memory, most)


def main() -> None:
    parser = arguments(__doc__, runs=3)
    parser.add_argument("--wait", type=float, default=0.02, help="seconds of each answer")
    given = parser.parse_args()
    print(f"{os.uname().release}, {machine()}, {given.wait * 1000:g} ms an answer")
    table = Table("case", "depth", "wall, s:", "CPU, s:", "memory, MB:", "at a time:")
    for case in CASES:
        depths = ("--depth=1", "--depth=0", "--depth=32")
        ways = {depth: partial(measured, case, given.wait, depth) for depth in depths}
        for depth, found in in_turns(ways, given.runs).items():
            cost = medians(found)
            figures = f"{cost.wall:.2f}", f"{cost.cpu:.2f}", f"{cost.memory / 1e6:.0f}"
            table.row(case, depth, *figures, cost.most)


if __name__ == "__main__":
    main()
