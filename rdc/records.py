"""The dataclasses of rdc, made without running a compiler at every start.

For each class, dataclasses.dataclass writes the source of five methods and compiles it: 0.35 ms, and 6 ms
more to load what it is built from. A run of rdc defines some hundred records, and makes a few of most or
none. So here a class costs less than twice what Python asks for it: methods are shared and find the fields
with the class, and __init__ is made when it is first looked up. It is one of a few functions that differ by
nothing but the names of their parameters: there is one for each number of fields (_pattern), and a class
gets a copy with its own names. It stores through the slots themselves and is no slower when called.

To a type checker these ARE the names of dataclasses, and dataclasses.fields, replace and is_dataclass take
the classes for their own. What rdc does not use is not here: order, kw_only, InitVar, and __post_init__ where
__init__ takes nothing.
"""

from __future__ import annotations

from _operator import attrgetter  # the C part of operator, without the functions that nobody calls
from types import CellType, FunctionType, GetSetDescriptorType, MemberDescriptorType

TYPE_CHECKING = False  # typing's, without loading typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import asdict, dataclass, field, replace
    from types import CodeType
    from typing import Any

__all__ = ["asdict", "dataclass", "field", "field_names", "replace"]


class _NoneGiven:
    """Its name in a signature is what the reader of one wants to know."""

    def __repr__(self) -> str:
        return "<factory>"


_NONE_GIVEN: Any = _NoneGiven()
"""Default of a parameter whose field has a default_factory, and of a field that has none."""


class _Field:
    """How one field is made; `default` and `factory` are _NONE_GIVEN where there is none."""

    __slots__ = ("default", "factory", "init", "optional", "repr")

    def __init__(self, default: Any, factory: Any, *, init: bool, repr: bool) -> None:  # noqa: A002 - dataclasses' word
        self.default = default
        self.factory = factory
        self.init = init
        self.repr = repr
        self.optional = default is not _NONE_GIVEN or factory is not _NONE_GIVEN


_PLAIN = _Field(_NONE_GIVEN, _NONE_GIVEN, init=True, repr=True)


def _field(
    *,
    default: Any = _NONE_GIVEN,
    default_factory: Any = _NONE_GIVEN,
    init: bool = True,
    repr: bool = True,  # noqa: A002 - dataclasses' word
) -> Any:
    """As dataclasses.field."""
    return _Field(default, default_factory, init=init, repr=repr)


def _dataclass(
    *,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    repr: bool = True,  # noqa: A002 - dataclasses' word
) -> Callable[[type], type]:
    """As dataclasses.dataclass; annotations are text, as `from __future__ import annotations` leaves them."""

    shared = _shared_methods(frozen, slots, eq, repr)

    def make(cls: type) -> type:
        given = cls.__dict__
        own = _own_fields(cls)
        inherited: dict[str, _Field] = {}
        for base in cls.__mro__[-2:0:-1]:
            inherited |= base.__dict__.get("__record_fields__", {})
        fields = inherited | own
        _check_order(cls, fields)
        initializer = _Initializer(frozen)
        # As in dataclasses: what the class says itself goes, and a given __eq__ decides about __hash__, which
        # Python sets to None in a class that has an __eq__.
        body = {
            **shared,
            "__match_args__": tuple([name for name, each in fields.items() if each.init]),
            **given,
            "__record_fields__": fields,
            "__init__": initializer,
        }
        if "__hash__" in shared and body["__hash__"] is None:
            body["__hash__"] = shared["__hash__"]
        if slots:
            # Python lays a class out once, so it is made anew.
            for name in (*own, "__dict__", "__weakref__"):
                body.pop(name, None)
            body["__slots__"] = tuple([name for name in own if name not in inherited])
            body["__qualname__"] = cls.__qualname__
            cls = type(cls)(cls.__name__, cls.__bases__, body)
        else:
            _leave_defaults(cls, own)
            for name, value in body.items():
                if name not in own and given.get(name, body) is not value:
                    setattr(cls, name, value)
        initializer.cls = cls
        return cls

    return make


_SHARED: dict[tuple[bool, bool, bool, bool], dict[str, Any]] = {}


def _shared_methods(frozen: bool, slots: bool, eq: bool, repr: bool) -> dict[str, Any]:  # noqa: A002
    """What classes of these options have in common."""
    methods = _SHARED.get((frozen, slots, eq, repr))
    if methods is None:
        methods = _SHARED[frozen, slots, eq, repr] = {"__dataclass_fields__": _STANDARD}
        if repr:
            methods["__repr__"] = _represented
        if eq:
            methods |= {
                "__record_values__": _VALUES,
                "__eq__": _equal,
                "__hash__": _hashed if frozen else None,
            }
        if frozen:
            methods |= {"__setattr__": _frozen, "__delattr__": _frozen}
            if slots:
                methods |= {"__getstate__": _state, "__setstate__": _set_state}
    return methods


def _own_fields(cls: type) -> dict[str, _Field]:
    """Those annotated in the class body."""
    fields = {}
    given = cls.__dict__
    # Not inspect.get_annotations: inspect takes longer to load than all records to define.
    for name, annotation in given.get("__annotations__", {}).items():
        if not isinstance(annotation, str):
            raise TypeError(f"{cls.__name__}.{name}: its module lacks from __future__ import annotations")
        if annotation.startswith("ClassVar"):
            continue
        value = given.get(name, _NONE_GIVEN)
        if value is _NONE_GIVEN or isinstance(value, (MemberDescriptorType, GetSetDescriptorType)):
            each = _PLAIN
        elif isinstance(value, _Field):
            each = value
            if each.optional and not each.init:
                raise TypeError(f"{cls.__name__}.{name}: __post_init__ sets what __init__ does not take")
        elif isinstance(value, (list, dict, set)):
            raise TypeError(f"{cls.__name__}.{name}: all would share this default; use default_factory")
        else:
            each = _Field(value, _NONE_GIVEN, init=True, repr=True)
        fields[name] = each
    return fields


def _check_order(cls: type, fields: dict[str, _Field]) -> None:
    optional = False
    for name, each in fields.items():
        if each.optional:
            optional = True
        elif optional and each.init:
            raise TypeError(f"{cls.__name__}.{name} has no default and follows one that has")


def _leave_defaults(cls: type, own: dict[str, _Field]) -> None:
    """With the class, where it has no slots in their place."""
    for name, each in own.items():
        if isinstance(cls.__dict__.get(name), _Field):
            if each.default is _NONE_GIVEN:
                delattr(cls, name)
            else:
                setattr(cls, name, each.default)


class _Initializer:
    """Stands for __init__ until it is looked up for the first time, which makes it."""

    __slots__ = ("cls", "frozen")

    def __init__(self, frozen: bool) -> None:
        self.cls: type = object
        self.frozen = frozen

    def __get__(self, record: object, _owner: type) -> Any:
        made = _initializer(self.cls, frozen=self.frozen)
        setattr(self.cls, "__init__", made)  # noqa: B010 - to a type checker it is another's
        return made if record is None else made.__get__(record)


# __init__ by the number of fields, given what stores each; stores return None, so that all are called. Python
# keeps these compiled with the rest of this file: the 13 that a start needs would take it 2 ms.
_MAKERS: dict[int, Any] = {
    0: lambda: lambda self: None,
    1: lambda a: lambda self, p: a(self, p),  # noqa: PLW0108
    2: lambda a, b: lambda self, p, q: a(self, p) or b(self, q),
    3: lambda a, b, c: lambda self, p, q, r: a(self, p) or b(self, q) or c(self, r),
    4: lambda a, b, c, d: lambda self, p, q, r, s: a(self, p) or b(self, q) or c(self, r) or d(self, s),
    5: lambda a, b, c, d, e: lambda self, p, q, r, s, t: (
        a(self, p) or b(self, q) or c(self, r) or d(self, s) or e(self, t)
    ),
    6: lambda a, b, c, d, e, f: lambda self, p, q, r, s, t, u: (
        a(self, p) or b(self, q) or c(self, r) or d(self, s) or e(self, t) or f(self, u)
    ),
    7: lambda a, b, c, d, e, f, g: lambda self, p, q, r, s, t, u, v: (
        a(self, p) or b(self, q) or c(self, r) or d(self, s) or e(self, t) or f(self, u) or g(self, v)
    ),
    8: lambda a, b, c, d, e, f, g, h: lambda self, p, q, r, s, t, u, v, w: (
        a(self, p) or b(self, q) or c(self, r) or d(self, s) or e(self, t) or f(self, u) or g(self, v)
        or h(self, w)
    ),
    9: lambda a, b, c, d, e, f, g, h, i: lambda self, p, q, r, s, t, u, v, w, x: (
        a(self, p) or b(self, q) or c(self, r) or d(self, s) or e(self, t) or f(self, u) or g(self, v)
        or h(self, w) or i(self, x)
    ),
}  # fmt: skip


def _pattern(count: int) -> CodeType:
    """__init__(self, p0, p1, ...) for so many fields."""
    make = _MAKERS.get(count)
    if make is None:
        rows = [f"{i:03}" for i in range(count)]
        source = (
            f"lambda {', '.join([f's{row}' for row in rows])}:"
            f" lambda self, {', '.join([f'p{row}' for row in rows])}:"
            f" {' or '.join([f's{row}(self, p{row})' for row in rows])}"
        )
        # Nothing but numbers go into the source. Not through compile(), whose first call makes the classes of
        # a syntax tree, for 1.4 ms.
        make = _MAKERS[count] = eval(source)  # noqa: S307
    code: CodeType = make(*[None] * count).__code__
    return code


def _initializer(cls: type, *, frozen: bool) -> FunctionType:
    fields: dict[str, _Field] = getattr(cls, "__record_fields__")  # noqa: B009
    given = {name: each for name, each in fields.items() if each.init}
    stores = [_store(cls, name, each, frozen=frozen) for name, each in given.items()]
    if hasattr(cls, "__post_init__"):
        if not stores:
            raise TypeError(f"{cls.__name__}: nothing is given that __post_init__ could check")
        stores[-1] = _last_store(stores[-1])
    code = _pattern(len(given)).replace(
        co_varnames=("self", *given), co_name="__init__", co_qualname=f"{cls.__qualname__}.__init__"
    )
    defaults = tuple([each.default for each in given.values() if each.optional])
    made = FunctionType(code, {}, "__init__", defaults, tuple(map(CellType, stores)))
    made.__module__ = cls.__module__
    annotations = _annotations(cls)
    made.__annotations__ = {**{name: annotations[name] for name in given}, "return": "None"}
    return made


def _annotations(cls: type) -> dict[str, str]:
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= base.__dict__.get("__annotations__", {})  # noqa: RUF063 - as above
    return found


def _store(cls: type, name: str, each: _Field, *, frozen: bool) -> Callable[[Any, Any], None]:
    """What puts a value into its field, also of a frozen record."""
    slot = getattr(cls, name, None)
    if isinstance(slot, MemberDescriptorType):
        put: Callable[[Any, Any], None] = slot.__set__
    elif frozen:

        def put(record: Any, value: Any) -> None:
            object.__setattr__(record, name, value)
    else:

        def put(record: Any, value: Any) -> None:
            setattr(record, name, value)

    if each.factory is _NONE_GIVEN:
        return put
    factory = each.factory

    def put_made(record: Any, value: Any) -> None:
        put(record, factory() if value is _NONE_GIVEN else value)

    return put_made


def _last_store(put: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """With __post_init__ after it."""

    def put_and_check(record: Any, value: Any) -> None:
        put(record, value)
        record.__post_init__()

    return put_and_check


class _Values:
    """Stands for what takes the fields' values, all at once, until it is looked up for the first time."""

    def __get__(self, _record: object, cls: type) -> Callable[[Any], object]:
        # Not a function, which would become a method.
        values: Callable[[Any], object] = attrgetter(*(field_names(cls) or ("__class__",)))
        setattr(cls, "__record_values__", values)  # noqa: B010
        return values


_VALUES = _Values()


def _equal(self: Any, other: object) -> Any:
    """Equal are records of one class whose fields are."""
    values = self.__record_values__
    return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented


def _hashed(self: Any) -> int:
    return hash(self.__record_values__(self))


def _represented(self: Any) -> str:
    shown = [name for name, each in self.__record_fields__.items() if each.repr]
    values = ", ".join([f"{name}={getattr(self, name)!r}" for name in shown])
    return f"{self.__class__.__qualname__}({values})"


def _frozen(self: object, name: str, *value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


def _state(self: Any) -> list[Any]:
    """For copy and pickle, which cannot set what is frozen."""
    return [getattr(self, name) for name in self.__record_fields__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__record_fields__, state, strict=True):
        object.__setattr__(self, name, value)


class _Standard:
    """The fields as the functions of dataclasses want them, made when one asks."""

    def __get__(self, record: object, cls: type) -> dict[str, Any]:
        import dataclasses

        columns: list[tuple[str, Any, Any]] = []
        annotations = _annotations(cls)
        for name, each in getattr(cls, "__record_fields__").items():  # noqa: B009
            options: dict[str, Any] = {"init": each.init, "repr": each.repr}
            if each.factory is not _NONE_GIVEN:
                options["default_factory"] = each.factory
            elif each.default is not _NONE_GIVEN:
                options["default"] = each.default
            columns.append((name, annotations[name], dataclasses.field(**options)))
        found: dict[str, Any] = vars(dataclasses.make_dataclass(cls.__name__, columns))[
            "__dataclass_fields__"
        ]
        # Once: dataclasses.replace asks for them three times a call.
        cls.__dataclass_fields__ = found  # type: ignore[attr-defined]
        return found


_STANDARD = _Standard()


def field_names(record_class: type) -> tuple[str, ...]:
    """In their order, inherited ones first."""
    return tuple(getattr(record_class, "__record_fields__"))  # noqa: B009


def _replace(record: Any, /, **changes: Any) -> Any:
    """As dataclasses.replace: a copy with some fields changed, which __post_init__ checks again."""
    for name, each in record.__record_fields__.items():
        if each.init and name not in changes:
            changes[name] = getattr(record, name)
    return record.__class__(**changes)


def _asdict(record: Any) -> dict[str, Any]:
    """As dataclasses.asdict of a record whose values are no records."""
    return {name: getattr(record, name) for name in record.__record_fields__}


if not TYPE_CHECKING:
    asdict, dataclass, field, replace = _asdict, _dataclass, _field, _replace
