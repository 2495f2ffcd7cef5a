"""`--clean=DIR`: the documents that stay, in files like those that they came from."""

from __future__ import annotations

import os
import zlib

from rdc.documents.read.file_kinds import FileKind, Packing, json_decoder, packing_of
from rdc.documents.read.file_units import opened_stream, place_of
from rdc.documents.read.json_lines import BYTE_ORDER_MARK, UNPACK_ERRORS, line_blocks, spans_of
from rdc.documents.reread.wanted import changed_since, wanted_files
from rdc.errors import ExitCode, FileError, StoppedError, one_line, printable
from rdc.files.own.output_file import Output, OutputKind, make_result_directory, write_output
from rdc.lean.typed import Protocol
from rdc.progress import Problem, Progressed, Reporter, StopSignal, check_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rdc.documents.find.corpus import Corpus
    from rdc.documents.read.file_units import FileUnit, UnitList
    from rdc.documents.reread.wanted import Wanted
    from rdc.files.objects.object_file import ObjectFile
    from rdc.files.root.source_file import SourceFile

CLEANED_FILE = OutputKind("a file of --clean", None)
"""It may look like any input, so it replaces nothing."""


class CleanCopy:
    """Writes one file for each file with documents that stay."""

    def __init__(
        self,
        directory: bytes,
        units: UnitList,
        corpus: Corpus,
        field: str,
        reporter: Reporter,
        stop: StopSignal | None,
    ) -> None:
        self._directory = directory
        self._units = units
        self._corpus = corpus
        self._field = field
        self._reporter = reporter
        self._stop = stop

    def write(self, numbers: Iterable[int], total: int) -> ExitCode:
        """Write `total` documents, whose numbers increase. Each file is written completely or not at all.

        A file that changed since it was compared is reported and not written. Raises StoppedError, and
        RdcError if a file cannot be written.
        """
        done, code = 0, ExitCode.OK

        def counted(documents: Iterable[Wanted]) -> Iterator[Wanted]:
            nonlocal done
            for document in documents:
                check_stop(self._stop)
                self._reporter(Progressed("write", done, total))
                done += 1
                yield document

        for file, documents in wanted_files(self._units, self._corpus, numbers):
            try:
                self._write_file(file, counted(documents))
            except FileError as error:
                if error.path_bytes != file.paths[0]:
                    raise
                code = error.code or ExitCode.PARTIAL
                self._reporter(Problem(code, file.paths[0], f"{error}; {self._missing(file)}"))
        self._reporter(Progressed("write", total, total))
        return code

    def _missing(self, file: FileUnit) -> str:
        return f"it is missing in {printable(self._directory)}"

    def _write_file(self, file: FileUnit, documents: Iterator[Wanted]) -> None:
        path = file.paths[0]
        target = os.path.join(self._directory, place_of(path))
        make_result_directory(os.path.dirname(target))
        try:
            source = self._units.files.open(file.rows[0])
        except FileError as error:
            raise FileError(path, str(error), code=error.code) from error
        with source:
            write_output(Output(target, CLEANED_FILE), _content(source, file, documents, self._field))


def _content(
    source: SourceFile | ObjectFile, file: FileUnit, documents: Iterator[Wanted], field: str
) -> Iterator[bytes]:
    """Yield the content of the copy of one file. Raises FileError with the path of the file."""
    path = file.paths[0]
    try:
        source.rest()
        if file.kind is FileKind.TEXT:
            yield _whole(source, next(documents))
        elif file.kind is FileKind.PARQUET:
            from rdc.documents.reread.parquet_copy import kept_rows

            with opened_stream(source) as stream:
                yield from kept_rows(path, stream, field, documents)
        else:
            with opened_stream(source) as stream:
                yield from _packed(path, _kept_lines(spans_of(path, stream), field, documents, path))
    except StoppedError:
        raise
    except FileError as error:
        raise FileError(path, str(error), code=error.code) from error
    except UNPACK_ERRORS as error:
        shown = one_line(str(error) or type(error).__name__)
        raise FileError(path, f"{printable(path)}: cannot read it again: {shown}") from error


def _whole(source: SourceFile | ObjectFile, document: Wanted) -> bytes:
    content = source.whole()
    if not document.is_text(content.removeprefix(BYTE_ORDER_MARK)):
        raise changed_since(document.path)
    return content


def _kept_lines(
    spans: Iterator[bytes], field: str, documents: Iterator[Wanted], path: bytes
) -> Iterator[bytes]:
    """Yield the lines of documents that stay, byte by byte as they are."""
    loads = json_decoder().decode
    row, wanted = 0, next(documents, None)
    for block in line_blocks(spans):
        lines: list[bytes | None] = [None]
        if block is not None:
            lines = [*bytes(block).split(b"\n")]
        kept = []
        for line in lines:
            row += 1
            if wanted is None or row != wanted.row:
                continue
            if line is None or not wanted.is_text(_text(line, field, loads)):
                raise changed_since(path)
            kept.append(line + b"\n")
            wanted = next(documents, None)
        if kept:
            yield b"".join(kept)
        if wanted is None:
            return
    raise changed_since(path)


def _text(line: bytes, field: str, loads: Callable[[str], object]) -> bytes:
    """Return the text of a line; nothing for a line without one, which no document has become."""
    try:
        found = loads(line.removeprefix(BYTE_ORDER_MARK).decode())
        text = found[field] if isinstance(found, dict) else ""
        return text.encode() if isinstance(text, str) else b""
    except (KeyError, ValueError, RecursionError):
        return b""


class _Packer(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def _packed(path: bytes, spans: Iterator[bytes]) -> Iterator[bytes]:
    """Pack the content of a file as its name says."""
    packing = packing_of(path)
    if packing is Packing.NONE:
        yield from spans
        return
    packer: _Packer
    if packing is Packing.GZIP:
        packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    else:
        import zstandard

        packer = zstandard.ZstdCompressor().compressobj()
    for span in spans:
        yield packer.compress(span)
    yield packer.flush()
