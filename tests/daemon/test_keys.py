"""Keys in the long run: replaced without a gap, closed to others, and never taken for what they are not."""

from __future__ import annotations

import os
import shutil
import signal
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rdc.daemon.keys import make_identity, own_certificate
from rdc.errors import ExitCode, TrustError
from rdc.limits import CERTIFICATES_PER_NAME
from rdc.transport.keys import Certificate, KeyRing
from tests.support.daemon.daemons import certificate, key_directory, running_daemon
from tests.support.running.syncing import command
from tests.support.trees.trees import tree, write_tree


def keys(directory: Path, *words: str | Path) -> str:
    ended = command("keys", *words, "--keys", directory)
    assert ended.code == 0, ended
    return ended.out


def refusal(directory: Path) -> str:
    with pytest.raises(TrustError) as caught:
        KeyRing.read(directory)
    return str(caught.value)


def pem_file(place: Path, who: str) -> Path:
    place.write_text(ssl.DER_cert_to_PEM_cert(certificate(who).der))
    return place


def test_a_daemon_s_key_is_replaced_without_a_gap(tmp_path: Path) -> None:
    """The manual says so: at no step is a peer refused, and in the end only the new key is trusted."""
    data = write_tree(tmp_path / "data", tree({"f": b"f"}))
    modules = f'[modules.data]\npath = "{data}"\nallow = ["alice"]\n'
    with running_daemon(tmp_path / "daemon", modules) as daemon:
        near, host = daemon.keys_of("alice"), f"127.0.0.1:{daemon.port}"

        def works(step: str) -> None:
            assert daemon.sync(daemon.url("data/"), tmp_path / step).code == 0

        works("before")
        coming, new = tmp_path / "next", tmp_path / "new.pem"
        keys(coming, "new", "--name=server")
        new.write_text(keys(coming, "show", "--pem"))
        keys(near, "trust", "--add", host, new)
        pins = [line.split()[1] for line in keys(near, "show", host).splitlines()]
        assert pins == [certificate("server").pin, own_certificate(coming).pin]
        works("both")
        (coming / "identity.pem").rename(daemon.place / "keys/identity.pem")
        works("moved")
        daemon.signal(signal.SIGHUP)
        daemon.await_log("reloaded")
        works("switched")
        keys(near, "trust", "--force", host, new)
        works("after")
        # Who was not told refuses the daemon, and says what it expected.
        old = key_directory(tmp_path / "old", "alice", {host: "server"})
        ended = command("sync", "--keys", old, daemon.url("data/"), tmp_path / "x")
        assert ended.code == ExitCode.REFUSED and certificate("server").pin in ended.complaints[0]


def test_a_peer_s_key_is_replaced_without_a_gap(tmp_path: Path) -> None:
    data = write_tree(tmp_path / "data", tree({"f": b"f"}))
    modules = f'[modules.data]\npath = "{data}"\nallow = ["alice"]\n'
    with running_daemon(tmp_path / "daemon", modules) as daemon:
        there = daemon.place / "keys"
        keys(there, "trust", "--add", "alice", pem_file(tmp_path / "new.pem", "alice-2"))
        daemon.signal(signal.SIGHUP)
        daemon.await_log("reloaded")
        assert daemon.sync(daemon.url("data/"), tmp_path / "one").code == 0
        assert daemon.sync(daemon.url("data/"), tmp_path / "two", who="alice-2").code == 0
        keys(there, "trust", "--force", "alice", tmp_path / "new.pem")
        daemon.signal(signal.SIGHUP)
        daemon.await_log("reloaded", keys="2")
        assert daemon.sync(daemon.url("data/"), tmp_path / "three", who="alice-2").code == 0
        ended = daemon.sync(daemon.url("data/"), tmp_path / "four")
        assert (ended.code, len(ended.complaints)) == (ExitCode.REFUSED, 1)


def test_how_many_a_name_may_have(tmp_path: Path) -> None:
    directory = tmp_path / "keys"
    keys(directory, "new")
    for number in range(CERTIFICATES_PER_NAME):
        keys(directory, "trust", "--add", "h", pem_file(tmp_path / "f", f"peer-{number}"))
        keys(directory, "trust", "--add", "h", tmp_path / "f")  # twice is once
    assert len(keys(directory, "show", "h").splitlines()) == CERTIFICATES_PER_NAME
    assert len(keys(directory, "show").splitlines()) == 1 + CERTIFICATES_PER_NAME
    assert keys(directory, "show", "h", "--pem").count("BEGIN CERTIFICATE") == CERTIFICATES_PER_NAME
    pem_file(tmp_path / "f", "one-more")
    ended = command("keys", "trust", "--add", "h", tmp_path / "f", "--keys", directory)
    assert (ended.code, "--force trusts the new one alone" in ended.err) == (ExitCode.REFUSED, True)
    both = command("keys", "trust", "--add", "--force", "h", tmp_path / "f", "--keys", directory)
    assert both.code == ExitCode.USAGE
    keys(directory, "trust", "--force", "h", tmp_path / "f")
    assert len(keys(directory, "show", "h").splitlines()) == 1


def test_a_private_key_is_not_trusted_by_mistake(tmp_path: Path) -> None:
    """Neither the whole identity nor its key alone, neither by the command nor put there by hand."""
    directory = key_directory(tmp_path / "keys", "alice", {})
    other = key_directory(tmp_path / "other", "bob", {})
    identity = (other / "identity.pem").read_text()
    for text in (identity, identity[: identity.index("-----BEGIN CERTIFICATE")]):
        (tmp_path / "file.pem").write_text(text)
        ended = command("keys", "trust", "bob", tmp_path / "file.pem", "--keys", directory)
        assert (ended.code, len(ended.complaints)) == (ExitCode.REFUSED, 1)
        assert "it holds a private key" in ended.err and "rdc keys show --pem" in ended.err
        assert not (directory / "trusted").exists()
    (directory / "trusted").mkdir()
    shutil.copy(other / "identity.pem", directory / "trusted/bob.pem")
    assert "bob.pem: it holds a private key" in refusal(directory)


@pytest.mark.parametrize("damage", ["cut", "base64", "der", "behind"])
def test_a_damaged_certificate_is_not_trusted(damage: str, tmp_path: Path) -> None:
    directory = key_directory(tmp_path / "keys", "alice", {})
    der = certificate("bob").der
    text = {
        "cut": ssl.DER_cert_to_PEM_cert(der)[:300],
        "base64": ssl.DER_cert_to_PEM_cert(der).replace("M", "M=\n", 1),
        "der": ssl.DER_cert_to_PEM_cert(der[:-1]),
        "behind": ssl.DER_cert_to_PEM_cert(der + b"x"),
    }[damage]
    (tmp_path / "file.pem").write_text(text)
    ended = command("keys", "trust", "bob", tmp_path / "file.pem", "--keys", directory)
    assert (ended.code, len(ended.complaints)) == (ExitCode.REFUSED, 1), ended
    assert not (directory / "trusted").exists()


@pytest.mark.parametrize(
    ("path", "mode"), [("", 0o770), ("trusted", 0o757), ("trusted/bob.pem", 0o664), ("identity.pem", 0o604)]
)
def test_what_others_can_change_is_not_believed(path: str, mode: int, tmp_path: Path) -> None:
    directory = key_directory(tmp_path / "keys", "alice", {"bob": "bob"})
    KeyRing.read(directory)
    (directory / path).chmod(mode)
    line = refusal(directory)
    assert str(directory / path) in line and "chmod" in line and f"{mode:o}" in line


def test_what_another_user_owns_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = key_directory(tmp_path / "keys", "alice", {"bob": "bob"})
    if os.geteuid() == 0:
        for each in (directory, *directory.rglob("*")):
            os.chown(each, 65_534, 65_534)
    owner = directory.stat().st_uid
    for reader in (owner, 0):  # root reads what will be another user's, before it becomes that user
        monkeypatch.setattr(os, "geteuid", lambda reader=reader: reader)
        assert KeyRing.read(directory).own == certificate("alice")
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert f"it belongs to another user (uid {owner})" in refusal(directory)


def test_a_key_that_expires(tmp_path: Path) -> None:
    """A day before it is said wherever it is shown, a day after it is refused; other peers notice nothing."""
    directory = tmp_path / "keys"
    for days, word in ((8, "until"), (10, "EXPIRED")):
        made = datetime.now(UTC) - timedelta(days=days)
        make_identity(directory, "me", days=9, replace=True, now=made)
        assert keys(directory, "show").split()[3] == word
    old = Certificate.from_pem((directory / "identity.pem").read_bytes(), "me")
    assert KeyRing.read(directory).own == old


def test_what_a_killed_process_left_is_in_nobody_s_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container each process has the same number: the next one finds what the last one left."""

    def fail(old: object, new: object) -> None:
        raise SystemExit

    with monkeypatch.context() as killed:
        killed.setattr(os, "rename", fail)
        killed.setattr(Path, "unlink", lambda path: None)
        with pytest.raises(SystemExit):
            make_identity(tmp_path, "me")
    assert len(list(tmp_path.iterdir())) == 1
    made = make_identity(tmp_path, "me")
    assert own_certificate(tmp_path) == made
