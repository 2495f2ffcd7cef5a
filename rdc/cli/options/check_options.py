"""The options of `rdc check`: their table, and the request they are read into."""

from __future__ import annotations

import re

from rdc.cli.options.filter_options import FILTER_GROUP, ReadRuleFile
from rdc.cli.options.sync_options import REFUSED_RSYNC_OPTIONS, SYNC_OPTIONS, SyncRequest, read_request
from rdc.cli.options.table import Option, OptionGroup, Words, parse_words
from rdc.errors import UsageError
from rdc.lean.records import dataclass, replace
from rdc.model.check import CheckOptions, Sample
from rdc.model.sync import CONNECTION
from rdc.model.sync import OPTIONS as SESSION_OPTIONS

__all__ = ["CHECK_OPTIONS", "CheckRequest", "parse_check", "read_check"]

_SYNC = {option.key: option for group in SYNC_OPTIONS for option in group.options}

SEED_DIGITS = 18

CHECK_OPTIONS = (
    OptionGroup(
        "What is compared (always: names, kinds, link targets and content)",
        (
            Option(("--no-times", "--no-t"), "do not compare modification times"),
            Option(("--no-perms", "--no-p"), "do not compare permissions"),
            Option(
                ("--owner",),
                "compare owners and groups, root or not (default: only as root)",
                note="""Without it, owners and groups are compared where the side that writes in a sync would
                keep them: where this rdc runs as root. Where they are not compared, the setuid and setgid
                bits are not compared either.""",
            ),
            Option(("--no-owner", "--no-o"), "never compare owners and groups"),
            Option(
                ("-H", "--hard-links"),
                "compare which files are hard links to each other",
                note="""A file differs if it shares its inode with other files at one end than at the other.
                Only files that both ends have count.""",
            ),
            Option(("-X", "--xattrs"), "compare extended attributes"),
            Option(("-A", "--acls"), "compare ACLs"),
            _SYNC["--one-file-system"],
            Option(
                ("-a", "--archive"), "compare everything rdc sync keeps; always on, as are the next three"
            ),
            Option(("-r", "--recursive"), "descend into directories"),
            Option(("-l", "--links"), "compare symlinks as symlinks"),
            Option(("-c", "--checksum"), "compare content"),
        ),
    ),
    OptionGroup(
        "How much is read",
        (
            Option(
                ("--sample",),
                "read about this part of the files, such as 1% or 0.01",
                "RATE",
                note="""All names and metadata are compared in any case. The choice depends on the path and
                `--seed` alone, so that the next run reads the same files. The summary says which share
                was read.""",
                example="--sample=1% src/ backup/",
            ),
            Option(
                ("--seed",),
                "of the choice of files for --sample (default: 0)",
                "N",
                note="""Another number chooses other files. A run a night with a number of its own reads all
                files in time.""",
                example="--sample=1% --seed=7 src/ backup/",
            ),
            Option(
                ("--trust-catalog",),
                "do not read files again that the catalogs of both ends know",
                note="""A catalog knows a file by device, inode, size, mtime and ctime. A disk that changed
                bytes by itself stays unnoticed in such a file. New signatures are remembered, too.""",
            ),
            Option(
                ("--catalog",),
                "the catalog that is trusted (default: RDC_CATALOG, or your cache directory)",
                "DIR",
                example="--trust-catalog --catalog=/var/tmp/rdc src/ backup/",
            ),
        ),
    ),
    FILTER_GROUP,
    OptionGroup(
        CONNECTION,
        (
            *(_SYNC[key] for key in ("--rsh", "--remote-path", "--keys")),
            *(
                option
                for declared in SESSION_OPTIONS.values()
                if declared.check and declared.group == CONNECTION
                for option in declared.options
            ),
        ),
    ),
    OptionGroup(
        "What is shown",
        (
            Option(("-q", "--quiet"), "show nothing but errors"),
            Option(("--progress",), "show progress, by lines where no bar can be drawn"),
            _SYNC["--json"],
            _SYNC["--help"],
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """The checked command line of `rdc check`."""

    sync: SyncRequest
    """The operands, the connection, and the options that rdc sync has as well."""
    options: CheckOptions


def parse_check(words: list[str]) -> Words:
    """Parses the words after `rdc check`. Raises UsageError."""
    return parse_words(words, CHECK_OPTIONS, REFUSED_RSYNC_OPTIONS, command="rdc check")


def read_check(words: Words, read_rule_file: ReadRuleFile) -> CheckRequest:
    """Reads the request. Raises UsageError for a contradiction, RdcError for an unreadable rule file."""
    request = read_request(words, read_rule_file, command="rdc check")
    options = CheckOptions(
        session=replace(request.options, times=True, perms=True),
        times=not words.has("--no-times"),
        modes=not words.has("--no-perms"),
        trust_catalog=words.has("--trust-catalog"),
        sample=_sample(words),
    )
    return CheckRequest(request, options)


def _sample(words: Words) -> Sample | None:
    last, seed = words.last("--sample"), words.last("--seed")
    if last is None:
        if seed is not None:
            raise UsageError("--seed means nothing without --sample")
        return None
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})(%?)", last.value)
    share = float(found[1]) / (100 if found[2] else 1) if found else 0.0
    if not 0 < share <= 1:
        raise UsageError(f"--sample={last.value}: a part of the files is expected, such as 1% or 0.01")
    number = "0" if seed is None else seed.value
    if not (number.isascii() and number.isdigit() and len(number) <= SEED_DIGITS):
        raise UsageError(f"--seed={number}: a whole number of at most {SEED_DIGITS} digits is expected")
    return Sample(share, int(number))
