"""A directory of keys: this machine's own certificate and those of the peers it trusts, by name.

    identity.pem          the private key and its certificate; only the owner may read it
    trusted/NAME.pem      one certificate, or several during a key change; NAME is a host to dial, or a name
                          in a daemon's modules

A certificate is trusted if it is here and equals the one shown byte for byte, whatever its signer: there is
no authority. Write access here decides about trust, so only the owner and root may have it, as with ssh.
"""

from __future__ import annotations

import binascii
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from rdc.errors import TrustError, printable
from rdc.lean.records import Record
from rdc.limits import CERTIFICATES_PER_NAME, KEY_FILE_BYTES, TRUSTED_KEYS
from rdc.model.location import config_directory

VARIABLE = "RDC_KEYS"
"""Environment variable with the key directory."""

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+?)-----END CERTIFICATE-----")
_NAME = re.compile(r"[A-Za-z0-9\[:][A-Za-z0-9._:%@\[\]-]{0,199}")


class Certificate(Record):
    der: bytes

    @property
    def pin(self) -> str:
        """The text that people compare: the SHA-256 of the certificate in hex."""
        return pin_of(self.der)

    @classmethod
    def from_pem(cls, pem: bytes, name: str) -> Certificate:
        """Return the only certificate in `pem`. Raises TrustError, which names `name`."""
        found = cls._all(pem, name)
        if len(found) != 1:
            raise TrustError(f"{name}: expected one certificate in PEM form, found {len(found) or 'none'}")
        return found[0]

    @classmethod
    def public_from_pem(cls, pem: bytes, name: str) -> tuple[Certificate, ...]:
        """Return the certificates in `pem`: at least one, and no private key, since every holder of a private
        key passes for its owner. TrustError names `name`."""
        if b"PRIVATE KEY-----" in pem:
            raise TrustError(
                f"{name}: it holds a private key, which must not leave its machine; expected what"
                " `rdc keys show --pem` prints there (and if it has left, that machine needs a new key)"
            )
        found = cls._all(pem, name)
        if not 0 < len(found) <= CERTIFICATES_PER_NAME:
            raise TrustError(
                f"{name}: expected 1 to {CERTIFICATES_PER_NAME} certificates in PEM form, found"
                f" {len(found) or 'none'}"
            )
        return found

    @classmethod
    def _all(cls, pem: bytes, name: str) -> tuple[Certificate, ...]:
        try:
            texts = (b"".join(found.split()) for found in _PEM.findall(pem))
            return tuple(cls(binascii.a2b_base64(text, strict_mode=True)) for text in texts)
        except binascii.Error as error:
            raise TrustError(f"{name}: the certificate is damaged: {error}; fetch it again") from error


def pin_of(der: bytes) -> str:
    return "SHA256:" + hashlib.sha256(der).hexdigest()


def is_key_name(name: str) -> bool:
    """Return whether a trusted key may have this name: a host as dialled, with or without :PORT, or a
    word."""
    return _NAME.fullmatch(name) is not None


def key_directory(environ: Mapping[str, str]) -> Path:
    """RDC_KEYS, or `keys` in the user's configuration directory ($XDG_CONFIG_HOME/rdc)."""
    chosen = environ.get(VARIABLE, "")
    if chosen:
        return Path(chosen)
    directory = config_directory(environ)
    if directory is None:
        raise TrustError(f"there is no home directory to look for keys in; name a directory with {VARIABLE}")
    return Path(directory) / "keys"


class KeyRing(Record):
    directory: Path
    own: Certificate
    trusted: Mapping[str, tuple[Certificate, ...]]
    """Certificates by name. All certificates of a name are equally valid, which permits a key change."""

    @property
    def identity(self) -> Path:
        return self.directory / "identity.pem"

    @property
    def certificates(self) -> Iterator[Certificate]:
        """All trusted certificates."""
        for certificates in self.trusted.values():
            yield from certificates

    @classmethod
    def read(cls, directory: Path) -> KeyRing:
        """Read a key directory. Raises TrustError if it is missing or damaged, if others can read a private
        key, or if others can change anything in it."""
        _check_closed(directory)
        identity = directory / "identity.pem"
        pem = read_key_file(identity, private=True)
        if pem is None:
            raise TrustError(f"{identity}: there is no key yet; make one with: rdc keys new")
        return cls(directory, Certificate.from_pem(pem, str(identity)), _read_trusted(directory / "trusted"))

    def peers(self, host: str, port: int, *, default_port: int) -> tuple[Certificate, ...]:
        """Return the certificates of which HOST:PORT must show one. Raises TrustError if none is trusted for
        it."""
        names = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
        if port == default_port:
            names.append(host)
        for name in names:
            if name in self.trusted:
                return self.trusted[name]
        raise TrustError(
            f"{host}: no certificate is trusted for it; fetch what `rdc keys show --pem` prints there, then:"
            f" rdc keys trust {printable(names[-1])} FILE"
        )


def signers(directory: Path) -> tuple[tuple[Certificate, ...], Mapping[str, tuple[Certificate, ...]]]:
    """Return the own certificate, if there is one, and those that are trusted, by name. Raises TrustError as
    KeyRing.read."""
    _check_closed(directory)
    identity = directory / "identity.pem"
    pem = read_key_file(identity, private=True)
    own = () if pem is None else (Certificate.from_pem(pem, str(identity)),)
    return own, _read_trusted(directory / "trusted")


def read_key_file(path: Path, *, private: bool = False) -> bytes | None:
    """Return the content of a small regular file; None if the file does not exist. Raises TrustError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TrustError(
            f"{path}: cannot read it: {error.strerror}; check its owner and permissions"
        ) from error
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise TrustError(f"{path}: expected a file with a key or certificate, found something else")
    with open(fd, "rb") as file:
        if private and found.st_mode & 0o077:
            raise TrustError(
                f"{path}: the private key is open to others (mode {found.st_mode & 0o777:o}); close it with:"
                f" chmod 600 {path}"
            )
        if private:
            _check_owner(path, found)
        try:
            data = file.read(KEY_FILE_BYTES + 1)
        except OSError as error:
            raise TrustError(f"{path}: cannot read it: {error.strerror}") from error
    if len(data) > KEY_FILE_BYTES:
        raise TrustError(
            f"{path}: expected a file with a key or certificate, found more than {KEY_FILE_BYTES} bytes"
        )
    return data


def _check_closed(path: Path) -> None:
    """TrustError if anyone besides the owner and root may change what is at `path`."""
    try:
        found = os.stat(path)
    except OSError:
        return  # whoever reads it says so
    if found.st_mode & 0o022:
        raise TrustError(
            f"{path}: others can change it (mode {found.st_mode & 0o7777:o}), and with it who is trusted;"
            f" close it with: chmod go-w {path}"
        )
    _check_owner(path, found)


def _check_owner(path: Path, found: os.stat_result) -> None:
    # Root reads files of another user before it becomes that user.
    if os.geteuid() not in (0, found.st_uid) and found.st_uid != 0:
        raise TrustError(f"{path}: it belongs to another user (uid {found.st_uid}), who can change it")


def _read_trusted(directory: Path) -> dict[str, tuple[Certificate, ...]]:
    _check_closed(directory)
    try:
        names = sorted(entry for entry in os.listdir(directory) if entry.endswith(".pem"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise TrustError(f"{directory}: cannot list the trusted keys: {error.strerror}") from error
    if len(names) > TRUSTED_KEYS:
        raise TrustError(f"{directory}: {len(names)} trusted keys; rdc reads {TRUSTED_KEYS} at most")
    trusted = {}
    for name in names:
        path = directory / name
        _check_closed(path)
        pem = read_key_file(path)
        if pem is not None:
            trusted[name.removesuffix(".pem")] = Certificate.public_from_pem(pem, str(path))
    return trusted
