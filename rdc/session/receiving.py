"""What a destination brings its tree up with, whether whole trees are compared or only what changed."""

from __future__ import annotations

import contextlib

from rdc.errors import ExitCode, RdcError
from rdc.protocol.messages import Done
from rdc.session.deletion import Deletion
from rdc.session.directories import Directories
from rdc.session.extras import Extras
from rdc.session.landing import Landing
from rdc.session.tally import Tally
from rdc.session.transfer import Transfers
from rdc.session.transfer_context import TransferContext
from rdc.tree.manifest import Manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.signer import FileSigner
    from rdc.model.entries import Metadata
    from rdc.model.kept import Kept
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start
    from rdc.session.boundary import Boundary
    from rdc.session.left_alone import LeftAlone
    from rdc.session.leftovers import Leftovers
    from rdc.session.news import News
    from rdc.session.place import Place
    from rdc.session.wanted_attributes import WantedAttributes
    from rdc.tree.filters import FilterList
    from rdc.tree.hard_links import LinkTable

__all__ = ["Receiving"]


class Receiving:
    """The parts of one destination, which know each other."""

    def __init__(
        self,
        place: Place,
        start: Start,
        options: SyncOptions,
        filters: FilterList,
        secret: bytes,
        signer: FileSigner,
        leftovers: Leftovers,
        news: News,
        *,
        kept: Kept,
        seeks: bool,
        new: bool = False,
        pack: bool = True,
        boundary: Boundary | None = None,
        links: LinkTable | None = None,
        attributes: WantedAttributes | None = None,
    ) -> None:
        """`leftovers`: of earlier runs, as they are met. `kept`: what both sides keep. `seeks`, `pack`: as
        TransferContext has them. `new`: nothing is at the place yet. `boundary`: beyond which nothing is
        deleted. `links`, `attributes`: as Directories has them."""
        self._place = place
        self._options = options
        self._kept = kept
        self._news = news
        self.wanted = Manifest()
        self.landing = Landing(
            place.root, self.wanted, news, fsync=options.fsync, owner=kept.owner, dry=options.dry_run
        )
        self.landing.attributes = attributes
        self.tally = Tally(news)
        context = TransferContext(
            place.root,
            self.wanted,
            self.landing,
            leftovers,
            secret,
            signer,
            news,
            self.tally,
            fsync=options.fsync,
            dry=options.dry_run,
            seeks=seeks,
            pack=pack,
        )
        self.transfers = Transfers(context)
        self.deletion = Deletion(
            place.root,
            filters,
            news,
            limit=options.max_delete,
            dry=options.dry_run,
            boundary=boundary,
        )
        self.extras = Extras(
            place.root,
            options,
            filters,
            self.deletion,
            news,
            single=bool(start.only),
            boundary=boundary,
        )
        self.left: LeftAlone | None = None
        """What the options leave alone, where links or attributes have to know it."""
        if options.narrows and not (links is None and attributes is None):
            from rdc.session.left_alone import LeftAlone

            self.left = LeftAlone()
        self.directories = Directories(
            place.root,
            start,
            options,
            self.wanted,
            self.landing,
            self.transfers,
            self.extras,
            news,
            kept=kept,
            new=new,
            links=links,
            attributes=attributes,
            left=self.left,
        )

    def link(self, links: LinkTable, read_errors: int) -> None:
        """Gives files their further names, now that all else is in place."""
        from rdc.session.linking import Linking

        linking = Linking(
            self._place.root,
            self.wanted,
            self.landing,
            self.transfers,
            self.directories,
            self.extras,
            self._news,
            kept=self._kept,
            dry=self._options.dry_run,
            fsync=self._options.fsync,
            by_size=self._options.size_only and not self._options.checksum,
        )
        linking.run(links, read_errors)

    def attribute(self, attributes: WantedAttributes, top: Metadata | None, *, adopted: bool) -> None:
        """Sets extended attributes, now that nothing else will change an entry. `top`: the root directory's
        own metadata, where its attributes count. `adopted`: all were right before this run."""
        from rdc.session.attribution import Attribution

        attribution = Attribution(
            self._place.root,
            self.wanted,
            attributes,
            self.landing,
            self._news,
            kept=self._kept,
            dry=self._options.dry_run,
            fsync=self._options.fsync,
            left=self.left,
        )
        within = self.directories.worked_in if adopted else None
        attribution.run(top, within=within)

    def wind_down(self) -> None:
        """An interruption, or a full disk: what is complete lands, what is not stays for the next run."""
        self.transfers.close()
        with contextlib.suppress(RdcError):
            self.landing.flush()
        self.landing.abandon()

    def account(self, code: ExitCode) -> Done:
        """What was done."""
        return Done(
            self.landing.changed,
            self.deletion.deleted,
            self.tally.literal_bytes,
            self.tally.reused_bytes,
            self._news.errors,
            code,
        )
