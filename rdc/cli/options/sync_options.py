"""The options of `rdc sync` on the command line, and the request they are read into.

Each option of a field is declared at the field, in rdc.model.sync. Its flags set the field, the last one
counts; a value is read by the function declared there. Here are the options without a field, and the fields
that several options make (_READERS).
"""

from __future__ import annotations

import os

from rdc.cli.environment import (
    HELP,
    Given,
    OptionGroup,
    Words,
    parse_words,
    parsed_value,
)
from rdc.cli.options.deadlines import ENDING_GROUP, Deadline, read_deadline
from rdc.cli.options.own_places import (
    CATALOG_GROUP,
    KEYS,
    REMOTE_PATH,
    RSH,
    CatalogChoice,
    read_choice,
    read_keys,
    read_shell,
)
from rdc.cli.options.shared_options import CHOOSE, FILTER_GROUP, ReadRuleFile, read_rules
from rdc.errors import UsageError
from rdc.lean.records import Record, replace
from rdc.limits import ALTERNATE_DIRECTORIES
from rdc.model import sync as model
from rdc.model.location import FarList, Location, RemoteShell, parse_location
from rdc.model.options import (
    ALWAYS,
    Alternates,
    AlternateUse,
    Backup,
    FileList,
    Option,
    parse_number,
    parse_share,
)
from rdc.model.selection import FilterRule, RuleAction, has_rule_files, listed_names
from rdc.model.sync import OPTIONS, SyncOptions
from rdc.report.sync_terminal import (
    DEFAULT_LOG_FORMAT,
    Copy,
    LogChoice,
    OutFormat,
    TerminalStyle,
    parse_format,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    _Options: TypeAlias = tuple[Option, ...]


_OUTPUT = (
    Option(
        ("-v", "--verbose"),
        "print each changed entry; -vv: unchanged ones, too",
        common=True,
        note="""As in rsync, a file of which only permissions or times changed is named by `-vv` and
            `-i`, not by `-v`. Unchanged entries are not listed where `-c`, `-I`, `-H`, `-A` or `-X`
            compares more than names and times.""",
        rsync="names are listed as rsync lists them; the totals at the end are rdc's",
    ),
    Option(
        ("-i", "--itemize-changes"),
        "print each change with rsync's 11-character code; -ii: all entries",
        common=True,
        note="The code is rsync's. A moved file is one line: `*renaming   old -> new`.",
        rsync="""`-ii` lists no unchanged entries beside `-c`, `-I`, `-H`, `-A`, `-X` and `-U`; beside
            other changes, `-A`, `-X` and `-U` have no letters""",
    ),
    Option(("-q", "--quiet"), "print only errors"),
    Option(
        ("-h", "--human-readable"),
        "print sizes in units of 1000, twice: of 1024 (alone: use --help)",
        note="""By default the digits of sizes are grouped. The last `--no-human-readable`
            starts again.""",
        example="--stats -h src/ backup/",
        rsync="in the text of `--stats`; the line at the end is always rounded",
        watch=False,
    ),
    Option(
        ("--no-human-readable", "--no-h"),
        "print sizes in digits without separators",
        example="--stats --no-h src/ backup/",
        watch=False,
    ),
    Option(
        ("--stats",),
        "print what was sent, received and reused, and the bytes of each kind of message",
        note="""The totals come with the bytes that each kind of message took through the
            connection.""",
        rsync="the same totals in rdc's words, and the bytes of each kind of message",
        watch=False,
    ),
    Option(
        ("--info",),
        "choose what is printed, such as progress2 or stats2,name0",
        "FLAGS",
        note="""FLAGS are names with a level, separated by commas: `name` (2: unchanged, too), `del`,
            `stats` (0: no last line, 2: as `--stats`), `progress`, `none` and `all`. Other flags of
            rsync are rejected.""",
        values=("progress2", "stats2", "stats0", "name", "name2", "del", "none", "all"),
        example="--info=progress2,stats2 src/ host:backup/",
        rsync="`name`, `del`, `stats`, `progress`, `none` and `all`; others are rejected",
        watch=False,
    ),
    Option(
        ("--progress",),
        "show progress, as lines where no bar can be drawn",
        note="A line a second at most appears where no bar can be drawn.",
        rsync="one bar for the whole run, as of `--info=progress2`",
        watch=False,
    ),
    Option(
        ("-P",),
        "show progress; partial files are always kept",
        common=True,
        example="-P src/ host:backup/",
        rsync="the same as `--progress`, since `--partial` is always on",
        watch=False,
    ),
    Option(
        ("--out-format", "--log-format"),
        "print a line for each change, such as '%i %l %n%L'",
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
            entries are listed as by `-v`. Control characters are escaped. Other escapes are rejected.""",
        example="--out-format='%i %l %n%L' src/ backup/",
        rsync="without `%a`, `%b`, `%c`, `%C`, `%h`, `%m`, `%P` and `%u`, which are rejected",
        watch=False,
    ),
    Option(
        ("--list-only",),
        "list SRC and copy nothing; the same as omitting DST",
        note="""Permissions, size, time and name of each entry that would be synced, by directories.
            Filter rules apply; DST takes no part. Directories have no size of their own here.""",
        example="--list-only host:data/ .",
        rsync="always recursive; in another order, and with 0 as the size of directories",
        watch=False,
    ),
    Option(
        ("--log-file",),
        "append a log of the run to FILE",
        "FILE",
        note="""Each line has time and process. The file is made for its owner only. It may lie neither
            below DST nor behind a symlink.""",
        example="--log-file=/var/log/rdc.log src/ backup/",
        rsync="never below DST, and never through a symlink",
        watch=False,
    ),
    Option(
        ("--log-file-format",),
        "the format of its lines about changes (default: '%i %n%L')",
        "FORMAT",
        note="""FORMAT is as in `--out-format`. An empty one logs no changes, but begin, problems and
            totals.""",
        example="--log-file=/var/log/rdc.log --log-file-format='%o %n' src/ backup/",
        rsync="with the escapes of `--out-format`",
        watch=False,
    ),
    Option(
        ("--outbuf",),
        "buffer stdout not at all, by lines or by blocks: N, L or B",
        "MODE",
        values=("N", "L", "B"),
        example="-i --outbuf=L src/ backup/ | tee list",
        watch=False,
    ),
    Option(
        ("--stderr",),
        "where output goes: errors or client (default), or all of it to stderr",
        "MODE",
        values=("errors", "client", "all"),
        example="-v --stderr=all src/ backup/",
        rsync="`errors` is the same as `client`",
        watch=False,
    ),
    Option(("--msgs2stderr",), "the same as --stderr=all", watch=False),
    Option(("-8", "--8-bit-output"), "print the letters of all languages in names (always on)", sets=ALWAYS),
    Option(
        ("--json",),
        "print one JSON event per line on stdout instead",
        note="See [JSON events](../events.md).",
        example="--json src/ host:backup/ | jq .",
    ),
    replace(
        HELP,
        help="show the options used most; --help=all shows all of them",
        rsync="rdc's own text; `-h` alone is no help",
    ),
)

_LEVELS = {"name": 2, "del": 1, "stats": 3, "progress": 2, "none": 0, "all": 4}
"""The flags of --info that rdc has, each with its highest level."""


def read_style(words: Words, source: Location, destination: Location) -> TerminalStyle:
    """Return the style of the output, by the options. Raises UsageError."""
    verbose, itemize = (words.count(name) for name in ("--verbose", "--itemize-changes"))
    unchanged = max(verbose, itemize) > 1
    style = TerminalStyle(
        names=verbose > 0,
        itemize=itemize > 0,
        unchanged=unchanged,
        stats=words.has("--stats"),
        level=_level(words),
        quiet=words.has("--quiet"),
        dry_run=words.has("--dry-run"),
        carried=_carried(source, destination),
        asked=words.has(*_ASKING),
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


_ASKING = (
    "--verbose",
    "--itemize-changes",
    "--stats",
    "--info",
    "--progress",
    "-P",
    "--out-format",
    "--dry-run",
)
"""Options that ask for more than errors."""


def _carried(source: Location, destination: Location) -> str:
    if source.host is not None:
        return "received" if destination.host is None else "transferred"
    return "copied" if destination.host is None else "sent"


def read_log(words: Words, source: Location, destination: Location) -> LogChoice | None:
    """Return the log file; None for none. Raises UsageError."""
    file, format_ = words.last("--log-file"), words.last("--log-file-format")
    if file is None:
        if format_ is not None:
            raise UsageError("--log-file-format needs --log-file")
        return None
    if not file.value:
        raise UsageError("--log-file needs a file, such as: --log-file=sync.log")
    if destination.host is None and _is_within(os.fsencode(file.value), destination.path):
        raise UsageError(f"--log-file={file.value}: this is inside DST; choose a file elsewhere")
    text = DEFAULT_LOG_FORMAT if format_ is None else format_.value
    parsed = _format(given=text, name="--log-file-format", words=words, source=source) if text else None
    return LogChoice(file.value, parsed, _copy(source, destination))


def read_buffering(words: Words) -> str | None:
    """Return the mode of --outbuf, "N", "L" or "B"; None if it is not given. Raises UsageError."""
    given = words.last("--outbuf")
    if given is None:
        return None
    mode = {"n": "N", "u": "N", "l": "L", "b": "B", "f": "B"}.get(given.value[:1].lower())
    if mode is None:
        raise UsageError(f"--outbuf={given.value}: expected N (none), L (lines) or B (blocks)")
    return mode


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
    """Return `style` with one flag of --info, such as `stats2`."""
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
    try:
        parsed = parse_format(given)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
    if parsed.looks and source.host is not None and words.has("--dry-run"):
        raise UsageError(f"{name}: %l, %M, %B, %U and %G are of entries here, which -n does not fetch")
    return parsed


def _copy(source: Location, destination: Location) -> Copy:
    """Return the direction of the copy as this machine sees it: sent from the source, or fetched."""
    if source.host is not None:
        return Copy("recv", destination.path)
    inner = source.path.endswith(b"/") or os.path.basename(source.path) in (b".", b"..")
    return Copy("send", source.path if inner else os.path.dirname(source.path))


def _is_within(path: bytes, top: bytes) -> bool:
    """Return whether a file at `path` lies below the directory `top`, by what both lead to now."""
    here = os.path.join(os.path.realpath(os.path.dirname(path) or b"."), os.path.basename(path))
    above = os.path.realpath(top)
    return here == above or here.startswith(above.rstrip(b"/") + b"/")


_CONNECTION = (
    RSH,
    Option(
        ("-s", "--secluded-args", "--protect-args"),
        "pass no path through the remote shell (always on)",
        sets=ALWAYS,
        example="-s 'src dir/' host:backup/",
    ),
    Option(
        ("--inc-recursive", "--i-r"),
        "transfer contents while the tree is being listed (always on)",
        sets=ALWAYS,
        example="--i-r src/ host:backup/",
    ),
    REMOTE_PATH,
    KEYS,
)


DELETE, KEEP, CONNECT, SHOW = "Delete", "Keep", "Connect", "Show"
"""The stages of use after CHOOSE. Help texts have the options in this order."""

_DEFAULT_TITLE = "Always on, or the default (these cancel an earlier option, or do nothing)"


def is_default(field: str, option: Option) -> bool:
    """Return whether an option of a field asks for what holds without it: it only cancels another one."""
    made = ((field, option.sets), *option.also)
    restores = option.metavar is None and all(OPTIONS[name].default == value for name, value in made)
    return restores or option.sets is ALWAYS


def _group(title: str, stage: str, *, before: _Options = (), after: _Options = ()) -> OptionGroup:
    """Return the options of one title: those that the fields declare, `before` and `after` others. Those that
    only restore a default are in the group of `_DEFAULT_TITLE`."""
    declared = [
        option
        for name, each in OPTIONS.items()
        for option in each.options
        if (option.group or each.group) == title and not is_default(name, option)
    ]
    options = (option for option in (*before, *declared, *after) if option.sets is not ALWAYS)
    return OptionGroup(title, tuple(options), stage)


def _defaults(*options: Option) -> OptionGroup:
    """Return the options that only restore a default: of the fields, and of `options`."""
    declared = (
        option for name, each in OPTIONS.items() for option in each.options if is_default(name, option)
    )
    without_field = (option for option in options if option.sets is ALWAYS)
    return OptionGroup(_DEFAULT_TITLE, (*declared, *without_field), names_only=True)


SYNC_OPTIONS = (
    FILTER_GROUP,
    _group(model.TAKEN, CHOOSE),
    _group(model.COMPARING, CHOOSE),
    _group(model.DELETING, DELETE),
    _group(model.METADATA, KEEP),
    _group(model.KINDS, KEEP),
    _group(model.OWNERS, KEEP),
    _group(model.OLD_VERSIONS, KEEP),
    _group(model.ALTERNATES, KEEP),
    _group(model.WRITING, KEEP),
    _group(model.CONNECTION, CONNECT, before=_CONNECTION),
    ENDING_GROUP,
    CATALOG_GROUP,
    _group(model.SHOWN, SHOW, after=_OUTPUT),
    _defaults(*_CONNECTION, *_OUTPUT),
)

# --- options of rsync that rdc rejects, each with advice: from rsync(1), version 3.5 ----------------

_DAEMON = "rdc's daemon is rdc serve, and its clients write rdc://HOST[:PORT]/MODULE"
_COMPRESSION = "-z and --no-compress are the choices; the method is zstd"
_SSH = 'give it to ssh: -e "ssh OPTIONS"'
_SIGNATURE = "chunks are always named by BLAKE3"

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
    ("--rsync-path",): "use --remote-path=PROGRAM, the remote rdc",
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
    ("--server", "--sender"): "the remote side runs rdc serve --stdio",
}

REFUSED_RSYNC_OPTIONS: dict[str, str] = {name: text for names, text in _REFUSED.items() for name in names}
"""Advice by option name. The parser derives the refusals of `--no-X` from it and from rdc's options."""

_FIELDS = {option.key: (name, option) for name, each in OPTIONS.items() for option in each.options}
"""The field that each option is declared at, by the option's key."""


class SyncRequest(Record):
    """The checked command line of `rdc sync`."""

    sources: tuple[Location, ...]
    """One at least; all on one host."""
    destination: Location
    options: SyncOptions
    shell: RemoteShell
    style: TerminalStyle
    json: bool
    catalog: CatalogChoice
    keys: str | None
    deadline: Deadline | None
    log: LogChoice | None
    buffering: str | None
    """The buffering of stdout: "N", "L" or "B"; None: the usual one."""

    @property
    def source(self) -> Location:
        """The source of a verb that takes one."""
        return self.sources[0]


def parse_sync(words: list[str]) -> Words:
    """Parse the words after `rdc sync`. Raises UsageError."""
    return parse_words(words, SYNC_OPTIONS, REFUSED_RSYNC_OPTIONS, command="rdc sync")


def read_request(
    words: Words,
    read_rule_file: ReadRuleFile,
    *,
    command: str = "rdc sync",
    read_list: ReadRuleFile | None = None,
) -> SyncRequest:
    """Read the request. `command` is the command that error messages name, such as "rdc sync". `read_list`:
    reads the file of --files-from, for a verb that has it.

    Raises UsageError for a contradiction, RdcError for an unreadable rule file.
    """
    sources, destination = read_operands(words, command)
    rules = read_rules(words, read_rule_file)
    style, log = read_style(words, sources[0], destination), read_log(words, sources[0], destination)
    far = next((each for each in (*sources, destination) if each.host is not None), None)
    values = {"relative": words.has("--files-from")} | read_fields(words)
    if not (values["relative"] or values.get("implied_dirs", True)):
        raise UsageError("--no-implied-dirs needs --relative or --files-from")
    values |= _listed(words, read_list or read_rule_file, far)
    values["rules"] = (*rules, _OLD_DIRS) if _dirs(words) == "--old-dirs" else rules
    # A .rdcignore that is new must not delete at DST what it leaves out at SRC.
    after = words.has("--delete-after") or (command == "rdc sync" and words.has("--rdcignore"))
    values["rules_after"] = after and has_rule_files(rules)
    values["items"] = style.lists or log is not None or words.has("--json")
    values["list_unchanged"] = style.unchanged and style.lists
    return SyncRequest(
        sources=sources,
        destination=destination,
        options=SyncOptions(**values),
        shell=read_shell(words),
        style=style,
        json=words.has("--json"),
        catalog=read_choice(words),
        keys=read_keys(words),
        deadline=read_deadline(words),
        log=log,
        buffering=read_buffering(words),
    )


def read_fields(words: Words) -> dict[str, Any]:
    """Return the fields of SyncOptions that the options at them give. Raises UsageError for a value that
    means nothing."""
    found: dict[str, Any] = {}
    for given in words.given:
        name, option = _FIELDS.get(given.key, ("", None))
        if option is None or name in _READERS or name == "files":
            continue
        if option.metavar is not None:
            found[name] = given
        elif option.sets is not ALWAYS:
            found |= {name: option.sets, **dict(option.also)}
    # Only the value that counts has to mean something: a typed one outweighs that of a setting.
    found = {
        name: parsed_value(value, OPTIONS[name]) if isinstance(value, Given) else value
        for name, value in found.items()
    }
    return found | {name: reader(words) for name, reader in _READERS.items()}


# --- fields that several options make -----------------------------------------------------------------------


def _descends(words: Words) -> bool:
    """Return whether directories are taken with everything below them.

    As in rsync, -r outweighs -d, --old-dirs outweighs --no-r, and -a implies no -r beside --files-from.
    """
    if _dirs(words) == "--old-dirs":
        return True
    dirs, listed = _dirs(words) == "--dirs", words.has("--files-from")
    turned = words.last("--no-recursive", "--recursive", *(() if listed else ("--archive",)))
    if turned is not None and turned.key == "--no-recursive":
        if not (dirs or listed):
            raise UsageError(
                "--no-recursive needs --dirs or --files-from: otherwise directories are descended into"
            )
        return False
    return turned is not None or not (dirs or listed)


def _dirs(words: Words) -> str:
    """Return the last one of three options that replace each other, as in rsync."""
    last = words.last("--dirs", "--no-dirs", "--old-dirs")
    return "" if last is None else last.key


_OLD_DIRS = FilterRule(RuleAction.EXCLUDE, b"/*/*")


def _chmod(words: Words) -> str:
    """Return the changes of all --chmod, in order."""
    changes = ",".join(words.values("--chmod"))
    if words.has("--chmod"):
        try:
            OPTIONS["chmod"].check_value(changes)
        except ValueError as error:
            raise UsageError(f"--chmod={changes}: {error}") from None
    return changes


def _max_delete(words: Words) -> int | None:
    last = words.last("--max-delete")
    return None if last is None or last.value.endswith("%") else _limit(last, parse_number)


def _max_delete_share(words: Words) -> int | None:
    """Return the per cent of --max-delete=N%."""
    last = words.last("--max-delete")
    return None if last is None or not last.value.endswith("%") else _limit(last, parse_share)


def _limit(given: Given, parse: Callable[[str], int]) -> int:
    try:
        return parse(given.value)
    except ValueError as error:
        raise UsageError(f"{given.key}={given.value}: {error}") from None


def _backup(words: Words) -> Backup | None:
    directory, suffix = words.last("--backup-dir"), words.last("--suffix")
    if directory is None and not words.has("--backup"):
        if suffix is not None:
            raise UsageError("--suffix needs --backup or --backup-dir")
        return None
    if directory is not None and not directory.value:
        raise UsageError("--backup-dir needs a directory, such as: --backup-dir=../old")
    text = suffix.value if suffix is not None else "" if directory is not None else "~"
    if "/" in text or not (text or directory):
        raise UsageError(f"--suffix={text}: the end of a name is expected, such as ~ or .old")
    return Backup(os.fsencode(text), None if directory is None else os.fsencode(directory.value))


_USES = {f"--{use.value}-dest": use for use in AlternateUse}


def _alternates(words: Words) -> Alternates | None:
    """Return the alternate directories. Raises UsageError for a mix of options, and for too many
    directories."""
    given = [one for one in words.given if one.key in _USES]
    if not given:
        return None
    kinds = sorted({one.key for one in given})
    if len(kinds) > 1:
        raise UsageError(f"{kinds[0]} and {kinds[1]} exclude each other")
    (name,) = kinds
    if len(given) > ALTERNATE_DIRECTORIES:
        raise UsageError(f"{name}: {len(given)} directories, the limit is {ALTERNATE_DIRECTORIES}")
    if not all(one.value for one in given):
        raise UsageError(f"{name} needs a directory, such as: {name}=../yesterday")
    return Alternates(_USES[name], tuple(os.fsencode(one.value) for one in given))


def _open_noatime(words: Words) -> bool:
    return words.has("--open-noatime") or words.count("--atimes") > 1


def _owner(words: Words) -> bool | None:
    """Return whether owners are kept; None for where this is root. As in rsync, -o takes --no-owner back."""
    found: bool | None = None
    for given in words.given:
        if given.key in {"--owner", "--no-owner"}:
            found = given.key == "--owner"
        elif given.key == "-o":
            found = found or None
    return found


def _map(words: Words, name: str, of_groups: bool) -> bytes:
    """Return the only map of users or groups; b"" for none. --chown=USER:GROUP is one of both, as in
    rsync."""
    maps = [os.fsencode(text) for text in words.values(name)]
    shown = name
    for value in map(os.fsencode, words.values("--chown")):
        owners = value.partition(b":")[::2]
        # No name of a user or group contains a colon: /etc/passwd and /etc/group separate their fields by it.
        if not any(owners) or b"," in value or b":" in owners[1]:
            raise UsageError(f"--chown={os.fsdecode(value)}: expected USER:GROUP, USER or :GROUP")
        if owners[of_groups]:
            maps.append(b"*:" + owners[of_groups])
            shown = f"--chown={os.fsdecode(value)}"
    if not maps:
        return b""
    if len(maps) > 1:
        raise UsageError(f"{name} may be given once, and --chown counts as one: join the items with commas")
    try:
        OPTIONS["usermap"].check_value(maps[0])
    except ValueError as error:
        raise UsageError(f"{shown}: {error}") from None
    return maps[0]


_READERS: dict[str, Callable[[Words], object]] = {
    "recursive": _descends,
    "chmod": _chmod,
    "max_delete": _max_delete,
    "max_delete_share": _max_delete_share,
    "backup": _backup,
    "alternates": _alternates,
    "open_noatime": _open_noatime,
    "owner": _owner,
    "usermap": lambda words: _map(words, "--usermap", False),
    "groupmap": lambda words: _map(words, "--groupmap", True),
}


def _listed(words: Words, read_file: ReadRuleFile, far: Location | None) -> dict[str, object]:
    """Return the fields of --files-from. `far`: the operand on another host, if there is one. Raises RdcError
    for an unreadable list."""
    given, nul = words.last("--files-from"), words.has("--from0")
    if given is None:
        if nul:
            raise UsageError("--from0 needs --files-from; rule files have one rule a line")
        return {}
    far_list = _far_list(given.value, far, nul=nul)
    if far_list is not None:
        return {"files_from": far_list}
    return {"files": FileList(listed_names(read_file(given.value), nul=nul))}


def _far_list(name: str, far: Location | None, *, nul: bool) -> FarList | None:
    """Return the list that `name` means at the remote side; None for a file of this machine. As in rsync,
    ":FILE" is on the host of SRC or DST. Raises UsageError for another host."""
    if not name:
        raise UsageError("--files-from needs a file, such as: --files-from=list (or '-' for stdin)")
    if ":" not in name.partition("/")[0]:
        return None
    found = parse_location("host" + name if name.startswith(":") else name)
    if far is None:
        raise UsageError(f"--files-from={name}: neither SRC nor DST is there (a file named so is ./{name})")
    named = not name.startswith(":")
    if named and (found.host != far.host or found.port not in (None, far.port)):
        raise UsageError(f"--files-from={name}: the list has to be on the host of {far}, or on this machine")
    if found.port is not None and _module(found) != _module(far):
        raise UsageError(f"--files-from={name}: the list has to be in the module of {far}")
    if found.inner in {b"", b"."}:
        raise UsageError(f"--files-from={name}: a file is needed after HOST:")
    return FarList(found.inner, nul=nul)


def _module(location: Location) -> bytes:
    return location.path.partition(b"/")[0]


# --- operands, and options without a field ------------------------------------------------------------------


def read_operands(words: Words, command: str) -> tuple[tuple[Location, ...], Location]:
    """Return the sources and the destination. `command` is named by error messages; only `rdc sync` takes
    several sources. Raises UsageError."""
    operands = words.operands
    if len(operands) < 2:
        found = "one was" if operands else "nothing was"
        raise words.missing(f"SRC and DST are needed, {found} given", command)
    if len(operands) > 2 and command != "rdc sync":
        raise UsageError(
            f"one SRC and one DST are expected, {len(operands)} were given; "
            f"name their directory as SRC and choose with --include and --exclude (see {command} --help)"
        )
    sources: list[Location] = []
    for operand in operands[:-1]:
        sources.append(_source(operand, sources, published=command == "rdc sync"))
    return tuple(sources), parse_location(operands[-1])


def _source(operand: str, before: Sequence[Location], *, published: bool) -> Location:
    """Return a SRC; `:PATH` is on the host of the one before it, as in rsync. `published`: as in
    parse_location."""
    if operand.startswith(":") and not operand.startswith("::") and before:
        host = before[-1]
        if host.host is None or host.port is not None:
            raise UsageError(
                f"{operand}: there is no HOST:PATH before it; a file of this name is ./{operand}"
            )
        return replace(host, path=parse_location(f"host{operand}").path)
    return parse_location(operand, published=published)
