"""`rdc index DIR`: signs the files of a tree in advance, so that later jobs need not read them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rdc.cli.environment import HELP, Environment, OptionGroup, parse_words
from rdc.cli.options.own_places import CATALOG_OPTION, read_choice
from rdc.cli.options.shared_options import (
    DEPTH,
    FILTER_GROUP,
    MAX_RATE,
    read_depth,
    read_max_rate,
    read_rule_file,
    read_rules,
)
from rdc.cli.verb import HelpText
from rdc.errors import ExitCode, RdcError, worse
from rdc.model.options import Option
from rdc.progress import Problem, Progressed
from rdc.report.output import Bar, TerminalOutput, counted, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.catalog.catalog import Catalog
    from rdc.errors import FileError
    from rdc.survey.walk.walk_paths import StorageUse
    from rdc.tree.filters import FilterList


SUMMARY = "sign the files of a directory in advance, so that later syncs need not read them"

OPTIONS = (
    FILTER_GROUP,
    OptionGroup(
        "Options",
        (
            CATALOG_OPTION,
            DEPTH,
            MAX_RATE,
            Option(("-q", "--quiet"), "show only errors"),
            HELP,
        ),
    ),
)

_INTRODUCTION = """\
Usage: rdc index [OPTIONS] DIR...

Examples:
  rdc index backup/                     prepare backup/ for a later sync
  rdc index --exclude='*.tmp' data/     skip temporary files

Files that are in the catalog are not read. Files changed within the last seconds are read but not recorded,
because another change might leave their times as they are.
"""


help_text = HelpText(_INTRODUCTION, OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc index` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc index")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    if not parsed.operands:
        raise parsed.missing("rdc index needs a directory", "rdc index")
    from rdc.survey.walk.walk_paths import StorageUse

    choice, use = read_choice(parsed), StorageUse(read_depth(parsed), read_max_rate(parsed))
    rules = read_rules(parsed, lambda name: read_rule_file(name, environment))

    from rdc.tree import filter_list

    filters = filter_list(rules)
    terminal = IndexTerminal(environment.talk, environment.progress(quiet=parsed.has("--quiet")))
    with choice.catalog(environment.environ) as catalog:
        try:
            for operand in parsed.operands:
                _index(os.fsencode(operand), filters, use, catalog, terminal)
            catalog.flush()
        finally:
            terminal.close()
            for notice in catalog.take_notices():
                environment.talk(f"rdc: note: {notice}\n")
        if not parsed.has("--quiet"):
            environment.talk(terminal.counts(catalog.lost) + "\n")
        if catalog.lost:
            raise RdcError(
                f"{catalog.database.path}: the catalog could not be written; check its owner and permissions,"
                " the disk, and whether another process holds it",
                code=ExitCode.FILE_IO,
            )
    return terminal.code


def _index(
    path: bytes, filters: FilterList, use: StorageUse, catalog: Catalog, terminal: IndexTerminal
) -> None:
    from rdc.catalog.signer import FileSigner
    from rdc.files.root.root import Root
    from rdc.survey.indexing import TreeIndexer

    root = use.bind(Root.open(path))
    signer = FileSigner(catalog=catalog)
    try:
        for done in TreeIndexer(root, filters, signer, terminal.report).run():
            if done.error is not None:
                terminal.failed(done.error)
            else:
                terminal.signed(done.files, done.bytes, known=done.known)
    finally:
        signer.close()
        root.close()


class IndexTerminal(TerminalOutput):
    """Counts and displays. `talk` writes whole lines to stderr."""

    def __init__(self, talk: Callable[[str], None], bar: Bar | None) -> None:
        super().__init__(talk, talk, bar)
        self._files = 0
        self._known = 0
        self._bytes = 0
        self._bytes_read = 0
        self._failed = 0
        self.code = ExitCode.OK

    def report(self, event: object, /) -> None:
        """Print problems of the walk; a Reporter."""
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._problem(event)

    def signed(self, files: int, size: int, *, known: bool) -> None:
        """Count files that were signed. `size`: bytes of all these files."""
        self._files += files
        self._known += files if known else 0
        self._bytes += size
        self._bytes_read += 0 if known else size
        self(Progressed("compare", self._bytes, None))

    def failed(self, error: FileError) -> None:
        self._problem(Problem(error.code, error.path_bytes, str(error)))

    def counts(self, lost: int) -> str:
        read = self._files - self._known
        text = f"{counted(self._files, 'file')}: {self._known:,} known, {read:,} read"
        text += f" ({size_text(self._bytes_read)})"
        if self._failed:
            text += f", {self._failed:,} failed"
        return text + (f", {lost:,} not kept" if lost else "")

    def _problem(self, event: Problem) -> None:
        self._failed += 1
        self.code = worse(self.code, event.code)
        self(event)
