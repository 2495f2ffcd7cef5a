"""SRC and DST are read as rsync reads them, and what could start a command is refused."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import UsageError
from rdc.model.location import DEFAULT_PORT, Location, parse_location

LOCAL = [
    "a",
    "a/b",
    "/a:b",
    "./a:b",
    "a/b:c",
    "../x:y/",
    "a@b",
    "[::1]",
    "[::1]x:y",
    "[a/b]:c",
    "-x",
    "~",
    "a/[::1]:x",
]

REMOTE = [
    ("host:path", "host", b"path"),
    ("host:/abs:olute/", "host", b"/abs:olute/"),
    ("host:", "host", b"."),
    ("host:~", "host", b"."),
    ("host:~/", "host", b"./"),
    ("host:~//x/y", "host", b"./x/y"),
    ("host:./~x", "host", b"./~x"),
    ("me@host:p", "me@host", b"p"),
    ("me@corp@host:p", "me@corp@host", b"p"),
    ("[fe80::1%eth0]:p", "fe80::1%eth0", b"p"),
    ("me@[::1]:/p", "me@::1", b"/p"),
    ("host:@p", "host", b"@p"),
]


DAEMON = [
    ("rdc://host/module", "host", DEFAULT_PORT, b"module"),
    ("RDC://host/module/", "host", DEFAULT_PORT, b"module/"),
    ("rdc://host:99/module/a:b/%41", "host", 99, b"module/a:b/%41"),
    ("rdc://[fe80::1%eth0]:99/m/../x", "fe80::1%eth0", 99, b"m/../x"),
    ("rdc://[::1]/m", "::1", DEFAULT_PORT, b"m"),
]


@pytest.mark.parametrize("text", LOCAL)
def test_local(text: str) -> None:
    assert parse_location(text) == Location(None, os.fsencode(text))


@pytest.mark.parametrize(("text", "host", "path"), REMOTE)
def test_remote(text: str, host: str, path: bytes) -> None:
    assert parse_location(text) == Location(host, path)


@pytest.mark.parametrize(("text", "host", "port", "path"), DAEMON)
def test_daemon(text: str, host: str, port: int, path: bytes) -> None:
    location = parse_location(text)
    assert location == Location(host, path, port)
    assert parse_location(str(location)) == location


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("a\0b", "NUL"),
        (":x", "no host"),
        ("me@:x", "no host"),
        ("@host:x", "no host"),
        ("-oProxyCommand=x:y", "begin with '-'"),
        ("-x@host:y", "begin with '-'"),
        ("me@-x:y", "begin with '-'"),
        ("[-x]:y", "begin with '-'"),
        ("host::module", "write rdc://HOST/MODULE"),
        ("[::1]::module", "write rdc://HOST/MODULE"),
        ("rsync://host/m", "does not speak rsync's protocol"),
        ("ssh://me@host:22/path", "is written HOST:PATH"),
        ("SFTP://host/path", "is written HOST:PATH"),
        ("s3://bucket/x", "rdc knows no s3://"),
        (
            "https://host/x",
            "only rdc sync reads a store from the web, as SRC: rdc sync https://host/x/@latest/ DST",
        ),
        ("https://host/x/@3", "as SRC: rdc sync https://host/x/@3/ DST"),
        ("GS+x://host", "rdc knows no GS+x://"),
        ("rdc:/host/m", "a daemon is written rdc://HOST/MODULE/PATH"),
        ("rdc://host", "a module is needed"),
        ("rdc://host//m", "a module is needed"),
        ("rdc:///m", "expected rdc://HOST"),
        ("rdc://-h/m", "expected rdc://HOST"),
        ("rdc://[::1/m", "expected rdc://HOST"),
        ("rdc://[::1]9/m", "expected rdc://HOST"),
        ("rdc://a[b/m", "expected rdc://HOST"),
        ("rdc://me@host/m", "takes no user"),
        ("rdc://host:/m", "found ''"),
        ("rdc://host:0/m", "found '0'"),
        ("rdc://host:65536/m", "found '65536'"),
        ("rdc://host:x/m", "found 'x'"),
        ("host:~other/x", "~USER"),
    ],
)
def test_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=None) as caught:
        parse_location(text)
    assert words in str(caught.value)


@pytest.mark.parametrize("scheme", ["rdc", "RSYNC", "ssh", "sftp", "s3", "https", "ftp"])
def test_no_message_has_the_password_of_a_url(scheme: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_location(f"{scheme}://me:S3CR:E@T@host/x/@1/")
    assert "me:...@host/x" in str(caught.value)
    assert "S3CR" not in str(caught.value) and "E@T" not in str(caught.value)


def test_bytes_that_are_not_utf8_survive() -> None:
    assert parse_location(os.fsdecode(b"host:\xff")) == Location("host", b"\xff")
    assert parse_location(os.fsdecode(b"\xff")).path == b"\xff"


@given(st.sampled_from(("", "rdc://")), st.text(st.sampled_from("a@:[]/-~.9"), max_size=10))
def test_any_text_is_a_location_or_a_usage_error(scheme: str, rest: str) -> None:
    text = scheme + rest
    try:
        location = parse_location(text)
    except UsageError:
        return
    assert location.path
    if location.host is not None:
        assert location.host
        assert not location.host.startswith("-")
        assert "/" not in location.host
        # What is printed can be typed again.
        assert parse_location(str(location)) == location
    else:
        assert location.path == os.fsencode(text)
