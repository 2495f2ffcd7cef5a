"""The enums of rdc, made without enum: it takes each side of a sync 1 ms to load, and each class 0.1 ms.

To a type checker these ARE the classes of enum, of which rdc uses the half: members that are told apart by
identity, looked up by value or name and iterated over, and sets of flags. Not here: auto(), members that are
tuples, _missing_, boundaries.
"""

from __future__ import annotations

from rdc.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import Enum, IntEnum, IntFlag
    from typing import Any

__all__ = ["Enum", "IntEnum", "IntFlag"]


class _EnumType(type):
    """Makes an enum of a class: what its body sets to a plain value becomes a member."""

    __members__: dict[str, Any]
    _by_value: dict[object, Any]

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _EnumType:
        values = {
            key: value for key, value in body.items() if key[0] != "_" and not hasattr(value, "__get__")
        }
        made = super().__new__(cls, name, bases, {key: body[key] for key in body if key not in values})
        made.__members__, made._by_value = {}, {}
        for key, value in values.items():
            member = made._by_value[value] if value in made._by_value else made._member(key, value)
            made.__members__[key] = member
            setattr(made, key, member)
        return made

    def _member(cls, name: str | None, value: Any) -> Any:
        new: Any = cls.__new__
        member = new(cls, value) if issubclass(cls, int) else new(cls)
        member.name, member.value = name, value
        cls._by_value[value] = member
        return member

    def __call__(cls, value: object) -> Any:
        """The member of this value. Raises ValueError where there is none."""
        try:
            return cls._by_value[value]
        except (KeyError, TypeError):
            if type(value) is cls:
                return value
            return cls._unknown(value)

    def _unknown(cls, value: Any) -> Any:
        if not issubclass(cls, _IntFlag) or not isinstance(value, int):
            raise ValueError(f"{value!r} is not a valid {cls.__qualname__}")
        return cls._member("|".join([flag.name for flag in cls if flag.value & value]) or None, value)

    def __iter__(cls) -> Iterator[Any]:
        """Members in their order, each once; of flags those of one bit."""
        flags = issubclass(cls, _IntFlag)
        for name, member in cls.__members__.items():
            if member.name == name and not (flags and member.value.bit_count() != 1):
                yield member

    def __len__(cls) -> int:
        return sum(1 for _ in cls)

    def __bool__(cls) -> bool:
        return True

    def __getitem__(cls, name: str) -> Any:
        return cls.__members__[name]


class _Enum(metaclass=_EnumType):
    name: str
    value: Any

    def __repr__(self) -> str:
        cls = self.__class__
        return (
            f"<{cls.__name__}.{self.name}: {self.value!r}>"
            if self.name
            else f"<{cls.__name__}: {self.value!r}>"
        )

    def __str__(self) -> str:
        return f"{self.__class__.__name__}.{self.name}"

    def __format__(self, spec: str) -> str:
        return str.__format__(str(self), spec)

    def __reduce__(self) -> tuple[type, tuple[object]]:
        # There is one of each, in a copy too.
        return self.__class__, (self.value,)


class _IntEnum(_Enum, int):
    __str__ = int.__repr__

    def __format__(self, spec: str) -> str:
        return int.__format__(self, spec)


class _IntFlag(_IntEnum):
    def __or__(self, other: int) -> Any:
        return self.__class__(int(self) | other)

    def __and__(self, other: int) -> Any:
        return self.__class__(int(self) & other)

    def __xor__(self, other: int) -> Any:
        return self.__class__(int(self) ^ other)

    __ror__, __rand__, __rxor__ = __or__, __and__, __xor__


if not TYPE_CHECKING:
    Enum, IntEnum, IntFlag = _Enum, _IntEnum, _IntFlag
