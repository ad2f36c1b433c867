"""What is public: the names that the reference lists, found in the packages and registries themselves."""

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any, NamedTuple

from docstrings import escaped, qualified

import capmem.studies
from capmem.catalogue import GROUPS
from capmem.registry import Registry


class Listed(NamedTuple):
    """What one directive of the reference describes: choices by their name in configurations, and other names."""

    choices: dict[str, str]
    names: list[str]


def listed(module: str, group: str | None = None, names: str = "", without: str = "") -> Listed:
    """Return the paths of what a directive ``.. api:: module`` with these options describes."""
    package = importlib.import_module(module)
    taken = {name: path_of(cls, module) for name, cls in choices(GROUPS[group]).items()} if group else {}
    everywhere = {cls for registry in GROUPS.values() for cls in choices(registry).values()}
    left = [n for n in names.split() or public(package) if n not in without.split()]
    if not names:
        left = [n for n in left if not inspect.isclass(getattr(package, n)) or getattr(package, n) not in everywhere]
    return Listed(taken, [f"{module}.{name}" for name in left])


def public(module: ModuleType) -> list[str]:
    """Return the public names of a module, classes first: ``__all__``, or what the module itself defines."""
    own = [n for n, o in vars(module).items() if not n.startswith("_") and _is_of(o, module)]
    names = [n for n in getattr(module, "__all__", own) if not n.startswith("_")]
    described = [n for n in names if not isinstance(getattr(module, n), ModuleType | Registry)]
    return sorted(described, key=lambda n: not inspect.isclass(getattr(module, n)))


def choices(registry: Registry[Any]) -> dict[str, type]:
    """Return the classes of a registry that capmem itself has, in its order."""
    found = {name: registry[name] for name in registry.names()}
    return {name: cls for name, cls in found.items() if cls.__module__.startswith("capmem.")}


def path_of(cls: type, module: str) -> str:
    """Return where a class is imported from: the package, if it is public there, else its own module."""
    there = getattr(importlib.import_module(module), cls.__name__, None)
    return f"{module if there is cls else cls.__module__}.{cls.__name__}"


def at(path: str) -> Any:
    """Return the object of a path."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def summary(path: str) -> str:
    """Return the first paragraph of a docstring as reStructuredText."""
    obj = at(path)
    if not (inspect.isclass(obj) or inspect.isroutine(obj)):
        return ""
    return first_paragraph(qualified(inspect.getdoc(obj) or "", obj.__module__, obj.__qualname__))


def first_paragraph(docstring: str) -> str:
    """Return what a table says of an object."""
    return escaped(" ".join(docstring.split("\n\n")[0].split()))


def studies() -> list[ModuleType]:
    """Return the modules of all analyses that the frame runs."""
    modules = [
        importlib.import_module(f"capmem.studies.{m.name}") for m in pkgutil.iter_modules(capmem.studies.__path__)
    ]
    return [module for module in modules if hasattr(module, "STUDY")]


def _is_of(obj: object, module: ModuleType) -> bool:
    return (inspect.isclass(obj) or inspect.isfunction(obj)) and obj.__module__ == module.__name__
