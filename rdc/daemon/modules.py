"""What a peer may do in a module, and the module's directory as all there is."""

from __future__ import annotations

import contextlib
import errno
import os

from rdc.errors import ExitCode, FileError, RdcError, TrustError, UsageError
from rdc.files.allowance import Allowance
from rdc.files.confined import Root
from rdc.model.entries import Kind
from rdc.protocol.messages import Role
from rdc.records import replace
from rdc.session.serve import Admitted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rdc.daemon.config import Module
    from rdc.protocol.messages import Open

__all__ = ["ModuleSite", "admit", "requested_module"]


def requested_module(open_: Open, modules: Mapping[str, Module], names: frozenset[str]) -> Module:
    """The module that an Open names, if a peer trusted as `names` may enter it.

    Raises TrustError. That a module does not exist and that it is not for this peer is one answer: who may
    not enter learns no names.
    """
    name, _, _ = open_.path.partition(b"/")
    module = modules.get(os.fsdecode(name))
    if module is None or not module.allow & names:
        raise TrustError(f"there is no module '{os.fsdecode(name)}' for this key")
    return module


def admit(open_: Open, module: Module) -> Admitted:
    """What a peer of `module` gets. Raises TrustError for what the module does not allow."""
    options, name = open_.options, module.name
    if open_.role is Role.SOURCE:
        if module.write_only:
            raise TrustError(f"module '{name}' is write-only: nothing can be fetched from it")
    elif module.read_only:
        raise TrustError(f"module '{name}' is read-only")
    elif options.delete and module.no_delete:
        raise TrustError(f"nothing may be deleted in module '{name}': leave out --delete")
    elif options.owner and not module.owners:
        raise TrustError(f"module '{name}' keeps no owners: leave out --owner")
    idle = module.limits.idle_seconds
    if options.timeout > idle:
        raise UsageError(
            f"module '{name}' gives up after {idle} seconds of silence: --timeout={idle} is the most it takes"
        )
    _, _, path = open_.path.partition(b"/")
    owner = options.owner if module.owners else False
    return Admitted(ModuleSite(module), path, replace(options, owner=owner, timeout=options.timeout or idle))


class ModuleSite:
    """Paths below a module's directory, reached component by component and never through a link.

    What a path names is decided by descriptors, so a link that another peer puts in its way meanwhile is
    refused like one that was there before. Raises RdcError (11) where the module's directory is not there.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._allowance = Allowance(module.limits.written)
        self._label = os.fsencode(module.name)
        self._top().close()

    def _top(self) -> Root:
        """The module's directory, reached anew each time: a session that stays open would otherwise keep it
        from being unmounted, and go on in one that another file system has taken the place of.

        Raises RdcError (11) where it is gone or has become a link; names no path of this machine, since the
        text goes to the peer.
        """
        try:
            directory = Root.open(b"/").directory(os.fsencode(self._module.path).strip(b"/"))
        except FileError as error:
            raise RdcError(
                f"module '{self._module.name}' is not available: its directory is missing, or a link took its"
                " place",
                code=ExitCode.FILE_IO,
            ) from error
        return self._rooted(os.dup(directory.fd), self._label)

    def open(self, path: bytes, *, create: bool = False, writable: bool = False) -> Root:
        inner = self._inner(path)
        with contextlib.closing(self._top()) as top:
            if inner and top.kind(inner) is None:
                if not create:
                    raise top.refused(
                        inner,
                        "open it",
                        expected="a directory",
                        found="nothing",
                        advice="check the spelling and run again",
                    )
                top.make_directory(inner)
            fd = os.dup(top.directory(inner).fd)
        root = self._rooted(fd, self._label + b"/" + inner if inner else self._label)
        if writable and os.fstatvfs(fd).f_flag & os.ST_RDONLY:
            raise root.failure(OSError(errno.EROFS, ""), b"", "write below it")
        return root

    def _rooted(self, fd: int, label: bytes) -> Root:
        return Root(fd, label, self._allowance)

    def has(self, path: bytes) -> bool:
        return self._kind(path) is not None

    def has_directory(self, path: bytes) -> bool:
        return self._kind(path) is Kind.DIRECTORY

    def is_bare(self, path: bytes) -> bool:
        kind = self._kind(path)
        if kind is not Kind.DIRECTORY:
            return kind is None
        try:
            with contextlib.closing(self._top()) as top:
                fd = os.open(
                    b".",
                    os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC,
                    dir_fd=top.directory(self._inner(path)).fd,
                )
        except (FileError, OSError):
            return False
        try:
            with os.scandir(fd) as entries:
                return next(entries, None) is None
        finally:
            os.close(fd)

    def _kind(self, path: bytes) -> Kind | None:
        inner = self._inner(path)
        if not inner:
            return Kind.DIRECTORY
        try:
            with contextlib.closing(self._top()) as top:
                return top.kind(inner)
        except FileError:
            return None  # a link or a file on the way: what opens it says so

    def _inner(self, path: bytes) -> bytes:
        components = [name for name in path.split(b"/") if name not in (b"", b".")]
        if b".." in components:
            shown = os.fsdecode(self._label + b"/" + path)
            raise FileError(path, f"{shown}: expected a path inside the module, found '..' in it")
        return b"/".join(components)
