"""The options of a sync. Each is declared here, as rdc.model.options says."""

from __future__ import annotations

from rdc import limits
from rdc.lean.checks import check_fields
from rdc.lean.records import Record
from rdc.model import options as values
from rdc.model.entries import DEVICES, NODES, Kind
from rdc.model.location import FarList
from rdc.model.options import (
    ALWAYS,
    HERE,
    NOWHERE,
    SPARED,
    Alternates,
    AlternateUse,
    Backup,
    FileList,
    KeepUndo,
    LinkChoice,
    Need,
    Option,
    bit,
    bound,
    check_options,
    declared_options,
    excludes,
    goes_without,
    item,
    option,
)
from rdc.model.selection import (
    DirectoryRules,
    FilterRule,
    RuleAction,
    RuleModifiers,
    RuleSide,
    has_rule_files,
)

TAKEN = "Choosing paths and directories"
COMPARING = "Choosing by comparison"
DELETING = "Deleting"
METADATA = "Keeping metadata"
KINDS = "Keeping symlinks and special files"
OWNERS = "Keeping users and groups"
OLD_VERSIONS = "Keeping old versions"
ALTERNATES = "Using other copies at the destination (each may be given several times; DIR is relative to DST)"
WRITING = "Writing files"
CONNECTION = "Connecting"
SHOWN = "Showing"

_INTO_FILES = (
    excludes(
        "update size_only",
        "a file that a killed run left half written would be passed over by the next",
    ),
    excludes(
        "alternates",
        "writing into a link would change the file in DIR",
        when=lambda alternates: alternates.use is AlternateUse.LINK,
    ),
)
_BY_NUMBER = (
    excludes("owner", "it says what owners become", when=lambda owner: owner is False),
    excludes("acls", "ACLs name users by their numbers"),
)
_FAKED = tuple(
    goes_without(others, f"--fake-super cannot be combined with {named}: leave one of them out")
    for others, named in (
        ("inplace append", "--inplace or --append"),
        ("alternates", "--link-dest and its like"),
        ("keep_undo", "--keep-undo"),
        ("keep_dirlinks", "--keep-dirlinks"),
        ("copy_links copy_dirlinks copy_unsafe_links", "-L, -k or --copy-unsafe-links"),
    )
)


class SyncOptions(Record):
    """The options of `rdc.sync`. Raises TypeError for a wrong type and ValueError for a value out of range;
    the text names the field. Raises UsageError for options that exclude each other.

    >>> import rdc
    >>> rdc.SyncOptions(delete=True, bandwidth=1_000_000).delete
    True
    >>> rdc.SyncOptions(delete="yes")
    Traceback (most recent call last):
    TypeError: SyncOptions.delete: expected bool, found str
    """

    # fmt: off
    recursive: bool = option(True, TAKEN,
        Option(("-a", "--archive"),
            "archive mode: recursive; keep links, permissions, times and groups (always on)", sets=ALWAYS),
        Option(("-r", "--recursive"), "descend into directories (always on)"),
        Option(("-d", "--dirs"), "do not descend: sync SRC, or the direct entries of SRC/", sets=False,
            rsync="`-a` counts where it is written; DST is always a directory",
            note="""`SRC/` takes the entries of the directory, `SRC` the directory alone. As in rsync, `-a`
            and `-r` override it; `--no-r` cancels both. DST is always a directory."""),
        Option(("--no-dirs", "--no-d"), "cancel --dirs", watch=False),
        Option(("--old-dirs", "--old-d"),
            "sync the direct entries of SRC, but nothing below its directories", sets=False, watch=False,
            note="""The same as `-r` and `--exclude='/*/*'` after all other rules, as in rsync. The last
            one of `-d`, `--no-d` and this decides."""),
        Option(("--no-recursive", "--no-r"), "with --dirs: cancel -a and -r", sets=False,
            example="-a -d --no-r src/ backup/"),
        watch=False)
    """Directories that SRC or `files` name take part with everything below them."""
    perms: bool = option(True, METADATA,
        Option(("-p", "--perms"), "keep permissions (always on)"),
        Option(("-E", "--executability"),
            "keep executability (always on, as part of the permissions)", sets=ALWAYS),
        Option(("--no-perms", "--no-p"),
            "keep the permissions at DST; new entries get SRC's, less the umask", sets=False,
            example="--no-perms src/ /media/disk/backup/",
            note="""Permissions are neither compared nor set. Existing entries keep theirs, even if their
            content is replaced, but lose setuid and setgid bits where owners are not kept. New entries get
            the permissions of SRC less the umask. Not with `-A`. On a file system that stores no
            permissions, this option is not needed."""),
        wire=bit(11))
    """Preserve permissions. Otherwise existing entries keep theirs, and new ones get the source's less the
    umask of the destination. Not together with `acls`."""
    times: bool = option(True, METADATA,
        Option(("-t", "--times"), "keep modification times (always on)"),
        Option(("--no-times", "--no-t"), "set no modification times; where they differ, compare contents",
            sets=False, example="--no-times src/ /mnt/share/backup/",
            note="""New files have the time at which they were written. Files of equal size with other times
            are compared by content in each run. A file system without times does not need this option."""),
        wire=bit(12))
    """Preserve modification times. Otherwise set none, and compare files with other times by content."""
    group: bool = option(True, METADATA,
        Option(("-g", "--group"), "keep groups where owners are kept (always on)"),
        Option(("--no-group", "--no-g"), "keep owners without their groups", sets=False,
            note="Where owners are kept, groups are not. Setgid bits are not set."),
        wire=bit(10))
    """Preserve the gid where `owner` says that owners are preserved. Otherwise only the uid is."""
    chmod: str = option("", METADATA,
        Option(("--chmod",), "change the permissions of copied entries, such as D755,F644 or go-w", "CHANGES",
            example="--chmod=D755,F644 src/ backup/",
            rsync="set-id bits only where owners are kept; is rejected with `-A`",
            note="""CHANGES are items as in chmod(1), separated by commas. `D` before an item restricts
            it to directories, and `F` to files. SRC stays as it is. Another `--chmod` adds its items.
            SRC's side applies them, so its umask counts for items such as `+w`. A later run with them
            does nothing."""),
        excludes=(excludes("acls", "an ACL holds the permissions, too"),),
        most=limits.MODE_CHANGES_BYTES, valid=values.parse_mode_changes, watch=False)
    """Changes of the permissions of files and directories, as in rsync, such as "D755,F644" or "go-w": the
    source announces the changed ones. The umask of the source's side counts. Not together with `acls`."""
    checksum: bool = option(False, COMPARING,
        Option(("-c", "--checksum"),
            "compare contents, not sizes and modification times; reads every file", common=True,
            note="Without it, a file of equal size and time is taken as equal."),
        wire=item(0), needs=(Need.COMPARING,), watch=False, check=True)
    """Compare content by root digest instead of by size and mtime."""
    update: bool = option(False, COMPARING,
        Option(("-u", "--update"), "skip files that are newer at DST", common=True,
            note="The mtimes decide. A link or directory in a file's place is never newer."),
        wire=bit(1), watch=False, pair=True)
    """Skip files that are newer at the destination, by their mtimes."""
    existing: bool = option(False, COMPARING,
        Option(("--existing", "--ignore-non-existing"), "update only entries that already exist at DST",
            note="Nothing is made that DST does not have. What it has is brought up to date."),
        wire=bit(2), watch=False, pair=True)
    """Create nothing at the destination; only update existing entries."""
    ignore_existing: bool = option(False, COMPARING,
        Option(("--ignore-existing",), "only create entries that DST lacks; never update",
            note="Directories that exist are still gone into."),
        wire=bit(3), watch=False, pair=True)
    """Skip existing entries except directories; only create missing ones."""
    size_only: bool = option(False, COMPARING,
        Option(("--size-only",), "treat files of equal size as equal; ignore times"),
        wire=bit(4), watch=False)
    """Treat files of equal size as equal, whatever their mtimes, unless `checksum` compares contents."""
    max_size: int | None = option(None, TAKEN,
        Option(("--max-size",), "skip files larger than SIZE, such as 500M", "SIZE",
            example="--max-size=500M src/ backup/",
            note="Such files are neither created nor changed nor deleted. `500M-1` is a byte less."),
        parse=values.parse_size_bound, wire=bound(1), watch=False, pair=True)
    """Skip larger files of the source, in bytes; None for no limit."""
    min_size: int = option(0, TAKEN,
        Option(("--min-size",), "skip files smaller than SIZE", "SIZE",
            note="Such files are neither created nor changed nor deleted."),
        parse=values.parse_size_bound, wire=bound(0), watch=False, pair=True)
    """Skip smaller files of the source, in bytes, whatever is in their places."""
    hard_links: bool = option(False, METADATA,
        Option(("-H", "--hard-links"), "keep hard links among the files of SRC", common=True,
            rsync="which of several new names a file comes under is not defined",
            note="""The content of linked files is sent once. Special files are linked, too; symlinks are
            not. Links are made after everything else. Names outside of SRC and excluded names are ignored.
            Links that only DST has stay, unless one of their names gets another content or mtime. If the
            links are the same in both trees, they cost nothing on the wire. If any differs, SRC sends its
            whole listing.

            A name that `-u`, `--existing` or the like leaves alone is linked to nothing, and nothing to it.
            The others are linked among themselves. rsync `-u` links a newer file's name even so,
            unless it is the first."""),
        wire=bit(6), watch=False, check=True)
    """Preserve hard links among regular files and among special files."""
    xattrs: bool = option(False, METADATA,
        Option(("-X", "--xattrs"), "keep extended attributes", common=True,
            note="""`user.*` is kept. `trusted.*` and `security.capability` are kept where owners are kept
            and both sides run as root. Labels of security modules stay each machine's own. Attributes are
            set last. With `-i`, an entry that differs in nothing else has a line, too. If attributes are
            the same in both trees, they cost nothing on the wire. If any differs, SRC sends its whole
            listing. Entries that `-u`, `--ignore-existing` or the like skip keep their own."""),
        wire=bit(8), watch=False, check=True)
    """Preserve extended attributes: user.*; and trusted.* and security.capability if owners are preserved and
    both sides are root."""
    acls: bool = option(False, METADATA,
        Option(("-A", "--acls"), "keep ACLs", common=True,
            note="""POSIX ACLs are kept in the same way as attributes, with users and groups by number.
            Until its ACL is there, a new file or directory lets its group do no more than the ACL will."""),
        excludes=(excludes("perms", "an ACL holds the permissions, too"),),
        wire=bit(7), watch=False, check=True)
    """Keep POSIX ACLs."""
    one_file_system: bool = option(False, TAKEN,
        Option(("-x", "--one-file-system"), "stay on one file system", common=True,
            note="""A directory on another file system than SRC's own is created empty. With `--delete`,
            the entries that DST has in it stay, and so does whatever is mounted below DST. A btrfs
            subvolume is another file system. A bind mount of the same one is not."""),
        wire=bit(0), watch=False, check=True)
    """Neither side enters directories on other file systems. S lists them empty; D deletes nothing there."""
    mkpath: bool = option(False, WRITING,
        Option(("--mkpath",), "create missing parent directories of DST",
            example="--mkpath src/ host:backup/2026/11/",
            note="""Without it, only the last directory of DST is created, so that a mistyped path is noticed.
            The umask of the receiving side sets the permissions of those above it."""))
    """Make the directories above the destination that are missing."""
    dry_run: bool = option(False, SHOWN,
        Option(("-n", "--dry-run"),
            "show what would be done; change nothing", common=True, example="-n -i --delete src/ backup/"),
        wire=item(3), watch=False)
    fsync: bool = option(True, WRITING,
        Option(("--no-fsync",), "do not fsync: faster, but a power failure may lose what this run wrote",
            sets=False),
        Option(("--fsync",), "fsync each file before it replaces another (default)"),
        wire=item(4))
    ignore_times: bool = option(False, COMPARING,
        Option(("-I", "--ignore-times"),
            "compare the contents of all files, even where size and time are equal",
            example="-I src/ backup/", rsync="contents are compared, and only those that differ are sent",
            note="""The two versions of each file are compared by their digests, and only differences are
            sent. Equal files are not listed. `-c` does the same; `-c` and `--size-only` override it."""),
        watch=False)
    """Compare contents although size and mtime are equal. `checksum` and `size_only` outweigh it."""
    modify_window: int | None = option(None, COMPARING,
        Option(("-@", "--modify-window"),
            "treat times that differ by at most SECONDS as equal (default: -1, to the nanosecond)",
            "SECONDS", example="--modify-window=1 src/ backup/",
            rsync="the default is -1: times are compared to the nanosecond",
            note="""Times are compared in whole seconds. A time that counts as equal stays, unless new content
            comes. rdc finds by itself which times a file system keeps: FAT needs no window."""),
        most=limits.WINDOW_SECONDS, parse=values.parse_window, watch=False)
    """Whole seconds by which mtimes may differ and still be equal; None compares nanoseconds."""
    whole_file: bool = option(False, COMPARING,
        Option(("-y", "--fuzzy"), "build new files from similar files at DST (always on, except with -W)",
            sets=ALWAYS, example="--fuzzy src/ host:backup/",
            rsync="always on: bases are files anywhere that only DST has, by content and by name",
            note="""A new file is made of the files that only DST has and that resemble it by content or
            have its name, in whatever directory they are. With `--delete` a file that moved is renamed."""),
        Option(("-W", "--whole-file"), "send changed files whole; do not look for their content at DST",
            example="-W src/ host:backup/", rsync="off by default, also in local copies",
            note="""This takes less processor time and sends more bytes, which suits fast lines. Moved files
            are sent again, and interrupted files start over."""),
        Option(("--no-whole-file", "--no-W"), "cancel --whole-file; see --fewest-bytes", sets=False,
            rsync="rdc decides by the line whether changed files come whole; `--fewest-bytes` never does"),
        excludes=(excludes("append", "--append fetches only a rest"),))
    """Fetch changed files whole, without a search for content that the destination has."""
    fewest_bytes: bool = option(False, COMPARING,
        Option(("--fewest-bytes",), "send as few bytes as possible, even where that takes longer",
            example="--fewest-bytes src/ host:backup/", note="""Without it, changed files come whole where
            that ends sooner: in a local run, and on a fast line. [Which files come
            whole](../../howto/slow-line.md#fast-lines-and-slow-ones) has a table."""),
        Option(("--no-fewest-bytes",), "send changed files as ends soonest (default)", sets=False),
        excludes=(excludes("whole_file line", "it says that bytes count, not time"),), wire=SPARED)
    """Look for the content of changed files at the destination on any line, also in a local run."""
    delete: bool = option(False, DELETING,
        Option(("--delete",),
            "delete entries that SRC lacks, except excluded ones: at the end, only if all copies succeeded",
            common=True,
            rsync="always last; nothing is deleted when SRC is empty, unless `--force-empty` is given",
            note="""Entries are deleted at the very end. Nothing is deleted after a read error, or if new
            content has not arrived: an entry to be deleted may be the last copy of it."""),
        Option(("--delete-delay", "--delete-during", "--del"), "the same; deletions always come last",
            rsync="the same as `--delete`: always last"),
        wire=item(1), needs=(Need.DELETING,), pair=True)
    """Remove destination entries that the source lacks and no filter rule protects."""
    rules_after: bool = option(False, DELETING,
        Option(("--delete-after",), "the same; rule files at DST are read again before the deletions",
            also=(("delete", True),),
            rsync="the same as `--delete`, but rule files at DST count as they are then"))
    """With `delete`, read the destination's rule files again once everything else is in place."""
    delete_excluded: bool = option(False, DELETING,
        Option(("--delete-excluded",), "the same, and delete entries that the filter rules exclude",
            also=(("delete", True),),
            note="The filter rules then only say what of SRC takes part. They keep nothing at DST.",
            example="--delete-excluded --exclude='*.o' src/ backup/"),
        wire=bit(9), watch=False)
    """With `delete`, filter rules only exclude source entries; they protect nothing at the destination."""
    max_delete: int | None = option(None, DELETING,
        Option(("--max-delete",),
            "delete at most N entries (or N% of DST); if more remain, exit code 25", "N", common=True,
            example="--delete --max-delete=100 src/ backup/", rsync="which entries stay is not defined",
            note="""`N%`, rounded down, is a share of DST's entries right before the first deletion, new ones
            included; with `-n`, of the present ones. Entries that a filter rule protects do not count."""),
        parse=values.parse_number, wire=item(7))
    """Delete at most this many entries, then end with exit code 25."""
    max_delete_share: int | None = option(None, most=100)
    """Delete at most this many per cent of the destination's entries, then end with exit code 25. All entries
    count that no filter rule protects and that are there when deletions begin, the new ones included."""
    guard: int | None = option(None, DELETING,
        Option(("--guard",),
            "stop with 25 if more than N% of DST would change or be deleted; on a terminal, ask",
            "N%", example="--delete --guard=50% src/ backup/",
            note="""The guard counts entries of DST that `--delete` would delete. Separately, it counts
            files and symlinks that would get other content: those of another size, time or kind; with `-c`,
            of another size. If either count exceeds the guard, the run changes nothing, or deletes nothing.
            A DST of fewer than 100 entries is not guarded. On a terminal the run asks, and continues after
            a `y`. There, `--delete` has a guard of 50 % by default; a script is guarded only by this option
            or [the setting](../settings.md) `guard`."""),
        Option(("--no-guard",), "never stop for that (default; 50% on a terminal with --delete)",
            sets=None, watch=False, note="The last of it and `--guard` counts."),
        most=100, parse=values.parse_share, needs=(Need.COMPARING,), watch=False)
    """If more than this many per cent of the destination's entries would get other content, change nothing;
    if more would be deleted, delete nothing. Then end with 25. Fewer than 100 are not guarded."""
    force_empty: bool = option(False, DELETING,
        Option(("--force-empty",), "let --delete empty DST if SRC is empty",
            note="Without it, an empty SRC deletes nothing: most often a disk is not mounted.",
            example="--delete --force-empty src/ backup/"),
        wire=item(2))
    """Let --delete empty a destination if the source root is empty."""
    force: bool = option(False, DELETING,
        Option(("--force",), "delete the contents of a directory that a file replaces, also without --delete",
            note="""The directory is deleted with everything in it that no filter rule protects. These
            entries count toward `--max-delete`."""),
        needs=(Need.DELETING,), watch=False)
    """Empty a directory that is in the way of a file or symlink, even without `delete`."""
    remove_source_files: bool = option(False, DELETING,
        Option(("--remove-source-files",),
            "delete files from SRC once DST has them on disk; keep directories",
            example="--remove-source-files spool/ host:spool/",
            rsync="""when all else is done; what was only compared goes once the disk of DST has it; not
            with `-L`, `-k` and `--copy-unsafe-links`""",
            note="""A file, symlink or special file of SRC is removed once it is on the disk of DST, if SRC
            still has what was copied: inode, size and both times are compared. Entries that DST had already
            are removed, too, as in rsync; after a power failure in an earlier run with `--no-fsync`, add
            `-c`. This option calls fsync even with `--no-fsync`. Entries that an option or a problem kept
            from DST stay. So does a file that changed meanwhile, with exit code 23. Directories stay: `find
            SRC -depth -type d -empty -delete` removes them. Removals come last, so an interrupted run has
            removed nothing that is not at DST. Nothing is removed through symlinks, so this option excludes
            `-L`, `-k` and `--copy-unsafe-links`. A module of a daemon rejects it if it is read-only,
            append-only, or allows no deletions."""),
        excludes=(
            excludes("copy_links copy_dirlinks copy_unsafe_links", "nothing is removed through a symlink"),
        ), watch=False)
    """Entries other than directories are removed from the source once the destination holds them durably. A
    file that changed meanwhile stays. Not together with `copy_links` and the like."""
    ignore_errors: bool = option(False, DELETING,
        Option(("--ignore-errors",), "delete even if some entries could not be read or copied",
            note="What SRC has in a directory that cannot be read is then deleted at DST.",
            example="--delete --ignore-errors src/ backup/",
            rsync="is rejected beside rule files within the tree (`-C`, `-F`, `dir-merge`)"),
        excludes=(
            goes_without("rules",
                "--ignore-errors cannot be combined with rules from files of the tree: what a file with a"
                " mistake hides would be deleted", when=has_rule_files),
        ), watch=False)
    """Delete even if the source could not be read completely. What could not be read counts as gone."""
    backup: Backup | None = option(None, OLD_VERSIONS,
        Option(("-b", "--backup"), "rename replaced and deleted files with a suffix",
            rsync="""for another content or kind, not another time alone; a backup is a hard link at
            first""",
            note="""The old entry gets a hard link as its backup before the new one takes its name, so the
            old content always has a name. A backup of the same name is replaced. The file system must
            support hard links. `--delete` never deletes backups. A moved file is copied, not renamed."""),
        Option(("--backup-dir",), "move replaced and deleted files to this directory, relative to DST", "DIR",
            example="--delete --backup-dir=../old src/ backup/", rsync="nothing in it is ever deleted",
            note="""The backup keeps its path below DIR. DIR is created when it is needed. If DIR is on
            another file system than DST, a backup is a copy, which is durable before the old entry is
            removed."""),
        Option(("--suffix",), "the suffix of such files (default: ~, and none with --backup-dir)", "SUFFIX",
            example="--backup --suffix=.old src/ backup/"),
        needs=(Need.REPLACING,), pair=True)
    """Keep the files and symlinks that are replaced or deleted; None: keep nothing."""
    keep_undo: KeepUndo | None = option(None, OLD_VERSIONS,
        Option(("--keep-undo",), "keep replaced and deleted data for rdc undo DST, such as 30d or 10G",
            "SIZE|DAYS", common=True, example="--delete --keep-undo=30d src/ backup/",
            note="""DST keeps what the sync replaces and deletes in `.rdc-undo`, under second names: that
            takes no space until the new versions differ. A size bounds what all syncs of DST keep, and a
            number of days their age. The oldest ones are dropped first. A sync that keeps more than the
            bound by itself stays whole until the next one, and a line says so. [Undo a
            sync](../../howto/undo.md) shows it at work."""),
        excludes=(
            excludes("backup", "both keep the old versions"),
            excludes("inplace append", "it overwrites the old versions"),
        ), parse=values.parse_keep_undo, needs=(Need.REPLACING,), watch=False)
    """Keep what `rdc.undo` needs to take this sync back; None: keep nothing. Not together with `backup`."""
    relative: bool = option(False, TAKEN,
        Option(("-R", "--relative"), "keep the path given as SRC, or the part after /./",
            rsync="a symlink on the way of a kept path is named, not followed",
            note="""DST gets the parent directories of SRC as well, with their metadata. `/./` in SRC marks
            where the kept path begins: `/home/./me/notes` becomes `me/notes`. `..`
            cannot be in a kept path. Nothing is deleted in the parent directories."""),
        Option(("--no-relative", "--no-R"),
            "keep only the last name of each path (default without --files-from)", sets=False, watch=False,
            note="With `--files-from`, each listed path is put directly into DST, under its last name."),
        wire=NOWHERE, watch=False)
    """Entries keep the path of SRC at the destination, or what is behind "/./" in it, as in rsync."""
    implied_dirs: bool = option(True, TAKEN,
        Option(("--no-implied-dirs", "--no-i-d"),
            "with -R: leave the metadata of SRC's parent directories at DST unchanged", sets=False,
            note="What is missing of them is made with the modes that the umask leaves.",
            example="-R --no-implied-dirs src/./lib/c backup/",
            rsync="is rejected where no path is kept; a symlink in a directory's place is named"),
        Option(("--implied-dirs", "--i-d"),
            "with -R: give parent directories the metadata they have at SRC (default)",
            watch=False, note="The last of it and `--no-implied-dirs` counts.",
            example="-R --implied-dirs src/./lib/c backup/"),
        watch=False)
    """With `relative`: the directories above SRC get the metadata that they have at the source."""
    files: FileList | None = option(None, TAKEN,
        Option(("--files-from",),
            "sync only the paths below SRC listed in FILE ('-': stdin; :FILE: on the remote side)", "FILE",
            example="--files-from=list src/ backup/", rsync="otherwise as `--relative`",
            note="""Each line is a path below SRC, which is kept at DST as with `-R`. Empty lines and those
            that begin with `#` or `;` count for nothing. A listed directory is made without what is in it,
            unless `-r` is given: `-a` does not imply it here. A `/` at its end takes what it holds. With
            `--delete`, only directories whose contents are taken lose anything. At most 1,048,576 paths.

            `:FILE` and `HOST:FILE` are read at the remote side, on SRC's or DST's host: relative to the home
            directory there, or below the module of a daemon or the root of a key. A write-only one refuses. A
            name never leads out of a SRC that is here."""),
        Option(("-0", "--from0"), "paths in --files-from end with NUL, not with a line end",
            example="-0 --files-from=list src/ backup/", rsync="for the file of `--files-from` alone",
            note="""For names that contain line ends: `find . -name '*.tex' -print0 | rdc sync -0
            --files-from=- . host:tex/`."""),
        excludes=(goes_without("files_from", "two lists of paths are given; a run takes one"),),
        wire=NOWHERE, watch=False)
    """Paths below the source, which alone take part, as `--files-from` lists them; None for everything. They
    are kept, like the path of SRC with `relative`."""
    files_from: FarList | None = option(None, watch=False)
    """The path of such a list at the remote side. Not together with `files`."""
    ignore_missing_args: bool = option(False, TAKEN,
        Option(("--ignore-missing-args",), "a missing SRC or listed path is no error",
            note="It is not deleted at DST either.",
            rsync="without it nothing is deleted when a path is missing"),
        watch=False)
    """A missing SRC, or one of `files`, is no error."""
    delete_missing_args: bool = option(False, TAKEN,
        Option(("--delete-missing-args",), "the same, and delete the entry at its path at DST",
            rsync="nothing is deleted where the directory above a missing path is gone, too",
            note="""Needs no `--delete`. A directory that is not empty is deleted only with `--delete` or
            `--force`. If the parent of a missing path is missing as well, that is an error, and nothing is
            deleted: its file system may not be mounted."""),
        needs=(Need.DELETING,), watch=False)
    """As `ignore_missing_args`, and what the destination has at the path of a missing one is deleted. A
    directory that is not empty goes only with `delete` or `force`."""
    prune_empty_dirs: bool = option(False, TAKEN,
        Option(("-m", "--prune-empty-dirs"), "skip directories that contain nothing but directories",
            note="With `--delete`, DST loses them, too, unless `--filter='P NAME/'` protects them."),
        Option(("--no-prune-empty-dirs", "--no-m"), "keep empty directories (default)",
            sets=False, watch=False),
        watch=False)
    """Leave out directories of the source that hold only directories, unless a rule protects them."""
    alternates: Alternates | None = option(None, ALTERNATES,
        Option(("--link-dest",),
        "hard-link files that DIR has unchanged instead of copying them; a relative DIR starts at DST",
        "DIR", common=True, example="--link-dest=../monday src/ backup/tuesday/", note="""DIR is a copy made
        before, such as the backup of yesterday. A file with the size, time
            and metadata that it has in DIR becomes a hard link, so it takes no room. The metadata of a link
            are those of the file in DIR, so a later run without `--link-dest` that changes them changes
            both. With other metadata it is copied, as a clone where the file systems can share blocks. Any
            other file in DIR is the base of a delta. A file that DST has already becomes a link, too. The
            first DIR that has all of it wins, and at most 20 may be given. A missing DIR is named and not
            looked at. With `-c`, content decides instead of the time. A confined peer may only name a DIR
            below what it is served."""),
        Option(("--copy-dest",), "copy unchanged files from DIR", "DIR",
            example="--copy-dest=../monday src/ backup/tuesday/",
            note="As `--link-dest`, but files in DIR are always copied or cloned. Files that DST has stay."),
        Option(("--compare-dest",), "leave out files that are unchanged in DIR", "DIR",
            example="--compare-dest=../full src/ backup/changes/",
            note="""As `--link-dest`, but a file that is unchanged in DIR is left out, and removed if DST
            has it: DST then contains what has changed since DIR was made. `rdc serve` rejects this option
            where nothing may be deleted."""),
        needs=(Need.COMPARING,), watch=False)
    """Directories in which files of the destination may be found unchanged; None: no directories."""
    inplace: bool = option(False, WRITING,
        Option(("--inplace",),
            "write changes into the existing file; a killed run leaves a mixture until the next run",
            example="--inplace images/ host:images/",
            rsync="what differs is written once all of it is here and verified",
            note="""The file keeps its inode, so its hard links, snapshots and reflinked copies still share
            it. Only blocks that differ are written, and only once all new content has arrived and is
            verified; until then, it takes space beside the file. The risk: a program that reads the file
            meanwhile sees a mixture, and a killed run leaves one, which the next run repairs. A backup
            (`-b`) is a copy, or a clone where blocks can be shared. New files, links and files that replace
            another kind of entry appear in one step, as without this option."""),
        excludes=_INTO_FILES, needs=(Need.OVERWRITING,))
    """Write what differs into the files that are there: they keep their inodes, and what shares blocks with
    them goes on to share. A killed run leaves a mixture, which the next run repairs. Not together with
    `update` and `size_only`, which would pass it over."""
    append: bool = option(False, WRITING,
        Option(("--append", "--append-verify"),
            "the same, but only for files that are shorter at DST; their content is compared",
            example="--append logs/ host:logs/", rsync="compares what DST has, as `--append-verify` does",
            note="""For files that only grow, such as logs and recordings. A file that differs and is as
            long at DST as at SRC, or longer, is skipped with its permissions and times. New files are
            copied as usual. If DST's content is not the beginning of SRC's, the file gets SRC's content.
            The risk is that of `--inplace`. Both sides read the whole file; only the missing end is
            sent."""),
        excludes=(
            *_INTO_FILES,
            excludes("checksum", "a file of the same length is left alone, whatever it holds"),
        ), needs=(Need.COMPARING, Need.OVERWRITING), watch=False, pair=True)
    """Change only those of the files that differ that are shorter at the destination; write as `inplace`
    does. What they hold is compared. Not together with `checksum`, `update` and `size_only`."""
    sparse: bool = option(False, WRITING,
        Option(("-S", "--sparse"), "store all blocks of zeros as holes (default: only long runs of zeros)",
            also=(("allocate", False),), rsync="long runs of zeros become holes without it, too",
            note="""Holes are made in blocks of 4 KiB of files that are written. Space is not looked for
            first then, so a full disk shows only when it is full. What is not written stays as it is.
            Without it, runs of at least 32 KiB of zeros in new versions become holes, and shorter ones may:
            that costs no read and fewer writes. A file that is written into (`--inplace`) gets no holes
            without it."""),
        Option(("--no-sparse", "--no-S"), "store no holes: write all zeros", sets=False,
            also=(("allocate", True),),
            note="""Zeros are written, as rsync does without `-S`. A local copy does not clone then. What a
            new version shares with an old one stays as it is. The last of `-S`, `--no-sparse` and
            `--preallocate` counts."""),
        wire=bit(5))
    """Write zeros of file content as holes."""
    delay_updates: bool = option(False, WRITING,
        Option(("--delay-updates",), "put updated files in place at the end, once all of them are complete",
            example="--delay-updates src/ host:/srv/www/",
            rsync="not with `--link-dest` and its like; files wait under names of rdc's own",
            note="""New content waits in temporaries, whose bytes are synced as they come, until all has
            been fetched. Then each file gets its name, one rename after another, before anything is
            deleted. DST needs room for all of it beside what is there. A run that is killed before has
            changed no file, and the next one goes on from its temporaries. Directories, symlinks, renames
            of moved files, and files that differ in metadata alone are not delayed."""),
        excludes=(
            goes_without("inplace append alternates",
                "--delay-updates cannot be combined with --inplace, --append or alternate directories"),
        ), watch=False)
    """Put new content in place when all of it is there. Not with `overwrites` and `alternates`."""
    partial_dir: bytes = option(b"", WRITING,
        Option(("--partial",), "keep partial files and resume from them (always on)", sets=ALWAYS,
            note="""The partial file is stored beside the file, under a name that begins with `.rdc-`. The
            next run resumes from it and removes it."""),
        Option(("--partial-dir",), "keep partial files in this directory beside the file", "DIR",
            example="--partial-dir=.parts src/ backup/",
            rsync="""a killed run leaves its part where it was written; parts below 64 KiB are not kept; not
            with `--inplace` and `--append`""",
            note="""Without this option, a partial file stays where it was written, and the next run resumes
            from it, too. A relative DIR is one name, beside each file. It is created with mode 0700 and
            removed when it is empty, and it is never synced or deleted by `--delete`. An absolute DIR has the
            partial files of all files, by their names without directories. Blocks of partial files are
            verified. Those of rsync are used, too, but stay: rdc replaces and removes only files that its
            record there (`.rdc.parts`) lists. Partial files below 64 KiB are not kept."""),
        excludes=(
            goes_without("inplace append", "--partial-dir cannot be combined with --inplace or --append"),
        ), most=limits.PATH_BYTES, valid=values.no_nul, parse=values.parse_directory, needs=(Need.COMPARING,),
        watch=False)
    """The directory for partial files: relative to that of the file, or absolute; b"": where it was written.
    A relative one takes no part. Not together with `overwrites`."""
    temp_dir: bytes = option(b"", WRITING,
        Option(("-T", "--temp-dir"),
            "write new content in this directory until it is complete; relative to DST", "DIR",
            example="--temp-dir=/mnt/fast src/ backup/",
            rsync="the next run resumes from what an interrupted run left there",
            note="""DIR must exist, and is best used for one DST alone. The next run resumes from files that
            a killed run left in it, and removes them at its end. If DIR is on another file system than DST,
            complete content is copied to DST and then renamed: it is never written in place. A path within
            DST is not followed through symlinks. Symlinks and special files are created in place."""),
        most=limits.PATH_BYTES, valid=values.no_nul, parse=values.parse_directory, watch=False)
    """The directory in which new content is written until it is complete, relative to the destination, or
    absolute; b"": beside the files. It has to exist."""
    allocate: bool = option(False, WRITING,
        Option(("--preallocate",), "reserve the space of a file before writing it, and store no holes",
            note="""Space is reserved as the content of a file arrives, which rdc always does unless `-S` is
            given. With this option, long runs of zeros are written as well."""))
    """Write all zeros of new files. Otherwise long runs of them become holes without `sparse`, too."""
    rules: tuple[FilterRule | DirectoryRules, ...] = option((), check=True)
    copy_links: bool = option(False, KINDS,
        Option(("-l", "--links"), "copy symlinks as symlinks (always on)", sets=ALWAYS),
        Option(("-L", "--copy-links"), "copy what the symlinks of SRC point to, not the symlinks",
            rsync="a link to a directory above it is named and skipped"),
        watch=False)
    """The source takes every symlink for what it leads to."""
    copy_dirlinks: bool = option(False, KINDS,
        Option(("-k", "--copy-dirlinks"), "the same, but only for symlinks to directories",
            rsync="a link to a directory above it is named and skipped"),
        watch=False)
    """The source takes symlinks to directories for these directories."""
    copy_unsafe_links: bool = option(False, KINDS,
        Option(("--copy-unsafe-links",), "the same, but only for symlinks that point outside SRC"),
        watch=False)
    """The source takes symlinks that lead out of the tree, by their text, for what they lead to."""
    safe_links: bool = option(False, KINDS,
        Option(("--safe-links",), "skip symlinks that point outside DST"),
        watch=False, pair=True)
    """Leave alone what symlinks of the source would become that lead out of the tree, by their text."""
    keep_dirlinks: bool = option(False, KINDS,
        Option(("-K", "--keep-dirlinks"), "use a symlink at DST that points to a directory as that directory",
            example="-K src/ backup/",
            rsync="""times and permissions go to the directory, not to the link; not with `-b`,
            `--keep-undo`, `--link-dest` and its like""",
            note="""Without it, a symlink at DST is replaced if SRC has a directory of that name. With it,
            the symlink stays if it points to a directory within DST, and the entries of SRC's directory are
            written there. A symlink that points outside DST stays, too, but nothing is written through it:
            it is reported, with exit code 23. `--delete` also applies to the directory under its own name,
            so exclude it if SRC does not have it."""),
        excludes=(
            goes_without("backup keep_undo alternates",
                "--keep-dirlinks cannot be combined with backups, alternate directories or undo"),
        ), watch=False)
    """Where the source has a directory, use a symlink at the destination that leads to a directory within it.
    Not together with `backup`, `alternates` and `keep_undo`."""
    munge_links: bool = option(False, KINDS,
        Option(("--munge-links",), "make symlinks unusable; restore them where SRC is on this machine",
            example="--munge-links host:src/ backup/",
            rsync="not with `--safe-links`, `-L`, `-k` and `--copy-unsafe-links`",
            note="""A munged symlink has `/rsyncd-munged/` in front of its target, so that it leads nowhere.
            rsync's daemons use the same form. As in rsync, the option applies to this side alone. If SRC is
            on this machine, munged symlinks are sent with their real targets. If SRC is on another one,
            symlinks are munged when they are created."""),
        excludes=(
            excludes("safe_links copy_links copy_dirlinks copy_unsafe_links", "munged links lead nowhere"),
        ), wire=HERE, watch=False)
    """Only the side where it is typed counts, as in rsync. As the destination it makes symlinks that lead
    nowhere, with "/rsyncd-munged/" in front of their targets. As the source it takes that away again. Not
    together with `safe_links`, `copy_links` and the like."""
    devices: bool = option(True, KINDS,
        Option(("-D",), "the same as --devices --specials (always on)", also=(("specials", True),)),
        Option(("--devices",), "copy devices where the receiving side runs as root (always on)"),
        Option(("--no-D",), "skip devices, fifos and sockets", sets=False, also=(("specials", False),)),
        Option(("--no-devices",), "skip devices", sets=False),
        wire=SPARED, watch=False)
    """Make devices, where the destination runs as root and both sides know how."""
    specials: bool = option(True, KINDS,
        Option(("--specials",), "copy fifos and sockets (always on)"),
        Option(("--no-specials",), "skip fifos and sockets", sets=False),
        wire=SPARED, watch=False)
    """Make fifos and sockets, where both sides know how."""
    atimes: bool = option(False, METADATA,
        Option(("-U", "--atimes"), "keep access times; given twice, with --open-noatime",
            example="-UU mail/ host:mail/",
            rsync="not of new symlinks; access times do not count for `--link-dest` and its like",
            note="""This applies to regular and special files, in whole seconds, as in rsync. A sync that
            reads a file of SRC changes its access time, which the next run then copies: `-UU` avoids that.
            Access times of directories and symlinks are not kept, and `rdc undo` does not restore any."""),
        watch=False)
    """Keep access times of regular files and special files, in whole seconds. What the source reads has
    changed its own by then, unless `open_noatime` is set."""
    open_noatime: bool = option(False, METADATA,
        Option(("--open-noatime",), "do not change access times when reading, where that is permitted",
            example="--open-noatime mail/ host:mail/",
            note="""This applies to both sides. Only its owner and root may read a file in this way; for
            other users, the access time changes, which is no error. Listing a directory reads it."""),
        watch=False)
    """Reading leaves access times alone on both sides, for files of this user, and for all files as root."""
    omit_dir_times: bool = option(False, METADATA,
        Option(("-O", "--omit-dir-times"), "do not keep modification times of directories"),
        watch=False)
    """Directories keep the mtimes that they have or get at the destination."""
    omit_link_times: bool = option(False, METADATA,
        Option(("-J", "--omit-link-times"), "do not keep modification times of symlinks"),
        watch=False)
    """Symlinks keep the mtimes that they have or get at the destination."""
    owner: bool | None = option(None, OWNERS,
        Option(("-o",), "keep owners where the receiving side runs as root (default)", sets=ALWAYS),
        Option(("--owner",), "keep owners and groups even without root",
            rsync="the default, `-o`, keeps owners if the receiving side is root; `--owner` always",
            note="""Without it, owners and groups are kept if the receiving side runs as root. If owners are
            not kept, the setuid and setgid bits of files and directories are dropped."""),
        Option(("--no-owner", "--no-o"), "never keep owners and groups", sets=False),
        wire=item(6), needs=(Need.OWNERS,), check=True)
    """Preserve uid and gid; None: only if the receiving side runs as root."""
    super_user: bool = option(False, OWNERS,
        Option(("--super",), "set owners and make devices even without root, as far as the system permits",
            example="--super src/ host:backup/", rsync="the system decides; there is no `--no-super`",
            note="""rdc tries to set owners and to make devices although the receiving side is not root.
            What the system does not permit is reported, with exit code 23."""),
        needs=(Need.OWNERS,), watch=False)
    """Set owners and make devices as if the destination ran as root; the system decides."""
    fake_super: bool = option(False, OWNERS,
        Option(("--fake-super",),
            "keep owners, devices and such in extended attributes on this machine, as rsync does",
            example="--fake-super host:/home/ backup/",
            rsync="""an entry of DST that is right as it is stays so, without the attribute; not with `-L`,
            `-k`, `--inplace`, `--append`, `--keep-undo`, `-K`, `--link-dest` and its like""",
            note="""Owner, group, set-id bits and modes that would lock out the user are stored in the
            attribute `user.rsync.%stat`, in rsync's form. Devices, fifos, sockets and symlinks are stored
            as plain files. As in rsync, the option applies to this side alone: a DST on this machine is
            written in this form, and a SRC on this machine is read in it. A later sync with this option
            restores everything. With `-A`, ACLs are stored in `user.rsync.%aacl` and `user.rsync.%dacl`,
            and the system's ACLs are ignored. These attributes themselves are never copied."""),
        excludes=_FAKED, wire=HERE, watch=False)
    """Only the side where it is typed counts, as in rsync. As the destination it keeps owners, devices and
    the like in extended attributes, in rsync's form, and does not set them. As the source it sends what such
    attributes say. Not together with `overwrites`, `alternates`, `keep_undo`, `keep_dirlinks` and
    `follows`."""
    owner_names: bool = option(False, OWNERS,
        Option(("--numeric-ids",), "keep users and groups by number (default)", sets=False,
            rsync="the default; `--no-numeric-ids` keeps them by name"),
        Option(("--no-numeric-ids",), "keep users and groups by name; by number where DST lacks the name",
            example="--no-numeric-ids src/ host:backup/",
            note="""SRC's side sends each name once, and DST's side looks it up. If DST lacks the name, the
            owner keeps its number, and so does root. Not together with `-A`."""),
        excludes=_BY_NUMBER, needs=(Need.OWNERS,), watch=False)
    """Users and groups without a map become those of the same name, where known. Not together with
    `acls`."""
    usermap: bytes = option(b"", OWNERS,
        Option(("--usermap",), "map users: FROM:TO items, such as 0-99:nobody,wayne:admin", "MAP",
            example="--usermap=0-99:nobody,wayne:admin src/ host:backup/",
            rsync="users without an item keep their number; a name that DST lacks is an error; not with `-A`",
            note="""MAP is a list of FROM:TO items separated by commas, as in rsync. The first item that
            matches decides. FROM is a user at SRC: a name, which may contain the wildcards `*`, `?` and
            `[...]`, a number, a range such as 0-99, or nothing for numbers without a name. TO is a user at
            DST, by name or by number. Users without an item keep their number, or with `--no-numeric-ids`
            their name. DST's side applies the map, and needs root or `--owner`. A module of a daemon that
            keeps no owners rejects it."""),
        most=limits.OWNER_MAP_BYTES, valid=values.parse_owner_map, alias="--chown", excludes=_BY_NUMBER,
        needs=(Need.OWNERS,), watch=False)
    """The users of the destination for those of the source, as in rsync: FROM:TO items between commas; b""
    for the same numbers. Not together with `acls`."""
    groupmap: bytes = option(b"", OWNERS,
        Option(("--groupmap",), "map groups in the same way, such as *:users", "MAP",
            example="--groupmap='*:users' src/ host:backup/", rsync="as `--usermap`"),
        Option(("--chown",), "give everything this user and group; either may be omitted", "OWNER",
            example="--chown=www-data:www-data src/ host:/var/www/", rsync="as `--usermap`",
            note="""OWNER is USER:GROUP, USER or :GROUP, by name or by number at DST. It is short for
            `--usermap='*:USER' --groupmap='*:GROUP'`."""),
        most=limits.OWNER_MAP_BYTES, valid=values.parse_owner_map, alias="--chown", excludes=_BY_NUMBER,
        needs=(Need.OWNERS,), watch=False)
    """The mapping of groups."""
    compress: bool | None = option(None, CONNECTION,
        Option(("-z", "--compress"), "always compress (default: where it helps)",
            example="-z src/ host:backup/", rsync="zstd; without it rdc compresses where that helps",
            note="""How hard zstd works depends on the link: see
            [Compression](../../benchmarks.md#compression)."""),
        Option(("--no-compress", "--no-z"), "never compress", sets=False,
            example="--no-compress src/ host:backup/"),
        wire=SPARED, check=True)
    """True: always, False: never, None: where it helps (not within one process)."""
    bandwidth: int = option(0, CONNECTION,
        Option(("--bwlimit",),
            "send and receive at most RATE KiB a second each, or 1.5m for 1.5 MiB", "RATE", common=True,
            example="--bwlimit=1.5m src/ host:backup/",
            note="The limit applies to each side. A plain number is in KiB, and 0 means no limit."),
        parse=values.parse_rate, wire=item(8), check=True)
    """Bytes per second that each side may send; 0 for no limit."""
    line: int = option(0, CONNECTION,
        Option(("--line",),
            "assume a line of RATE per second: KiB, or with a suffix (default: 0, measure it)", "RATE",
            example="--line=100m src/ host:backup/",
            note="""The rate decides which changed files come whole: see
            [Fast lines and slow ones](../../howto/slow-line.md#fast-lines-and-slow-ones). It limits
            nothing. If `--bwlimit` is lower, rdc assumes that rate."""),
        parse=values.parse_rate, wire=SPARED)
    """Bytes per second that the way between both sides is assumed to carry; 0: as measured."""
    max_memory: int | None = option(None, CONNECTION,
        Option(("--max-memory", "--max-alloc"),
            "use at most SIZE of memory here for SRC's entries (default: half of it; 0: all of it)", "SIZE",
            rsync="""it limits the memory for all entries of SRC, not one allocation; it applies to this
            side, and the default is half of the machine's memory""",
            note="""The limit applies to the destination, for the entries that SRC announces. If they need
            more, the run ends with exit code 11. A run of many millions of files may need a higher limit. A
            lower one keeps a peer from using all memory. `--max-alloc` is rsync's name for it."""),
        parse=values.parse_memory, wire=HERE, check=True)
    """Bytes of memory that this side, as the destination, may use for the source's entries; 0 for all of the
    machine's memory, None for a share of it. Each side keeps its own value."""
    depth: int = option(0, CONNECTION,
        Option(("--depth",),
            "keep N storage calls in flight (default: 0, up to 32 where storage is slow)", "N",
            note="""While storage answers immediately, rdc opens one file at a time. If it has to wait, as on
            NFS, on cloud disks and on disks that are not cached, it opens two, four and up to 32 files at a
            time, as long as that is faster. `--depth=1` always opens one, and `--depth=16` opens 16 from the
            first file on. The number applies to both sides. `RDC_DEPTH` sets it for all runs."""),
        most=limits.DEPTH_LIMIT, parse=values.parse_depth, wire=SPARED, check=True)
    """Calls to storage in flight at a time, on each side; 0: one, or up to 32 while they wait for storage
    and a greater number makes them faster."""
    timeout: int = option(0, CONNECTION,
        Option(("--timeout",),
            "give up after SECONDS without a byte (default: 0, never; rdc://: 120)", "SECONDS",
            example="--timeout=60 src/ host:backup/",
            note="""The run ends with exit code 30 if one side neither sends nor receives a byte for that
            time. A side that is busy reading files sends a sign of life in time."""),
        most=limits.TIMEOUT_SECONDS, parse=values.parse_timeout, wire=item(9), check=True)
    """Seconds without a byte on the connection before both sides give up; 0 for never. Within one process a
    side gives up if the other one neither sends nor uses the processor."""
    unsigned: bool = option(False, CONNECTION,
        Option(("--unsigned",), "read a published store without a signature that you trust",
            example="--unsigned http://nas.example.org/st/@latest/ dst/",
            note="""A store on the web or a file of `rdc store pack` is read only if your own key signed it,
            or a key that `rdc keys trust` knows; for the web, under the host's name. Without a signature,
            whoever runs the server decides what you get, and with `http://` anyone on the way."""),
        wire=HERE, watch=False)
    """Read a published store whose signature nothing proves."""
    items: bool = option(True, wire=item(5), check=True)
    """True if the user's side wants each changed entry reported. Their number is reported in any case."""
    list_unchanged: bool = option(False, watch=False)
    """Report unchanged entries, too. Files whose contents are compared are not among them, nor is anything
    where hard links, ACLs or extended attributes are kept."""
    # fmt: on

    def __post_init__(self) -> None:
        check_fields(self)
        check_options(self, OPTIONS)

    @property
    def filter_rules(self) -> tuple[FilterRule | DirectoryRules, ...]:
        """`rules`, and the one that leaves `partial_dir` out."""
        if not self.partial_dir or self.partial_dir.startswith(b"/"):
            return self.rules
        modifiers = RuleModifiers(RuleSide.BOTH, perishable=True)
        return (*self.rules, FilterRule(RuleAction.EXCLUDE, self.partial_dir + b"/", modifiers))

    @property
    def rewrites(self) -> bool:
        """Return whether `ignore_times` has an effect."""
        return self.ignore_times and not (self.checksum or self.size_only)

    @property
    def rereads(self) -> bool:
        """Return whether contents are compared although nothing else differs."""
        return self.checksum or self.rewrites

    @property
    def visits_all(self) -> bool:
        """Return whether each entry is looked at, though the trees seem equal."""
        elsewhere = self.alternates is not None and self.alternates.changes_existing
        some = self.list_unchanged or self.keep_dirlinks or self.remove_source_files
        return self.rereads or some or elsewhere

    @property
    def is_durable(self) -> bool:
        """Return whether content is on the disk before it gets its name.

        It always is where the source is to lose it. A power cut could otherwise leave a file of the right
        size and time without its content, and the next run would remove the only copy.
        """
        return self.fsync or self.remove_source_files

    @property
    def removes(self) -> bool:
        """Return whether the run may remove entries that the source lacks."""
        return self.delete or self.force

    @property
    def narrows(self) -> bool:
        """Return whether some differences are skipped; `rdc.plan.skip_options` has the rules."""
        some = self.update or self.existing or self.ignore_existing or self.size_only
        return some or self.append or self.safe_links or self.bounds_sizes

    @property
    def follows(self) -> LinkChoice | None:
        """The symlinks that the source takes for what they lead to; None for no option about them."""
        if not (self.copy_links or self.copy_dirlinks or self.copy_unsafe_links):
            return None
        return LinkChoice(self.copy_links, self.copy_dirlinks, self.copy_unsafe_links)

    @property
    def nodes(self) -> frozenset[Kind]:
        """The kinds of fifos, sockets and devices that are wanted."""
        return (DEVICES if self.devices else frozenset()) | (
            NODES - DEVICES if self.specials else frozenset()
        )

    @property
    def maps_owners(self) -> bool:
        """Return whether owners may become others than those of the same number."""
        return bool(self.usermap or self.groupmap or self.owner_names)

    @property
    def untimed(self) -> frozenset[Kind]:
        """Kinds of entries whose mtimes do not count."""
        kinds = ((Kind.DIRECTORY, self.omit_dir_times), (Kind.SYMLINK, self.omit_link_times))
        return frozenset(kind for kind, omitted in kinds if omitted)

    @property
    def overwrites(self) -> bool:
        """Return whether new content is written into the files that are there."""
        return self.inplace or self.append

    @property
    def bounds_sizes(self) -> bool:
        """Return whether files are skipped by size."""
        return self.min_size > 0 or self.max_size is not None

    def is_left_for_size(self, size: int) -> bool:
        """Return whether a regular file of the source with `size` bytes is skipped."""
        return size < self.min_size or (self.max_size is not None and size > self.max_size)


OPTIONS = declared_options(SyncOptions)
"""The declarations by field. The options of one title have this order in the help text."""
