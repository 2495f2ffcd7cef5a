"""The options of `rdc sync`: their table, and the request they are read into."""

from __future__ import annotations

import os

from rdc.cli.options.alternate_options import ALTERNATES_GROUP, read_alternates
from rdc.cli.options.catalog_options import CATALOG_GROUP, CatalogChoice, read_choice
from rdc.cli.options.comparing_options import COMPARING_GROUP, read_modify_window, read_whole_file
from rdc.cli.options.ending_options import ENDING_GROUP, Deadline, read_deadline
from rdc.cli.options.filter_options import FILTER_GROUP, ReadRuleFile, read_rules
from rdc.cli.options.keep_undo import KEEP_UNDO, read_keep_undo
from rdc.cli.options.kind_options import KIND_GROUP, with_kinds
from rdc.cli.options.operands import read_operands
from rdc.cli.options.output_options import OUTPUT_GROUP, read_buffering, read_log, read_style
from rdc.cli.options.owner_options import OWNER_GROUP, with_owners
from rdc.cli.options.resource_options import DEPTH, MAX_MEMORY, with_resources
from rdc.cli.options.rsync_options import REFUSED_RSYNC_OPTIONS
from rdc.cli.options.selection_options import SELECTION_GROUP, with_selection
from rdc.cli.options.table import Option, OptionGroup, Words, parse_words
from rdc.cli.options.writing_options import (
    WRITING_GROUP,
    read_allocate,
    read_append,
    read_sparse,
    with_temporaries,
)
from rdc.errors import UsageError
from rdc.limits.sessions import BANDWIDTH_LEAST, TIMEOUT_SECONDS
from rdc.limits.wire import MODE_CHANGES_BYTES, SIZE_LIMIT
from rdc.model.filter_rules import has_rule_files
from rdc.model.location import Location, RemoteShell
from rdc.model.sync import Backup, SyncOptions
from rdc.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.report.sync_log import LogChoice
    from rdc.report.sync_terminal import TerminalStyle

__all__ = ["SYNC_OPTIONS", "SyncRequest", "read_request"]

SYNC_OPTIONS = (
    OptionGroup(
        "What is done",
        (
            Option(("-a", "--archive"), "keep everything rdc can keep; always on, as are the next six"),
            Option(("-r", "--recursive"), "descend into directories"),
            Option(("-l", "--links"), "copy symlinks as symlinks"),
            Option(("-p", "--perms"), "keep permissions"),
            Option(("-t", "--times"), "keep modification times"),
            Option(("-g", "--group"), "keep groups where owners are kept"),
            Option(("-o",), "keep owners where the receiving side runs as root"),
            Option(
                ("--no-perms", "--no-p"), "keep the permissions of DST; new entries get SRC's less the umask"
            ),
            Option(("--no-times", "--no-t"), "set no modification times; compare contents where they differ"),
            Option(("--no-group", "--no-g"), "keep owners without their groups"),
            Option(("--chmod",), "change permissions on the way, such as D755,F644 or go-w", "CHANGES"),
            Option(("-c", "--checksum"), "compare content, not size and time"),
            Option(("-u", "--update"), "leave files alone that are newer at DST"),
            Option(("--existing", "--ignore-non-existing"), "make nothing that DST does not have"),
            Option(("--ignore-existing",), "make what is missing, and leave alone what DST has"),
            Option(("--size-only",), "take a file of equal size as equal, whatever its time"),
            Option(("--max-size",), "leave files alone that are larger at SRC, such as 500M", "SIZE"),
            Option(("--min-size",), "leave files alone that are smaller at SRC", "SIZE"),
            Option(("-H", "--hard-links"), "keep the hard links among the files of SRC"),
            Option(("-X", "--xattrs"), "keep extended attributes"),
            Option(("-A", "--acls"), "keep ACLs"),
            Option(("-x", "--one-file-system"), "do not go into directories on other file systems"),
            Option(("--mkpath",), "make the directories above DST that are missing"),
            Option(("-n", "--dry-run"), "only show what would be done"),
            Option(("--no-fsync",), "do not wait for the disk; a power cut may cost what this run wrote"),
            Option(("--partial",), "keep what came of a file when interrupted, and go on from it; always on"),
            Option(("--fsync",), "wait for the disk before a file replaces another (default)"),
        ),
    ),
    COMPARING_GROUP,
    OptionGroup(
        "Deleting",
        (
            Option(
                ("--delete",), "remove what SRC does not have; happens last, once all that is new arrived"
            ),
            Option(("--delete-delay", "--delete-during", "--del"), "the same: it is always after"),
            Option(("--delete-after",), "the same; rule files at DST count as they are then"),
            Option(("--delete-excluded",), "the same, and what the filter rules exclude as well"),
            Option(("--max-delete",), "delete at most N entries, or N% of DST, then exit with 25", "N"),
            Option(
                ("--guard",),
                "stop with 25 before more than N% of DST change or go; a terminal is asked",
                "N%",
            ),
            Option(("--no-guard",), "never stop for that (default; 50% on a terminal with --delete)"),
            Option(("--force-empty",), "let --delete empty DST when SRC is empty"),
            Option(("--force",), "empty a directory that is in a file's way, also without --delete"),
            Option(("--remove-source-files",), "remove from SRC what DST has for certain; no directories"),
            Option(("--ignore-errors",), "delete although something could not be read or did not arrive"),
        ),
    ),
    OptionGroup(
        "Keeping old versions",
        (
            Option(("-b", "--backup"), "keep what is replaced or deleted, under its name and a suffix"),
            Option(("--backup-dir",), "the same, in this directory, which is relative to DST", "DIR"),
            Option(("--suffix",), "the suffix (default: ~, and none with --backup-dir)", "SUFFIX"),
            KEEP_UNDO,
        ),
    ),
    SELECTION_GROUP,
    ALTERNATES_GROUP,
    WRITING_GROUP,
    FILTER_GROUP,
    KIND_GROUP,
    OWNER_GROUP,
    OptionGroup(
        "The connection",
        (
            Option(("-e", "--rsh"), "the remote shell (default: ssh)", "CMD"),
            Option(("-s", "--secluded-args", "--protect-args"), "no path goes through that shell; always on"),
            Option(("--inc-recursive", "--i-r"), "fetch contents while the tree is being listed; always on"),
            Option(("--remote-path",), "rdc on the far side (default: rdc)", "PROGRAM"),
            Option(
                ("--keys",), "for rdc://: the key directory (default: RDC_KEYS, ~/.config/rdc/keys)", "DIR"
            ),
            Option(("-z", "--compress"), "always compress (default: where it helps)"),
            Option(("--no-compress", "--no-z"), "never compress"),
            Option(
                ("--bwlimit",), "send at most so much a second: KiB, or with a suffix such as 1.5m", "RATE"
            ),
            MAX_MEMORY,
            DEPTH,
            Option(
                ("--timeout",), "give up after so long without a byte (default: 0, rdc:// 120)", "SECONDS"
            ),
        ),
    ),
    ENDING_GROUP,
    CATALOG_GROUP,
    OUTPUT_GROUP,
)


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
    """Parses the words after `rdc sync`. Raises UsageError."""
    return parse_words(words, SYNC_OPTIONS, REFUSED_RSYNC_OPTIONS, command="rdc sync")


def read_request(
    words: Words,
    read_rule_file: ReadRuleFile,
    *,
    command: str = "rdc sync",
    read_list: ReadRuleFile | None = None,
) -> SyncRequest:
    """Reads the request. `command` is the command that error messages name, such as "rdc sync". `read_list`:
    reads the file of --files-from, for a verb that has it.

    Raises UsageError for a contradiction, RdcError for an unreadable rule file.
    """
    request = _read_request(words, read_rule_file, command)
    options = with_temporaries(with_owners(with_kinds(request.options, words), words), words)
    far = next((each for each in (*request.sources, request.destination) if each.host is not None), None)
    options = with_selection(with_resources(options, words), words, read_list or read_rule_file, far)
    return replace(request, options=options)


def _read_request(words: Words, read_rule_file: ReadRuleFile, command: str) -> SyncRequest:
    sources, destination = read_operands(words.operands, command)
    rules = read_rules(words, read_rule_file)
    style, log = read_style(words, sources[0], destination), read_log(words, sources[0], destination)
    return SyncRequest(
        sources=sources,
        destination=destination,
        options=SyncOptions(
            checksum=words.has("--checksum"),
            delete=words.has("--delete", "--delete-delay", "--delete-after", "--delete-excluded"),
            delete_excluded=words.has("--delete-excluded"),
            rules_after=words.has("--delete-after") and has_rule_files(rules),
            max_delete=_max_delete(words),
            max_delete_share=_max_delete_share(words),
            guard=_guard(words),
            force_empty=words.has("--force-empty"),
            dry_run=words.has("--dry-run"),
            rules=rules,
            fsync=_choice(words, "--fsync", "--no-fsync") is not False,
            items=style.lists or log is not None or words.has("--json"),
            list_unchanged=style.unchanged and style.lists,
            compress=_choice(words, "--compress", "--no-compress"),
            bandwidth=_bandwidth(words),
            timeout=_timeout(words),
            update=words.has("--update"),
            existing=words.has("--existing"),
            ignore_existing=words.has("--ignore-existing"),
            size_only=words.has("--size-only"),
            ignore_times=words.has("--ignore-times"),
            modify_window=read_modify_window(words),
            whole_file=read_whole_file(words),
            ignore_errors=words.has("--ignore-errors"),
            force=words.has("--force"),
            min_size=_size(words, "--min-size") or 0,
            max_size=_size(words, "--max-size"),
            hard_links=words.has("--hard-links"),
            acls=_acls(words),
            perms=_choice(words, "--perms", "--no-perms") is not False,
            times=_choice(words, "--times", "--no-times") is not False,
            group=_choice(words, "--group", "--no-group") is not False,
            xattrs=words.has("--xattrs"),
            sparse=read_sparse(words),
            one_file_system=words.has("--one-file-system"),
            mkpath=words.has("--mkpath"),
            inplace=words.has("--inplace"),
            append=read_append(words),
            allocate=read_allocate(words),
            backup=_backup(words),
            keep_undo=read_keep_undo(words),
            alternates=read_alternates(words),
            chmod=_chmod(words),
            remove_source_files=words.has("--remove-source-files"),
        ),
        shell=_shell(words),
        style=style,
        json=words.has("--json"),
        catalog=read_choice(words),
        keys=_keys(words),
        deadline=read_deadline(words),
        log=log,
        buffering=read_buffering(words),
    )


def _choice(words: Words, yes: str, no: str) -> bool | None:
    last = words.last(yes, no)
    return None if last is None else last.key == yes


def _acls(words: Words) -> bool:
    if words.has("--acls") and _choice(words, "--perms", "--no-perms") is False:
        raise UsageError("--acls and --no-perms exclude each other: an ACL holds the permissions, too")
    return words.has("--acls")


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


def _chmod(words: Words) -> str:
    """Returns the changes of all --chmod, in order."""
    changes = ",".join(given.value for given in words.given if given.key == "--chmod")
    if words.has("--chmod"):
        from rdc.model.mode_changes import parse_mode_changes

        try:
            parse_mode_changes(changes)
        except ValueError as error:
            raise UsageError(f"--chmod={changes}: {error}") from None
        if len(changes) > MODE_CHANGES_BYTES:
            raise UsageError(f"--chmod: {len(changes)} characters, the limit is {MODE_CHANGES_BYTES}")
        if words.has("--acls"):
            raise UsageError("--chmod and --acls exclude each other: an ACL holds the permissions, too")
    return changes


def _max_delete(words: Words) -> int | None:
    last = words.last("--max-delete")
    if last is None or last.value.endswith("%"):
        return None
    # isascii() excludes the digits of other scripts. The length bounds the time of int().
    if not (last.value.isascii() and last.value.isdigit() and len(last.value) <= 18):
        raise UsageError(f"--max-delete={last.value}: a number of entries, 0 or more, is expected")
    return int(last.value)


def _max_delete_share(words: Words) -> int | None:
    """Returns the per cent of --max-delete=N%."""
    last = words.last("--max-delete")
    if last is None or not last.value.endswith("%"):
        return None
    from rdc.cli.options.sizes import read_share

    return read_share("--max-delete", last.value)


def _guard(words: Words) -> int | None:
    last = words.last("--guard", "--no-guard")
    if last is None or last.key == "--no-guard":
        return None
    from rdc.cli.options.sizes import read_share

    return read_share("--guard", last.value)


def _size(words: Words, name: str) -> int | None:
    """Returns the bytes of a size option, or None if it is absent. A suffix +1 or -1 adds, as in rsync."""
    last = words.last(name)
    if last is None:
        return None
    from rdc.cli.options.sizes import read_size

    plain, more = last.value, 0
    if len(plain) > 2 and plain.endswith(("+1", "-1")):
        plain, more = plain[:-2], int(plain[-2:])
    size = read_size(name, plain) + more
    if size < 0:
        raise UsageError(
            f"{name}={last.value}: no file is smaller than nothing; a size such as 500M is expected"
        )
    return min(size, SIZE_LIMIT)


def _bandwidth(words: Words) -> int:
    """Returns bytes per second, 0 for no limit. A number without a letter counts KiB, as in rsync."""
    last = words.last("--bwlimit")
    if last is None:
        return 0
    from rdc.model.sizes import parse_size

    rate = parse_size(last.value, unit=1024)
    if rate is None:
        raise UsageError(
            f"--bwlimit={last.value}: a rate is expected, such as 500 (KiB a second), 1.5m or 2MB"
        )
    # A rate such as 0.0001 must not round to 0, which means no limit.
    if rate < BANDWIDTH_LEAST and any(digit in "123456789" for digit in last.value):
        raise UsageError(f"--bwlimit={last.value} is too small: {BANDWIDTH_LEAST} bytes a second at least")
    return rate


def _timeout(words: Words) -> int:
    last = words.last("--timeout")
    if last is None:
        return 0
    if not (last.value.isascii() and last.value.isdigit() and len(last.value) <= 9):
        raise UsageError(f"--timeout={last.value}: a number of seconds is expected, 0 for none")
    return min(int(last.value), TIMEOUT_SECONDS)


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
