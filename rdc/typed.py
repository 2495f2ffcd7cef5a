"""What classes take from typing while they are made, without loading typing.

To load it, and the regular expressions that it needs, takes 4 ms of a start, and each NamedTuple made with
it 0.4 ms more; nothing of rdc reads what it keeps. To a type checker these ARE the names of typing. Names
that stand in annotations alone are imported for the checker alone.
"""

from __future__ import annotations

__all__ = ["Annotated", "Generic", "NamedTuple", "Protocol", "TypeVar"]

TYPE_CHECKING = False  # typing's, too
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
        """Annotated[type, codec] is the codec, all that messages want to know."""

        def __class_getitem__(cls, given):
            return given[1]

    class _NamedTuples(type):
        def __new__(cls, name, bases, body):
            if not bases:
                return type.__new__(cls, name, bases, body)
            fields = namedtuple(name, body["__annotations__"])
            return type(name, (fields,), {**body, "__slots__": ()})

    class NamedTuple(metaclass=_NamedTuples):
        """Without defaults."""

        __slots__ = ()
