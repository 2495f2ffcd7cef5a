"""The options about kinds of entries other than files, and about what of their metadata is kept."""

from __future__ import annotations

from rdc.cli.options.table import Option, OptionGroup
from rdc.errors import UsageError
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.options.table import Words
    from rdc.model.sync import SyncOptions

__all__ = ["KIND_GROUP", "with_kinds"]

KIND_GROUP = OptionGroup(
    "Symlinks, special files and times",
    (
        Option(("-L", "--copy-links"), "take each symlink of SRC for what it leads to"),
        Option(("-k", "--copy-dirlinks"), "the same for symlinks to directories"),
        Option(("--copy-unsafe-links",), "the same for symlinks that lead out of SRC"),
        Option(("--safe-links",), "make no symlink that leads out of DST"),
        Option(("-K", "--keep-dirlinks"), "go through a symlink of DST where SRC has a directory"),
        Option(("--munge-links",), "make symlinks lead nowhere, or undo that where SRC is on this machine"),
        Option(("-D",), "the same as --devices --specials; always on, as are these"),
        Option(("--devices",), "copy devices where the receiving side runs as root"),
        Option(("--specials",), "copy fifos and sockets"),
        Option(("--no-D",), "copy neither devices nor fifos and sockets"),
        Option(("--no-devices",), "copy no devices"),
        Option(("--no-specials",), "copy no fifos and sockets"),
        Option(("-U", "--atimes"), "keep access times; given twice, with --open-noatime"),
        Option(("--open-noatime",), "read files so that they keep their access times, where that may be"),
        Option(("-O", "--omit-dir-times"), "do not keep modification times of directories"),
        Option(("-J", "--omit-link-times"), "do not keep modification times of symlinks"),
        Option(
            ("-E", "--executability"), "keep who may execute a file; always on, with the other permissions"
        ),
    ),
)


_KEYS = tuple(option.key for option in KIND_GROUP.options)


def with_kinds(options: SyncOptions, words: Words) -> SyncOptions:
    """Returns `options` with the choices of KIND_GROUP. Raises UsageError."""
    if not words.has(*_KEYS):
        return options
    if words.has("--munge-links"):
        for name in ("--safe-links", "--copy-links", "--copy-dirlinks", "--copy-unsafe-links"):
            if words.has(name):
                raise UsageError(f"--munge-links and {name} exclude each other: munged links lead nowhere")
    return replace(
        options,
        munge_links=words.has("--munge-links"),
        keep_dirlinks=words.has("--keep-dirlinks"),
        copy_links=words.has("--copy-links"),
        copy_dirlinks=words.has("--copy-dirlinks"),
        copy_unsafe_links=words.has("--copy-unsafe-links"),
        safe_links=words.has("--safe-links"),
        atimes=words.has("--atimes"),
        open_noatime=words.has("--open-noatime") or words.count("--atimes") > 1,
        devices=_is_on(words, "--devices", "--no-devices"),
        specials=_is_on(words, "--specials", "--no-specials"),
        omit_dir_times=words.has("--omit-dir-times"),
        omit_link_times=words.has("--omit-link-times"),
    )


def _is_on(words: Words, yes: str, no: str) -> bool:
    """Returns the last choice; on without any."""
    last = words.last(yes, no, "-D", "--no-D")
    return last is None or last.key in (yes, "-D")
