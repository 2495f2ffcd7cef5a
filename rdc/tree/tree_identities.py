"""TreeIdentities: which entry each row of a walked tree was, beside the manifest of the tree."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from rdc.lean.records import replace
from rdc.model.entries import Identities, PackedInodes, little_endian_integers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Listing
    from rdc.tree.manifest import Manifest

__all__ = ["TreeIdentities"]


class TreeIdentities:
    """Inode numbers and ctimes: 16 bytes a row. Devices take 16 bytes for each run of rows on one device."""

    def __init__(self, manifest: Manifest) -> None:
        """`manifest`: has kinds, sizes and mtimes of the same rows. Each directory is added to both."""
        self._manifest = manifest
        self._inodes = bytearray()
        self._ctimes = bytearray()
        self._run_firsts = array("Q")
        self._run_devices = array("Q")

    def add(self, inodes: PackedInodes) -> None:
        """Append the next directory of the walk."""
        first = len(self._inodes) // 8
        count = len(inodes.inodes) // 8
        self._inodes += inodes.inodes
        self._ctimes += inodes.ctimes
        known = self._run_devices[-1].to_bytes(8, "little") * count if self._run_devices else b""
        if inodes.devices != known:
            for row, device in enumerate(little_endian_integers("Q", inodes.devices)):
                if not self._run_devices or device != self._run_devices[-1]:
                    self._run_firsts.append(first + row)
                    self._run_devices.append(device)

    def listing(self, directory: int) -> Listing:
        """Return all entries of a directory of the manifest, with their identities."""
        manifest = self._manifest
        first, end = manifest.firsts[directory], manifest.end(directory)
        inodes = PackedInodes(
            self._devices(first, end),
            bytes(self._inodes[8 * first : 8 * end]),
            bytes(4 * (end - first)),
            bytes(8 * (end - first)),
            bytes(self._ctimes[8 * first : 8 * end]),
        )
        identities = Identities(
            bytes(manifest.kinds[first:end]),
            bytes(manifest.sizes[8 * first : 8 * end]),
            bytes(manifest.mtimes[8 * first : 8 * end]),
            inodes,
        )
        return replace(manifest.listing(directory), identities=identities)

    def _devices(self, first: int, end: int) -> bytes:
        """Return the devices of rows [first, end)."""
        packed = bytearray()
        run = bisect_right(self._run_firsts, first) - 1
        while first < end:
            stop = self._run_firsts[run + 1] if run + 1 < len(self._run_firsts) else end
            packed += self._run_devices[run].to_bytes(8, "little") * (min(stop, end) - first)
            first, run = stop, run + 1
        return bytes(packed)
