"""`rdc keys new|show|trust|distrust`: manages this machine's key and the certificates it trusts."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words
from rdc.cli.verb import HelpText
from rdc.errors import ExitCode, RdcError, TrustError, UsageError, printable
from rdc.limits import KEY_FILE_BYTES
from rdc.model.options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.transport.keys import Certificate


SUMMARY = "create and show this machine's key, and trust keys of other machines (rdc://)"

SUBVERBS = ("new", "show", "trust", "distrust")

KEYS_OPTION = Option(("--keys",), "the key directory (default: RDC_KEYS, or ~/.config/rdc/keys)", "DIR")

OPTIONS = (
    OptionGroup(
        "Options",
        (
            KEYS_OPTION,
            Option(("--name",), "new: name in the certificate (default: the host name)", "NAME"),
            Option(("--days",), "new: days until the key expires (default: 3650)", "N"),
            Option(("--force",), "new, trust: replace the existing key or certificate"),
            Option(("--add",), "trust: add a second certificate, while a key is being replaced"),
            Option(("--pem",), "show: print the certificate, for other machines to trust"),
            HELP,
        ),
    ),
)

_INTRODUCTION = """\
Usage: rdc keys new [--name=NAME] [--days=N] [--force]
       rdc keys show [--pem] [NAME]
       rdc keys trust NAME FILE [--add|--force]
       rdc keys distrust NAME

Examples:
  rdc keys new                                   create a key, once on each machine
  rdc keys show --pem > laptop.pem               print the certificate; copy it to the other side
  rdc keys trust laptop laptop.pem               on the daemon: trust it under a name that modules allow
  rdc keys trust backup.example.org server.pem   here: trust the daemon, under the host name of rdc://HOST/
  ssh nas.example.org rdc keys show --pem | rdc keys trust nas.example.org -
                                                 fetch the daemon's certificate over ssh and trust it

Over rdc:// each side must trust the certificate of the other before the first sync. For a daemon, NAME is its
host, followed by :PORT if the port is not 8730. For a client, NAME is a name in the daemon's modules. If FILE
is -, the certificate is read from stdin.

To replace a key that will expire, without an interruption:

  rdc keys new --keys=next                       create a new key next to the old one
  rdc keys show --pem --keys=next > new.pem      copy new.pem to all machines that trust the old one
  rdc keys trust --add laptop new.pem            there: trust both; send SIGHUP to a daemon
  mv next/identity.pem ~/.config/rdc/keys/       then use the new key here; send SIGHUP to a daemon
  rdc keys trust --force laptop new.pem          there: trust only the new one
"""

DAYS_MOST = 36_500


help_text = HelpText(_INTRODUCTION, OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc keys` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc keys")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    from rdc.transport.keys import key_directory

    given = parsed.value("--keys")
    directory = Path(given) if given is not None else key_directory(environment.environ)
    verbs = {"new": _new, "show": _show, "trust": _trust, "distrust": _distrust}
    what = parsed.operands[0] if parsed.operands else ""
    if what not in verbs:
        raise UsageError(f"rdc keys is followed by {', '.join(verbs)} (see rdc keys --help)")
    verbs[what](parsed, directory, environment)
    return ExitCode.OK


def _new(words: Words, directory: Path, environment: Environment) -> None:
    from rdc.daemon.keys import DAYS, make_identity

    _operands(words, 0, 0)
    days = f"a number of days from 1 to {DAYS_MOST} is expected"
    name = words.value("--name")
    made = make_identity(
        directory,
        name if name is not None else socket.gethostname()[:64] or "rdc",
        days=words.number("--days", DAYS, days, least=1, most=DAYS_MOST, digits=5),
        replace=words.has("--force"),
    )
    environment.talk(f"made {printable(str(directory / 'identity.pem'))}\n")
    environment.data(f"{made.pin}\n")


def _show(words: Words, directory: Path, environment: Environment) -> None:
    from rdc.daemon.keys import own_certificate, pem
    from rdc.transport.keys import KeyRing

    _operands(words, 0, 1)
    if len(words.operands) > 1:
        name = words.operands[1]
        trusted = KeyRing.read(directory).trusted
        if name not in trusted:
            raise UsageError(f"no key is trusted as '{name}' (see rdc keys show)")
        for certificate in trusted[name]:
            environment.data(pem(certificate).decode() if words.has("--pem") else _line(name, certificate))
    elif words.has("--pem"):
        environment.data(pem(own_certificate(directory)).decode())
    else:
        ring = KeyRing.read(directory)
        environment.data(_line("(this one)", ring.own))
        for name, certificates in sorted(ring.trusted.items()):
            for certificate in certificates:
                environment.data(_line(name, certificate))


def _trust(words: Words, directory: Path, environment: Environment) -> None:
    from rdc.daemon.keys import trust
    from rdc.transport.keys import Certificate

    _operands(words, 2, 2)
    name, file = words.operands[1:]
    if words.has("--add") and words.has("--force"):
        raise UsageError("rdc keys trust takes --add or --force, not both (see rdc keys --help)")
    found = Certificate.public_from_pem(_read(file, environment), file)
    if len(found) > 1:
        raise TrustError(f"{file}: expected one certificate in PEM form, found {len(found)}")
    (certificate,) = found
    trust(directory, name, certificate, replace=words.has("--force"), add=words.has("--add"))
    environment.data(_line(name, certificate))


def _distrust(words: Words, directory: Path, environment: Environment) -> None:
    from rdc.daemon.keys import distrust

    _operands(words, 1, 1)
    distrust(directory, words.operands[1])
    environment.talk(f"{words.operands[1]} is trusted no more; a running daemon learns it by SIGHUP\n")


def _line(name: str, certificate: Certificate) -> str:
    from rdc.daemon.keys import describe

    facts = describe(certificate)
    when = f"{'EXPIRED' if facts.expired else 'until'} {facts.expires:%Y-%m-%d}"
    return f"{printable(name):<24} {facts.pin}  {when}  {printable(facts.label)}\n"


def _read(file: str, environment: Environment) -> bytes:
    if file == "-":
        return environment.stdin.read(KEY_FILE_BYTES + 1)
    from rdc.transport.keys import read_key_file

    found = read_key_file(Path(file))
    if found is None:
        raise RdcError(f"{file}: there is no such file", code=ExitCode.FILE_IO)
    return found


def _operands(words: Words, least: int, most: int) -> None:
    what, rest = words.operands[0], words.operands[1:]
    if not least <= len(rest) <= most:
        expected = {"show": "at most a NAME", "trust": "NAME and FILE", "distrust": "a NAME"}.get(
            what, "nothing"
        )
        raise UsageError(f"rdc keys {what} takes {expected}, {len(rest)} were given (see rdc keys --help)")
