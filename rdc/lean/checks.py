"""Checks of types at the public border: one TypeError that names the field or the argument.

Records that a caller passes to the library check their fields when they are made. Events and the records of
single entries are made by the million, and only by rdc, so they are not checked.

typing.get_type_hints would load typing and compile each annotation, so this module reads the few forms that
such records use: names, `X | Y`, `tuple[X, ...]`, `tuple[X, ...] | None`.
"""

from __future__ import annotations

import builtins
import sys
from operator import index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


COUNT_MOST = (1 << 63) - 1
"""The largest count of any kind."""


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
    """Check all fields of a record against their annotations. Raises TypeError for the first wrong one.

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


class Checked:
    """The base of records whose fields are checked when they are made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self)


def _read_fields(cls: type) -> tuple[_Field, ...]:
    names = {**vars(builtins), **vars(sys.modules[cls.__module__])}
    # inspect.get_annotations would load inspect.
    annotations: dict[str, str] = cls.__dict__.get("__annotations__", {})  # noqa: RUF063 - see _own_fields in rdc.lean.records
    return tuple(_Field(name, text, _kinds(text, names)) for name, text in annotations.items())


def _kinds(text: str, names: dict[str, object]) -> tuple[_Kind, ...]:
    """Read an annotation. Alternatives within brackets are those of tuple[...], which has one item type."""
    if text.endswith(", ...] | None"):
        return (*_kinds(text.removesuffix(" | None"), names), _Kind(type(None), None))
    inside = text.partition("[")[2]
    if inside and "|" not in text.partition("[")[0] and text.endswith(", ...]"):
        return (_Kind(tuple, _kinds(inside.removesuffix(", ...]"), names)),)
    found: list[_Kind] = []
    for part in text.split(" | "):
        named = type(None) if part == "None" else names[part]
        if not isinstance(named, type):
            raise TypeError(f"{part}: an annotation that rdc.lean.checks cannot read")
        found.append(_Kind(named, None))
    return tuple(found)


def _is_one_of(value: object, kinds: tuple[_Kind, ...]) -> bool:
    return any(
        _is_a(value, kind.type) and (kind.items is None or _are_all(value, kind.items))  # type: ignore[arg-type] # a tuple
        for kind in kinds
    )


def _are_all(items: tuple[object, ...], kinds: tuple[_Kind, ...]) -> bool:
    # A list of filter rules may have a million items, nearly always of these very types.
    if {type(item) for item in items} <= {kind.type for kind in kinds if kind.items is None}:
        return True
    return all(_is_one_of(item, kinds) for item in items)


def _is_a(value: object, expected: type) -> bool:
    if isinstance(value, bool):
        return expected is bool or expected is object
    return isinstance(value, (int, float)) if expected is float else isinstance(value, expected)


def _wrong_field(owner: str, field: _Field, value: object) -> TypeError:
    items = field.kinds[0].items
    if items is not None and isinstance(value, tuple):
        for number, item in enumerate(value):
            if not _is_one_of(item, items):
                text = field.text.removesuffix(" | None").removeprefix("tuple[").removesuffix(", ...]")
                return _wrong(f"{owner}.{field.name}[{number}]", text, item)
    return _wrong(f"{owner}.{field.name}", field.text, value)


def _wrong(subject: str, expected: str, value: object) -> TypeError:
    return TypeError(f"{subject}: expected {expected}, found {found_type(value)}")


def found_type(value: object) -> str:
    """Return the name of a value's type for a message."""
    return "None" if value is None else type(value).__name__


def check_argument(function: str, name: str, value: object, *kinds: type | None) -> None:
    """Raise TypeError unless `value` is an instance of one of `kinds`. None stands for itself."""
    for kind in kinds:
        if value is None if kind is None else _is_a(value, kind):
            return
    raise _wrong(f"{function}.{name}", _joined(kinds), value)


def _joined(kinds: Sequence[type | None]) -> str:
    return " | ".join("None" if kind is None else kind.__name__ for kind in kinds)


def check_callable(function: str, name: str, value: object) -> None:
    """Raise TypeError unless `value` can be called."""
    if not callable(value):
        raise _wrong(f"{function}.{name}", "a function", value)


def check_method(function: str, name: str, value: object, method: str) -> None:
    """Raise TypeError unless `value` has the method `method`."""
    if not callable(getattr(value, method, None)):
        raise _wrong(f"{function}.{name}", f"an object with {method}()", value)


def check_buffer(function: str, name: str, value: object) -> None:
    """Raise TypeError unless `value` is bytes or another contiguous buffer."""
    checked_buffer(function, name, value).release()


def checked_buffer(function: str, name: str, value: object) -> memoryview:
    """Return a view of bytes or another contiguous buffer. Raises TypeError for any other value."""
    try:
        view = memoryview(value)  # type: ignore[arg-type] # this is the question
    except (TypeError, BufferError):
        raise _wrong(f"{function}.{name}", "bytes or another buffer", value) from None
    if not view.c_contiguous:
        view.release()
        raise TypeError(f"{function}.{name}: expected a buffer without gaps, found another; copy it first")
    return view


def checked_seed(function: str, value: object) -> int:
    """Return a seed: any whole number, of which 64 bits count. Raises TypeError."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{function}.seed: expected a whole number, found {found_type(value)}")
    return index(value) & (1 << 64) - 1


def checked_count(function: str, name: str, value: object, least: int, most: int = COUNT_MOST) -> int:
    """Return a whole number. Raises TypeError for any other value, ValueError outside of the range."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{function}.{name}: expected a whole number, found {found_type(value)}")
    number = index(value)
    if not least <= number <= most:
        raise ValueError(f"{function}.{name}: expected a number from {least} to {most}, found {number}")
    return number


def check_count(owner: str, name: str, value: object, least: int, most: int = COUNT_MOST) -> None:
    """Check a field of a record, which keeps the value. Raises as checked_count, and TypeError unless it is
    an int."""
    if not isinstance(value, int):
        raise TypeError(f"{owner}.{name}: expected a whole number, found {found_type(value)}")
    checked_count(owner, name, value, least, most)


def checked_number(
    function: str, name: str, value: object, least: float, most: float, *, below: bool = False
) -> float:
    """Return a number from `least` to `most`, or with `below` to below `most`. Raises as checked_count."""
    if isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__"):
        if not hasattr(value, "__index__") or isinstance(value, bool):
            raise TypeError(f"{function}.{name}: expected a number, found {found_type(value)}")
        value = index(value)
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not (least <= number < most if below else least <= number <= most):
        upper = f"below {most:g}" if below else f"{most:g}"
        raise ValueError(f"{function}.{name}: expected a number from {least:g} to {upper}, found {value}")
    return number


def checked_share(function: str, name: str, value: object, *, below: bool = False) -> float:
    """Return a number from 0 to 1, or with `below` to below 1. Raises as checked_count."""
    return checked_number(function, name, value, 0, 1, below=below)
