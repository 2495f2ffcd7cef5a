"""The names of typing that rdc's code needs where it runs, without loading typing: that and re, which it
imports, take each side of a sync 5 ms.

To a type checker these ARE the names of typing. What stands in annotations alone is imported from typing,
where only a type checker looks.
"""

from __future__ import annotations

TYPE_CHECKING = False  # a type checker takes it for true by its name
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Annotated, Any, Generic, NamedTuple, Protocol, TypeVar, cast

__all__ = ["TYPE_CHECKING", "Annotated", "Generic", "NamedTuple", "Protocol", "TypeVar", "cast"]


class _Annotated:
    """A type with what was said about it; Annotated[type, ...] makes one."""

    __slots__ = ("__metadata__", "__origin__")

    def __init__(self, origin: object, metadata: tuple[Any, ...]) -> None:
        self.__origin__ = origin
        self.__metadata__ = metadata

    def __class_getitem__(cls, items: tuple[Any, ...]) -> _Annotated:
        return cls(items[0], items[1:])


class _Parametric:
    """A base class that may be given parameters, which mean nothing when it runs."""

    __slots__ = ()

    def __class_getitem__(cls, parameters: object) -> type:
        return cls


class _TupleType(type):
    """Makes the subclasses of NamedTuple: their fields are what their bodies annotate, without defaults."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _TupleType:
        from _collections import _tuplegetter  # type: ignore[import-not-found] # as in collections.namedtuple

        names = tuple(body.get("__annotations__", ()))
        if not body.keys().isdisjoint(names):
            raise TypeError(f"{name}: a named tuple has no defaults here")
        getters = {field: _tuplegetter(place, None) for place, field in enumerate(names)}
        shape = {"__slots__": (), "_fields": names, "__match_args__": names}
        return super().__new__(cls, name, bases, body | getters | shape)


class _NamedTuple(tuple[object, ...], metaclass=_TupleType):
    _fields: tuple[str, ...]

    def __new__(cls, *values: object, **named: object) -> _NamedTuple:
        if not named and len(values) == len(cls._fields):
            return tuple.__new__(cls, values)
        if named:
            values += tuple(named.pop(field) for field in cls._fields[len(values) :] if field in named)
        if named or len(values) != len(cls._fields):
            raise TypeError(f"{cls.__name__} is made of {', '.join(cls._fields)}")
        return tuple.__new__(cls, values)

    @classmethod
    def _make(cls, values: Iterable[object]) -> _NamedTuple:
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"{cls.__name__} is made of {', '.join(cls._fields)}")
        return made

    def _replace(self, **changes: object) -> _NamedTuple:
        return self.__class__(**dict(zip(self._fields, self, strict=True)) | changes)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{self.__class__.__qualname__}({values})"


def _type_var(name: str, *_bounds: object, **_options: object) -> str:
    return name


def _cast(_type: object, value: Any) -> Any:
    return value


if not TYPE_CHECKING:
    Annotated, NamedTuple, TypeVar, cast = _Annotated, _NamedTuple, _type_var, _cast
    Generic = Protocol = _Parametric
