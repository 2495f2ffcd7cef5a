"""The report of a search: its totals, and results that are made when they are asked for."""

from __future__ import annotations

from rdc.documents.find.corpus import Corpus
from rdc.documents.find.search import Search
from rdc.errors import ExitCode
from rdc.lean.records import dataclass
from rdc.model.similar import DocumentOptions, DocumentReport
from rdc.survey.read.ordered_threads import usable_workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.documents.gather import Gathered
    from rdc.progress import Reporter, StopSignal

__all__ = ["search_report"]


@dataclass(frozen=True, slots=True)
class _Again:
    """An iterable that makes its items anew each time."""

    make: Callable[[], Iterator[object]]

    def __iter__(self) -> Iterator[object]:
        return self.make()


def search_report(
    gathered: Gathered,
    options: DocumentOptions,
    reporter: Reporter,
    stop: StopSignal | None,
    *,
    older: bool = False,
) -> DocumentReport:
    """Searches what was gathered. Of `options`, threshold and workers count. `older`: the last part is of an
    older corpus."""
    old = frozenset([len(gathered.parts) - 1]) if older else frozenset()
    corpus = Corpus(gathered.parts, gathered.blocks, old)
    search = Search(corpus, options.threshold, options.workers or usable_workers(), across=older)
    search.run(reporter, stop)
    code = ExitCode.PARTIAL if any(problem.code for problem in gathered.problems) else ExitCode.OK
    return DocumentReport(
        _Again(search.groups),  # type: ignore[arg-type] # the items are those of the method
        _Again(search.matches),  # type: ignore[arg-type]
        _Again(search.kept),  # type: ignore[arg-type]
        search.summary(gathered.left_out),
        code,
    )
