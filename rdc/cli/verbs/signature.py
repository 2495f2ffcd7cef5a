"""`rdc signature FILE`: the signature tree of one file, as rdc itself would use it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence

from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words, read_size
from rdc.cli.options.own_places import CATALOG_GROUP, CatalogChoice, read_choice
from rdc.cli.verb import HelpText
from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.model.options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.chunking import ChunkParams
    from rdc.signature.tree import Level, SignatureTree


SUMMARY = "print the signature tree of a file"

SCHEMA = 1
"""The value of `schema` in the JSON form. A new field keeps it; a renamed or removed one raises it."""

OPTIONS = (
    OptionGroup(
        "Options",
        (
            Option(("--json",), "print one JSON object on stdout"),
            Option(("--mean",), "mean chunk size, such as 4096 or 16K (default: what rdc sync uses)", "SIZE"),
            HELP,
        ),
    ),
    CATALOG_GROUP,
)

_INTRODUCTION = """\
Usage: rdc signature [OPTIONS] FILE

Examples:
  rdc signature disk.img                   root digest, similarity traits and size of each level
  rdc signature --json --mean 8192 x.tar   the same for scripts, with smaller chunks

Two files with the same root and parameters have the same content.
"""

SignFile = Callable[[bytes, "ChunkParams"], "SignatureTree"]


help_text = HelpText(_INTRODUCTION, OPTIONS)


def run(words: Sequence[str], environment: Environment, *, sign_file: SignFile | None = None) -> ExitCode:
    """Run `rdc signature` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc signature")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    if len(parsed.operands) != 1:
        raise UsageError(f"one FILE is needed, {len(parsed.operands)} were given (see rdc signature --help)")
    params = _params(parsed)
    path = os.fsencode(parsed.operands[0])
    _check_is_file(path)
    tree = _signed(path, params, read_choice(parsed)) if sign_file is None else sign_file(path, params)
    environment.data(_json(path, tree) if parsed.has("--json") else _text(path, tree))
    return ExitCode.OK


def _check_is_file(path: bytes) -> None:
    name = printable(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError as error:
        raise RdcError(f"{name}: nothing there to sign; check the path") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise RdcError(f"{name}: cannot look at it: {reason}; check the path") from error
    if stat.S_ISDIR(mode):
        raise RdcError(f"{name}: expected a file, found a directory; rdc index signs the files of one")
    if not stat.S_ISREG(mode):
        raise RdcError(
            f"{name}: expected a regular file, found a device, pipe or socket; copy its content first"
        )


def _signed(path: bytes, params: ChunkParams, choice: CatalogChoice) -> SignatureTree:
    from rdc.catalog.catalog import opened_catalog
    from rdc.library.streams import sign_file
    from rdc.progress import silent

    with choice.store() as chosen, opened_catalog(chosen, silent) as catalog:
        return sign_file(path, params, catalog)


def _params(words: Words) -> ChunkParams:
    from rdc.chunking import SYNC_PARAMS, ChunkParams

    mean = words.last("--mean")
    if mean is None:
        return SYNC_PARAMS
    return ChunkParams.for_mean(read_size("--mean", mean.value))


def _mean(tree: SignatureTree, level: Level) -> float:
    """Return the mean bytes of the file per item of `level`; 0 for an empty file."""
    return tree.size / level.items if tree.size else 0.0


def _json(path: bytes, tree: SignatureTree) -> str:
    import json

    from rdc.report.json_output import path_fields

    levels = [
        {
            "level": number,
            "records": level.records,
            "bytes": level.bytes,
            "mean": round(_mean(tree, level), 1),
        }
        for number, level in enumerate(tree.levels)
    ]
    text = json.dumps(
        {
            "schema": SCHEMA,
            **path_fields(path),
            "size": tree.size,
            "root": tree.root.hex(),
            "params": tree.params.id.hex(),
            "traits": tree.traits.hex(),
            "levels": levels,
        }
    )
    return text.replace("\x7f", "\\u007f") + "\n"


def _text(path: bytes, tree: SignatureTree) -> str:
    from rdc.report.output import exact_text, size_text

    lines = [
        f"path    {printable(path)}",
        f"size    {exact_text(tree.size)}",
        f"root    {tree.root.hex()}",
        f"params  {tree.params.id.hex()}",
        f"traits  {tree.traits.hex() or '-'}",
        f"{'level':>5}  {'records':>12}  {'signature':>12}  {'mean':>10}",
    ]
    for number, level in enumerate(tree.levels):
        mean = size_text(round(_mean(tree, level)))
        lines.append(f"{number:>5}  {level.records:>12,}  {size_text(level.bytes):>12}  {mean:>10}")
    return "\n".join(lines) + "\n"
