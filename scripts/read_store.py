#!/usr/bin/env python3
"""Restore a snapshot of a store of rdc without rdc: with Python, zstandard and blake3 alone.

It is the promise about the format (rdc/store/PACKS.md): it restores names, kinds, contents, permissions,
owners (as root), times, hard links, extended attributes and ACLs.

    read_store.py STORE              list the snapshots
    read_store.py STORE NUMBER DST   restore one into DST, which must not exist
"""

import glob
import os
import stat
import struct
import sys

import zstandard
from blake3 import blake3

KEY = 16  # bytes
FILE, DIRECTORY, SYMLINK = 0, 1, 2
NODES = {4: stat.S_IFIFO, 5: stat.S_IFSOCK, 6: stat.S_IFCHR, 7: stat.S_IFBLK}


def cut(data, width):
    return [data[at : at + width] for at in range(0, len(data), width)]


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


class DamagedError(SystemExit):
    """Ends the restore, unless another copy of the chunk is sound."""


class Taken:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        if self.at > len(self.data):
            raise DamagedError("damaged: a record is too short")
        return self.data[self.at - count : self.at]

    def unpack(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))

    def counted(self):
        return self.take(self.unpack("I")[0])


class Store:
    def __init__(self, path):
        self.path = path
        head = content_of(os.path.join(path, "store"))
        magic, version, id_ = struct.unpack_from("<8sI16s", head)
        if magic != b"RDCSTORE" or version != 1 or blake3(head[:-32]).digest() != head[-32:]:
            raise SystemExit(f"{path}: no store of version 1")
        self.key = blake3(id_, derive_key_context="rdc store 1 chunk keys").digest()
        self.chunks, self.decoded = {}, {}
        for name in glob.glob("packs/*/*.pack", root_dir=path):
            self.add(os.path.join(path, name))
        for copies in self.chunks.values():
            copies.sort(key=lambda copy: copy[0][5])  # those with few bases first

    def add(self, path):
        """Read the directory of a pack: where each chunk is."""
        data = content_of(path)
        offset, length, digest, _, _ = struct.unpack("<QQ32s8s8s", data[-64:])
        packed = data[offset : offset + length]
        if data[:8] != b"RDCPACK1" or blake3(packed, key=self.key).digest() != digest:
            raise SystemExit(f"{path}: damaged")
        columns = Taken(zstandard.ZstdDecompressor().decompress(packed))
        frames, chunks, bases = columns.unpack("III")
        kinds = columns.take(frames)
        stored, sizes, counts = (columns.unpack(f"{frames}I") for _ in range(3))
        columns.take(2 * frames)  # generations
        depths, base_counts = columns.take(frames), columns.unpack(f"{frames}H")
        base_keys = Taken(columns.take(KEY * bases))
        keys, lengths = cut(columns.take(KEY * chunks), KEY), columns.unpack(f"{chunks}I")
        at, chunk = 8, 0
        for number in range(frames):
            own_bases = cut(base_keys.take(KEY * base_counts[number]), KEY)
            frame = (path, at, stored[number], sizes[number], kinds[number], depths[number], own_bases)
            start = 0
            for one in range(chunk, chunk + counts[number]):
                self.chunks.setdefault(keys[one], []).append((frame, start, lengths[one]))
                start += lengths[one]
            at, chunk = at + stored[number], chunk + counts[number]

    def frame(self, frame):
        """Decode a frame. Its bases have less depth, so this ends."""
        path, at, stored, size, kind, depth, bases = frame
        if (path, at) not in self.decoded:
            prefix = b"".join(self.chunk(key, depth) for key in bases)
            with open(path, "rb") as file:
                file.seek(at)
                data = file.read(stored)
            if kind:
                raw = zstandard.ZstdCompressionDict(prefix, zstandard.DICT_TYPE_RAWCONTENT)
                data = zstandard.ZstdDecompressor(raw).decompress(data, max_output_size=size)
            if len(self.decoded) > 64:
                self.decoded.clear()
            self.decoded[path, at] = data
        return self.decoded[path, at]

    def chunk(self, key, below=256):
        """Return the first sound copy of a chunk among those of less depth than `below`."""
        for frame, start, length in self.chunks.get(key, ()):
            if frame[5] < below:
                try:
                    data = self.frame(frame)[start : start + length]
                except (DamagedError, OSError, zstandard.ZstdError):
                    continue
                if blake3(data, key=self.key).digest(KEY) == key:
                    return data
        raise DamagedError(f"damaged: no pack has a sound copy of chunk {key.hex()}")

    def content(self, level, keys):
        """Return the chunks of a stream. Those of a level above 0 are a list of keys."""
        for _ in range(level):
            keys = b"".join(map(self.chunk, cut(keys, KEY)))
        return map(self.chunk, cut(keys, KEY))

    def snapshot(self, number):
        data = content_of(os.path.join(self.path, "snapshots", str(number)))
        if data[:7] != b"RDCSNAP" or blake3(data[:-32], key=self.key).digest() != data[-32:]:
            raise SystemExit(f"snapshot {number}: damaged")
        fields = Taken(data[8:-32])
        numbers = fields.unpack("QqQQQQHqIIQB" + "Q" * (data[7:8] == b"2"))
        return numbers, [fields.counted() for _ in range(5)]


def settle(path, mode, mtime, uid, gid, packed, kind):
    if os.geteuid() == 0:
        os.lchown(path, uid, gid)
    fields = Taken(packed)  # extended attributes; POSIX ACLs are among them, in the kernel's form
    while fields.at < len(packed):
        os.setxattr(path, fields.take(fields.take(1)[0]), fields.counted(), follow_symlinks=False)
    if kind != SYMLINK:
        os.chmod(path, mode)
    os.utime(path, ns=(mtime, mtime), follow_symlinks=False)


def restore(store, number, destination):
    fixed, (_, _, _, top_attributes, tree_keys) = store.snapshot(number)
    tree = Taken(b"".join(store.content(fixed[11], tree_keys)))
    os.mkdir(destination)
    late, links = [(destination, *fixed[6:10], top_attributes, DIRECTORY)], {}
    while tree.at < len(tree.data):
        record = Taken(tree.counted())
        path_bytes, count, names, targets, grouped, sets, set_bytes, files = record.unpack("8I")
        here = os.path.join(destination, record.take(path_bytes))
        name_list, target_list = record.take(names).split(b"\0"), iter(record.take(targets).split(b"\0"))
        kinds = record.take(count)
        modes, sizes = record.unpack(f"{count}H"), record.unpack(f"{count}Q")
        mtimes = record.unpack(f"{count}q")
        uids, gids = record.unpack(f"{count}I"), record.unpack(f"{count}I")
        groups = record.unpack(f"{count}I") if grouped else (0,) * count
        set_fields = Taken(record.take(set_bytes))
        packed = [b"", *(set_fields.counted() for _ in range(sets))]
        set_numbers = record.unpack(f"{count}I") if sets else (0,) * count
        record.take(9 * files)  # traits
        levels, counts = record.take(files), record.unpack(f"{files}I")
        contents = map(lambda level, many: (level, record.take(32 + KEY * many)[32:]), levels, counts)
        for row in range(count):
            path, kind, size = os.path.join(here, name_list[row]), kinds[row], sizes[row]
            where = next(contents) if kind == FILE and size else (0, b"")
            meta = (modes[row], mtimes[row], uids[row], gids[row], packed[set_numbers[row]], kind)
            if (first := links.setdefault(groups[row] or path, path)) is not path:
                os.link(first, path, follow_symlinks=False)
                continue
            if kind == DIRECTORY:
                os.mkdir(path)
                late.append((path, *meta))
                continue
            if kind == SYMLINK:
                os.symlink(next(target_list), path)
            elif kind in NODES:
                os.mknod(path, NODES[kind], os.makedev(size >> 20, size & 0xFFFFF))
            else:
                with open(path, "xb") as file:
                    file.writelines(store.content(*where))
            settle(path, *meta)
    for one in reversed(late):
        settle(*one)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        restore(Store(sys.argv[1]), int(sys.argv[2]), os.fsencode(sys.argv[3]))
    elif len(sys.argv) == 2:
        for name in sorted(os.listdir(os.path.join(sys.argv[1], "snapshots")), key=int):
            (number, seconds, entries, *_), (series, *_) = Store(sys.argv[1]).snapshot(int(name))
            print(number, seconds, os.fsdecode(series), entries, "entries")
    else:
        raise SystemExit(__doc__)
