"""The certificates that a TLS connection trusts, and the meaning of OpenSSL's errors.

Trust is by pin. OpenSSL receives each trusted certificate as an anchor of its own. It refuses within the
handshake every other certificate and those not yet valid or expired. An accepted certificate is then compared
byte for byte with the trusted ones, before any byte of the protocol is read or written. A trusted certificate
might be able to sign others, and those are not trusted.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Iterable

from rdc.errors import RdcError, StreamError, TrustError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.transport.keys import Certificate, KeyRing

__all__ = ["answering_context", "days_until", "dialling_context", "explained"]


def answering_context(ring: KeyRing) -> ssl.SSLContext:
    """A context for a server that trusts all peers of `ring`. Raises TrustError."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, ring, ring.certificates)
    # Without tickets no session is resumed: each connection shows its certificate.
    context.num_tickets = 0
    return context


def dialling_context(ring: KeyRing, peers: Iterable[Certificate]) -> ssl.SSLContext:
    """A context for a client that trusts only `peers`. Raises TrustError."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, ring, peers)


def _context(protocol: int, ring: KeyRing, trusted: Iterable[Certificate]) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    # A name in a certificate proves nothing here: rdc compares the certificate itself.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    # Each trusted certificate is an anchor, even one that another key signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    try:
        # Never prompt for a passphrase.
        context.load_cert_chain(ring.identity, password=lambda: b"")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise TrustError(
            f"{ring.identity}: expected an unencrypted private key and its certificate, found: {reason}"
        ) from error
    for certificate in trusted:
        try:
            context.load_verify_locations(cadata=certificate.der)
        except (ssl.SSLError, ValueError) as error:
            reason = error.reason if isinstance(error, ssl.SSLError) else str(error)
            raise TrustError(f"{certificate.pin}: not a certificate: {reason}") from error
    return context


def days_until(expiry: float, now: float) -> int | None:
    """Whole days from `now` to the expiry of a certificate, both in seconds since 1970; None without an
    expiry."""
    return None if math.isinf(expiry) else int((expiry - now) // 86_400)


def explained(error: OSError | ValueError, *, shaken: bool) -> RdcError:
    """The error that a user can act on, for an error of the TLS engine, usually ssl.SSLError. shaken: the
    handshake was complete."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TrustError(_VERIFICATION.get(error.verify_code, _UNKNOWN) + f" ({error.verify_message})")
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return StreamError("the far side ended the connection in the TLS handshake", before_hello=True)
    reason = (error.reason or "").upper() if isinstance(error, ssl.SSLError) else ""
    if "ALERT" in reason:
        for words, text in _ALERTS.items():
            if words in reason:
                return TrustError(text)
    if "PEER_DID_NOT_RETURN_A_CERTIFICATE" in reason:
        return TrustError("the far side showed no certificate")
    what = "the TLS connection is damaged" if shaken else "the far side does not speak TLS 1.3 with us"
    return StreamError(f"{what}: {reason.replace('_', ' ').lower() or error}", before_hello=not shaken)


_UNKNOWN = "the far side's certificate is not one that is trusted"
# X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED of openssl/x509_vfy.h.
_VERIFICATION = {
    9: "the far side's certificate is not valid yet; check both clocks",
    10: "the far side's certificate has expired; it needs a new one",
}
_ALERTS = {
    "EXPIRED": "the far side refused our certificate: it has expired; make a new one (rdc keys new --force)"
    " and have it trusted there",
    "UNKNOWN_CA": "the far side refused our certificate: it does not know it; have it trusted there"
    " (rdc keys show --pem prints it)",
    "CERTIFICATE": "the far side refused our certificate; its log says why",
    "PROTOCOL_VERSION": "the far side does not speak TLS 1.3",
}
