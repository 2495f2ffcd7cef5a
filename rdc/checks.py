"""Checks of types at the public border: one TypeError that names the field or the argument.

Records that a caller passes to the library check their fields when they are made. Events and the records of
single entries are made by the million, and only by rdc, so they are not checked.

typing.get_type_hints would load typing and compile each annotation, so this module reads the few forms that
such records use: names, `X | Y`, `tuple[X, ...]`.
"""

from __future__ import annotations

import builtins
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_argument", "check_buffer", "check_callable", "check_fields", "check_method", "found_type"]


class _Kind:
    """One alternative of an annotation: a type, and for `tuple[X, ...]` the alternatives of its items."""

    __slots__ = ("items", "type")

    def __init__(self, type_: type, items: tuple[_Kind, ...] | None) -> None:
        self.type = type_
        self.items = items


class _Field:
    __slots__ = ("exact", "kinds", "name", "text")

    def __init__(self, name: str, text: str, kinds: tuple[_Kind, ...]) -> None:
        self.name = name
        self.text = text
        self.kinds = kinds
        self.exact = {kind.type for kind in kinds if kind.items is None}
        """The types that need no closer look: nearly every value has one of them."""


_FIELDS: dict[type, tuple[_Field, ...]] = {}


def check_fields(record: object) -> None:
    """Checks all fields of a record against their annotations. Raises TypeError for the first wrong one.

    A bool is no int here, although Python says so: `max_delete=True` is a mistake. An int is a float.
    """
    cls = type(record)
    fields = _FIELDS.get(cls)
    if fields is None:
        fields = _FIELDS[cls] = _read_fields(cls)
    for field in fields:
        value = getattr(record, field.name)
        if type(value) not in field.exact and not _is_one_of(value, field.kinds):
            raise _wrong_field(cls.__name__, field, value)


def _read_fields(cls: type) -> tuple[_Field, ...]:
    names = {**vars(builtins), **vars(sys.modules[cls.__module__])}
    # inspect.get_annotations would load inspect.
    annotations: dict[str, str] = cls.__dict__.get("__annotations__", {})  # noqa: RUF063
    return tuple(_Field(name, text, _kinds(text, names)) for name, text in annotations.items())


def _kinds(text: str, names: dict[str, object]) -> tuple[_Kind, ...]:
    """Reads an annotation. Alternatives within brackets are those of tuple[...], which has one item type."""
    inside = text.partition("[")[2]
    if inside and "|" not in text.partition("[")[0] and text.endswith(", ...]"):
        return (_Kind(tuple, _kinds(inside.removesuffix(", ...]"), names)),)
    found: list[_Kind] = []
    for part in text.split(" | "):
        named = type(None) if part == "None" else names[part]
        if not isinstance(named, type):
            raise TypeError(f"{part}: an annotation that rdc.checks cannot read")
        found.append(_Kind(named, None))
    return tuple(found)


def _is_one_of(value: object, kinds: tuple[_Kind, ...]) -> bool:
    return any(
        _is_a(value, kind.type)
        # mypy knows no narrowing by kind.type
        and (kind.items is None or all(_is_one_of(item, kind.items) for item in value))  # type: ignore[attr-defined]
        for kind in kinds
    )


def _is_a(value: object, expected: type) -> bool:
    if isinstance(value, bool):
        return expected is bool or expected is object
    return isinstance(value, (int, float)) if expected is float else isinstance(value, expected)


def _wrong_field(owner: str, field: _Field, value: object) -> TypeError:
    items = field.kinds[0].items
    if items is not None and isinstance(value, tuple):
        for number, item in enumerate(value):
            if not _is_one_of(item, items):
                text = field.text.removeprefix("tuple[").removesuffix(", ...]")
                return _wrong(f"{owner}.{field.name}[{number}]", text, item)
    return _wrong(f"{owner}.{field.name}", field.text, value)


def _wrong(subject: str, expected: str, value: object) -> TypeError:
    return TypeError(f"{subject}: expected {expected}, found {found_type(value)}")


def found_type(value: object) -> str:
    """Returns the name of a value's type for a message."""
    return "None" if value is None else type(value).__name__


def check_argument(function: str, name: str, value: object, *kinds: type | None) -> None:
    """Raises TypeError unless `value` is an instance of one of `kinds`. None stands for itself."""
    for kind in kinds:
        if value is None if kind is None else _is_a(value, kind):
            return
    raise _wrong(f"{function}.{name}", _joined(kinds), value)


def _joined(kinds: Sequence[type | None]) -> str:
    return " | ".join("None" if kind is None else kind.__name__ for kind in kinds)


def check_callable(function: str, name: str, value: object) -> None:
    """Raises TypeError unless `value` can be called."""
    if not callable(value):
        raise _wrong(f"{function}.{name}", "a function", value)


def check_method(function: str, name: str, value: object, method: str) -> None:
    """Raises TypeError unless `value` has the method `method`."""
    if not callable(getattr(value, method, None)):
        raise _wrong(f"{function}.{name}", f"an object with {method}()", value)


def check_buffer(function: str, name: str, value: object) -> None:
    """Raise TypeError unless `value` is bytes or another contiguous buffer."""
    try:
        with memoryview(value) as view:  # type: ignore[arg-type] # this is the question
            contiguous = view.c_contiguous
    except (TypeError, BufferError):
        raise _wrong(f"{function}.{name}", "bytes or another buffer", value) from None
    if not contiguous:
        raise TypeError(f"{function}.{name}: expected a buffer without gaps, found another; copy it first")
