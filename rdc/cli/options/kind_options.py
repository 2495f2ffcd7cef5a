"""The options about kinds of entries other than files, and about what of their metadata is kept."""

from __future__ import annotations

from rdc.cli.options.table import Option, OptionGroup
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.options.table import Words
    from rdc.model.sync import SyncOptions

__all__ = ["KIND_GROUP", "with_kinds"]

KIND_GROUP = OptionGroup(
    "Symlinks and times",
    (
        Option(("-L", "--copy-links"), "take each symlink of SRC for what it leads to"),
        Option(("-k", "--copy-dirlinks"), "the same for symlinks to directories"),
        Option(("--copy-unsafe-links",), "the same for symlinks that lead out of SRC"),
        Option(("--safe-links",), "make no symlink that leads out of DST"),
        Option(("-O", "--omit-dir-times"), "do not keep modification times of directories"),
        Option(("-J", "--omit-link-times"), "do not keep modification times of symlinks"),
        Option(
            ("-E", "--executability"), "keep who may execute a file; always on, with the other permissions"
        ),
    ),
)


def with_kinds(options: SyncOptions, words: Words) -> SyncOptions:
    """Returns `options` with the choices of KIND_GROUP."""
    return replace(
        options,
        copy_links=words.has("--copy-links"),
        copy_dirlinks=words.has("--copy-dirlinks"),
        copy_unsafe_links=words.has("--copy-unsafe-links"),
        safe_links=words.has("--safe-links"),
        omit_dir_times=words.has("--omit-dir-times"),
        omit_link_times=words.has("--omit-link-times"),
    )
