"""What a daemon refuses: wrong keys, and what a module does not allow; one line each, and nothing happens."""

from __future__ import annotations

import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.protocol.connection import NEGOTIATING
from tests.support.daemon.daemons import Daemon, certificate, key_directory, running_daemon, wait_until
from tests.support.running.syncing import command
from tests.support.trees.trees import Tree, describe, read_tree, tree, write_tree

CONTENT: Tree = tree({"a/file": b"far", "b": b"b"})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("refusals")


@pytest.fixture(scope="module")
def outside(place: Path) -> Path:
    """What no peer may ever see or touch."""
    return write_tree(place / "outside", tree({"secret": b"secret"}))


@pytest.fixture(scope="module")
def daemon(place: Path, outside: Path) -> Iterator[Daemon]:
    modules = ""
    for name, settings in {
        "reads": "",
        "writes": "write-only = true",
        "keeps": "read-only = false\nno-delete = true",
        "appends": "append-only = true",
        "open": "read-only = false",
        "bobs": "read-only = false",
    }.items():
        write_tree(place / name, CONTENT)
        peer = "bob" if name == "bobs" else "alice"
        modules += f'[modules.{name}]\npath = "{place / name}"\nallow = ["{peer}"]\n{settings}\n'
    (place / "open/link").symlink_to(outside)
    (place / "open/a/up").symlink_to("..")
    trusted = {"alice": "alice", "bob": "bob", "late": "expired"}
    with running_daemon(place / "daemon", modules, trusted=trusted) as running:
        yield running


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "here", tree({"new": b"new"}))


REFUSED = [
    # SRC, DST ({} is the source here, far.. the daemon), exit code, words of the one line.
    ("far:reads/", "{}", 0, ""),
    ("{}/", "far:reads/", 5, "module 'reads' is read-only"),
    ("{}/", "far:reads/new", 5, "module 'reads' is read-only"),
    ("{}/ -n", "far:reads/", 5, "module 'reads' is read-only"),
    ("far:writes/", "{}", 5, "module 'writes' is write-only"),
    ("far:writes/b", "{}", 5, "module 'writes' is write-only"),
    ("{}/ --delete", "far:writes/", 5, "nothing may be deleted in module 'writes'"),
    ("{}/ --delete -n", "far:writes/", 5, "nothing may be deleted in module 'writes'"),
    ("{}/ --delete", "far:keeps/", 5, "nothing may be deleted in module 'keeps'"),
    ("{}/ --delete", "far:appends/", 5, "module 'appends' is append-only and nothing may be deleted in it"),
    ("{}/new", "far:appends/b", 23, "appends/b: cannot change it: expected a new entry"),
    ("far:appends/", "{}", 0, ""),
    ("{}/ --owner", "far:open/", 5, "module 'open' keeps no owners"),
    ("{}/ --chown=root", "far:open/", 5, "module 'open' keeps no owners: leave out --usermap"),
    ("{}/ --no-numeric-ids", "far:open/", 5, "module 'open' keeps no owners: leave out --no-numeric-ids"),
    ("{}/ --timeout=301", "far:open/", 1, "--timeout=300 is the most"),
    ("far:nothing/", "{}", 5, "there is no module 'nothing' for this key"),
    ("far:bobs/", "{}", 5, "there is no module 'bobs' for this key"),
    ("{}/", "far:bobs/", 5, "there is no module 'bobs' for this key"),
    ("far:./", "{}", 5, "there is no module '.' for this key"),
    ("far:../open/", "{}", 5, "there is no module '..' for this key"),
    ("far:open/../bobs/", "{}", 23, "expected a path inside module 'open', found '..'"),
    ("far:open/a/..", "{}", 23, "found '..'"),
    ("{}/", "far:open/../bobs/", 23, "found '..'"),
    ("{}/new", "far:open/../stolen", 23, "found '..'"),
    ("far:open/link/", "{}", 23, "open/link: cannot open the directory: found a symbolic link"),
    ("far:open/link/secret", "{}", 23, "symbolic link"),
    ("far:open/a/up/", "{}", 23, "symbolic link"),
    ("far:open/a/up/b", "{}", 23, "symbolic link"),
    ("{}/", "far:open/link/", 11, "symbolic link"),
    ("{}/", "far:open/link/made", 11, "symbolic link"),
    ("{}/ -n", "far:open/link/made", 11, "symbolic link"),
    ("{}/new", "far:open/link/stolen", 11, "symbolic link"),
    ("{}/new", "far:open/a/up/stolen/", 11, "symbolic link"),
    ("far:open/none/", "{}", 23, "open/none: cannot open it: expected a directory, found nothing"),
    ("far:open/none", "{}", 23, "no such file or directory"),
    ("{}/", "far:open/none/none", 11, "open/none"),
]


@pytest.mark.parametrize(("source", "target", "code", "words"), REFUSED)
def test_modules(
    source: str, target: str, code: int, words: str, daemon: Daemon, place: Path, outside: Path, here: Path
) -> None:
    def typed(text: str) -> list[str]:
        return [daemon.url(word[4:]) if word[:4] == "far:" else word.format(here) for word in text.split()]

    before = {top: read_tree(top) for top in (place / "open", outside, here, place / "bobs")}
    ended = daemon.sync(*typed(source), *typed(target))
    if code == 0:
        assert (ended.code, ended.complaints) == (0, [])
        return
    assert len(ended.complaints) == 1, ended
    assert words in ended.complaints[0]
    assert ended.code == code
    # Nothing of the daemon's file system is told but what the peer knows.
    assert str(place / "open") not in ended.err
    for top, tree_before in before.items():
        assert describe(tree_before, read_tree(top)) == []


def test_a_write_only_module_takes_what_is_sent(daemon: Daemon, place: Path, here: Path) -> None:
    assert daemon.sync(f"{here}/", daemon.url("writes/")).code == 0
    assert read_tree(place / "writes").keys() == CONTENT.keys() | {b"new"}


def test_a_module_without_deletion_takes_all_else(daemon: Daemon, place: Path, here: Path) -> None:
    (here / "b").write_bytes(b"replaced")
    assert daemon.sync(f"{here}/", daemon.url("keeps/")).code == 0
    assert read_tree(place / "keeps").keys() == CONTENT.keys() | {b"new"}
    assert (place / "keeps/b").read_bytes() == b"replaced"


def test_an_append_only_module_takes_what_is_new(daemon: Daemon, place: Path, here: Path) -> None:
    (here / "b").write_bytes(b"replaced")
    ended = daemon.sync(f"{here}/", daemon.url("appends/"))
    assert (ended.code, len(ended.complaints)) == (23, 1)
    found = read_tree(place / "appends")
    assert found.keys() == CONTENT.keys() | {b"new"}
    assert found[b"b"] == CONTENT[b"b"]


# Keys


def attempt(daemon: Daemon, keys: Path) -> tuple[int, str]:
    ended = command("sync", "--keys", keys, daemon.url("reads/"), keys.parent / "fetched")
    assert not (keys.parent / "fetched").exists()
    assert len(ended.complaints) == 1, ended
    return ended.code, ended.complaints[0]


@pytest.mark.parametrize(
    ("who", "words", "logged"),
    [
        ("stranger", "does not know it", "not one that is trusted"),
        ("expired", "it has expired", "has expired"),
        # Trusted, but nothing is offered to it.
        ("server", "does not know it", "not one that is trusted"),
    ],
)
def test_peers_the_daemon_refuses(who: str, words: str, logged: str, daemon: Daemon, tmp_path: Path) -> None:
    keys = key_directory(tmp_path / "keys", who, {f"127.0.0.1:{daemon.port}": "server"})
    known = len(daemon.logged("unknown_peer", message=logged))
    code, line = attempt(daemon, keys)
    assert code == ExitCode.REFUSED
    assert "the remote side refused our certificate" in line and words in line
    wait_until(lambda: len(daemon.logged("unknown_peer", message=logged)) == known + 1)


def test_a_swapped_certificate_of_the_daemon(daemon: Daemon, tmp_path: Path) -> None:
    """This side was told of another one: somebody sits between, or the daemon has a new key."""
    keys = key_directory(tmp_path / "keys", "alice", {f"127.0.0.1:{daemon.port}": "stranger"})
    code, line = attempt(daemon, keys)
    assert code == ExitCode.REFUSED
    assert "certificate is not one that is trusted" in line
    assert certificate("stranger").pin in line


def test_a_daemon_nobody_here_trusts(daemon: Daemon, tmp_path: Path) -> None:
    """Not even one that is trusted under another name."""
    keys = key_directory(tmp_path / "keys", "alice", {"elsewhere": "server"})
    code, line = attempt(daemon, keys)
    assert code == ExitCode.REFUSED
    assert "no certificate is trusted for it" in line and "rdc keys trust 127.0.0.1:" in line


def test_no_key_here(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    code, line = attempt(daemon, tmp_path / "keys")
    assert (code, "rdc keys new" in line) == (ExitCode.REFUSED, True)


def test_a_private_key_that_others_can_read(daemon: Daemon, tmp_path: Path) -> None:
    keys = key_directory(tmp_path / "keys", "alice", {f"127.0.0.1:{daemon.port}": "server"})
    (keys / "identity.pem").chmod(0o640)
    code, line = attempt(daemon, keys)
    assert (code, "chmod 600" in line) == (ExitCode.REFUSED, True)


def test_another_s_certificate_without_its_key(daemon: Daemon, tmp_path: Path) -> None:
    """Certificates are public; who has one cannot pose as its owner."""
    keys = key_directory(tmp_path / "keys", "stranger", {f"127.0.0.1:{daemon.port}": "server"})
    pem = (keys / "identity.pem").read_text()
    private = pem[: pem.index("-----BEGIN CERTIFICATE")]
    (keys / "identity.pem").write_text(private + ssl.DER_cert_to_PEM_cert(certificate("alice").der))
    code, line = attempt(daemon, keys)
    assert (code, "expected an unencrypted private key and its certificate" in line) == (
        ExitCode.REFUSED,
        True,
    )


def test_an_expired_daemon(place: Path, tmp_path: Path) -> None:
    modules = f'[modules.reads]\npath = "{place / "reads"}"\nallow = ["alice"]\n'
    with running_daemon(tmp_path / "daemon", modules, own="expired-server") as daemon:
        keys = key_directory(tmp_path / "keys", "alice", {f"127.0.0.1:{daemon.port}": "expired-server"})
        code, line = attempt(daemon, keys)
        assert (code, "certificate has expired" in line) == (ExitCode.REFUSED, True)


def test_neither_plain_text_nor_older_tls(daemon: Daemon) -> None:
    with socket.create_connection(("127.0.0.1", daemon.port)) as plain:
        plain.sendall(b"RDC%c" % NEGOTIATING + b"x" * 100)
        assert b"RDC" not in plain.recv(1000)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(daemon.keys_of("alice") / "identity.pem")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", daemon.port)) as sock, pytest.raises(ssl.SSLError):
        context.wrap_socket(sock)


def test_no_certificate_at_all(daemon: Daemon) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", daemon.port)) as sock:
        wrapped = context.wrap_socket(sock)
        with pytest.raises(ssl.SSLError, match=r"(?i)certificate.required"):
            wrapped.recv(100)
        wrapped.close()
    daemon.await_log("unknown_peer", message="showed no certificate")


def test_a_host_that_does_not_answer(daemon: Daemon, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    keys = key_directory(tmp_path / "keys", "alice", {f"127.0.0.1:{port}": "server"})
    ended = command("sync", "--keys", keys, f"rdc://127.0.0.1:{port}/m", tmp_path / "x")
    assert ended.code == ExitCode.UNREACHABLE
    assert ended.complaints == [
        f"rdc: 127.0.0.1:{port}: cannot connect: Connection refused; check the name, and that `rdc serve`"
        " listens there"
    ]


def test_trust_can_be_taken_back(place: Path, here: Path, tmp_path: Path) -> None:
    """SIGHUP: new sessions are refused; distrusting needs no restart."""
    modules = f'[modules.open]\npath = "{place / "reads"}"\nallow = ["alice", "bob"]\n'
    with running_daemon(tmp_path / "daemon", modules) as daemon:
        assert daemon.sync(daemon.url("open/"), tmp_path / "one", who="bob").code == 0
        assert command("keys", "--keys", daemon.place / "keys", "distrust", "bob").code == 0
        daemon.signal(signal.SIGHUP)
        # A module names it still: that is a mistake, and the old configuration stays whole.
        line = daemon.await_log("reload_failed")
        assert "daemon.toml: modules.open.allow: no key is trusted as 'bob'" in line["message"]
        assert daemon.sync(daemon.url("open/"), tmp_path / "two", who="bob").code == 0
        daemon.config.write_text(daemon.config.read_text().replace(', "bob"', ""))
        daemon.signal(signal.SIGHUP)
        daemon.await_log("reloaded")
        assert daemon.sync(daemon.url("open/"), tmp_path / "three", who="bob").code == ExitCode.REFUSED
        assert daemon.sync(daemon.url("open/"), tmp_path / "four").code == 0
