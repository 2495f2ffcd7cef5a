"""Dataclasses without the cost of the standard `dataclasses` module at each start.

`class Point(Record):` is what `@dataclass(frozen=True, slots=True) class Point:` is: a frozen dataclass with
slots. `dataclasses.dataclass` compiles source text for every class, and creates each class with slots twice.
This module creates it once, shares the methods between classes and makes `__init__` when it is first looked
up. A pattern function exists for each number of fields (`_PATTERNS`). A class gets a copy of the pattern with
its own parameter names. The copy stores through the slots and is as fast as the standard one. Records with
many fields are stored by a loop instead (`_by_loop`).

To a type checker records ARE dataclasses. `dataclasses.fields`, `replace` and `is_dataclass` accept the
classes. Options that rdc does not use are missing: `order`, `kw_only`, `InitVar`, and a `__post_init__` in a
class whose `__init__` takes no argument.

rdc/lean/LEAN.md has what it saves, measured.
"""

from __future__ import annotations

from operator import attrgetter
from os import fsdecode
from types import FunctionType

TYPE_CHECKING = False  # as in typing, without loading typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from dataclasses import asdict, field, replace
    from typing import Any, ClassVar, dataclass_transform

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    class Record:
        """The base of all records. At run time it is none of their bases: isinstance does not take it.

        frozen: whether fields cannot be set again. eq, repr: whether records compare and show by fields.
        """

        __dataclass_fields__: ClassVar[dict[str, Any]]

        def __init_subclass__(cls, *, frozen: bool = True, eq: bool = True, repr: bool = True) -> None: ...  # noqa: A002 - dataclasses' word


__all__ = ["Record", "Report", "asdict", "field", "field_metadata", "field_names", "renderer", "replace"]


class _Missing:
    """Stands for an absent default. Its text appears in signatures, as in dataclasses."""

    def __repr__(self) -> str:
        return "<factory>"


_MISSING: Any = _Missing()
"""The default of a field without one, and of a parameter whose field has a default_factory."""


class _Field:
    """The options of one field. An absent `default` or `factory` is _MISSING."""

    __slots__ = ("default", "factory", "init", "metadata", "optional", "repr")

    def __init__(
        self,
        default: Any = _MISSING,
        factory: Any = _MISSING,
        *,
        init: bool = True,
        repr: bool = True,  # noqa: A002 - dataclasses' word
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.default = default
        self.metadata = metadata
        self.factory = factory
        self.init = init
        self.repr = repr
        self.optional = default is not _MISSING or factory is not _MISSING


_PLAIN = _Field()


def _field(
    *,
    default: Any = _MISSING,
    default_factory: Any = _MISSING,
    init: bool = True,
    repr: bool = True,  # noqa: A002 - dataclasses' word
    metadata: Mapping[str, Any] | None = None,
) -> Any:
    """Describe a field, like dataclasses.field."""
    return _Field(default, default_factory, init=init, repr=repr, metadata=metadata)


def _made(
    name: str,
    bases: tuple[type, ...],
    body: dict[str, Any],
    *,
    frozen: bool,
    eq: bool,
    repr: bool,  # noqa: A002 - dataclasses' word
) -> type:
    """Create a record class from the name, bases and body of its class statement."""
    own = fields = _own_fields(name, body)
    slots: Iterable[str] = own
    for base in reversed(bases):
        if inherited := getattr(base, "__record_fields__", None):
            fields = ({} if fields is own else fields) | inherited
    if fields is not own:
        slots = [each for each in own if each not in fields]
        fields = fields | own
    _check_order(name, fields)
    initializer = _Initializer()
    shared = _shared_methods(frozen, eq, repr)
    for each in own:
        body.pop(each, None)
    # The class's own methods win, as in dataclasses. Python sets __hash__ to None in a class that defines
    # __eq__; the shared __hash__ replaces that None.
    body = {
        **shared,
        "__match_args__": tuple([each for each, how in fields.items() if how.init]),
        **body,
        "__record_fields__": fields,
        "__init__": initializer,
        "__slots__": (*body.get("__slots__", ()), *slots),
    }
    if "__hash__" in shared and body.get("__hash__") is None:
        body["__hash__"] = shared["__hash__"]
    made = type(name, bases, body)
    initializer.cls = made
    return made


class _Maker(type):
    """Creates the class that a class statement with Record among its bases describes: one of `type`, as any
    other, so that isinstance stays fast. Slots are fixed when a class is created; a decorator, which sees the
    class when it is there, would have to create a second one."""

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        body: dict[str, Any],
        *,
        frozen: bool = True,
        eq: bool = True,
        repr: bool = True,  # noqa: A002 - dataclasses' word
    ) -> Any:
        body.pop("__orig_bases__", None)
        bases = tuple([base for base in bases if base is not _MARK])
        return _made(name, bases, body, frozen=frozen, eq=eq, repr=repr)


_MARK: Any = type.__new__(_Maker, "Record", (), {})
"""Stands among the bases while a class statement runs, and brings its metaclass in."""


class _Record:
    def __mro_entries__(self, _bases: tuple[object, ...]) -> tuple[type, ...]:
        return (_MARK,)


_SHARED: dict[tuple[bool, bool, bool], dict[str, Any]] = {}


def _shared_methods(frozen: bool, eq: bool, repr: bool) -> dict[str, Any]:  # noqa: A002 - dataclasses' word
    """Return the methods that all classes with these options share."""
    methods = _SHARED.get((frozen, eq, repr))
    if methods is None:
        methods = _SHARED[frozen, eq, repr] = {"__dataclass_fields__": _STANDARD}
        if repr:
            methods["__repr__"] = _represented
        if eq:
            methods |= {
                "__record_values__": _VALUES,
                "__eq__": _equal,
                "__hash__": _hashed if frozen else None,
            }
        if frozen:
            methods |= {
                "__setattr__": _frozen,
                "__delattr__": _frozen,
                "__getstate__": _state,
                "__setstate__": _set_state,
            }
    return methods


def _own_fields(cls: str, given: Mapping[str, Any]) -> dict[str, _Field]:
    """Return the fields that the body of a class annotates, by name."""
    fields = {}
    # inspect.get_annotations would load inspect, which takes longer than making all records.
    for name, annotation in given.get("__annotations__", {}).items():
        if annotation.__class__ is not str:
            raise TypeError(f"{cls}.{name}: its module lacks from __future__ import annotations")
        if annotation.startswith("ClassVar"):
            continue
        if name not in given:
            fields[name] = _PLAIN
            continue
        value = given[name]
        if value.__class__ is _Field:
            if value.optional and not value.init:
                raise TypeError(f"{cls}.{name}: __post_init__ sets what __init__ does not take")
            fields[name] = value
        elif isinstance(value, (list, dict, set)):
            raise TypeError(f"{cls}.{name}: all would share this default; use default_factory")
        else:
            fields[name] = _Field(value)
    return fields


def _check_order(cls: str, fields: dict[str, _Field]) -> None:
    """Raise TypeError if a field without a default follows one that has one."""
    optional = False
    for name, each in fields.items():
        if each.optional:
            optional = True
        elif optional and each.init:
            raise TypeError(f"{cls}.{name} has no default and follows one that has")


class _Initializer:
    """Stands in for __init__. The first lookup makes the real __init__ and replaces this object."""

    __slots__ = ("cls",)

    def __init__(self) -> None:
        self.cls: type = object

    def __get__(self, record: object, _owner: type) -> Any:
        made = _initializer(self.cls)
        setattr(self.cls, "__init__", made)  # noqa: B010 - for mypy
        return made if record is None else made.__get__(record)


_PATTERNS: tuple[Callable[..., Callable[..., None]], ...] = (
    lambda: lambda self: None,
    lambda a: lambda self, m: a(self, m),  # noqa: PLW0108 - its code is what is wanted
    lambda a, b: lambda self, m, n: a(self, m) or b(self, n),
    lambda a, b, c: lambda self, m, n, o: a(self, m) or b(self, n) or c(self, o),
    lambda a, b, c, d: lambda self, m, n, o, p: a(self, m) or b(self, n) or c(self, o) or d(self, p),
    lambda a, b, c, d, e: (
        lambda self, m, n, o, p, q: a(self, m) or b(self, n) or c(self, o) or d(self, p) or e(self, q)
    ),
    lambda a, b, c, d, e, f: (
        lambda self, m, n, o, p, q, r: (
            a(self, m) or b(self, n) or c(self, o) or d(self, p) or e(self, q) or f(self, r)
        )
    ),
    lambda a, b, c, d, e, f, g: (
        lambda self, m, n, o, p, q, r, s: (
            a(self, m) or b(self, n) or c(self, o) or d(self, p) or e(self, q) or f(self, r) or g(self, s)
        )
    ),
    lambda a, b, c, d, e, f, g, h: (
        lambda self, m, n, o, p, q, r, s, t: (
            (a(self, m) or b(self, n) or c(self, o) or d(self, p))
            or (e(self, q) or f(self, r) or g(self, s) or h(self, t))
        )
    ),
    lambda a, b, c, d, e, f, g, h, i: (
        lambda self, m, n, o, p, q, r, s, t, u: (
            (a(self, m) or b(self, n) or c(self, o) or d(self, p) or e(self, q))
            or (f(self, r) or g(self, s) or h(self, t) or i(self, u))
        )
    ),
)
"""By number of fields: a function that takes the functions that store the fields and returns __init__. Those
return None, so `or` calls them all. Compiled with this module: to compile them in a run took 0.05 ms each."""

_LONG = len(_PATTERNS)
"""Fields. More are stored by a loop, which takes longer than a pattern does."""


def _by_loop(self: Any) -> None:
    """Pass all arguments on: an __init__ to which a class gives its parameters."""
    store(locals())  # type: ignore[name-defined] # noqa: F821 - its globals have it


def _loop(
    names: Iterable[str], stores: Sequence[Callable[[Any, Any], None]]
) -> Callable[[dict[str, Any]], None]:
    """Return the function that stores the arguments of __init__, given by name."""
    rows = list(zip(names, stores, strict=True))

    def store(given: dict[str, Any]) -> None:
        record = given["self"]
        for name, put in rows:
            put(record, given[name])

    return store


def _initializer(cls: type) -> FunctionType:
    """Make the __init__ of a class. Raises TypeError for a __post_init__ without arguments to check."""
    fields: dict[str, _Field] = getattr(cls, "__record_fields__")  # noqa: B009 - for mypy
    given = {name: each for name, each in fields.items() if each.init}
    stores = [
        getattr(cls, name).__set__ if each.factory is _MISSING else _made_store(cls, name, each)
        for name, each in given.items()
    ]
    if hasattr(cls, "__post_init__"):
        if not stores:
            raise TypeError(f"{cls.__name__}: nothing is given that __post_init__ could check")
        stores[-1] = _last_store(stores[-1])
    defaults = tuple([each.default for each in given.values() if each.optional])
    is_long, count = len(given) >= _LONG, 1 + len(given)
    pattern = _by_loop if is_long else _PATTERNS[len(given)](*stores)
    code = pattern.__code__.replace(
        co_argcount=count,
        co_nlocals=count,
        co_varnames=("self", *given),
        co_name="__init__",
        co_qualname=f"{cls.__qualname__}.__init__",
    )
    used = {"store": _loop(given, stores), "locals": locals} if is_long else {}
    made = FunctionType(code, used, "__init__", defaults, pattern.__closure__)
    made.__module__ = cls.__module__
    own: dict[str, str] = cls.__dict__.get("__annotations__", {})  # noqa: RUF063 - see _own_fields
    if own.keys() != given.keys():
        annotations = _annotations(cls)
        own = {name: annotations[name] for name in given}
    made.__annotations__ = {**own, "return": "None"}
    return made


def _annotations(cls: type) -> dict[str, str]:
    """Return the annotations of a class and its bases, those of the bases first."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= base.__dict__.get("__annotations__", {})  # noqa: RUF063 - see _own_fields
    return found


def _made_store(cls: type, name: str, each: _Field) -> Callable[[Any, Any], None]:
    """Return the function that stores a value in a field, or what its factory makes."""
    put: Callable[[Any, Any], None] = getattr(cls, name).__set__
    factory = each.factory

    def put_made(record: Any, value: Any) -> None:
        put(record, factory() if value is _MISSING else value)

    return put_made


def _last_store(put: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Return a store that calls __post_init__ afterwards."""

    def put_and_check(record: Any, value: Any) -> None:
        put(record, value)
        record.__post_init__()

    return put_and_check


class _Values:
    """Stands in for the getter of all field values. The first lookup makes the getter."""

    def __get__(self, _record: object, cls: type) -> Callable[[Any], object]:
        # An attrgetter, because a function would become a method.
        values: Callable[[Any], object] = attrgetter(*(field_names(cls) or ("__class__",)))
        setattr(cls, "__record_values__", values)  # noqa: B010 - for mypy
        return values


_VALUES = _Values()


def _equal(self: Any, other: object) -> Any:
    """Compare records: equal means the same class and equal fields."""
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
    """Return the field values, for copy and pickle."""
    return [getattr(self, name) for name in self.__record_fields__]


def _set_state(self: Any, state: list[Any]) -> None:
    """Restore the field values of a frozen record, for copy and pickle."""
    for name, value in zip(self.__record_fields__, state, strict=True):
        object.__setattr__(self, name, value)


class _Standard:
    """Gives the functions of dataclasses their field objects, made on first use."""

    def __get__(self, record: object, cls: type) -> dict[str, Any]:
        import dataclasses

        columns: list[tuple[str, Any, Any]] = []
        annotations = _annotations(cls)
        for name, each in getattr(cls, "__record_fields__").items():  # noqa: B009 - for mypy
            options: dict[str, Any] = {"init": each.init, "repr": each.repr, "metadata": each.metadata}
            if each.factory is not _MISSING:
                options["default_factory"] = each.factory
            elif each.default is not _MISSING:
                options["default"] = each.default
            columns.append((name, annotations[name], dataclasses.field(**options)))
        found: dict[str, Any] = vars(dataclasses.make_dataclass(cls.__name__, columns))[
            "__dataclass_fields__"
        ]
        # Cached, because dataclasses.replace asks three times per call.
        cls.__dataclass_fields__ = found  # type: ignore[attr-defined] # every record class has it
        return found


_STANDARD = _Standard()


def field_names(record_class: type) -> tuple[str, ...]:
    """Return the names of a record's fields in order, inherited ones first."""
    return tuple(getattr(record_class, "__record_fields__"))  # noqa: B009 - for mypy


def field_metadata(record_class: type) -> dict[str, Mapping[str, Any]]:
    """Return the metadata of each field of a record that has some."""
    fields: dict[str, _Field] = getattr(record_class, "__record_fields__")  # noqa: B009 - for mypy
    return {name: each.metadata for name, each in fields.items() if each.metadata is not None}


# Results as plain values.


class Report:
    """The base of the results that a program gets."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values: records as dicts, sequences as lists, enumerations by their
        values, and paths as text under the names of their properties, such as "path". Groups are read to the
        end."""
        return _plain_fields(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return `to_dict()` as JSON in ASCII. A byte of a path that is no UTF-8 is a lone surrogate, as
        json.loads and os.fsencode take it."""
        import json

        return json.dumps(self.to_dict(), indent=indent)


def renderer(module: str, function: str) -> Callable[..., Any]:
    """Return a function of a report's layer, by names. Reports lie below it, and a start must not load it."""
    from importlib import import_module

    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def _plain_fields(record: object) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in field_names(type(record)):
        stem = name.removesuffix("_bytes")
        is_path = isinstance(getattr(type(record), stem, None), property) and stem != name
        found[stem if is_path else name] = _plain(getattr(record, name))
    return found


def _plain(value: Any) -> Any:
    from rdc.lean.enums import Enum

    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return fsdecode(value)
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(one) for key, one in value.items()}
    if hasattr(type(value), "__record_fields__"):
        return _plain_fields(value)
    return [_plain(one) for one in value]


def _replace(record: Any, /, **changes: Any) -> Any:
    """Copy a record with some fields changed, like dataclasses.replace. __post_init__ runs again."""
    for name, each in record.__record_fields__.items():
        if each.init and name not in changes:
            changes[name] = getattr(record, name)
    return record.__class__(**changes)


def _asdict(record: Any) -> dict[str, Any]:
    """Return the fields as a dict, like dataclasses.asdict. Does not descend into nested records."""
    return {name: getattr(record, name) for name in record.__record_fields__}


if not TYPE_CHECKING:
    asdict, field, replace, Record = _asdict, _field, _replace, _Record()
