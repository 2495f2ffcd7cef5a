"""TLS between two ends in memory: who is let in, what is counted, and what damage does."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rdc.daemon.keys import describe, make_identity, own_certificate, trust
from rdc.errors import ExitCode, RdcError, StreamError, TrustError
from rdc.transport.keys import Certificate, KeyRing, key_directory, read_key_file
from rdc.transport.tls import TlsTransport, answering_context
from tests.support.daemon import daemons
from tests.support.daemon.daemons import WAIT_SECONDS, certificate
from tests.support.daemon.tls_pair import ring, shake_hands, tls_ends, tls_pair
from tests.support.running.syncing import command

NOTHING = memoryview(b"")


def close(*ends: TlsTransport) -> None:
    for end in ends:
        end.close()


def test_both_know_whom_they_speak_with() -> None:
    near, far = tls_pair()
    assert near.peer_pin == certificate("server").pin
    assert far.check_pin([certificate("bob").pin, certificate("alice").pin]) == certificate("alice").pin
    with pytest.raises(TrustError, match="which is not trusted"):
        far.check_pin([certificate("bob").pin])
    close(near, far)


def test_counts_are_those_of_the_wire() -> None:
    near, far = tls_pair()
    handshake = (near.bytes_sent, near.bytes_received)
    assert handshake == (far.bytes_received, far.bytes_sent)
    assert all(600 < count < 1200 for count in handshake)
    assert near.exchange(memoryview(b"x" * 20_000), False, WAIT_SECONDS).written == 20_000
    received = b""
    while len(received) < 20_000:
        received += far.exchange(NOTHING, True, WAIT_SECONDS).received
    # Two records of at most 16,384 bytes, each with a head of 5, a type and a tag of 16.
    assert near.bytes_sent - handshake[0] == far.bytes_received - handshake[0] == 20_000 + 2 * 22
    close(near, far)


def test_what_was_not_all_taken_is_not_written() -> None:
    """`written` counts only what has left: whoever is told so may close. Bytes come once and in order."""
    near, far = tls_pair()
    near._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    data = random.Random(5).randbytes(900_000)
    rest, got = memoryview(data), b""
    sizes = [1, 64, 70_000, 1 << 20]
    step = 0
    while rest:
        # As the driver does: the head stays the same until it is written, how much of it is shown varies.
        written = near.exchange(rest[: sizes[step % 4]], False, 0).written
        assert written <= sizes[step % 4]
        rest = rest[written:]
        step += 1
        if not written:
            got += far.exchange(NOTHING, True, 0).received
    near.close()
    while not (moved := far.exchange(NOTHING, True, WAIT_SECONDS)).eof:
        got += moved.received
    assert got == data
    far.close()


def test_closing_loses_nothing_that_came() -> None:
    near, far = tls_pair()
    near.exchange(memoryview(b"question"), False, WAIT_SECONDS)
    far.exchange(memoryview(b"answer"), False, WAIT_SECONDS)
    near.close_write()
    assert near.exchange(NOTHING, True, WAIT_SECONDS).received == b"answer"
    assert far.exchange(NOTHING, True, WAIT_SECONDS).received == b"question"
    assert far.exchange(NOTHING, True, WAIT_SECONDS).eof
    far.exchange(memoryview(b"more"), False, WAIT_SECONDS)
    assert near.exchange(NOTHING, True, WAIT_SECONDS).received == b"more"
    close(near, far)


def test_a_connection_can_be_handed_on_by_fork() -> None:
    near, far = tls_pair()
    near.exchange(memoryview(b"early"), False, WAIT_SECONDS)
    child = os.fork()
    if child == 0:
        try:
            told = far.exchange(NOTHING, True, WAIT_SECONDS).received
            far.exchange(memoryview(b"told " + told), False, WAIT_SECONDS)
            far.close()
        finally:
            os._exit(0)
    far.forsake()
    assert near.exchange(NOTHING, True, WAIT_SECONDS).received == b"told early"
    os.waitpid(child, 0)
    near.close()


@pytest.mark.parametrize("at", [0, 5, 100])
def test_damage_ends_the_connection(at: int) -> None:
    """A flipped bit of a record is an error, and what came before it is not lost."""
    near, far = tls_pair()
    near.exchange(memoryview(b"first"), False, WAIT_SECONDS)
    good = far._sock.recv(1000)
    near.exchange(memoryview(b"x" * 200), False, WAIT_SECONDS)
    bad = bytearray(far._sock.recv(1000))
    bad[at] ^= 1
    near._sock.send(good + bytes(bad))
    assert far.exchange(NOTHING, True, WAIT_SECONDS).received == b"first"
    with pytest.raises(StreamError, match="the TLS connection is damaged") as caught:
        far.exchange(NOTHING, True, WAIT_SECONDS)
    assert caught.value.code == ExitCode.STREAM
    close(near, far)


def test_a_cut_is_an_end() -> None:
    """The protocol knows by itself whether all was said."""
    near, far = tls_pair()
    near._sock.close()
    assert far.exchange(NOTHING, True, WAIT_SECONDS).eof
    assert far.exchange(memoryview(b"x"), False, WAIT_SECONDS).written == 1
    far.close()


def test_silence_has_a_deadline() -> None:
    near, far = tls_pair()
    with pytest.raises(RdcError) as caught:
        near.exchange(NOTHING, True, 0.05)
    assert caught.value.code == ExitCode.TIMEOUT
    close(near, far)


def test_a_stranger_who_sends_much_is_dropped() -> None:
    """Before the handshake is done no more than its bound is taken."""
    one, other = socket.socketpair()
    far = TlsTransport(other, answering_context(ring("server", "alice")), server_side=True)
    one.setblocking(False)
    # A ClientHello of 16 MB, by its head; its content comes in records of 16 KiB.
    flood = b"\x16\x03\x01\x40\x00" + b"\x01\xff\xff\xff" + bytes(0x4000 - 4)
    with pytest.raises(StreamError) as caught:
        for _ in range(100):
            with contextlib.suppress(BlockingIOError):
                one.send(flood)
            far.shake()
    assert caught.value.before_hello
    assert far.bytes_received <= 160_000
    one.close()
    far.close()


def certificate_signed_by(place: Path, signer: str) -> Path:
    """Keys with a certificate that `signer`'s key has signed, made to chain to it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    certificate(signer)
    pem = (daemons._identities() / signer / "identity.pem").read_bytes()
    signing_key = serialization.load_pem_private_key(pem, None)
    issuer = x509.load_der_x509_certificate(certificate(signer).der)
    assert isinstance(signing_key, Ed25519PrivateKey)
    key = Ed25519PrivateKey.generate()
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "signed")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(signing_key, None)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    place.mkdir()
    (place / "identity.pem").write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    (place / "identity.pem").chmod(0o600)
    return place


def test_what_a_trusted_key_has_signed_is_not_trusted(tmp_path: Path) -> None:
    signed = KeyRing.read(certificate_signed_by(tmp_path / "keys", "alice"))
    near, far = tls_ends(signed, ring("server", "alice"))
    with pytest.raises(TrustError):
        shake_hands(near, far)
        # Should an OpenSSL let it pass, the pin does not.
        far.check_pin([certificate("alice").pin])
    close(near, far)


@pytest.mark.parametrize(
    ("own", "trusted", "shown", "expected", "words"),
    [
        ("stranger", "alice", "server", "server", "not one that is trusted"),
        ("expired", "expired", "server", "server", "has expired"),
        ("alice", "alice", "server", "stranger", "not one that is trusted"),
        ("alice", "alice", "expired-server", "expired-server", "has expired"),
        ("alice", "alice", "expired-server", "server", "not one that is trusted"),
    ],
)
def test_who_is_refused(own: str, trusted: str, shown: str, expected: str, words: str) -> None:
    near, far = tls_ends(ring(own), ring(shown, trusted), expected)
    with pytest.raises(TrustError, match=words):
        shake_hands(near, far)
    close(near, far)


def test_a_daemon_without_trusted_keys_lets_nobody_in() -> None:
    near, far = tls_ends(ring("alice"), ring("server"))
    with pytest.raises(TrustError):
        shake_hands(near, far)
    close(near, far)


# Key directories


def test_the_making_of_a_key(tmp_path: Path) -> None:
    keys = tmp_path / "deep" / "keys"
    made = command("keys", "new", "--name=me", "--days=5", "--keys", keys)
    assert (made.code, made.out) == (0, own_certificate(keys).pin + "\n")
    facts = describe(own_certificate(keys))
    assert facts.label == "me" and not facts.expired
    assert timedelta(days=4) < facts.expires - datetime.now(UTC) < timedelta(days=5)
    assert (keys / "identity.pem").stat().st_mode & 0o777 == 0o600
    assert keys.stat().st_mode & 0o777 == 0o700
    assert os.listdir(keys) == ["identity.pem"]
    again = command("keys", "new", "--keys", keys)
    assert (again.code, "--force replaces it" in again.complaints[0]) == (ExitCode.REFUSED, True)
    assert command("keys", "new", "--force", "--keys", keys).out != made.out


def test_show_and_trust(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for keys, name in ((mine, "me"), (theirs, "them")):
        assert command("keys", "new", "--name", name, "--keys", keys).code == 0
    file = tmp_path / "them.pem"
    file.write_text(command("keys", "show", "--pem", "--keys", theirs).out)
    trusted = command("keys", "trust", "host:99", file, "--keys", mine)
    pin = own_certificate(theirs).pin
    assert trusted.code == 0 and pin in trusted.out
    lines = command("keys", "show", "--keys", mine).out.splitlines()
    assert lines[0].startswith("(this one)") and lines[1].split()[:3] == ["host:99", pin, "until"]
    assert command("keys", "show", "host:99", "--pem", "--keys", mine).out == file.read_text()
    other = tmp_path / "other.pem"
    other.write_text(command("keys", "show", "--pem", "--keys", mine).out)
    swapped = command("keys", "trust", "host:99", other, "--keys", mine)
    assert (swapped.code, "another certificate is trusted" in swapped.complaints[0]) == (5, True)
    assert command("keys", "trust", "host:99", file, "--keys", mine).code == 0
    assert command("keys", "trust", "--force", "host:99", other, "--keys", mine).code == 0
    assert command("keys", "distrust", "host:99", "--keys", mine).code == 0
    assert command("keys", "distrust", "host:99", "--keys", mine).code == 5


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 1),
        (("mend",), 1),
        (("new", "x"), 1),
        (("trust", "name"), 1),
        (("trust", "../x", "{}/f"), 1),
        (("trust", ".x", "{}/f"), 1),
        (("trust", "a/b", "{}/f"), 1),
        (("trust", "name", "{}/none"), 11),
        (("trust", "name", "{}/rubbish"), 5),
        (("trust", "name", "{}/damaged"), 5),
        (("trust", "name", "{}"), 5),
        (("show",), 5),
        (("show", "--pem"), 5),
        (("distrust", "a/b"), 1),
        (("new", "--days=0"), 1),
        (("new", "--days=99999"), 1),
        (("new", "--name="), 1),
        (("new", "--name=\n"), 1),
        (("new", "--name=" + "x" * 65), 1),
    ],
)
def test_keys_mistakes_are_one_line(words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(ssl.DER_cert_to_PEM_cert(certificate("alice").der))
    (tmp_path / "rubbish").write_bytes(os.urandom(1000))
    (tmp_path / "damaged").write_text(ssl.DER_cert_to_PEM_cert(certificate("alice").der[:100]))
    ended = command("keys", "--keys", tmp_path / "keys", *(word.format(tmp_path) for word in words))
    assert (ended.code, len(ended.complaints), ended.out) == (code, 1, "")
    assert not (tmp_path / "keys").exists()


def test_key_files_are_read_with_care(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "big").write_bytes(bytes(100_000))
    for name in ("fifo", "big"):
        with pytest.raises(TrustError):
            read_key_file(tmp_path / name)
    assert read_key_file(tmp_path / "none") is None
    two = ssl.DER_cert_to_PEM_cert(certificate("alice").der) * 2
    with pytest.raises(TrustError, match="found 2"):
        Certificate.from_pem(two.encode(), "two")


def test_names_of_hosts_find_their_certificates(tmp_path: Path) -> None:
    make_identity(tmp_path, "me")
    for name, who in {"h": "alice", "h:99": "bob", "[::1]:99": "bob", "::1": "alice"}.items():
        trust(tmp_path, name, certificate(who))
    keys = KeyRing.read(tmp_path)

    def peer(host: str, port: int) -> Certificate:
        (found,) = keys.peers(host, port, default_port=8730)
        return found

    assert peer("h", 8730) == peer("::1", 8730) == certificate("alice")
    assert peer("h", 99) == peer("::1", 99) == certificate("bob")
    # What is trusted for one port is not for another.
    with pytest.raises(TrustError, match="rdc keys trust h:7 FILE"):
        peer("h", 7)


def test_where_keys_are() -> None:
    assert key_directory({"RDC_KEYS": "/k", "HOME": "/h"}) == Path("/k")
    assert key_directory({"XDG_CONFIG_HOME": "/c"}) == Path("/c/rdc/keys")
    with pytest.raises(TrustError, match="RDC_KEYS"):
        key_directory({})
