"""The answering side of a session: takes the role that the dialler asks for, on a tree of this machine."""

from __future__ import annotations

import os

from rdc import __version__
from rdc.catalog.location import user_catalog
from rdc.catalog.signer import FileSigner
from rdc.errors import ExitCode, ProtocolError, RdcError, printable
from rdc.protocol.connection import Connection
from rdc.protocol.messages import PROTOCOL_VERSION, Describe, Follow, Hello, Open, Opened, Role, Watch
from rdc.records import dataclass
from rdc.session.announcement import announced
from rdc.session.commands import Pace, Receive, Send
from rdc.session.news import News
from rdc.session.place import ANYWHERE, asked_attributes, keeps, open_destination, wants_listing
from rdc.tree.filters import FilterList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from rdc.chunking.params import ChunkParams
    from rdc.model.sync import SyncOptions
    from rdc.session.commands import Conversation
    from rdc.session.place import Site

__all__ = ["Admitted", "FollowedTree", "Following", "answer", "greeting", "serve_stdio"]


@dataclass(frozen=True, slots=True)
class Admitted:
    """What this side makes of an Open."""

    site: Site
    path: bytes
    """In `site`."""
    options: SyncOptions


def _as_asked(open_: Open) -> Admitted:
    """Whoever may start a process here may do what that process's user may."""
    return Admitted(ANYWHERE, open_.path or b".", open_.options)


def greeting(params: ChunkParams) -> Hello:
    return Hello(PROTOCOL_VERSION, f"rdc {__version__}", params.id)


@dataclass(frozen=True, slots=True)
class FollowedTree:
    """What a far side wants to have followed."""

    site: Site
    path: bytes
    """In `site`."""
    name: str
    """As the far side knows it."""
    options: SyncOptions
    secret: bytes
    signer: FileSigner
    follow: Follow


Following: TypeAlias = "Callable[[FollowedTree], Conversation[None]]"
"""The rest of a session whose far side said Follow."""


def answer(
    signer: FileSigner,
    admit: Callable[[Open], Admitted] = _as_asked,
    following: Following | None = None,
) -> Conversation[None]:
    """The conversation of the side that was dialled, whatever its role will be.

    `admit` decides what an Open may have; the RdcError that it raises is told to the far side. `following`:
    what follows a tree; None where nothing can.
    """
    received = yield Receive()
    if received is not None and isinstance(received.message, Hello):
        # Not in one process, where nobody has to be greeted.
        received = yield Receive()
    if received is None or not isinstance(received.message, Open):
        raise ProtocolError("expected Open")
    open_, round_ = received.message, received.round + 1
    admitted = admit(open_)
    site, path, options = admitted.site, admitted.path, admitted.options
    yield Pace(options.bandwidth, options.timeout)
    filters = FilterList(options.rules)
    news = News(None, items=options.items)
    if open_.role is Role.SOURCE:
        from rdc.session.source import Source
        from rdc.session.source_tree import SourceTree

        tree = SourceTree.open(path, site)
        try:
            yield Send(Opened(), round_)
            received = yield Receive()
            if received is not None and not isinstance(received.message, Follow):
                boundary = tree.boundary(options)
                half_ = Source(
                    tree,
                    filters,
                    open_.secret,
                    signer,
                    news,
                    boundary=boundary,
                    hard_links=options.hard_links,
                    kinds=asked_attributes(options),
                )
                yield from half_.run(received)
                return
        finally:
            tree.root.release()
        if received is None or not isinstance(received.message, Follow):
            raise ProtocolError("expected Describe or Follow")
        if following is None:
            raise RdcError(
                "this side cannot follow a directory: that needs Linux's inotify", code=ExitCode.USAGE
            )
        name = printable(open_.path)
        yield from following(FollowedTree(site, path, name, options, open_.secret, signer, received.message))
        return
    whole, kept = wants_listing(path, options, site), keeps(path, options, site)
    yield Send(Opened(), round_)
    yield Send(Describe(whole, kept), round_)
    received = yield Receive()
    if received is not None and isinstance(received.message, Watch):
        from rdc.session.standing import Standing

        standing = Standing(
            path,
            site,
            options,
            filters,
            open_.secret,
            signer,
            whole=whole,
            kept=kept,
        )
        yield from standing.run(received.message)
        return
    start, round_ = announced(received, None)
    from rdc.session.destination import Destination

    place = open_destination(path, start, options, site)
    try:
        half = Destination(
            place,
            start,
            options,
            filters,
            open_.secret,
            signer,
            news,
            whole=whole,
            kept=kept,
            settlements=signer.catalog,
        )
        yield from half.run(round_)
    finally:
        place.root.release()


def serve_stdio(following: Following | None = None) -> ExitCode:
    """Answers one session on stdin and stdout; the exit code is for the remote shell to pass on."""
    from rdc.session.driver import run
    from rdc.transport.stdio import StdioTransport

    catalog = user_catalog(os.environ)
    signer = FileSigner(catalog=catalog)
    transport = StdioTransport()
    try:
        run(answer(signer, following=following), Connection(False, greeting(signer.params)), transport)
    except RdcError as error:
        # The far side was told, and its user reads it there.
        return error.code
    except KeyboardInterrupt:
        # A Ctrl-C that reaches both sides is answered by the one that was typed at.
        return ExitCode.INTERRUPTED
    finally:
        transport.close()
        signer.close()
        catalog.close()
    return ExitCode.OK
