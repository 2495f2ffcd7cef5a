"""The options that say which paths of SRC are taken, and under which paths."""

from __future__ import annotations

from rdc.cli.options.filter_options import ReadRuleFile
from rdc.cli.options.table import Option, OptionGroup, Words
from rdc.errors import UsageError
from rdc.model.filter_rules import FilterRule, RuleAction
from rdc.model.location import FarList, Location, parse_location
from rdc.model.sync import FileList, SyncOptions
from rdc.records import replace

__all__ = ["SELECTION_GROUP", "with_selection"]

SELECTION_GROUP = OptionGroup(
    "What is taken",
    (
        Option(("-R", "--relative"), "keep the path of SRC, or what is behind /./ in it"),
        Option(("--no-relative", "--no-R"), "keep the last name alone (default without --files-from)"),
        Option(
            ("--no-implied-dirs", "--no-i-d"), "with -R: leave the directories above SRC at DST as they are"
        ),
        Option(("--implied-dirs", "--i-d"), "with -R: give them the metadata they have at SRC (default)"),
        Option(
            ("--files-from",),
            "take the paths below SRC that FILE lists ('-' is stdin; :FILE is at the far side)",
            "FILE",
        ),
        Option(("-0", "--from0"), "NUL ends each path of --files-from, not a line"),
        Option(("--ignore-missing-args",), "a missing SRC or listed path is no error"),
        Option(("--delete-missing-args",), "the same, and what DST has at its path is deleted"),
        Option(("-d", "--dirs"), "take directories without what is in them, but for the / at the end of SRC"),
        Option(("--no-dirs", "--no-d"), "take back --dirs"),
        Option(("--old-dirs", "--old-d"), "what SRC holds, but nothing below its directories"),
        Option(("--no-recursive", "--no-r"), "with --dirs: take back -a and -r"),
        Option(("-m", "--prune-empty-dirs"), "leave out directories that hold nothing but directories"),
        Option(("--no-prune-empty-dirs", "--no-m"), "keep empty directories (default)"),
    ),
)

_KEYS = tuple(option.key for option in SELECTION_GROUP.options)
_OLD_DIRS = FilterRule(RuleAction.EXCLUDE, b"/*/*")


def with_selection(
    options: SyncOptions, words: Words, read_file: ReadRuleFile, far: Location | None = None
) -> SyncOptions:
    """Returns `options` with those of SELECTION_GROUP. `far`: the operand on another host, if there is one.
    Raises RdcError for an unreadable list."""
    if not words.has(*_KEYS):
        return options
    listed, last = words.last("--files-from"), words.last("--relative", "--no-relative")
    relative = listed is not None if last is None else last.key == "--relative"
    implied = words.last("--implied-dirs", "--no-implied-dirs")
    keeps = implied is not None and implied.key == "--no-implied-dirs"
    if keeps and not relative:
        raise UsageError("--no-implied-dirs means nothing without --relative or --files-from")
    files = far_list = None
    if listed is None:
        if words.has("--from0"):
            raise UsageError("--from0 means nothing without --files-from; rule files have one rule a line")
    else:
        far_list = _far_list(listed.value, far, nul=words.has("--from0"))
        if far_list is None:
            from rdc.model.selection import listed_names

            files = FileList(listed_names(read_file(listed.value), nul=words.has("--from0")))
    return replace(
        options,
        relative=relative,
        implied_dirs=not keeps,
        files=files,
        files_from=far_list,
        recursive=_descends(words, listed=listed is not None),
        ignore_missing_args=words.has("--ignore-missing-args"),
        delete_missing_args=words.has("--delete-missing-args"),
        prune_empty_dirs=_last(words, "--prune-empty-dirs", "--no-prune-empty-dirs"),
        rules=(*options.rules, _OLD_DIRS) if _dirs(words) == "--old-dirs" else options.rules,
    )


def _descends(words: Words, *, listed: bool) -> bool:
    """Whether directories are taken with everything below them. As in rsync, -r outweighs -d, --old-dirs
    outweighs --no-r, and -a implies no -r beside --files-from."""
    if _dirs(words) == "--old-dirs":
        return True
    dirs = _dirs(words) == "--dirs"
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


def _last(words: Words, yes: str, no: str) -> bool:
    last = words.last(yes, no)
    return last is not None and last.key == yes


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
