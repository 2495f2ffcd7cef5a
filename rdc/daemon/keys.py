"""Making keys, reading certificates, and trusting those of others."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rdc.errors import ExitCode, RdcError, TrustError, UsageError
from rdc.files.base.paths import temporary_name
from rdc.files.base.taking_names import sync_directory_of
from rdc.lean.records import Record
from rdc.limits import CERTIFICATES_PER_NAME
from rdc.transport.keys import Certificate, is_key_name, read_key_file

DAYS = 3650
"""Days that a new key is valid. Both sides replace keys by hand: rarely, but not never."""

CLOCK_SLACK = timedelta(days=1)
"""A new certificate is valid from this long ago, since clocks differ."""

COMMON_NAME_LENGTH = 64
"""Characters of a certificate's common name: the upper bound of X.520."""


class KeyFacts(Record):
    """The facts of a certificate that a person wants to know."""

    label: str
    """Its common name, chosen by its maker. It proves nothing."""
    pin: str
    expires: datetime
    expired: bool


def make_identity(
    directory: Path,
    label: str,
    *,
    days: int = DAYS,
    replace: bool = False,
    now: datetime | None = None,
) -> Certificate:
    """Make a private key (Ed25519) and its self-signed certificate: identity.pem in `directory`.

    now: time of creation, for tests. TrustError if a key exists and `replace` is not set, UsageError for a
    label that does not fit a certificate, RdcError (11) if the file cannot be written.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if not 0 < len(label) <= COMMON_NAME_LENGTH or not label.isprintable():
        raise UsageError(f"--name={label}: 1 to {COMMON_NAME_LENGTH} printable characters are expected")
    path = directory / "identity.pem"
    if path.exists() and not replace:
        raise TrustError(f"{path}: there is a key already, which others may trust; --force replaces it")
    now = now or datetime.now(UTC)
    key = Ed25519PrivateKey.generate()
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    # The key's own digest distinguishes two peers of one name, since OpenSSL looks certificates up by
    # subject.
    subject = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.COMMON_NAME, label),
            x509.NameAttribute(x509.NameOID.SERIAL_NUMBER, identifier.digest.hex()),
        ]
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SLACK)
        .not_valid_after(now + timedelta(days=days))
        # The certificate can sign nothing: trust in it covers nothing else.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(issuer, critical=False)
        .sign(key, None)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    _write(path, private + public, mode=0o600)
    return Certificate.from_pem(public, str(path))


def own_certificate(directory: Path) -> Certificate:
    """Return this machine's certificate. Raises TrustError if there is none."""
    path = directory / "identity.pem"
    found = read_key_file(path, private=True)
    if found is None:
        raise TrustError(f"{path}: there is no key yet; make one with: rdc keys new")
    return Certificate.from_pem(found, str(path))


def trust(
    directory: Path, name: str, certificate: Certificate, *, replace: bool = False, add: bool = False
) -> None:
    """Trust `certificate` under `name`: besides its present certificates with `add`, in their place with
    `replace`.

    TrustError if the name has another certificate and neither is set, or if it has too many.
    """
    path = _trusted_path(directory, name)
    known = () if replace else _trusted(path)
    if certificate in known:
        return
    if known and not add:
        raise TrustError(
            f"{path}: another certificate is trusted under this name; compare the two, then use --force, or"
            " --add to trust both while a key is replaced"
        )
    if len(known) >= CERTIFICATES_PER_NAME:
        raise TrustError(
            f"{path}: {len(known)} certificates are trusted under this name already; --force trusts the new"
            " one alone"
        )
    describe(certificate)
    _write(path, b"".join(map(pem, (*known, certificate))), mode=0o644)


def _trusted(path: Path) -> tuple[Certificate, ...]:
    found = read_key_file(path)
    return () if found is None else Certificate.public_from_pem(found, str(path))


def distrust(directory: Path, name: str) -> None:
    """Remove the trust in `name`. TrustError if nothing is trusted under it."""
    path = _trusted_path(directory, name)
    try:
        path.unlink()
        # Without this a power cut could restore removed trust.
        sync_directory_of(os.fsencode(path))
    except FileNotFoundError:
        raise TrustError(f"{path}: nothing is trusted under this name (see rdc keys show)") from None
    except OSError as error:
        raise RdcError(f"{path}: cannot remove it: {error.strerror}", code=ExitCode.FILE_IO) from error


def describe(certificate: Certificate) -> KeyFacts:
    """Return the facts of a certificate. TrustError if it is not valid."""
    from cryptography import x509

    try:
        found = x509.load_der_x509_certificate(certificate.der)
        names = found.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    except ValueError as error:
        raise TrustError(f"{certificate.pin}: not a certificate: {error}") from error
    expires = found.not_valid_after_utc
    label = str(names[0].value) if names else ""
    return KeyFacts(label, certificate.pin, expires, expires < datetime.now(UTC))


def pem(certificate: Certificate) -> bytes:
    """Return the certificate as PEM text, the form for exchange."""
    import ssl

    return ssl.DER_cert_to_PEM_cert(certificate.der).encode()


def _trusted_path(directory: Path, name: str) -> Path:
    if not is_key_name(name):
        raise UsageError(f"'{name}' cannot be the name of a key: letters, digits and . _ : @ - are expected")
    return directory / "trusted" / f"{name}.pem"


def _write(path: Path, data: bytes, *, mode: int) -> None:
    """Write the whole file or nothing, never readable by others."""
    # The name has no process number: after a power cut the next process may have the same one.
    temporary = path.with_name(os.fsdecode(temporary_name(os.fsencode(path.name))))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(fd)
            os.rename(temporary, path)
            sync_directory_of(os.fsencode(path))
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise RdcError(f"{path}: cannot write it: {error.strerror}", code=ExitCode.FILE_IO) from error
