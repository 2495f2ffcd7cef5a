"""The options of rsync that rdc refuses by name, each with advice.

The names come from rsync(1), version 3.5, with the aliases that its parser accepts.
"""

from __future__ import annotations

__all__ = ["REFUSED_RSYNC_OPTIONS"]

_DAEMON = "rdc's daemon is rdc serve, and its clients write rdc://HOST[:PORT]/MODULE"
_COMPRESSION = "-z and --no-compress are the choices; the method is zstd"
_SSH = 'give it to ssh: -e "ssh OPTIONS"'
_SIGNATURE = "chunks are always named by BLAKE3"
_FILTER = "use --exclude, --include or --filter"

_REFUSED: dict[tuple[str, ...], str] = {
    ("--debug",): "use -v, -i or --info",
    ("--motd", "--daemon", "--config", "--dparam", "--detach", "-M", "--remote-option"): _DAEMON,
    ("--password-file", "--early-input", "--address", "--port", "--sockopts", "--contimeout"): _DAEMON,
    ("--write-devices",): "a device is never written to",
    ("--insecure-links", "--confine-root"): "no path below SRC or DST is ever resolved through a symlink",
    ("--copy-devices",): "read the device into a file, and sync that one",
    ("--drop-D",): "use --no-D; a module that keeps no owners makes no devices",
    ("--crtimes", "-N"): "Linux cannot set the time at which a file was made",
    ("--copy-as",): "--owner and --no-owner choose",
    ("--checksum-choice", "--cc", "--checksum-seed"): _SIGNATURE,
    ("--block-size", "-B"): "the size of chunks follows from their content",
    ("--rsync-path",): "use --remote-path=PROGRAM, the far rdc",
    ("--remove-sent-files",): "use --remove-source-files, which also removes what DST has already",
    ("--delete-before",): "use --delete; rdc deletes when everything else is in place",
    ("--compress-choice", "--zc", "--compress-level", "--zl", "--compress-threads", "--zt"): _COMPRESSION,
    ("--skip-compress", "--old-compress", "--new-compress"): _COMPRESSION,
    ("--old-args",): "paths never pass through the remote shell",
    ("--trust-sender",): "no peer is trusted",
    ("--blocking-io",): "leave it out",
    ("--write-batch", "--only-write-batch", "--read-batch"): "sync to each place by itself",
    ("--protocol",): "both ends agree on a version by themselves",
    ("--iconv",): "names are copied byte for byte",
    ("--ipv4", "-4", "--ipv6", "-6"): _SSH.replace("OPTIONS", "-4") + " (or -6)",
    ("--version", "-V"): "write rdc --version",
    ("--server", "--sender"): "the far side runs rdc serve --stdio",
}

REFUSED_RSYNC_OPTIONS: dict[str, str] = {name: text for names, text in _REFUSED.items() for name in names}
"""Advice by option name. The parser derives the refusals of `--no-X` from it and from rdc's options."""
