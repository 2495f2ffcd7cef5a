"""Options as keywords: `rdc.sync("a/", "b/", delete=True, exclude=["*.o"])`.

A function that takes a record of options takes the record's fields as keywords, too. Nothing is declared
twice: names, types and defaults are those of the record. Here is only what a keyword accepts beyond its
field: text for bytes, a list for a tuple, the text of the command line for a number (_forms), and the
keywords that several options of the command line make (_SHORT). `scripts/manual/stub.py` writes the same
signatures into rdc/__init__.pyi, from which editors and type checkers complete them.
"""

from __future__ import annotations

import os
import sys

from rdc.errors import UsageError
from rdc.lean.checks import found_type
from rdc.lean.enums import EnumType
from rdc.lean.records import Record, field_metadata, replace
from rdc.lean.typed import TypeVar
from rdc.model.options import Alternates, AlternateUse, Backup, Declared, FileList, parse_keep_undo
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    Reader: TypeAlias = Callable[[Any], object]

T = TypeVar("T")

_PATH = "str | bytes | os.PathLike[str]"
_PATHS = f"{_PATH} | Sequence[{_PATH}]"

_NESTED = {"CheckOptions": ("session", "check"), "WatchOptions": ("sync", "watch")}
"""Records that contain SyncOptions: in which field, and by which mark of a declaration they take part."""


class Keyword(Record):
    """One keyword of a function."""

    annotation: str
    """The types that it accepts, as rdc/__init__.pyi shows them."""
    default: object
    """The default of its field; None for a keyword without a field of its own."""
    field: str
    """The field that it makes, or a part of."""
    nested: str
    """The field of the record that has this field; "" for the record itself."""
    read: Reader | None
    """Makes the field's value of what was given; None: it is the value. Raises ValueError."""


def keywords_of(record: type) -> dict[str, Keyword]:
    """Return the keywords for the fields of a record of options, in their order."""
    return dict(_keywords(record))


def _keywords(record: type) -> Iterator[tuple[str, Keyword]]:
    nested, mark = _NESTED.get(record.__name__, ("", ""))
    for name, keyword in _own(record):
        if name != nested:
            yield name, keyword
    if nested:
        from rdc.model.sync import OPTIONS, SyncOptions

        taken = {name for name, declared in OPTIONS.items() if getattr(declared, mark)}
        for name, keyword in _own(SyncOptions):
            if keyword.field in taken:
                yield name, replace(keyword, nested=nested)


def _own(record: type) -> Iterator[tuple[str, Keyword]]:
    declared = {name: data["declared"] for name, data in field_metadata(record).items()}
    plain = record()
    names = vars(sys.modules[record.__module__])
    for name, annotation in record.__annotations__.items():
        accepted, read = _form(annotation, declared.get(name), names)
        default = getattr(plain, name)
        for short, (field, form, reader) in _SHORT.items():
            if field == name:
                yield short, Keyword(form, None, name, "", reader)
        yield name, Keyword(accepted, default, name, "", read)


def read_keywords(function: str, record: type[T], options: object, given: dict[str, object]) -> T:
    """Make a record of options of the keywords that `function` was called with.

    Raises TypeError for an unknown keyword, a wrong type and keywords beside `options`, as Python does for
    arguments that a function does not take; ValueError for a value out of range; and UsageError, as the
    command line does, for options that exclude each other.
    """
    known = keywords_of(record)
    if options is not None:
        raise TypeError(
            f"{function}: options= and the keyword {next(iter(given))}= are given; give options as keywords,"
            f" or all of them in one {record.__name__}"
        )
    fields: dict[str, dict[str, object]] = {"": {}}
    rules: list[object] = []
    for name in sorted(given, key=_rank):
        keyword = known.get(name)
        if keyword is None:
            raise TypeError(f"{function}() has no keyword {name!r}{_advice(name, known)}")
        value = given[name]
        if keyword.read is not None:
            try:
                value = keyword.read(value)
            except ValueError as error:
                raise ValueError(f"{function}.{name}: {error}") from None
        made = fields.setdefault(keyword.nested, {})
        if keyword.field == "rules" and isinstance(value, tuple):
            rules += value
            value = tuple(rules)
        elif keyword.field in made:
            others = [other for other in given if other != name and known[other].field == keyword.field]
            raise UsageError(f"{function}: {others[0]} and {name} exclude each other; give one of them")
        made[keyword.field] = value
    own = fields.pop("")
    if fields:
        from rdc.model.sync import SyncOptions

        for nested, inner in fields.items():
            made_inner: Any = inner
            own[nested] = SyncOptions(**made_inner)
    if rules:
        from rdc.tree import filter_list

        filter_list([rule for rule in rules if isinstance(rule, (FilterRule, DirectoryRules))])
    make: Any = record
    made_record: T = make(**own)
    return made_record


def _rank(name: str) -> int:
    """Rules come before `include`, and this before `exclude`: the first rule that matches decides."""
    return {"rules": 0, "include": 1, "exclude": 2}.get(name, 3)


def _advice(name: str, known: dict[str, Keyword]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


# --- what a keyword accepts beyond the type of its field ----------------------------------------------------


def _form(annotation: str, declared: Declared | None, names: dict[str, object]) -> tuple[str, Reader | None]:
    """Return what the keyword of a field accepts, and how it is read."""
    first, *others = annotation.split(" | ")
    rest = "".join(f" | {other}" for other in others if other not in {"str", "bytes"})
    if annotation in _FORMS:
        return _FORMS[annotation]
    form = _FORMS.get(annotation.removesuffix(" | None"))
    if form is not None:
        return f"{form[0]} | None", form[1]
    if declared is not None and declared.parse is not None and first in {"int", "bytes"}:
        parse = declared.parse
        shown = _PATH if first == "bytes" else "int | str"
        return shown + rest, lambda given: parse(given) if isinstance(given, str) else _path(given)
    if first in {"bytes", "str"} and "bytes" in {first, *others}:
        return _PATH + rest, _path
    kind = names.get(first)
    if isinstance(kind, EnumType):
        choose: Any = kind
        return f"{first} | str{rest}", lambda given: choose(given) if isinstance(given, str) else given
    return annotation, None


def _path(given: object) -> object:
    """Return the bytes of a path. A value of another type is for the record's check."""
    return os.fsencode(given) if isinstance(given, (str, os.PathLike)) else given


def _paths(given: object) -> object:
    if isinstance(given, (str, bytes, os.PathLike)):
        return (os.fsencode(given),)
    return tuple(map(_path, given)) if isinstance(given, (list, tuple)) else given


def _texts(given: object) -> object:
    return tuple(given) if isinstance(given, list) else given


def _rules(given: object) -> object:
    """Rules: each a record, or a text as of `--filter`."""
    if isinstance(given, (str, FilterRule, DirectoryRules)):
        given = [given]
    if not isinstance(given, (list, tuple)):
        return given
    from rdc.tree.rule_text import RuleListBuilder

    builder = RuleListBuilder(_read_file)
    found: list[object] = []
    for one in given:
        if not isinstance(one, str):
            found.append(one)
            continue
        before = len(builder.rules())
        builder.add_filter(os.fsencode(one))
        found += builder.rules()[before:]
    return tuple(found)


def _read_file(name: str) -> bytes:
    with open(name, "rb") as file:
        return file.read()


def _patterns(action: RuleAction) -> Reader:
    def read(given: object) -> object:
        patterns = _paths(given)
        if not isinstance(patterns, tuple):
            raise TypeError(
                f"{action.name.lower()}: expected a pattern or a list of them, found {found_type(given)}"
            )
        return tuple(FilterRule(action, pattern) for pattern in patterns)

    return read


def _listed(given: object) -> object:
    paths = _paths(given)
    return FileList(paths) if isinstance(paths, tuple) else given


def _backup(given: object) -> object:
    if isinstance(given, bool):
        return Backup(b"~") if given else None
    return Backup(os.fsencode(given)) if isinstance(given, str) else given


def _backup_directory(given: object) -> object:
    return None if given is None else Backup(b"", os.fsencode(given))  # type: ignore[arg-type] # it raises


def _alternates(use: AlternateUse) -> Reader:
    def read(given: object) -> object:
        paths = _paths(given)
        return Alternates(use, paths) if isinstance(paths, tuple) else given

    return read


def _sample(given: object) -> object:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return given
    from rdc.checking.records import Sample

    return Sample(given)


def _undo(given: object) -> object:
    return parse_keep_undo(given) if isinstance(given, str) else given


_RULE = "str | FilterRule | DirectoryRules"

_FORMS: dict[str, tuple[str, Reader | None]] = {
    "tuple[bytes, ...]": (_PATHS, _paths),
    "tuple[str, ...]": ("Sequence[str]", _texts),
    "tuple[Resolve, ...]": ("Sequence[Resolve]", _texts),
    "tuple[FilterRule | DirectoryRules, ...]": (f"{_RULE} | Sequence[{_RULE}]", _rules),
    "tuple[FilterRule, ...]": ("str | FilterRule | Sequence[str | FilterRule]", _rules),
    "FileList | None": (f"FileList | {_PATHS} | None", _listed),
    "Backup | None": ("Backup | bool | str | None", _backup),
    "KeepUndo | None": ("KeepUndo | str | None", _undo),
    "Sample | None": ("Sample | float | None", _sample),
}
"""The types that the keyword of a field accepts, by the annotation of the field."""

_SHORT: dict[str, tuple[str, str, Reader]] = {
    "include": ("rules", _PATHS, _patterns(RuleAction.INCLUDE)),
    "exclude": ("rules", _PATHS, _patterns(RuleAction.EXCLUDE)),
    "backup_dir": ("backup", f"{_PATH} | None", _backup_directory),
    "link_dest": ("alternates", _PATHS, _alternates(AlternateUse.LINK)),
    "compare_dest": ("alternates", _PATHS, _alternates(AlternateUse.COMPARE)),
    "copy_dest": ("alternates", _PATHS, _alternates(AlternateUse.COPY)),
}
"""Further keywords: the field that each makes, or a part of, what it accepts, and how it is read."""
