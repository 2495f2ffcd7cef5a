"""Stand-ins for the names of typing that classes need at run time, so that typing does not load.

Loading typing costs 4.0 ms of CPU per `rdc --version` and 6.3 ms per local sync (30 paired runs each). Each
typing.NamedTuple costs 0.4 ms more. Those of collections.namedtuple compile source text, which takes four
times as long as to make a class. To a type checker these ARE the names of typing. Other modules import names
that only annotations use under TYPE_CHECKING.
"""

from __future__ import annotations

__all__ = ["Annotated", "Generic", "NamedTuple", "Protocol", "TypeVar"]

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from typing import Annotated, Generic, NamedTuple, Protocol, TypeVar
else:
    from collections import _tuplegetter
    from types import FunctionType

    class Protocol:
        __slots__ = ()

    class Generic:
        __slots__ = ()

        def __class_getitem__(cls, _parameters):
            return cls

    def TypeVar(name, **_bounds):  # noqa: N802 - typing's word
        return name

    class Annotated:
        """Annotated[type, codec] evaluates to the codec, the part that messages read."""

        def __class_getitem__(cls, given):
            return given[1]

    class _Tuple(tuple):
        """The attributes that collections.namedtuple puts into each class."""

        __slots__ = ()
        _fields = ()

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changes):
            made = self._make(map(changes.pop, self._fields, self))
            if changes:
                raise ValueError(f"Got unexpected field names: {list(changes)!r}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            fields = map("{}={!r}".format, self._fields, self)
            return f"{self.__class__.__name__}({', '.join(fields)})"

        def __getnewargs__(self):
            return tuple(self)

    _new = tuple.__new__
    _PATTERNS = (
        lambda _cls, a: _new(_cls, (a,)),
        lambda _cls, a, b: _new(_cls, (a, b)),
        lambda _cls, a, b, c: _new(_cls, (a, b, c)),
        lambda _cls, a, b, c, d: _new(_cls, (a, b, c, d)),
        lambda _cls, a, b, c, d, e: _new(_cls, (a, b, c, d, e)),
        lambda _cls, a, b, c, d, e, f: _new(_cls, (a, b, c, d, e, f)),
        lambda _cls, a, b, c, d, e, f, g: _new(_cls, (a, b, c, d, e, f, g)),
        lambda _cls, a, b, c, d, e, f, g, h: _new(_cls, (a, b, c, d, e, f, g, h)),
    )
    """`__new__` by number of fields, from one on. A class gets a copy with its own parameter names."""

    def _of_locals(_cls):
        """Do what the patterns do, for more fields: a class gives it the parameters."""
        return _new(_cls, [*locals().values()][1:])

    class _NamedTuples(type):
        def __new__(cls, name, bases, body):
            if not bases:
                return type.__new__(cls, name, bases, body)
            fields = tuple(body["__annotations__"])
            pattern = _PATTERNS[len(fields) - 1] if len(fields) <= len(_PATTERNS) else _of_locals
            code = pattern.__code__.replace(
                co_argcount=1 + len(fields),
                co_nlocals=1 + len(fields),
                co_varnames=("_cls", *fields),
                co_name="__new__",
                co_qualname=f"{body['__qualname__']}.__new__",
            )
            new = FunctionType(code, pattern.__globals__)
            new.__module__ = body["__module__"]
            getters = {
                each: _tuplegetter(row, f"Alias for field number {row}") for row, each in enumerate(fields)
            }
            own = {"__slots__": (), "_fields": fields, "__match_args__": fields, "__new__": new}
            return type(name, (_Tuple,), {**getters, **body, **own})

    class NamedTuple(metaclass=_NamedTuples):
        """A named tuple. Fields cannot have defaults."""

        __slots__ = ()
