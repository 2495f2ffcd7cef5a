"""SRC and DST are read as rsync reads them, and what could start a command is refused."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import UsageError
from rdc.model.location import Location, parse_location

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


@pytest.mark.parametrize("text", LOCAL)
def test_local(text: str) -> None:
    assert parse_location(text) == Location(None, os.fsencode(text))


@pytest.mark.parametrize(("text", "host", "path"), REMOTE)
def test_remote(text: str, host: str, path: bytes) -> None:
    assert parse_location(text) == Location(host, path)


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
        ("host::module", "HOST::MODULE is not available yet"),
        ("[::1]::module", "HOST::MODULE is not available yet"),
        ("rsync://host/m", "rsync:// are not available yet"),
        ("RDC://host/m", "not available yet"),
        ("host:~other/x", "~USER"),
    ],
)
def test_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=None) as caught:
        parse_location(text)
    assert words in str(caught.value)


def test_bytes_that_are_not_utf8_survive() -> None:
    assert parse_location(os.fsdecode(b"host:\xff")) == Location("host", b"\xff")
    assert parse_location(os.fsdecode(b"\xff")).path == b"\xff"


@given(st.text(st.sampled_from("a@:[]/-~."), max_size=10))
def test_any_text_is_a_location_or_a_usage_error(text: str) -> None:
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
