"""Options of a sync."""

from __future__ import annotations

from enum import Enum

from rdc.checks import check_fields
from rdc.limits.sessions import DEPTH_LIMIT, WINDOW_SECONDS
from rdc.model.entries import DEVICES, NODES, Kind
from rdc.model.filter_rules import DirectoryRules, FilterRule, RuleAction, RuleModifiers, RuleSide
from rdc.model.location import FarList
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.symlinks import LinkChoice

__all__ = [
    "AlternateUse",
    "Alternates",
    "Backup",
    "FileList",
    "FilterRule",
    "KeepUndo",
    "RuleAction",
    "SyncOptions",
]


@dataclass(frozen=True, slots=True)
class Backup:
    """Where a sync keeps old versions: at the entry's path below `directory`, with `suffix` behind its name.

    >>> import rdc
    >>> rdc.SyncOptions(backup=rdc.Backup(b"~")).backup.suffix
    b'~'
    """

    suffix: bytes
    """Not empty unless `directory` is given. It has no slash."""
    directory: bytes | None = None
    """Relative to the destination, or absolute; None: beside the entry."""

    def __post_init__(self) -> None:
        check_fields(self)


class AlternateUse(Enum):
    """What a sync does with a file that it finds unchanged in an alternate directory.

    >>> import rdc
    >>> rdc.AlternateUse("link")
    <AlternateUse.LINK: 'link'>
    """

    LINK = "link"
    """It becomes a hard link, or a copy if its metadata differ."""
    COMPARE = "compare"
    """It is left out, or copied if its metadata differ."""
    COPY = "copy"
    """It is copied."""


@dataclass(frozen=True, slots=True)
class Alternates:
    """Alternate directories: trees like the destination, such as older backups, that may have its files.

    >>> import rdc
    >>> rdc.Alternates(rdc.AlternateUse.LINK, (b"../yesterday",)).directories
    (b'../yesterday',)
    """

    use: AlternateUse
    directories: tuple[bytes, ...]
    """1 to 20, the preferred one first. Each is relative to the destination, or absolute."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def option(self) -> str:
        """The name of the option, such as "--link-dest"."""
        return f"--{self.use.value}-dest"

    @property
    def changes_existing(self) -> bool:
        """Whether they also decide about files that the destination has already."""
        return self.use is not AlternateUse.COPY


@dataclass(frozen=True, slots=True)
class KeepUndo:
    """How much a sync keeps, so that `rdc.undo` can take it back: a size or a number of days.

    >>> import rdc
    >>> rdc.SyncOptions(keep_undo=rdc.KeepUndo(days=30)).keep_undo.days
    30
    """

    size: int | None = None
    """Bytes that all syncs of the destination together may keep."""
    days: int | None = None
    """Days for which each sync is kept."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class FileList:
    """Paths below the source, as `--files-from` lists them.

    >>> import rdc
    >>> rdc.SyncOptions(files=rdc.FileList((b"docs/index.md", b"src"))).files.names[1]
    b'src'
    """

    names: tuple[bytes, ...]
    """A path may have "/./" in it, as in rsync: what is in front of it is not kept."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """The options of `rdc.sync`. Raises TypeError for a wrong type; the text names the field.

    >>> import rdc
    >>> rdc.SyncOptions(delete=True, bandwidth=1_000_000).delete
    True
    >>> rdc.SyncOptions(delete="yes")
    Traceback (most recent call last):
    TypeError: SyncOptions.delete: expected bool, found str
    """

    checksum: bool = False
    """Compare content by root digest instead of by size and mtime."""
    delete: bool = False
    """Remove destination entries that the source lacks and no filter rule protects."""
    delete_excluded: bool = False
    """With `delete`: filter rules protect nothing at the destination; they only exclude entries of the
    source."""
    max_delete: int | None = None
    """Delete at most this many entries, then end with exit code 25."""
    max_delete_share: int | None = None
    """Delete at most so many per cent of the destination's entries, then end with exit code 25. All entries
    count that no filter rule protects and that are there when deletions begin, the new ones included."""
    guard: int | None = None
    """If more than so many per cent of the destination's entries would get other content, change nothing, and
    if more would go, delete nothing; then end with exit code 25. A destination of fewer than 100 entries is
    not guarded."""
    force_empty: bool = False
    """Let --delete empty a destination if the source root is empty."""
    dry_run: bool = False
    rules: tuple[FilterRule | DirectoryRules, ...] = ()
    fsync: bool = True
    items: bool = True
    """Whether the user's side wants each changed entry reported. Their number is reported in any case."""
    list_unchanged: bool = False
    """Report unchanged entries, too. Files whose contents are compared are not among them, nor is anything
    where hard links, ACLs or extended attributes are kept."""
    compress: bool | None = None
    """True: always, False: never, None: where it helps (not within one process)."""
    owner: bool | None = None
    """Preserve uid and gid; None: only if the receiving side runs as root."""
    group: bool = True
    """Preserve the gid where `owner` says that owners are preserved. Otherwise only the uid is."""
    perms: bool = True
    """Preserve permissions. Otherwise existing entries keep theirs, and new ones get the source's less the
    umask of the destination. Not together with `acls`."""
    times: bool = True
    """Preserve modification times. Otherwise none is set, and the contents of files are compared whose times
    differ."""
    max_memory: int | None = None
    """Bytes of memory that this side, as the destination, may use for the source's entries; 0 for all of the
    machine's memory, None for a share of it. Each side keeps its own value."""
    bandwidth: int = 0
    """Bytes per second that each side may send; 0 for no limit."""
    timeout: int = 0
    """Seconds without a byte on the connection before both sides give up; 0 for never. Within one process a
    side gives up if the other one neither sends nor uses the processor."""
    update: bool = False
    """Skip files that are newer at the destination, by their mtimes."""
    existing: bool = False
    """Create nothing at the destination; only update existing entries."""
    ignore_existing: bool = False
    """Skip existing entries except directories; only create missing ones."""
    size_only: bool = False
    """Treat files of equal size as equal, whatever their mtimes, unless `checksum` compares contents."""
    ignore_times: bool = False
    """Compare the contents of files although size and mtime are equal. `checksum` and `size_only` outweigh
    it."""
    modify_window: int | None = None
    """Whole seconds by which mtimes may differ and still be equal; None compares nanoseconds."""
    whole_file: bool = False
    """Fetch changed files whole, without a search for content that the destination has."""
    ignore_errors: bool = False
    """Delete even if the source could not be read completely. What could not be read counts as gone."""
    force: bool = False
    """Empty a directory that is in the way of a file or symlink, even without `delete`."""
    min_size: int = 0
    """Skip smaller files of the source, in bytes, whatever is in their places."""
    max_size: int | None = None
    """Skip larger files of the source, in bytes; None for no limit."""
    hard_links: bool = False
    """Preserve hard links among regular files and among special files."""
    acls: bool = False
    """Keep POSIX ACLs."""
    xattrs: bool = False
    """Preserve extended attributes: user.*; and trusted.* and security.capability if owners are preserved and
    both sides are root."""
    sparse: bool = False
    """Write zeros of file content as holes."""
    alternates: Alternates | None = None
    """Directories in which files of the destination may be found unchanged; None: no directories."""
    allocate: bool = False
    """Write all zeros of new files. Otherwise long runs of them become holes without `sparse`, too."""
    inplace: bool = False
    """Write what differs into the files that are there: they keep their inodes, and what shares blocks with
    them goes on to share. A killed run leaves a mixture, which the next run repairs. Not together with
    `update` and `size_only`, which would pass it over."""
    append: bool = False
    """Of the files that differ, change only those that are shorter at the destination; write as `inplace`
    does. What they hold is compared. Not together with `checksum`, `update` and `size_only`."""
    partial_dir: bytes = b""
    """Where the part of a file waits that a run could not finish: relative to the directory of the file, or
    absolute; b"": where it was written. A relative one takes no part. Not together with `overwrites`."""
    delay_updates: bool = False
    """Put new files and new content in place when all of it is there, not as it comes. Not together with
    `overwrites` and `alternates`."""
    temp_dir: bytes = b""
    """The directory in which new content is written until it is complete, relative to the destination, or
    absolute; b"": beside the files. It has to exist."""
    backup: Backup | None = None
    """Keep the files and symlinks that are replaced or deleted; None: keep nothing."""
    keep_undo: KeepUndo | None = None
    """Keep what `rdc.undo` needs to take this sync back; None: keep nothing. Not together with `backup`."""
    rules_after: bool = False
    """With `delete`: rule files of the destination count as they are when everything else is in place, not as
    they were before the run."""
    mkpath: bool = False
    """Make the directories above the destination that are missing."""
    one_file_system: bool = False
    """Neither side enters directories on other file systems. S lists them empty; D deletes nothing there."""
    safe_links: bool = False
    """Leave alone what symlinks of the source would become that lead out of the tree, by their text."""
    copy_links: bool = False
    """The source takes every symlink for what it leads to."""
    copy_dirlinks: bool = False
    """The source takes symlinks to directories for these directories."""
    copy_unsafe_links: bool = False
    """The source takes symlinks that lead out of the tree, by their text, for what they lead to."""
    keep_dirlinks: bool = False
    """A symlink to a directory at the destination stays where the source has a directory, and what is in it
    goes there, if the link leads to a directory of the destination. Not together with `backup`, `alternates`
    and `keep_undo`."""
    munge_links: bool = False
    """Only the side where it is typed counts, as in rsync. As the destination it makes symlinks that lead
    nowhere, with "/rsyncd-munged/" in front of their targets. As the source it takes that away again. Not
    together with `safe_links`, `copy_links` and the like."""
    devices: bool = True
    """Make devices, where the destination runs as root and both sides know how."""
    specials: bool = True
    """Make fifos and sockets, where both sides know how."""
    omit_dir_times: bool = False
    """Directories keep the mtimes that they have or get at the destination."""
    omit_link_times: bool = False
    """Symlinks keep the mtimes that they have or get at the destination."""
    chmod: str = ""
    """Changes of the permissions of files and directories, as in rsync, such as "D755,F644" or "go-w": the
    source announces the changed ones. The umask of the source's side counts. Not together with `acls`."""

    usermap: bytes = b""
    """Which users of the destination the source's become, as in rsync: FROM:TO items between commas; b"" for
    the same numbers. Not together with `acls`."""
    groupmap: bytes = b""
    """The same for groups."""
    fake_super: bool = False
    """Only the side where it is typed counts, as in rsync. As the destination it keeps owners, devices and
    the like in extended attributes, in rsync's form, and does not set them. As the source it sends what such
    attributes say. Not together with `overwrites`, `alternates`, `keep_undo`, `keep_dirlinks` and
    `follows`."""
    super_user: bool = False
    """Set owners and make devices as if the destination ran as root; the system decides."""
    owner_names: bool = False
    """Users and groups that no map names become those of the same name, if the destination has them. Not
    together with `acls`."""

    relative: bool = False
    """Entries keep the path of SRC at the destination, or what is behind "/./" in it, as in rsync."""
    implied_dirs: bool = True
    """With `relative`: the directories above SRC get the metadata that they have at the source."""
    files: FileList | None = None
    """Paths below the source, which alone take part, as `--files-from` lists them; None for everything. They
    are kept, like the path of SRC with `relative`."""
    files_from: FarList | None = None
    """Where the far side has such a list. Not together with `files`."""
    recursive: bool = True
    """Directories that SRC or `files` name take part with everything below them."""
    ignore_missing_args: bool = False
    """A missing SRC, or one of `files`, is no error."""
    delete_missing_args: bool = False
    """As `ignore_missing_args`, and what the destination has at the path of a missing one is deleted. A
    directory that is not empty goes only with `delete` or `force`."""
    prune_empty_dirs: bool = False
    """Directories of the source that hold nothing but directories take no part, unless a rule protects
    them."""
    atimes: bool = False
    """Keep access times of regular files and special files, in whole seconds. What the source reads has
    changed its own by then, unless `open_noatime` is set."""
    open_noatime: bool = False
    """Reading leaves access times alone on both sides, for files of this user, and for all files as root."""
    remove_source_files: bool = False
    """Entries other than directories are removed from the source once the destination holds them durably. A
    file that changed meanwhile stays. Not together with `copy_links` and the like."""
    depth: int = 0
    """Calls to storage in flight at a time, on each side; 0: one, or up to 32 while they wait for storage
    and a greater number makes them faster."""

    def __post_init__(self) -> None:
        check_fields(self)
        window = self.modify_window
        if window is not None and not 0 <= window <= WINDOW_SECONDS:
            raise ValueError(f"SyncOptions.modify_window: {window} is not in 0..{WINDOW_SECONDS}")
        if not 0 <= self.depth <= DEPTH_LIMIT:
            raise ValueError(f"SyncOptions.depth: {self.depth} is not in 0..{DEPTH_LIMIT}")

    @property
    def filter_rules(self) -> tuple[FilterRule | DirectoryRules, ...]:
        """`rules`, and the one that leaves `partial_dir` out."""
        if not self.partial_dir or self.partial_dir.startswith(b"/"):
            return self.rules
        modifiers = RuleModifiers(RuleSide.BOTH, perishable=True)
        return (*self.rules, FilterRule(RuleAction.EXCLUDE, self.partial_dir + b"/", modifiers))

    @property
    def passes_over_missing(self) -> bool:
        """Whether a missing SRC is no error."""
        return self.ignore_missing_args or self.delete_missing_args

    @property
    def rewrites(self) -> bool:
        """Whether `ignore_times` has an effect."""
        return self.ignore_times and not (self.checksum or self.size_only)

    @property
    def rereads(self) -> bool:
        """Whether contents are compared although nothing else differs."""
        return self.checksum or self.rewrites

    @property
    def visits_all(self) -> bool:
        """Whether each entry is looked at, though the trees seem equal."""
        elsewhere = self.alternates is not None and self.alternates.changes_existing
        some = self.list_unchanged or self.keep_dirlinks or self.remove_source_files
        return self.rereads or some or elsewhere

    @property
    def removes(self) -> bool:
        """Whether the run may remove entries that the source lacks."""
        return self.delete or self.force

    @property
    def narrows(self) -> bool:
        """Whether some differences are skipped; `rdc.plan.skip_options` has the rules."""
        some = self.update or self.existing or self.ignore_existing or self.size_only
        return some or self.append or self.safe_links or self.bounds_sizes

    @property
    def follows(self) -> LinkChoice | None:
        """The symlinks that the source takes for what they lead to; None for no option about them."""
        if not (self.copy_links or self.copy_dirlinks or self.copy_unsafe_links):
            return None
        from rdc.model.symlinks import LinkChoice

        return LinkChoice(self.copy_links, self.copy_dirlinks, self.copy_unsafe_links)

    @property
    def nodes(self) -> frozenset[Kind]:
        """The kinds of fifos, sockets and devices that are wanted."""
        return (DEVICES if self.devices else frozenset()) | (
            NODES - DEVICES if self.specials else frozenset()
        )

    @property
    def maps_owners(self) -> bool:
        """Whether owners may become others than those of the same number."""
        return bool(self.usermap or self.groupmap or self.owner_names)

    @property
    def untimed(self) -> frozenset[Kind]:
        """Kinds of entries whose mtimes do not count."""
        kinds = ((Kind.DIRECTORY, self.omit_dir_times), (Kind.SYMLINK, self.omit_link_times))
        return frozenset(kind for kind, omitted in kinds if omitted)

    @property
    def overwrites(self) -> bool:
        """Whether new content is written into the files that are there."""
        return self.inplace or self.append

    @property
    def bounds_sizes(self) -> bool:
        """Whether files are skipped by size."""
        return self.min_size > 0 or self.max_size is not None

    def is_left_for_size(self, size: int) -> bool:
        """Whether a regular file of the source with `size` bytes is skipped."""
        return size < self.min_size or (self.max_size is not None and size > self.max_size)
