"""Build a frozen dataclass from plain names and numbers, with one clear error for each kind of mistake."""

from __future__ import annotations

import dataclasses
import difflib
import numbers
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")

LARGEST_INTEGER = 2**63


def unknown(what: str, given: object, allowed: typing.Iterable[str]) -> str:
    """Word the error for a name that does not exist, with the nearest one that does."""
    names = list(allowed)
    near = difflib.get_close_matches(str(given), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{what} {given!r} does not exist.{hint} Allowed: {', '.join(names) if names else 'nothing'}"


def require(condition: bool, key: str, given: object, allowed: str) -> None:
    """Raise ValueError unless `condition` holds, naming the key, the value given and what is allowed."""
    if not condition:
        raise ValueError(f"{key} must be {allowed}, got {given!r}")


def construct(cls: type[T], fields: Mapping[str, Any], where: str = "") -> T:
    """Build `cls` from `fields`; types are checked against its annotations, ranges by its own checks.

    Parameters
    ----------
    cls : type
        A dataclass.
    fields : mapping
        Field names and plain values.
    where : str
        The configuration key that the fields stand under; errors name it.

    Raises
    ------
    ValueError
        For a field that does not exist, a missing one, a wrong type, or a value out of range.
    """
    prefix = f"{where}." if where else ""
    hints: dict[str, Any] = _hints(cls)  # type: ignore[arg-type]
    declared = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    for name in fields:
        if name not in declared:
            raise ValueError(unknown("key", f"{prefix}{name}", [prefix + n for n in declared]))
    for name, field in declared.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and fields.get(name) is None:
            raise ValueError(f"{prefix}{name} must be given ({describe_type(hints[name])})")
    values = {name: coerce(value, hints[name], prefix + name) for name, value in fields.items()}
    try:
        return cls(**values)
    except ValueError as error:
        raise ValueError(f"{prefix}{error}") from None


def coerce(value: Any, hint: Any, key: str) -> Any:
    """Return `value` as the annotated type; integers may stand for floats, lists for tuples."""
    for option in _options(hint):
        matched, result = _match(value, option)
        if matched:
            return result
    raise ValueError(f"{key} must be {describe_type(hint)}, got {value!r}")


def check_fields(value: Any) -> None:
    """Coerce the fields of a frozen dataclass to their annotated types, in place: its ``__post_init__``.

    Raises
    ------
    ValueError
        For a field of another type; NumPy numbers pass as Python's.
    """
    hints: dict[str, Any] = _hints(type(value))  # type: ignore[arg-type]
    for field in dataclasses.fields(value):
        given = getattr(value, field.name)
        object.__setattr__(value, field.name, coerce(given, hints[field.name], field.name))


def describe_type(hint: Any) -> str:
    """Say in words which values an annotation allows."""
    words = {int: "an integer", float: "a number", str: "a name", bool: "true or false", type(None): "null"}
    parts = []
    for option in _options(hint):
        if typing.get_origin(option) is typing.Literal:
            parts.append("one of " + ", ".join(map(str, typing.get_args(option))))
        elif typing.get_origin(option) is tuple:
            parts.append("a list, each entry " + describe_type(typing.get_args(option)[0]))
        else:
            parts.append(words.get(option, getattr(option, "__name__", str(option))))
    return " or ".join(parts)


@lru_cache(maxsize=256)
def _hints(cls: Any) -> dict[str, Any]:
    """Return the annotations of a class; to resolve them costs more than all checks together."""
    return typing.get_type_hints(cls)


def _options(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _match(value: Any, option: Any) -> tuple[bool, Any]:
    origin = typing.get_origin(option)
    if origin is typing.Literal:
        return value in typing.get_args(option), value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            return False, None
        inner = [_match(v, typing.get_args(option)[0]) for v in value]
        return all(ok for ok, _ in inner), tuple(v for _, v in inner)
    if option in (int, float) and isinstance(value, bool):
        return False, None
    if option is float and isinstance(value, numbers.Real):
        return True, float(value)
    if option is int and isinstance(value, numbers.Integral):
        return abs(int(value)) < LARGEST_INTEGER, int(value)
    if option is bool and type(value).__name__ == "bool":  # NumPy's too
        return True, bool(value)
    return isinstance(option, type) and isinstance(value, option), value
