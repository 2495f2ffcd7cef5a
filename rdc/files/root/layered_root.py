"""LayeredRoot: directories of one tree, shown as another tree: some entries of each, and several as one."""

from __future__ import annotations

import errno
import os
from stat import S_ISLNK

from rdc.errors import FileError
from rdc.files.base.metadata import KIND_OF_FORMAT, stat_entry
from rdc.files.base.paths import check_path, join, reserved_rows
from rdc.files.root.followed_links import UnfollowedError
from rdc.files.root.lister import listed_of
from rdc.files.root.root import Root
from rdc.lean.records import Record, replace
from rdc.limits import DIRECTORY_BYTES
from rdc.model.entries import BadCall, BadEntry, Kind, Listed, strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.depth import Looking
    from rdc.files.root.followed_links import FollowedLinks
    from rdc.files.root.policies import ReadPolicy


class Layer(Record):
    """A real directory that gives entries to a shown one."""

    path: bytes
    """Below the base of the LayeredRoot."""
    names: Collection[bytes] | None
    """The entries that it gives; None: all."""


class PackedNames:
    """Names in the bytes that they have, of which a frozenset takes a hundred more for each."""

    __slots__ = ("_count", "_packed")

    def __init__(self, packed: bytes) -> None:
        """`packed`: the names, each once, with NUL after each."""
        self._packed = packed
        self._count = packed.count(b"\0")

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[bytes]:
        return iter(strings(self._packed))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, bytes) and b"\0" + name + b"\0" in b"\0" + self._packed


class LayeredRoot(Root):
    """A Root for reading only. Paths are those of the shown tree; every one leads to one real entry.

    An entry keeps its name, so an operation acts on that name in a real directory. Where several layers have
    a name, the first one wins, but a directory wins over other kinds, and directories become one, with the
    metadata of the first. All real directories are below one base, and no link is followed on the way, but
    for those that are followed.
    """

    def __init__(
        self,
        base: Root,
        layers: Mapping[bytes, Sequence[Layer]],
        top: bytes,
        reads: ReadPolicy,
        links: FollowedLinks | None = None,
    ) -> None:
        """Show `layers` as one tree below `base`, a Root above all layers, which stays open until this is
        released.

        `layers`: of the shown directories that have several layers or not all entries; b"" is among them.
        `top`: the real directory whose metadata b"" has. `links`: are shown as what they lead to before
        layers become one, so a link to a directory is a directory; None: no link is followed.
        """
        super().__init__(os.dup(base.fileno()), base.label, replace(reads, followed=links))
        self._base = base.having(
            replace(base.reads, followed=links, keeps_atimes=reads.keeps_atimes, depth=reads.depth)
        )
        self._top = top
        self._layers = {path: tuple(some) for path, some in layers.items()}
        self._givers: dict[bytes, dict[bytes, Layer]] = {}
        """For each listed directory of several layers: the layer of each entry that is no such directory."""
        self._links = links

    def release(self) -> None:
        self._base.release()
        super().release()

    @property
    def base(self) -> Root:
        return self._base

    def real(self, path: bytes) -> bytes:
        """Return the path below the base of the entry at `path`."""
        if not path:
            return self._top
        known = self._layers.get(path)
        if known is not None:
            return known[0].path
        above, _, rest = path.rpartition(b"/")
        while (layers := self._layers.get(above)) is None:
            above, _, name = above.rpartition(b"/")
            rest = name + b"/" + rest
        if len(layers) == 1:
            return join(layers[0].path, rest)
        first = rest.partition(b"/")[0]
        giver = self._givers.get(above, {}).get(first)
        return join((giver or self._first_with(above, layers, first)).path, rest)

    def _first_with(self, above: bytes, layers: Sequence[Layer], name: bytes) -> Layer:
        """Return the layer that gives `name`, before `above` was listed; the first one if none does."""
        found = [
            layer
            for layer in layers
            if (layer.names is None or name in layer.names)
            and self._base.kind(join(layer.path, name)) is not None
        ]
        return (found or list(layers))[0]

    def reals(self, path: bytes) -> tuple[bytes, ...]:
        """Return the paths below the base of all directories that are shown as the one at `path`."""
        return tuple(dict.fromkeys(layer.path for layer in self._layers_of(path)))

    def _layers_of(self, path: bytes) -> Sequence[Layer]:
        found = self._layers.get(path)
        return (Layer(self.real(path), None),) if found is None else found

    # What the operations of Root go through

    def shown(self, path: bytes) -> bytes:
        return super().shown(self.real(path))

    def find(self, path: bytes, *, fresh: bool = False) -> tuple[Directory, bytes]:
        return super().find(self.real(path), fresh=fresh)

    def directory(self, path: bytes, *, fresh: bool = False, reading: bool = False) -> Directory:
        """Return the directory, as Root does; raise FileError for a directory of several layers."""
        check_path(path)
        if len(self._layers_of(path)) > 1:
            raise FileError(path, "a directory of several layers has no descriptor")
        try:
            real = self.real(path)
            if self._links is not None and (referent := self._links.referent(real)) is not None:
                return self._links.top.directory(referent, fresh=fresh, reading=reading)
            cached = None if fresh else self._directories.trusted(real)
            return self._directories.get_fresh(real) if cached is None else cached
        except OSError as error:
            raise self.failure(error, path, "open the directory", reading=reading) from error

    def top(self) -> Directory:
        return self._base.directory(self._top)

    def beneath(self, paths: bytes) -> bytes:
        return b"".join([self.real(path) + b"\0" for path in strings(paths)])

    def spread(self, path: bytes, names: bytes) -> Iterator[tuple[Root, bytes, Sequence[int], bytes]]:
        layers = self._layers_of(path)
        every = strings(names)
        if len(layers) == 1:
            yield self._base, layers[0].path, range(len(every)), names
            return
        parents: dict[bytes, list[int]] = {}
        for row, name in enumerate(every):
            parents.setdefault(self.real(join(path, name)).rpartition(b"/")[0], []).append(row)
        for parent, rows in parents.items():
            yield self._base, parent, rows, b"".join([every[row] + b"\0" for row in rows])

    # Listings

    def viewed(self, path: bytes, listed: Listed) -> Listed:
        return self.restated(path, listed)  # the layers' links were followed one by one

    @property
    def lists_ahead(self) -> bool:
        """False: the layers of a directory are known only from the one above it."""
        return False

    def list_unviewed(
        self, path: bytes, *, limit: int = DIRECTORY_BYTES, looking: Looking | None = None
    ) -> Listed:
        layers = self._layers_of(path)
        if len(layers) == 1 and layers[0].names is None:
            real = layers[0].path
            listed = self._base.list_unviewed(real)
            return listed if self._links is None else self._links.shown_as(path, self._base, real, listed)
        found: dict[bytes, tuple[Layer, os.stat_result]] = {}
        parents: dict[bytes, list[Layer]] = {}
        bad: dict[bytes, BadEntry] = {}
        for layer in layers:
            for name, entry in self._entries(path, layer, bad):
                earlier = found.get(name)
                is_directory = _kind(entry) == Kind.DIRECTORY
                if is_directory:
                    parents.setdefault(name, []).append(layer)
                if earlier is None or (is_directory and _kind(earlier[1]) != Kind.DIRECTORY):
                    found[name] = layer, entry
        names = sorted(found.keys() - bad)
        reserved = [names[row] for row in reserved_rows(names)]
        for row in reversed(reserved_rows(names)):
            del names[row]
        self._remember(path, layers, {name: found[name][0] for name in names}, parents)
        targets = self._targets([name for name in names if S_ISLNK(found[name][1].st_mode)], found, bad)
        stats = {
            name: found[name][1] for name in names if name in targets or not S_ISLNK(found[name][1].st_mode)
        }
        return listed_of(stats, targets, reserved, [bad[name] for name in sorted(bad)])

    def _entries(
        self, path: bytes, layer: Layer, bad: dict[bytes, BadEntry]
    ) -> Iterator[tuple[bytes, os.stat_result]]:
        """Yield what a layer gives the directory at `path`. Entries that vanish are left out, and links that
        are to be followed and cannot be. Entries that cannot be looked at are added to `bad`."""
        directory = self._base.directory(layer.path, reading=True)
        if layer.names is None:
            listed = self._base.list_unviewed(layer.path)
            bad.update((one.name, one) for one in listed.bad)
            chosen = [*strings(listed.listing.names), *listed.reserved]
        else:
            chosen = sorted(layer.names)
        for name in chosen:
            call = BadCall.STAT
            try:
                entry = stat_entry(name, directory.fd)
                if self._links is None or not S_ISLNK(entry.st_mode):
                    yield name, entry
                    continue
                call = BadCall.READ_LINK
                target = os.readlink(name, dir_fd=directory.fd)
            except FileNotFoundError:
                continue
            except OSError as error:
                bad[name] = BadEntry(name, error.errno or errno.EIO, call, is_directory=False)
                continue
            shown = join(path, name)
            try:
                found = self._links.follow(self._base, layer.path, name, target, entry=shown)
            except UnfollowedError as reason:
                self._links.report(shown, target, reason)
                continue
            yield name, entry if found is None else found

    def _remember(
        self,
        path: bytes,
        layers: Sequence[Layer],
        givers: dict[bytes, Layer],
        parents: Mapping[bytes, Sequence[Layer]],
    ) -> None:
        """Note which layers the entries of a listed directory come from."""
        if len(layers) == 1:
            return
        for name, some in parents.items():
            entry = join(path, name)
            one = len({layer.path for layer in some}) == 1
            if name not in givers or (one and entry not in self._layers):
                continue
            below = dict.fromkeys(join(layer.path, name) for layer in some)
            named = [layer for layer in self._layers.get(entry, ()) if layer.path in below]
            known = {layer.path for layer in named}
            self._layers[entry] = (*named, *(Layer(real, None) for real in below if real not in known))
        self._givers[path] = givers

    def _targets(
        self,
        names: Sequence[bytes],
        found: Mapping[bytes, tuple[Layer, os.stat_result]],
        bad: dict[bytes, BadEntry],
    ) -> dict[bytes, bytes]:
        """Return the targets of these links, but for those that vanish or cannot be read."""
        targets: dict[bytes, bytes] = {}
        for name in names:
            directory = self._base.directory(found[name][0].path, reading=True)
            try:
                targets[name] = os.readlink(name, dir_fd=directory.fd)
            except FileNotFoundError:
                continue
            except OSError as error:
                bad[name] = BadEntry(name, error.errno or errno.EIO, BadCall.READ_LINK, is_directory=False)
        return targets


def _kind(entry: os.stat_result) -> int:
    return KIND_OF_FORMAT[entry.st_mode >> 12]
