"""The metadata that both ends of a sync can preserve, and therefore compare.

What one end cannot keep is neither compared nor set, and never written back to the end that it came from.
"""

from __future__ import annotations

from array import array
from struct import Struct

from rdc.lean.enums import IntEnum, IntFlag
from rdc.lean.records import Record, replace
from rdc.limits import ATTRIBUTE_NAME_BYTES, ATTRIBUTE_SET_BYTES, ATTRIBUTE_VALUE_BYTES
from rdc.model.entries import (
    ALL_FIELDS,
    NODES,
    ComparedFields,
    Kind,
    Listing,
    Metadata,
    PackedListing,
    little_endian,
    little_endian_integers,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias


# Extended attributes of an entry: their kinds, and their only form in digests and messages.
#
# An access time counts as one more attribute: like the others it is set last of all, since reading changes
# it.

Attributes: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""Names and values, in the order of the names."""

ACCESS_ACL = b"system.posix_acl_access"
DEFAULT_ACL = b"system.posix_acl_default"

ACCESS_TIME = b"atime"
"""Names the access time among the attributes: whole seconds since the epoch, i64 little-endian. No extended
attribute of Linux has such a name, since each begins with a namespace and a dot."""

ACCESS_TIME_BYTES = 8

FAKED_PREFIX = b"user.rsync.%"
"""Begins the names of attributes that keep what --fake-super may not set."""

_OWNER, _NAMED_USER, _OWNING_GROUP, _NAMED_GROUP, _MASK, _OTHERS = 1, 2, 4, 8, 16, 32
"""Tags of an ACL's entries."""

UNREADABLE = b"\0"
"""Replaces a packed set that could not be read; the destination leaves the entry's attributes unchanged."""


class AttributeKinds(IntFlag):
    """Kinds of extended attributes. The values are part of the protocol."""

    NONE = 0
    USER = 1
    """user.*: data that programs keep with a file."""
    ROOT = 2
    """trusted.* and security.capability, which only root can set. Labels of security modules (such as
    security.selinux) belong to a machine and its policy: they are neither sent, nor set, nor removed."""
    ACL = 4
    """POSIX ACLs: rights of users and groups beyond the mode, and defaults for new entries of a directory."""
    ACCESS_TIME = 8
    """Access times, of regular files and special files. Those of directories and symlinks change whenever a
    sync looks at them."""

    def of(self, kind: int) -> AttributeKinds:
        """Return the kinds that are kept of an entry of this Kind."""
        if kind in (Kind.DIRECTORY, Kind.SYMLINK):
            return self & ~AttributeKinds.ACCESS_TIME
        return AttributeKinds.NONE if kind == Kind.SPECIAL else self

    def chosen(self, attributes: Attributes) -> Attributes:
        """Return the attributes of these kinds."""
        return tuple(pair for pair in attributes if self.has(pair[0]))

    def has(self, name: bytes) -> bool:
        """Return whether an attribute with this name is of one of these kinds. Those in which rsync keeps
        what --fake-super may not set are of none."""
        if name.startswith(FAKED_PREFIX):
            return False
        if name.startswith(b"user."):
            return bool(self & AttributeKinds.USER)
        if name in (ACCESS_ACL, DEFAULT_ACL):
            return bool(self & AttributeKinds.ACL)
        if name == ACCESS_TIME:
            return bool(self & AttributeKinds.ACCESS_TIME)
        # XFS shows each of its ACLs to root under a second name.
        trusted = name.startswith(b"trusted.") and not name.startswith(b"trusted.SGI_ACL_")
        return (trusted or name == b"security.capability") and bool(self & AttributeKinds.ROOT)


def pack_attributes(attributes: Attributes) -> bytes:
    """Return the packed form: b"" for none; otherwise per attribute, by name: length of the name u8, name,
    length of the value u32 little-endian, value. Only equal sets have equal forms."""
    return b"".join(
        [
            len(name).to_bytes(1, "little") + name + len(value).to_bytes(4, "little") + value
            for name, value in sorted(attributes)
        ]
    )


def unpack_attributes(packed: bytes) -> Attributes:
    """Return the inverse of pack_attributes. ValueError for anything that it would not produce, or that
    exceeds a limit."""
    if len(packed) > ATTRIBUTE_SET_BYTES:
        raise ValueError(f"a set of {len(packed)} bytes, the limit is {ATTRIBUTE_SET_BYTES}")
    found: list[tuple[bytes, bytes]] = []
    at = 0
    while at < len(packed):
        start = at + 1
        name = packed[start : start + packed[at]]
        at = start + packed[at] + 4
        size = int.from_bytes(packed[at - 4 : at], "little")
        if at > len(packed) or size > ATTRIBUTE_VALUE_BYTES or at + size > len(packed):
            raise ValueError("lengths of a set that do not add up")
        if not name or b"\0" in name or len(name) > ATTRIBUTE_NAME_BYTES:
            raise ValueError(f"a name of {len(name)} bytes, or with a NUL")
        if found and name <= found[-1][0]:
            raise ValueError("names of a set that do not increase")
        if name == ACCESS_TIME and size != ACCESS_TIME_BYTES:
            raise ValueError(f"an access time of {size} bytes")
        found.append((name, packed[at : at + size]))
        at += size
    return tuple(found)


def mode_with_acl(mode: int, acl: bytes) -> int:
    """Return the permission bits that an entry with `mode` has once it has got this access ACL."""
    entries = {
        int.from_bytes(acl[at : at + 2], "little"): int.from_bytes(acl[at + 2 : at + 4], "little") & 7
        for at in range(4, len(acl) - 7, 8)
    }
    user, others = entries.get(_OWNER, mode >> 6 & 7), entries.get(_OTHERS, mode & 7)
    group = entries.get(_MASK, entries.get(_OWNING_GROUP, mode >> 3 & 7))
    return mode & ~0o777 | user << 6 | group << 3 | others


def bits_before_acl(acl: bytes) -> int:
    """Return the rights of group and others, as permission bits 0o00 to 0o77, that a mode may grant until the
    entry has its access ACL. They include nothing that the ACL denies; 0 if `acl` is not understood.

    The mode of an entry with an ACL has the mask in its group bits, which may grant more than the ACL grants
    the group. An ACL may also grant named users and groups less than the group or others that they belong to.

    The form is that of system.posix_acl_access (acl(5), linux/posix_acl_xattr.h): u32 version 2, then per
    entry tag u16, permissions u16, id u32, all little-endian.
    """
    if acl[:4] != b"\2\0\0\0":
        return 0
    entries = [
        (int.from_bytes(acl[at : at + 2], "little"), int.from_bytes(acl[at + 2 : at + 4], "little") & 7)
        for at in range(4, len(acl) - 7, 8)
    ]
    mask = min([bits for tag, bits in entries if tag == _MASK], default=7)
    group = min([bits & mask for tag, bits in entries if tag == _OWNING_GROUP], default=None)
    if group is None:
        return 0
    others = 7
    for tag, bits in entries:
        if tag == _NAMED_USER:
            group &= bits & mask
        if tag in (_NAMED_USER, _NAMED_GROUP):
            others &= bits & mask
    return group << 3 | others


_SECOND = 1_000_000_000

GRANULARITIES = (
    1,
    100,
    1_000,
    1_000_000,
    10_000_000,
    _SECOND,
    2 * _SECOND,
    60 * _SECOND,
    86_400 * _SECOND,
)
"""Granularities of mtimes in nanoseconds: 1 (ext4, xfs, btrfs, tmpfs), 100 (ntfs, SMB), 1 us (udf), 1 ms, 10
ms (exfat), 1 s (ext3, ext4 with small inodes, hfs+), 2 s (fat), a minute (listings of FTP), a day (object
stores, some archives). Each divides the next, so two file systems both preserve what the coarser one does."""

ALL_MODES = 0o7777
_SET_ID = 0o6000
"""The setuid and setgid bits."""
_SET_GROUP_ID = 0o2000
_PLAIN = 0o777

_TIMED_APART = frozenset((Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK))
"""The kinds that `untimed` may hold. Special files go with regular files."""


class Rounding(IntEnum):
    """The direction in which a time between two multiples is rounded. The values are part of the protocol."""

    DOWN = 0
    NEAREST = 1
    UP = 2
    ABOUT = 3
    """To no multiple, but to less than a step away, as where a floating-point number holds it."""


class Granularity(Record):
    """The rounding of an mtime: a multiple of `step`, unless `rounding` is ABOUT."""

    step: int = 1
    """Nanoseconds, one of GRANULARITIES."""
    rounding: Rounding = Rounding.DOWN

    def of(self, mtime_ns: int) -> int:
        """Return the multiple that the file system makes of an mtime; with ABOUT, one that stands for most
        times that are less than a step away. A multiple stays as it is."""
        if is_distant(mtime_ns):
            return packed_time(self._rounded(real_time(mtime_ns)))
        return self._rounded(mtime_ns)

    def _rounded(self, mtime_ns: int) -> int:
        if self.rounding in (Rounding.NEAREST, Rounding.ABOUT):
            mtime_ns += self.step // 2
        elif self.rounding is Rounding.UP:
            mtime_ns += self.step - 1
        return mtime_ns - mtime_ns % self.step

    def alike(self, given_ns: int, found_ns: int) -> bool:
        """Return whether the file system may have made `found_ns` of an mtime `given_ns`."""
        if self.is_vague:
            return _apart(given_ns, found_ns) < self.step
        return self.of(given_ns) == found_ns

    @property
    def is_vague(self) -> bool:
        return self.rounding is Rounding.ABOUT


EXACT = Granularity()


class Preserved(Record):
    """The preserved metadata of an entry. Sizes and link targets are always preserved.

    What one end preserves has `granularity` alone. What both do, as `both` returns it, has that of the
    destination there and the source's in `source_granularity`. Each end's times are reduced by the *other*
    end's granularity (`at_source`, `at_destination`): its own times are multiples of its own already. If they
    are not, since what was known of its file system is wrong, they differ, which costs a comparison and hides
    no change. A time that may be of either end is reduced by both.
    """

    owner: bool
    """True if uid and gid are. Without them the setuid and setgid bits are not either: under another owner
    they would grant other rights."""
    granularity: Granularity = EXACT
    modes: int = ALL_MODES
    """The permission bits that are preserved of entries other than directories and symlinks."""
    attributes: AttributeKinds = AttributeKinds.NONE
    """The kinds of extended attributes that are."""
    group: bool = True
    """True if the gid is, where `owner` is true."""
    directory_modes: int = ALL_MODES
    """The permission bits that are preserved of directories."""
    untimed: frozenset[Kind] = frozenset()
    """The kinds whose mtimes are not preserved, of FILE (special files included), DIRECTORY and SYMLINK. If
    the mtimes of two regular files are equal, these are unchanged; if not, their contents decide."""
    unmade: frozenset[Kind] = frozenset()
    """The kinds that cannot exist, of SYMLINK and SPECIAL (fifos, sockets and devices): their absence does
    not mean that they were deleted."""
    source_granularity: Granularity = EXACT

    def both(self, source: Preserved) -> Preserved:
        """Return what remains if the destination preserves this and the source `source`.

        The set-id bits of a source without owners say nothing, so the destination's stay.
        """
        both, of_owners = self.also(source), 0 if source.owner else _SET_ID
        return replace(
            both,
            granularity=self.granularity,
            modes=both.modes & ~of_owners,
            directory_modes=both.directory_modes & ~of_owners,
            source_granularity=source.granularity,
        )

    def also(self, other: Preserved) -> Preserved:
        """Return what remains of entries of one end that is subject to this and to `other`."""
        owner = self.owner and other.owner
        return Preserved(
            owner,
            max(self.granularity, other.granularity, key=lambda one: one.step),
            self.modes & other.modes,
            self.attributes & other.attributes,
            not owner or (self.group and other.group),
            self.directory_modes & other.directory_modes,
            self.untimed | other.untimed,
            self.unmade | other.unmade,
        )

    @property
    def at_source(self) -> Preserved:
        """Return what both ends preserve, with the granularity by which the source's times are reduced."""
        if self.source_granularity == EXACT:
            return self
        return replace(self, granularity=self._vaguest or self.granularity, source_granularity=EXACT)

    @property
    def at_destination(self) -> Preserved:
        """Return what both ends preserve, with the granularity by which the destination's times are
        reduced."""
        if self.granularity == self.source_granularity == EXACT:
            return self
        mine = self._vaguest or self.source_granularity
        return replace(self, granularity=mine, source_granularity=EXACT)

    @property
    def _vaguest(self) -> Granularity | None:
        """The granularity by which the times of both ends are reduced; None if each is reduced by the
        other's. Times of the coarser end that are no multiples have to be."""
        coarser = max(self.granularity, self.source_granularity, key=lambda one: one.step)
        return coarser if coarser.is_vague else None

    # Modes

    def modes_of_kind(self, kind: int) -> int:
        """Return the permission bits that are preserved of entries of this Kind. Linux stores none for
        symlinks."""
        if kind == Kind.DIRECTORY:
            return self.directory_modes
        return 0 if kind == Kind.SYMLINK else self.modes

    @property
    def keeps_all_modes(self) -> bool:
        return self.modes == self.directory_modes == ALL_MODES

    def mode(self, mode: int) -> int:
        """Return the part of a source's mode that is announced."""
        if not self.owner:
            return mode & ~_SET_ID
        return mode if self.group else mode & ~_SET_GROUP_ID

    def metadata(self, metadata: Metadata) -> Metadata:
        """Return the part of the metadata of a source's entry that is announced."""
        mode = self.mode(metadata.mode)
        return metadata if mode == metadata.mode else replace(metadata, mode=mode)

    def modes_of(self, column: bytes | bytearray) -> bytes | bytearray:
        """Return the announced part of a column of modes, u16 little-endian; the column itself if that is
        all."""
        if (self.owner and self.group) or not column:
            return column
        high = column[1::2]
        announced = high.translate(_high_bytes(self.mode(ALL_MODES)))
        if announced == high:
            return column
        modes = bytearray(column)
        modes[1::2] = announced
        return bytes(modes)

    def replaced_mode(self, wanted: Metadata, existing: Metadata) -> int:
        """Return the mode of a file that gets new content. Bits that are not preserved stay, but without
        owners no set-id bit does: it vouched for the old content."""
        mode = self.onto(wanted, existing, Kind.FILE).mode
        return mode if self.owner else mode & ~_SET_ID

    def announced(self, listing: PackedListing) -> PackedListing:
        """Return the announced part of a source's entries. Their mtimes are announced as they are."""
        modes = self.modes_of(listing.modes)
        return listing if modes is listing.modes else replace(listing, modes=bytes(modes))

    def listing(self, listing: Listing) -> Listing:
        """Return the announced part of a Listing."""
        unannounced = ALL_MODES & ~self.mode(ALL_MODES)
        if not unannounced or not any(mode & unannounced for mode in listing.modes):
            return listing
        return replace(listing, modes=array("H", map(self.mode, listing.modes)))

    def made_mode(self, kind: int, mode: int, umask: int) -> int:
        """Return the mode of a new entry that is announced with `mode`: bits that are not preserved are
        granted as far as `umask` lets, like those of any new entry."""
        kept = ALL_MODES if kind == Kind.SYMLINK else self.modes_of_kind(kind)
        return mode & kept | mode & ~kept & ~umask & _PLAIN

    def made_modes(self, modes: bytes | bytearray, kinds: bytes | bytearray, umask: int) -> bytes | bytearray:
        """Return a column of announced modes, u16 little-endian, as new entries get them."""
        integers = little_endian_integers("H", modes)
        made = [self.made_mode(kind, mode, umask) for mode, kind in zip(integers, kinds, strict=True)]
        return little_endian(array("H", made))

    def compared_modes(self, modes: bytes | bytearray, kinds: bytes | bytearray) -> bytes | bytearray:
        """Return the preserved part of a column of modes, u16 little-endian; the column itself if that is
        all."""
        if self.keeps_all_modes:
            return modes
        masks = [self.modes_of_kind(kind) for kind in range(256)] if kinds else []
        integers = little_endian_integers("H", modes)
        return little_endian(
            array("H", [mode & masks[kind] for mode, kind in zip(integers, kinds, strict=True)])
        )

    # Times

    @property
    def is_coarse(self) -> bool:
        """Return whether two versions of a file may well have one mtime, so that equal ones prove nothing."""
        return max(self.granularity.step, self.source_granularity.step) > _TRUSTED_STEP

    @property
    def keeps_all_times(self) -> bool:
        """Return whether the mtimes of all entries are preserved to the nanosecond."""
        return not self.untimed and self.granularity == self.source_granularity == EXACT

    def is_timed(self, kind: int) -> bool:
        """Return whether mtimes of entries of this Kind are preserved."""
        return (kind if kind in _TIMED_APART else Kind.FILE) not in self.untimed

    def same_time(self, wanted_ns: int, existing_ns: int) -> bool:
        """Return whether the destination's mtime is what both file systems make of the source's."""
        if wanted_ns == existing_ns or self.granularity.step == self.source_granularity.step == 1:
            return wanted_ns == existing_ns
        vague = self._vaguest
        if vague is not None and _apart(wanted_ns, existing_ns) < vague.step:
            return True
        return self.granularity.of(wanted_ns) == self.source_granularity.of(existing_ns)

    def mtime(self, mtime_ns: int) -> int:
        """Return the preserved part of an mtime."""
        if self.granularity.step == self.source_granularity.step == 1:
            return mtime_ns
        return self.granularity.of(self.source_granularity.of(mtime_ns))

    def top_mtime(self, mtime_ns: int) -> int:
        """Return the compared part of the root directory's mtime."""
        return self.mtime(mtime_ns) if self.is_timed(Kind.DIRECTORY) else 0

    def mtimes(self, column: bytes | bytearray, kinds: bytes | bytearray) -> bytes | bytearray:
        """Return the compared part of a column of mtimes, i64 little-endian; the column itself if that is
        all.

        Those of regular files are always compared, and as they are where they prove little: to call two trees
        equal without a look at the contents takes equal times.
        """
        untimed = self.untimed - {Kind.FILE} if self.untimed else self.untimed
        whole = Kind.FILE in self.untimed or self.is_coarse
        if Kind.FILE in self.untimed:
            untimed |= NODES | {Kind.SPECIAL}
        exact = self.granularity == self.source_granularity == EXACT
        if exact and not any(bytes((kind,)) in kinds for kind in untimed):
            return column
        integers = little_endian_integers("q", column)
        of = self.mtime
        return little_endian(
            array(
                "q",
                [
                    0 if kind in untimed else mtime if whole and kind == Kind.FILE else of(mtime)
                    for mtime, kind in zip(integers, kinds, strict=True)
                ],
            )
        )

    # What is set

    def onto(self, wanted: Metadata, now: Metadata, kind: int) -> Metadata:
        """Return `wanted` for an entry that has the metadata `now`, which keeps what is not preserved.
        Without owners, no set-id bit is wanted.

        An mtime that both file systems take for the wanted one stays as well: that of an original is finer
        than that of its copy.
        """
        kept = ALL_MODES if kind == Kind.SYMLINK else self.modes_of_kind(kind)
        stays = not self.is_timed(kind) or self.same_time(wanted.mtime_ns, now.mtime_ns)
        return Metadata(
            self.mode(wanted.mode) & kept | now.mode & ~kept,
            now.mtime_ns if stays else wanted.mtime_ns,
            wanted.uid if self.owner else now.uid,
            wanted.gid if self.owner and self.group else now.gid,
        )


EVERYTHING = Preserved(owner=True)

_VAGUENESS = 1000
"""The step of an inexact time, as a multiple of its error. Rounding to the step then differs between the time
that is kept and the one that was meant in one case of this many; each of these costs a comparison."""

_VAGUEST_STEP = _SECOND
_TRUSTED_STEP = 2 * _SECOND


def _high_bytes(kept: int) -> bytes:
    """Return a table of bytes.translate for the high byte of a mode, which leaves the bits `kept`."""
    return bytes(byte & kept >> 8 for byte in range(256))


def _apart(one_ns: int, other_ns: int) -> int:
    """Return the nanoseconds between two times."""
    return abs(real_time(one_ns) - real_time(other_ns))


def granularity_of(times: Sequence[tuple[int, int]], least: int = 1) -> Granularity | None:
    """Return the finest granularity, with steps from `least` on, by which mtimes given to a file system
    became those found afterwards; None if none explains them all. `times`: pairs of both, in nanoseconds."""
    error = max(_apart(given, found) for given, found in times)
    for step in GRANULARITIES:
        if step < least:
            continue
        for rounding in (Rounding.DOWN, Rounding.NEAREST, Rounding.UP):
            granularity = Granularity(step, rounding)
            if all(granularity.of(given) == found for given, found in times):
                return granularity
        if error * _VAGUENESS <= step <= _VAGUEST_STEP:
            return Granularity(step, Rounding.ABOUT)
    return None


# Packed times: any time that a file system can hold, as one 64-bit integer.
#
# A time from 1678 to 2261 is packed as its nanoseconds since the epoch. File systems hold others, too: signed
# 64-bit seconds, and nanoseconds. Such a *distant* time is packed as a **stamp**: 52 bits of a digest of it,
# below all nanoseconds for the past, above them for the future. So columns keep their width. Equal times have
# equal stamps, different times have different ones but for one pair in 2^52, and a stamp compares rightly
# with nanoseconds. Two stamps say nothing about the order of their times: take `real_time` of both.
#
# The time of a stamp is looked up among those that this process has packed. A message that has stamps has
# their times, too (rdc/protocol/wire/fields.py).

FIRST_NS = -9_214_560_000 * 10**9
"""1678-01-01: the first time that is packed as nanoseconds."""

END_NS = 9_214_646_400 * 10**9
"""2262-01-01: the first time after them."""

REMEMBERED_TIMES = 1 << 20
"""Distant times that a process remembers. A further one is packed as the nearest time that is not distant."""

_INT64_MIN = -(1 << 63)
_STAMP_BITS = 52
_STAMPED = Struct("<qI")
STAMPED_BYTES = _STAMPED.size
"""Bytes of a distant time in a message: seconds (i64, rounded down) and nanoseconds (u32)."""

_times: dict[int, int] = {}


def is_distant(packed: int) -> bool:
    """Return whether a packed time is a stamp."""
    return not FIRST_NS <= packed < END_NS


def packed_time(nanoseconds: int) -> int:
    """Return the packed form of a time, given as nanoseconds since the epoch."""
    if FIRST_NS <= nanoseconds < END_NS:
        return nanoseconds
    from blake3 import blake3

    digest = int.from_bytes(blake3(stamped_form(nanoseconds)).digest(8), "little")
    digest &= (1 << _STAMP_BITS) - 1
    # The least and the greatest integers of 64 bits are no stamps: the C code has them for any distant time.
    stamp = _INT64_MIN + 1 + digest if nanoseconds < 0 else END_NS + digest
    if stamp not in _times:
        if len(_times) >= REMEMBERED_TIMES:
            return FIRST_NS if nanoseconds < 0 else END_NS - 1
        _times[stamp] = nanoseconds
    return stamp


def packed_times(nanoseconds: list[int]) -> list[int]:
    """Return the packed forms of times."""
    if not nanoseconds or (min(nanoseconds) >= FIRST_NS and max(nanoseconds) < END_NS):
        return nanoseconds
    return [packed_time(one) for one in nanoseconds]


def is_known_time(packed: int) -> bool:
    """Return whether `real_time` knows the time: not that of a stamp at rest that this process has not
    made."""
    return FIRST_NS <= packed < END_NS or packed in _times


def real_time(packed: int) -> int:
    """Return the nanoseconds since the epoch of a packed time. Raises KeyError for a stamp that this process
    has not made."""
    if FIRST_NS <= packed < END_NS:
        return packed
    return _times[packed]


def nearest_time(packed: int) -> int:
    """Return the nanoseconds since the epoch of a packed time, or for a stamp that this process has not made,
    such as one of a file at rest, the nearest time that is not distant."""
    if FIRST_NS <= packed < END_NS:
        return packed
    return _times.get(packed, FIRST_NS if packed < 0 else END_NS - 1)


def stamped_form(nanoseconds: int) -> bytes:
    """Return the STAMPED_BYTES of a time in messages."""
    return _STAMPED.pack(*divmod(nanoseconds, _SECOND))


def stamped(packed: int) -> bytes:
    """Return the STAMPED_BYTES of the time of a stamp."""
    return stamped_form(real_time(packed))


def time_of_stamped(form: bytes) -> int:
    """Return the stamp of a distant time in a message. Raises ValueError for bytes that are none."""
    seconds, rest = _STAMPED.unpack(form)
    nanoseconds: int = seconds * _SECOND + rest
    if rest >= _SECOND or FIRST_NS <= nanoseconds < END_NS:
        raise ValueError(f"{seconds} s and {rest} ns are no distant time")
    return packed_time(nanoseconds)


# Facts about a file system: the metadata that it keeps, and which of its answers are reliable.

ALL_KEPT = Preserved(
    owner=True,
    attributes=AttributeKinds.USER | AttributeKinds.ROOT | AttributeKinds.ACL | AttributeKinds.ACCESS_TIME,
)
"""The metadata of a file system that keeps everything."""


class FileSystemFacts(Record):
    """The default of each field is what Linux promises of a local file system."""

    keeps: Preserved = ALL_KEPT
    stable: ComparedFields = ALL_FIELDS
    """The parts of an entry's stat that stay as they are while nobody changes the entry. Inode numbers are
    not stable where a file system gives an entry another one once it was forgotten (FAT, many FUSE and
    network file systems). Change times are not where it returns the mtime or the time of day."""
    steady: bool = True
    """Metadata can be set while a file is open, and stay when it is closed and renamed."""
    no_replace: bool = True
    """A rename that is told to replace nothing does not replace anything. It may fail."""
    hard_links: bool = True
    """A file can have several names, and they show that they are of one file."""
    syncs: bool = True
    """fsync is not refused. The trial asks for none; the first one of a run does."""

    @property
    def is_plain(self) -> bool:
        """Return whether each call does what it says, so that nothing has to be looked at again. Times may be
        coarse."""
        keeps = replace(
            self.keeps, granularity=ALL_KEPT.granularity, attributes=ALL_KEPT.attributes, unmade=frozenset()
        )
        return keeps == ALL_KEPT and self.steady and self.no_replace and not self.keeps.granularity.is_vague


PLAIN = FileSystemFacts()
