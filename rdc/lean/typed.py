"""Stand-ins for the names of typing that classes need at run time, so that typing does not load.

Loading typing costs 4.0 ms of CPU per `rdc --version` and 6.3 ms per local sync (30 paired runs each). Each
typing.NamedTuple costs 0.4 ms more. To a type checker these ARE the names of typing. Other modules import
names that only annotations use under TYPE_CHECKING.
"""

from __future__ import annotations

__all__ = ["Annotated", "Generic", "NamedTuple", "Protocol", "TypeVar"]

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from typing import Annotated, Generic, NamedTuple, Protocol, TypeVar
else:
    from collections import namedtuple

    class Protocol:
        __slots__ = ()

    class Generic:
        __slots__ = ()

        def __class_getitem__(cls, _parameters):
            return cls

    def TypeVar(name, **_bounds):  # noqa: N802
        return name

    class Annotated:
        """Annotated[type, codec] evaluates to the codec, the part that messages read."""

        def __class_getitem__(cls, given):
            return given[1]

    class _NamedTuples(type):
        def __new__(cls, name, bases, body):
            if not bases:
                return type.__new__(cls, name, bases, body)
            fields = namedtuple(name, body["__annotations__"])
            return type(name, (fields,), {**body, "__slots__": ()})

    class NamedTuple(metaclass=_NamedTuples):
        """A named tuple. Fields cannot have defaults."""

        __slots__ = ()
