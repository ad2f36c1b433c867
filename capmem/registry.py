"""One registry a kind: a name for each feature map, write rule, read-out and ensemble, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from capmem.schema import construct, unknown

T = TypeVar("T")

CHOICE_KEYS = ("name", "kind")  # "kind" stands for the choice where that has a field "name" of its own


class Registry(Generic[T]):
    """Names for classes of one kind.

    Parameters
    ----------
    kind : str
        What is registered, as errors and the command line call it, e.g. ``feature_map``.

    Notes
    -----
    Other packages add a class by the decorator :meth:`register`, or by an entry point in the group
    ``capmem.<kind>``, which is looked up when a name is not known yet.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._classes: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Return a decorator that gives a class its name; a name is given once."""

        def add(cls: type[T]) -> type[T]:
            if self._classes.get(name, cls) is not cls:
                raise ValueError(f"{self.kind} {name!r} is registered already: {self._classes[name]}")
            self._classes[name] = cls
            return cls

        return add

    def names(self) -> list[str]:
        """Return all registered names, in order of registration."""
        return list(self._classes)

    def load_entry_points(self) -> None:
        """Register what other installed packages offer in the entry-point group ``capmem.<kind>``."""
        from importlib.metadata import entry_points  # a tenth of the library's import time

        for point in entry_points(group=f"capmem.{self.kind}"):
            if point.name not in self._classes:
                self.register(point.name)(point.load())

    def __getitem__(self, name: str) -> type[T]:
        if name not in self._classes:
            self.load_entry_points()
        if name not in self._classes:
            raise ValueError(unknown(self.kind, name, self.names()))
        return self._classes[name]

    def build(self, spec: str | Mapping[str, Any] | T, where: str | None = None) -> T:
        """Build an object from its name, or from a mapping with ``name`` (or ``kind``) and its fields.

        Raises
        ------
        ValueError
            For a name or field that does not exist, a wrong type, or a value out of range.
        """
        where = where or self.kind
        if isinstance(spec, str):
            spec = {"name": spec}
        if not isinstance(spec, Mapping):
            if type(spec) in self._classes.values():
                return spec
            raise ValueError(f"{where} must be a name or a mapping with a name, got {spec!r}")
        key = CHOICE_KEYS[CHOICE_KEYS[1] in spec]
        choice = spec.get(key)
        if not isinstance(choice, str):
            raise ValueError(f"{where}.{key} must be one of {', '.join(self.names())}, got {choice!r}")
        return construct(self[choice], {k: v for k, v in spec.items() if k != key}, where)

    def describe(self, value: T) -> dict[str, Any]:
        """Return the choice and the fields of `value`: what :meth:`build` takes."""
        if type(value) not in self._classes.values():
            self.load_entry_points()
        for choice, cls in self._classes.items():
            if type(value) is cls:
                fields = [f.name for f in dataclasses.fields(value) if f.init]  # type: ignore[arg-type]
                key = CHOICE_KEYS["name" in fields]
                return {key: choice} | {name: getattr(value, name) for name in fields}
        raise ValueError(f"{type(value).__name__} is not a registered {self.kind}")
