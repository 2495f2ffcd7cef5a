"""Limits of a daemon, of its keys, and of configuration files."""

from __future__ import annotations

CONNECT_SECONDS = 30
"""Seconds for a TCP connection and the TLS handshake with a daemon together. A distant daemon needs one
second; a lost packet or two need some more."""

HANDSHAKE_BYTES = 64 << 10
"""Bytes accepted from an unauthenticated peer. Its half of a TLS 1.3 handshake with one of rdc's certificates
is about 1 KiB. What it sends ahead of the answer is a few KiB, except options with long filter lists."""

KEY_FILE_BYTES = 64 << 10
"""Bytes of a file with a key or a certificate: rdc's own have 1 KiB, other RSA certificates a few."""

TRUSTED_KEYS = 10_000
"""Certificates per key directory: a daemon reads all of them at each reload."""

CERTIFICATES_PER_NAME = 4
"""Certificates trusted under one name: the old and the new one during a key change, and two forgotten
ones."""

EXPIRY_NOTICE_DAYS = 14
"""Days before a certificate's expiry from which the other side warns. They leave time to have a new
certificate trusted everywhere, and are too few for the warning to be ignored by then."""

DAEMON_TIMEOUT_SECONDS = 120
"""Default --timeout over rdc://, since TCP alone never notices a lost peer. It is half of a daemon's idle
limit, so keepalives come in time for both sides."""

SETTINGS_BYTES = 1 << 20
"""Bytes of a configuration file: thousands of modules."""

SETTINGS_KEY_PARTS = 32
"""Parts of a dotted key in a configuration file; the deepest setting has four. Python's TOML reader takes
time in the square of this number: half a million parts would block a reload for an hour."""
