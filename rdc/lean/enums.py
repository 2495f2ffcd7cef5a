"""Enumerations without the cost of loading `enum` at each start, and `signal`, which loads it for its own.

Where `enum` is loaded already, its own are used: that costs nothing more. So a program that imports rdc gets
those of `enum`: rdc/__init__.py loads it first. The command `rdc` alone has the classes of this module, which
no other program sees. To a type checker they ARE those of `enum`.

They do what those do, without `auto`, members with `__init__`, values that are no member's, other flags, the
refusal to change a finished class, and a combination's names other than those of its single bits.

`signal` takes all its functions and numbers from `_signal`, and makes enumerations of the numbers. Alone, the
command has `_signal`, without `Signals` and `Handlers`.

rdc/lean/LEAN.md has what it saves, measured.
"""

from __future__ import annotations

import sys

__all__ = ["Enum", "EnumType", "IntEnum", "IntFlag", "signal"]

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING or "signal" in sys.modules:
    import signal
else:
    import _signal as signal

if TYPE_CHECKING or "enum" in sys.modules:
    from enum import Enum, EnumType, IntEnum, IntFlag
else:

    class EnumType(type):
        """Creates the members that a class statement describes."""

        def __new__(cls, name, bases, body):
            if not bases:
                return type.__new__(cls, name, bases, body)
            # An assigned value is a member, as in `enum`, unless it is a method or its name has underscores.
            values = {
                key: value for key, value in body.items() if key[0] != "_" and not hasattr(value, "__get__")
            }
            made = type.__new__(cls, name, bases, {key: body[key] for key in body if key not in values})
            number = issubclass(made, int)
            made.__members__ = members = {}
            made._by_value_ = by_value = {}
            made._listed_ = listed = []
            for key, value in values.items():
                member = by_value.get(value)
                if member is None:
                    member = int.__new__(made, value) if number else object.__new__(made)
                    member.name = member._name_ = key
                    member.value = member._value_ = value
                    by_value[value] = member
                    # Several bits and none are other names for what the single bits say.
                    if not made._has_bits_ or value.bit_count() == 1:
                        listed.append(member)
                members[key] = member
                setattr(made, key, member)
            return made

        def __call__(cls, value):
            try:
                return cls._by_value_[value]
            except (KeyError, TypeError):
                if value.__class__ is cls:
                    return value
                return cls._absent_(value)

        def __iter__(cls):
            return iter(cls._listed_)

        def __reversed__(cls):
            return reversed(cls._listed_)

        def __len__(cls):
            return len(cls._listed_)

        def __bool__(cls):
            return True

        def __contains__(cls, member):
            return isinstance(member, cls)

        def __getitem__(cls, name):
            return cls.__members__[name]

        def __repr__(cls):
            return f"<{'flag' if cls._has_bits_ else 'enum'} {cls.__name__!r}>"

    class Enum(metaclass=EnumType):
        _has_bits_ = False

        @classmethod
        def _absent_(cls, value):
            raise ValueError(f"{value!r} is not a valid {cls.__qualname__}")

        def __repr__(self):
            return f"<{self.__class__.__name__}.{self._name_}: {self._value_!r}>"

        def __str__(self):
            return f"{self.__class__.__name__}.{self._name_}"

        def __hash__(self):
            return hash(self._name_)

        def __reduce_ex__(self, _protocol):
            return self.__class__, (self._value_,)

        def __copy__(self):
            return self

        def __deepcopy__(self, _memo):
            return self

    class IntEnum(int, Enum):
        __repr__ = Enum.__repr__
        __str__ = int.__repr__
        __format__ = int.__format__

    class IntFlag(int, Enum):
        _has_bits_ = True
        __str__ = int.__repr__
        __format__ = int.__format__

        @classmethod
        def _absent_(cls, value):
            """Make the member of several bits, or of bits without a name. Each value has one member."""
            if not isinstance(value, int):
                raise ValueError(f"{value!r} is not a valid {cls.__qualname__}")
            if value < 0:
                bits = max([each.bit_length() for each in cls.__members__.values()])
                # ~ of all bits of the members is 0: only a smaller number needs further bits.
                if value < -1 << bits:
                    bits = max(bits, value.bit_length())
                return cls(value + (1 << bits))
            made = int.__new__(cls, value)
            made.value = made._value_ = value
            named = [each for each in cls._listed_ if int.__and__(each, value)]
            rest = value - sum(named)
            names = [each._name_ for each in named]
            made.name = made._name_ = "|".join(names + [repr(rest)] * (rest > 0)) if names else None
            return cls._by_value_.setdefault(value, made)

        def __repr__(self):
            if self._name_ is None:
                return f"<{self.__class__.__name__}: {self._value_!r}>"
            return f"<{self.__class__.__name__}.{self._name_}: {self._value_!r}>"

        def __contains__(self, other):
            if not isinstance(other, self.__class__):
                raise TypeError(
                    f"unsupported operand type(s) for 'in': {type(other)!r} and {self.__class__!r}"
                )
            return other._value_ & self._value_ == other._value_

        def __iter__(self):
            return iter([each for each in self.__class__._listed_ if int.__and__(self, each)])

        def __len__(self):
            return self._value_.bit_count()

        def __or__(self, other):
            return self.__class__(self._value_ | int(other)) if isinstance(other, int) else NotImplemented

        def __and__(self, other):
            return self.__class__(self._value_ & int(other)) if isinstance(other, int) else NotImplemented

        def __xor__(self, other):
            return self.__class__(self._value_ ^ int(other)) if isinstance(other, int) else NotImplemented

        def __invert__(self):
            return self.__class__(~self._value_)

        __ror__, __rand__, __rxor__ = __or__, __and__, __xor__
