"""A server of an object store in a process of its own, on loopback."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["SECRET", "Bucket", "object_server"]

BEGIN_SECONDS = 300

SECRET = "secret-key-of-the-tests"  # noqa: S105 - of a server on loopback


class Bucket:
    """The bucket `corpus` of a server."""

    def __init__(self, url: str) -> None:
        import boto3  # every process of the tests loads this module, and one runs these tests

        self.url = url
        self._client = boto3.client("s3")
        self._client.create_bucket(Bucket="corpus")

    def put(self, key: str, content: bytes, **options: str) -> None:
        """`options`: more words of put_object."""
        self._client.put_object(Bucket="corpus", Key=key, Body=content, **options)

    def put_tree(self, tree: Path, name: str) -> None:
        for file in tree.rglob("*"):
            if file.is_file():
                self.put(f"{name}/{file.relative_to(tree)}", file.read_bytes())

    def deny(self, *, after: int) -> None:
        """Refuse every request but the first `after` ones. A large number refuses none."""
        self._ask("reset-auth", f"{after}")

    @contextlib.contextmanager
    def noted(self) -> Iterator[list[tuple[str, str]]]:
        """The list has, in the end, path and query of each request meanwhile, and whose key signed it."""
        found: list[tuple[str, str]] = []
        self._ask("recorder/reset-recording")
        self._ask("recorder/start-recording")
        yield found
        self._ask("recorder/stop-recording")
        for line in self._ask("recorder/download-recording").splitlines():
            request = json.loads(line)
            _, _, signed = request["headers"].get("Authorization", "").partition("Credential=")
            found.append((request["url"].removeprefix(self.url), signed.partition("/")[0]))

    def _ask(self, what: str, body: str = "") -> bytes:
        """Ask moto itself."""
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.url).netloc)
        connection.request("POST", f"/moto-api/{what}", body)
        answer = connection.getresponse()
        assert answer.status == 200
        content = answer.read()
        connection.close()
        return content


@contextlib.contextmanager
def object_server(top: Path) -> Iterator[Bucket]:
    """Set the environment as the tools of a store read it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with pytest.MonkeyPatch.context() as patch, (top / "log").open("wb") as log:
        for name, value in (
            ("AWS_ENDPOINT_URL", url),
            ("AWS_ACCESS_KEY_ID", "access-key"),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("AWS_CONFIG_FILE", os.devnull),
            ("AWS_SHARED_CREDENTIALS_FILE", os.devnull),
            ("MOTO_RECORDER_FILEPATH", str(top / "requests")),
        ):
            patch.setenv(name, value)
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            end = time.monotonic() + BEGIN_SECONDS
            while b"Running on" not in (top / "log").read_bytes():
                assert process.poll() is None, (top / "log").read_text()
                assert time.monotonic() < end, (top / "log").read_text()
                time.sleep(0.05)
            yield Bucket(url)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
