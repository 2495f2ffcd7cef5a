"""The options of `rdc sync` about what it says, and where."""

from __future__ import annotations

import os

from rdc.cli.options.table import Option, OptionGroup, Words
from rdc.errors import UsageError
from rdc.lean.records import replace
from rdc.report.sync_terminal import TerminalStyle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.location import Location
    from rdc.report.sync_log import Copy, LogChoice, OutFormat

__all__ = ["OUTPUT_GROUP", "read_buffering", "read_log", "read_style"]

OUTPUT_GROUP = OptionGroup(
    "What is shown",
    (
        Option(
            ("-v", "--verbose"),
            "name each changed entry; twice: unchanged ones, too",
            note="""As in rsync, a file of which only permissions or times changed is named by `-vv` and
                `-i`, not by `-v`. Unchanged entries are not listed where `-c`, `-I`, `-H`, `-A` or `-X`
                compares more than names and times.""",
            rsync="names are listed as rsync lists them; the totals at the end are rdc's",
        ),
        Option(
            ("-i", "--itemize-changes"),
            "the same with rsync's 11-character code; twice: unchanged, too",
            note="The code is rsync's. A moved file is one line: `*renaming   old -> new`.",
            rsync="""`-ii` lists no unchanged entries beside `-c`, `-I`, `-H`, `-A`, `-X` and `-U`; beside
                other changes, `-A`, `-X` and `-U` have no letters""",
        ),
        Option(("-q", "--quiet"), "show nothing but errors"),
        Option(
            ("-h", "--human-readable"),
            "show sizes in units of 1000, twice of 1024 (alone: use --help)",
            note="""By default the digits of sizes are grouped. The last `--no-human-readable`
                starts again.""",
            example="--stats -h src/ backup/",
            rsync="in the text of `--stats`; the line at the end is always rounded",
            watch=False,
        ),
        Option(
            ("--no-human-readable", "--no-h"),
            "show sizes as mere digits",
            example="--stats --no-h src/ backup/",
            watch=False,
        ),
        Option(
            ("--stats",),
            "show what was sent, received and reused, and by which messages",
            note="""The totals come with the bytes that each kind of message took through the
                connection.""",
            rsync="the same totals in rdc's words, and the bytes of each kind of message",
            watch=False,
        ),
        Option(
            ("--info",),
            "choose what is shown, such as progress2 or stats2,name0",
            "FLAGS",
            note="""FLAGS are names with a level, separated by commas: `name` (2: unchanged, too), `del`,
                `stats` (0: no last line, 2: as `--stats`), `progress`, `none` and `all`. Other flags of
                rsync fail by name.""",
            example="--info=progress2,stats2 src/ host:backup/",
            rsync="`name`, `del`, `stats`, `progress`, `none` and `all`; others fail by name",
            watch=False,
        ),
        Option(
            ("--progress",),
            "show progress, by lines where no bar can be drawn",
            note="A line a second at most appears where no bar can be drawn.",
            rsync="one bar for the whole run, as of `--info=progress2`",
            watch=False,
        ),
        Option(
            ("-P",),
            "the same as --partial --progress",
            example="-P src/ host:backup/",
            rsync="the same as `--progress`, since `--partial` is always on",
            watch=False,
        ),
        Option(
            ("--out-format", "--log-format"),
            "a line for each change, such as '%i %l %n%L'",
            "FORMAT",
            note="""| escape | what it shows |
                |---|---|
                | `%i` | the 11-character code of `-i` |
                | `%n`, `%f` | the name at DST; the path here |
                | `%L` | ` -> TARGET` of a symlink, ` => NAME` of a hard link |
                | `%o` | `send`, `recv` or `del.` |
                | `%l`, `%M`, `%B` | size, time, permissions of the entry here; unknown with `-n` from afar |
                | `%U`, `%G` | its user and group, the same |
                | `%t`, `%p` | the time now, and the number of the process |
                | `%%` | a percent sign |

                A number after `%` is the least width, and one below 0 pads on the right. One to three `'`
                before it group the digits of `%l`, or round in units of 1000 or 1024. Without `%i` the same
                entries are listed as by `-v`. Control characters are escaped. Other escapes fail by name.""",
            example="--out-format='%i %l %n%L' src/ backup/",
            rsync="without `%a`, `%b`, `%c`, `%C`, `%h`, `%m`, `%P` and `%u`, which fail by name",
            watch=False,
        ),
        Option(
            ("--list-only",),
            "list SRC and copy nothing; the same as to leave out DST",
            note="""Permissions, size, time and name of each entry that would be synced, by directories.
                Filter rules apply; DST takes no part. Directories have no size of their own here.""",
            example="--list-only host:data/ .",
            rsync="always recursive; in another order, and with 0 as the size of directories",
            watch=False,
        ),
        Option(
            ("--log-file",),
            "append what happens to this file",
            "FILE",
            note="""Each line has time and process. The file is made for its owner only. It may lie neither
                below DST nor behind a symlink.""",
            example="--log-file=/var/log/rdc.log src/ backup/",
            rsync="never below DST, and never through a symlink",
            watch=False,
        ),
        Option(
            ("--log-file-format",),
            "the lines about changes in it (default: '%i %n%L')",
            "FORMAT",
            note="""FORMAT is as in `--out-format`. An empty one logs no changes, but begin, problems and
                totals.""",
            example="--log-file=/var/log/rdc.log --log-file-format='%o %n' src/ backup/",
            rsync="with the escapes of `--out-format`",
            watch=False,
        ),
        Option(
            ("--outbuf",),
            "write stdout unbuffered, by lines or by blocks: N, L or B",
            "MODE",
            example="-i --outbuf=L src/ backup/ | tee list",
            watch=False,
        ),
        Option(
            ("--stderr",),
            "where output goes: errors or client (default), or all to stderr",
            "MODE",
            example="-v --stderr=all src/ backup/",
            rsync="`errors` is the same as `client`",
            watch=False,
        ),
        Option(("--msgs2stderr",), "the same as --stderr=all", watch=False),
        Option(("-8", "--8-bit-output"), "show the letters of all languages in names; always on"),
        Option(
            ("--json",),
            "one JSON event a line on stdout instead",
            note="See [JSON events](../events.md).",
            example="--json src/ host:backup/ | jq .",
        ),
        Option(("--help",), "show this text", rsync="rdc's own text; `-h` alone is no help"),
    ),
)

_LEVELS = {"name": 2, "del": 1, "stats": 3, "progress": 2, "none": 0, "all": 4}
"""The flags of --info that rdc has, each with its highest level."""


def read_style(words: Words, source: Location, destination: Location) -> TerminalStyle:
    """Return what is shown. Raises UsageError."""
    verbose, itemize = (_count(words, name) for name in ("--verbose", "--itemize-changes"))
    unchanged = max(verbose, itemize) > 1
    style = TerminalStyle(
        names=verbose > 0,
        itemize=itemize > 0,
        unchanged=unchanged,
        stats=words.has("--stats"),
        level=_level(words),
        quiet=words.has("--quiet"),
        dry_run=words.has("--dry-run"),
        local=source.host is None and destination.host is None,
        progress=words.has("--progress") or words.has("-P"),
        on_stderr=_goes_to_stderr(words),
    )
    for given in words.given:
        if given.key == "--info":
            for flag in given.value.split(","):
                style = _informed(style, flag, given.value)
    format_ = words.last("--out-format")
    if format_ is not None:
        copy = _copy(source, destination)
        parsed = _format(given=format_.value, name="--out-format", words=words, source=source)
        style = replace(style, format=parsed, copy=copy)
    return style


def read_log(words: Words, source: Location, destination: Location) -> LogChoice | None:
    """The log file; None for none. Raises UsageError."""
    file, format_ = words.last("--log-file"), words.last("--log-file-format")
    if file is None:
        if format_ is not None:
            raise UsageError("--log-file-format needs --log-file")
        return None
    if not file.value:
        raise UsageError("--log-file needs a file, such as: --log-file=sync.log")
    if destination.host is None and _is_within(os.fsencode(file.value), destination.path):
        raise UsageError(f"--log-file={file.value}: this is inside DST; choose a file elsewhere")
    from rdc.report.sync_log import DEFAULT_LOG_FORMAT, LogChoice

    text = DEFAULT_LOG_FORMAT if format_ is None else format_.value
    parsed = _format(given=text, name="--log-file-format", words=words, source=source) if text else None
    return LogChoice(file.value, parsed, _copy(source, destination))


def read_buffering(words: Words) -> str | None:
    """The mode of --outbuf, "N", "L" or "B"; None if it is not given. Raises UsageError."""
    given = words.last("--outbuf")
    if given is None:
        return None
    mode = {"n": "N", "u": "N", "l": "L", "b": "B", "f": "B"}.get(given.value[:1].lower())
    if mode is None:
        raise UsageError(f"--outbuf={given.value}: expected N (none), L (lines) or B (blocks)")
    return mode


def _count(words: Words, key: str) -> int:
    return sum(given.key == key for given in words.given)


def _level(words: Words) -> int:
    """rsync's level of readability: each -h is one more than 1; --no-h starts again at 0."""
    level = 1
    for given in words.given:
        if given.key == "--no-human-readable":
            level = 0
        elif given.key == "--human-readable":
            level = min(level + 1, 3)
    return level


def _goes_to_stderr(words: Words) -> bool:
    last = words.last("--stderr", "--msgs2stderr")
    if last is None:
        return False
    if last.key == "--msgs2stderr":
        return True
    modes = [mode for mode in ("errors", "all", "client") if last.value and mode.startswith(last.value)]
    if not modes:
        raise UsageError(f"--stderr={last.value}: expected errors, all or client")
    return modes == ["all"]


def _informed(style: TerminalStyle, flag: str, given: str) -> TerminalStyle:
    """`style` with one flag of --info, such as `stats2`."""
    name = flag.lower().rstrip("0123456789")
    digits = flag[len(name) :]
    if name not in _LEVELS or len(digits) > 1:
        known = ", ".join(_LEVELS)
        raise UsageError(f"--info={given}: rdc does not know {flag or 'an empty flag'}; it knows {known}")
    level = int(digits) if digits else 1
    if name == "none" or (name == "all" and not level):
        return replace(style, names=False, unchanged=False, deletions=False, stats=False, summary=False)
    if name == "name":
        return replace(style, names=level > 0, unchanged=level > 1)
    if name == "del":
        return replace(style, deletions=level > 0)
    if name == "stats":
        return replace(style, stats=level > 1, summary=level > 0)
    if name == "progress":
        return replace(style, progress=level > 0)
    return replace(style, names=True, unchanged=level > 1, deletions=True, stats=level > 1, progress=True)


def _format(*, given: str, name: str, words: Words, source: Location) -> OutFormat:
    from rdc.report.sync_log import parse_format

    try:
        parsed = parse_format(given)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
    if parsed.looks and source.host is not None and words.has("--dry-run"):
        raise UsageError(f"{name}: %l, %M, %B, %U and %G are of entries here, which -n does not fetch")
    return parsed


def _copy(source: Location, destination: Location) -> Copy:
    """Return what this machine sees of the copied entries: of the source, or of what was fetched."""
    from rdc.report.sync_log import Copy

    if source.host is not None:
        return Copy("recv", destination.path)
    inner = source.path.endswith(b"/") or os.path.basename(source.path) in (b".", b"..")
    return Copy("send", source.path if inner else os.path.dirname(source.path))


def _is_within(path: bytes, top: bytes) -> bool:
    """Return whether a file at `path` lies below the directory `top`, by what both lead to now."""
    here = os.path.join(os.path.realpath(os.path.dirname(path) or b"."), os.path.basename(path))
    above = os.path.realpath(top)
    return here == above or here.startswith(above.rstrip(b"/") + b"/")
