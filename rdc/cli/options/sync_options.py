"""The options of `rdc sync` on the command line, and the request they are read into.

Each option of a field is declared at the field, in rdc.model.sync. Its flags set the field, the last one
counts; a value is read by the function declared there. Here are the options without a field, and the fields
that several options make (_READERS).
"""

from __future__ import annotations

import os

from rdc.cli.options.catalog_options import CATALOG_GROUP, CatalogChoice, read_choice
from rdc.cli.options.ending_options import ENDING_GROUP, Deadline, read_deadline
from rdc.cli.options.filter_options import FILTER_GROUP, ReadRuleFile, read_rules
from rdc.cli.options.output_options import OUTPUT_GROUP, read_buffering, read_log, read_style
from rdc.cli.options.table import Given, OptionGroup, Words, parse_words, parsed_value
from rdc.errors import UsageError
from rdc.lean.records import dataclass, replace
from rdc.limits.sessions import ALTERNATE_DIRECTORIES
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
from rdc.model.selection import FilterRule, RuleAction, has_rule_files
from rdc.model.sync import OPTIONS, SyncOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from rdc.report.sync_log import LogChoice
    from rdc.report.sync_terminal import TerminalStyle

_CONNECTION = (
    Option(
        ("-e", "--rsh"),
        "the remote shell (default: ssh)",
        "CMD",
        example="-e 'ssh -p 2222' src/ host:backup/",
        note="The command is split into words. It is never given to a shell here.",
    ),
    Option(
        ("-s", "--secluded-args", "--protect-args"),
        "no path goes through that shell; always on",
        example="-s 'src dir/' host:backup/",
    ),
    Option(
        ("--inc-recursive", "--i-r"),
        "fetch contents while the tree is being listed; always on",
        example="--i-r src/ host:backup/",
    ),
    Option(
        ("--remote-path",),
        "rdc on the remote side (default: rdc)",
        "PROGRAM",
        example="--remote-path=/usr/local/bin/rdc src/ host:backup/",
        note="Use it where the far shell does not find rdc.",
    ),
    Option(
        ("--keys",),
        "for rdc://: the key directory (default: RDC_KEYS, ~/.config/rdc/keys)",
        "DIR",
        example="--keys=/etc/rdc/keys src/ rdc://host/data/",
    ),
)


def _group(title: str, *options: Option) -> OptionGroup:
    """The options of one title: `options`, and those that the fields declare."""
    declared = [(each.group, option) for each in OPTIONS.values() for option in each.options]
    found = (option for group, option in declared if (option.group or group) == title)
    return OptionGroup(title, (*options, *found))


SYNC_OPTIONS = (
    _group(model.DONE),
    _group(model.COMPARING),
    _group(model.DELETING),
    _group(model.OLD_VERSIONS),
    _group(model.TAKEN),
    _group(model.ALTERNATES),
    _group(model.WRITING),
    FILTER_GROUP,
    _group(model.KINDS),
    _group(model.OWNERS),
    _group(model.CONNECTION, *_CONNECTION),
    ENDING_GROUP,
    CATALOG_GROUP,
    OUTPUT_GROUP,
)

# --- options of rsync that rdc refuses by name, each with advice: from rsync(1), version 3.5 ----------------

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

_FIELDS = {option.key: (name, option) for name, each in OPTIONS.items() for option in each.options}
"""The field that each option is declared at, by the option's key."""


@dataclass(frozen=True, slots=True)
class SyncRequest:
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
    """How stdout is buffered: "N", "L" or "B"; None as usual."""

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
    sources, destination = read_operands(words.operands, command)
    rules = read_rules(words, read_rule_file)
    style, log = read_style(words, sources[0], destination), read_log(words, sources[0], destination)
    far = next((each for each in (*sources, destination) if each.host is not None), None)
    values = {"relative": words.has("--files-from")} | read_fields(words)
    if not (values["relative"] or values.get("implied_dirs", True)):
        raise UsageError("--no-implied-dirs means nothing without --relative or --files-from")
    values |= _listed(words, read_list or read_rule_file, far)
    values["rules"] = (*rules, _OLD_DIRS) if _dirs(words) == "--old-dirs" else rules
    values["rules_after"] = words.has("--delete-after") and has_rule_files(rules)
    values["items"] = style.lists or log is not None or words.has("--json")
    values["list_unchanged"] = style.unchanged and style.lists
    return SyncRequest(
        sources=sources,
        destination=destination,
        options=SyncOptions(**values),
        shell=_shell(words),
        style=style,
        json=words.has("--json"),
        catalog=read_choice(words),
        keys=_keys(words),
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


def _values(words: Words, key: str) -> list[str]:
    return [given.value for given in words.given if given.key == key]


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
    """The last one of three options that replace each other, as in rsync."""
    last = words.last("--dirs", "--no-dirs", "--old-dirs")
    return "" if last is None else last.key


_OLD_DIRS = FilterRule(RuleAction.EXCLUDE, b"/*/*")


def _chmod(words: Words) -> str:
    """The changes of all --chmod, in order."""
    changes = ",".join(_values(words, "--chmod"))
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
    """The per cent of --max-delete=N%."""
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
    """The alternate directories. Raises UsageError for a mix of options, and for too many directories."""
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
    """The only map of users or groups; b"" for none. --chown=USER:GROUP is one of both, as in rsync."""
    maps = [os.fsencode(text) for text in _values(words, name)]
    for value in map(os.fsencode, _values(words, "--chown")):
        owners = value.partition(b":")[::2]
        if not any(owners) or b"," in b"".join(owners):
            raise UsageError(f"--chown={os.fsdecode(value)}: expected USER:GROUP, USER or :GROUP")
        maps += [b"*:" + owners[of_groups]] if owners[of_groups] else []
    if not maps:
        return b""
    if len(maps) > 1:
        raise UsageError(f"{name} counts once, and --chown is such a map: join the items by commas")
    try:
        OPTIONS["usermap"].check_value(maps[0])
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
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
    """The fields of --files-from. `far`: the operand on another host, if there is one. Raises RdcError for an
    unreadable list."""
    given, nul = words.last("--files-from"), words.has("--from0")
    if given is None:
        if nul:
            raise UsageError("--from0 means nothing without --files-from; rule files have one rule a line")
        return {}
    far_list = _far_list(given.value, far, nul=nul)
    if far_list is not None:
        return {"files_from": far_list}
    from rdc.model.selection import listed_names

    return {"files": FileList(listed_names(read_file(given.value), nul=nul))}


def _far_list(name: str, far: Location | None, *, nul: bool) -> FarList | None:
    """The list that `name` means at the far side; None for a file of this machine. As in rsync, ":FILE" is on
    the host of SRC or DST. Raises UsageError for another host."""
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
        raise UsageError(f"--files-from={name}: a file is needed behind the host")
    return FarList(found.inner, nul=nul)


def _module(location: Location) -> bytes:
    return location.path.partition(b"/")[0]


# --- operands, and options without a field ------------------------------------------------------------------


def read_operands(operands: Sequence[str], command: str) -> tuple[tuple[Location, ...], Location]:
    """Return the sources and the destination. `command` is named by error messages; only `rdc sync` takes
    several sources. Raises UsageError."""
    if len(operands) < 2:
        found = "one was" if operands else "nothing was"
        raise UsageError(f"SRC and DST are needed, {found} given (see {command} --help)")
    if len(operands) > 2 and command != "rdc sync":
        raise UsageError(
            f"one SRC and one DST are expected, {len(operands)} were given; "
            f"name their directory as SRC and choose with --include and --exclude (see {command} --help)"
        )
    sources: list[Location] = []
    for operand in operands[:-1]:
        sources.append(_source(operand, sources))
    return tuple(sources), parse_location(operands[-1])


def _source(operand: str, before: Sequence[Location]) -> Location:
    """A SRC; `:PATH` is on the host of the one before it, as in rsync."""
    if operand.startswith(":") and not operand.startswith("::") and before:
        host = before[-1]
        if host.host is None or host.port is not None:
            raise UsageError(
                f"{operand}: there is no HOST:PATH before it; a file of this name is ./{operand}"
            )
        return replace(host, path=parse_location(f"host{operand}").path)
    return parse_location(operand)


def _keys(words: Words) -> str | None:
    given = words.last("--keys")
    if given is None:
        return None
    if not given.value:
        raise UsageError("--keys needs a directory, such as: --keys=/etc/rdc/keys")
    return given.value


def _shell(words: Words) -> RemoteShell:
    command, program = words.last("--rsh"), words.last("--remote-path")
    shell = RemoteShell()
    argv = shell.command
    if command is not None:
        from rdc.transport.remote import shell_words

        try:
            argv = tuple(shell_words(command.value))
        except ValueError as error:
            raise UsageError(f"-e {command.value}: {error}; quote it as for a shell") from error
        if not argv:
            raise UsageError("-e needs a command, such as: -e 'ssh -p 2222'")
    if program is not None and not program.value:
        raise UsageError("--remote-path needs a program, such as: --remote-path=/usr/local/bin/rdc")
    return RemoteShell(argv, shell.program if program is None else program.value)
