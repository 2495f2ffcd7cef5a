"""The dataclasses of rdc, made without running a compiler at every start.

For each class, dataclasses.dataclass writes the source of five methods and compiles it: 0.35 ms, and 6 ms
more to load what it is built from. A run of rdc defines some hundred records, so that was the larger half of
its start. Here __init__ is one of a few functions that differ by nothing but the names of their parameters:
Python compiles one for each number of fields (_pattern), and a class gets a copy with its own names, in
microseconds. It stores through the slots themselves and is no slower when called. The other methods know
their fields by closure.

To a type checker these ARE the names of dataclasses, and dataclasses.fields, replace and is_dataclass take
the classes for their own. What rdc does not use is not here: order, kw_only, InitVar.
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

    __slots__ = ("annotation", "default", "factory", "init", "name", "repr")

    def __init__(self, default: Any, factory: Any, *, init: bool, repr: bool) -> None:  # noqa: A002 - dataclasses' word
        self.name = self.annotation = ""
        self.default = default
        self.factory = factory
        self.init = init
        self.repr = repr


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

    def make(cls: type) -> type:
        own = _own_fields(cls)
        inherited: dict[str, _Field] = {}
        for base in cls.__mro__[:0:-1]:
            inherited |= base.__dict__.get("__record_fields__", {})
        fields = {**inherited, **{each.name: each for each in own}}
        if slots:
            cls = _with_slots(cls, tuple(each.name for each in own if each.name not in inherited))
        setattr(cls, "__record_fields__", fields)  # noqa: B010 - to a type checker the class has no such thing
        setattr(cls, "__dataclass_fields__", _Standard())  # noqa: B010
        methods: dict[str, Any] = {
            "__init__": _initializer(cls, fields.values(), frozen=frozen),
            "__match_args__": tuple(each.name for each in fields.values() if each.init),
        }
        if repr:
            methods["__repr__"] = _representation(fields.values())
        if eq:
            methods["__eq__"], methods["__hash__"] = _comparison(tuple(fields))
            if not frozen:
                methods["__hash__"] = None
        if frozen:
            methods |= {"__setattr__": _frozen, "__delattr__": _frozen}
            if slots:
                methods |= {"__getstate__": _state, "__setstate__": _set_state}
        for name, method in methods.items():
            # As in dataclasses: what the class says itself goes, and a given __eq__ decides about __hash__.
            if name == "__init__" or name not in cls.__dict__ or (name == "__hash__" and _implied_hash(cls)):
                setattr(cls, name, method)
        return cls

    return make


def _own_fields(cls: type) -> list[_Field]:
    """Those annotated in the class body, whose defaults stay with the class only where it has no slots."""
    fields = []
    # Not inspect.get_annotations: inspect takes longer to load than all records to define.
    for name, annotation in cls.__dict__.get("__annotations__", {}).items():  # noqa: RUF063
        if not isinstance(annotation, str):
            raise TypeError(f"{cls.__name__}.{name}: its module lacks from __future__ import annotations")
        if annotation.startswith("ClassVar"):
            continue
        value = cls.__dict__.get(name, _NONE_GIVEN)
        if isinstance(value, (MemberDescriptorType, GetSetDescriptorType)):
            value = _NONE_GIVEN
        if isinstance(value, (list, dict, set)):
            raise TypeError(f"{cls.__name__}.{name}: all would share this default; use default_factory")
        each = value if isinstance(value, _Field) else _Field(value, _NONE_GIVEN, init=True, repr=True)
        each.name, each.annotation = name, annotation
        if not each.init and (each.default is not _NONE_GIVEN or each.factory is not _NONE_GIVEN):
            raise TypeError(f"{cls.__name__}.{name}: __post_init__ sets what __init__ does not take")
        if isinstance(value, _Field):
            if each.default is _NONE_GIVEN:
                delattr(cls, name)
            else:
                setattr(cls, name, each.default)
        fields.append(each)
    return fields


def _with_slots(cls: type, names: tuple[str, ...]) -> type:
    """The same class with slots: Python lays a class out once, so it is made anew."""
    body = {
        name: value
        for name, value in cls.__dict__.items()
        if name not in names and name not in ("__dict__", "__weakref__")
    }
    body["__slots__"] = names
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


_PATTERNS: dict[tuple[int, bool], CodeType] = {}


def _pattern(count: int, then: bool) -> CodeType:
    """__init__(self, p0, p1, ...) for so many fields: s0(self, p0), s1(self, p1), ...; __post_init__."""
    code = _PATTERNS.get((count, then))
    if code is None:
        stores = [f"s{i:03}" for i in range(count)]
        lines = [f"  {store}(self, p{i})" for i, store in enumerate(stores)]
        lines.append("  self.__post_init__()" if then else "  pass")
        source = "\n".join(
            (
                f"def make({', '.join(stores)}):",
                f" def __init__(self, {', '.join(f'p{i}' for i in range(count))}):",
                *lines,
                " return __init__",
            )
        )
        scope: dict[str, Any] = {}
        # Nothing but a number goes into the source. Not through compile(), whose first call makes the classes
        # of a syntax tree, for 1.4 ms.
        exec(source, scope)  # noqa: S102
        code = _PATTERNS[count, then] = scope["make"](*[None] * count).__code__
    return code


def _initializer(cls: type, fields: Any, *, frozen: bool) -> Any:
    given = [each for each in fields if each.init]
    stores = [_store(cls, each, frozen=frozen) for each in given]
    defaults = []
    for each in given:
        if each.factory is not _NONE_GIVEN:
            defaults.append(_NONE_GIVEN)
        elif each.default is not _NONE_GIVEN:
            defaults.append(each.default)
        elif defaults:
            raise TypeError(f"{cls.__name__}.{each.name} has no default and follows one that has")
    code = _pattern(len(given), hasattr(cls, "__post_init__")).replace(
        co_varnames=("self", *(each.name for each in given)), co_qualname=f"{cls.__qualname__}.__init__"
    )
    # Of the names that the code looks up, __post_init__ is an attribute: it needs no globals.
    made = FunctionType(code, {}, "__init__", tuple(defaults), tuple(map(CellType, stores)))
    made.__module__ = cls.__module__
    made.__annotations__ = {**{each.name: each.annotation for each in given}, "return": "None"}
    return made


def _store(cls: type, each: _Field, *, frozen: bool) -> Callable[[Any, Any], None]:
    """What puts a value into its field, also of a frozen record."""
    slot = getattr(cls, each.name, None)
    if isinstance(slot, MemberDescriptorType):
        put: Callable[[Any, Any], None] = slot.__set__
    elif frozen:
        name = each.name

        def put(record: Any, value: Any) -> None:
            object.__setattr__(record, name, value)
    else:
        name = each.name

        def put(record: Any, value: Any) -> None:
            setattr(record, name, value)

    if each.factory is _NONE_GIVEN:
        return put
    factory = each.factory

    def put_made(record: Any, value: Any) -> None:
        put(record, factory() if value is _NONE_GIVEN else value)

    return put_made


def _comparison(names: tuple[str, ...]) -> tuple[Any, Any]:
    """Equal are records of one class whose fields are."""
    values: Callable[[Any], object] = attrgetter(*names) if names else lambda _: ()

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self))

    return __eq__, __hash__


def _implied_hash(cls: type) -> bool:
    """Python sets __hash__ to None in a class that has an __eq__."""
    return cls.__dict__.get("__hash__", _NONE_GIVEN) is None


def _representation(fields: Any) -> Any:
    shown = tuple(each.name for each in fields if each.repr)

    def __repr__(self: Any) -> str:  # noqa: N807
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({values})"

    return __repr__


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
        for each in getattr(cls, "__record_fields__").values():  # noqa: B009
            options: dict[str, Any] = {"init": each.init, "repr": each.repr}
            if each.factory is not _NONE_GIVEN:
                options["default_factory"] = each.factory
            elif each.default is not _NONE_GIVEN:
                options["default"] = each.default
            columns.append((each.name, each.annotation, dataclasses.field(**options)))
        found: dict[str, Any] = vars(dataclasses.make_dataclass(cls.__name__, columns))[
            "__dataclass_fields__"
        ]
        # Once: dataclasses.replace asks for them three times a call.
        cls.__dataclass_fields__ = found  # type: ignore[attr-defined]
        return found


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
