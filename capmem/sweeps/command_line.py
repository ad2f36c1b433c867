"""The command line: what its overrides mean, and how they are handed to Hydra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, QuotedString, Transformer
from hydra.errors import HydraException

from capmem.sweeps.spacing import expanded

PRESET = "experiment"
ZIP = "zip"  # zip=[key_dim,value_dim]: these axes run side by side, not crossed
UNION = "+"  # a word of its own: what follows is a further grid
RUN_KEYS = ("workers", "figures", "retry_failed", "criterion", "threshold")  # how it is run and shown: part of no point
FLOAT_DIGITS = 12  # a range's 0.1 + 0.2 is meant as 0.3
NO_RUN_FLAGS = frozenset("--help -h --hydra-help --cfg -c --info -i --shell-completion -sc --version".split())
RUN_FLAGS = frozenset("--run -r --multirun -m".split())


def values_of(override: Override) -> Iterator[Any]:
    if not override.is_sweep_override():
        yield _plain(override.value())
    elif override.is_discrete_sweep():
        values = [_plain(v) for v in override.sweep_iterator(transformer=Transformer.identity)]
        if not values:
            raise ValueError(f"{override.input_line!r} has no values")
        ranged = override.is_range_sweep()
        yield from (float(f"{v:.{FLOAT_DIGITS}g}") if ranged and isinstance(v, float) else v for v in values)
    else:
        raise ValueError(f"{override.input_line!r}: an interval has no list of values; use range or a list")


def _plain(value: Any) -> Any:
    """Return a parsed value as plain Python."""
    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(_plain(k)): _plain(v) for k, v in value.items()}
    return value


def zips_of(values: list[Any]) -> list[list[str]]:
    """Return the axes of each zip: zip=[a,b] is one, zip=[[a,b],[c,d]] and zip=[a,b],[c,d] are two.

    Raises
    ------
    ValueError
        If it is no list of keys.
    """
    lists = [inner for v in values for inner in (v if isinstance(v, list) and v and isinstance(v[0], list) else [v])]
    for keys in lists:
        if not (isinstance(keys, list) and all(isinstance(key, str) for key in keys)):
            raise ValueError(f"zip must be a list of keys, zip=[key_dim,value_dim], got {keys!r}")
    return lists


def as_text(value: Any) -> str:
    """Write one value of hydra.sweeper.params as the command line would have it; a list sweeps its entries."""
    if isinstance(value, list):
        return ",".join(as_text([v]) if isinstance(v, list) else as_text(v) for v in value)
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def grids_of(arguments: list[str]) -> list[list[str]]:
    """Split a command line at each word "+": a list of words a grid.

    What stands before the first "+" holds for all grids, unless one sets the key again. How it is run, and where,
    is the same for all.
    """
    first, *others = _split(arguments)
    for words in others:
        if flags := [word for word in words if word.startswith("-")]:
            raise ValueError(f"{flags[0]!r}: flags stand before the first {UNION!r}")
        if not any(says_what(word) for word in words):
            raise ValueError(f"{UNION!r} must stand between grids: KEY=VALUE ... {UNION} KEY=VALUE ...")
    common = [word for words in others for word in words if not says_what(word)]
    return [first + common, *([word for word in words if says_what(word)] for words in others)]


def _split(arguments: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in arguments:
        if word == UNION:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def runs(arguments: list[str]) -> bool:
    """Whether the command line asks for a run, not for help or a configuration."""
    return not any(word.partition("=")[0] in NO_RUN_FLAGS for word in arguments)


def flags_of(arguments: list[str]) -> list[str]:
    """Return the flags, with their values; a command that does not say how it runs is a multirun."""
    words = _with_previous(arguments)
    flags = [word for word, previous in words if not _is_override(word, previous) and not _is_hydras(word)]
    return flags + ([] if RUN_FLAGS.intersection(flags) else ["--multirun"])


def deferred(arguments: list[str]) -> list[str]:
    """Turn key_dim=16 into a sweep of one value, key_dim=choice(16); Hydra's own keys come last, without flags.

    Hydra applies plain overrides to the default choices of groups, which may not have the field (keys.path),
    and has words of its own for a misspelt key or choice; sweeps it leaves to the sweeper, which knows better.

    Raises
    ------
    ValueError
        For an override that cannot be read, or that adds or deletes a key.
    """
    own = [_deferred(word) for word, previous in _with_previous(arguments) if _is_override(word, previous)]
    return [*own, *(word for word in arguments if _is_hydras(word))]


def _with_previous(arguments: list[str]) -> list[tuple[str, str]]:
    return list(zip(arguments, ["", *arguments], strict=False))


def _is_override(word: str, previous: str) -> bool:
    """Whether a word sets a key: no flag, no value of a flag, and none of Hydra's own keys."""
    value_of_flag = previous.startswith("-") and "=" not in word
    return not (word.startswith("-") or value_of_flag or _is_hydras(word))


def _is_hydras(word: str) -> bool:
    return word.lstrip("+").startswith(("hydra.", "hydra/"))


def _deferred(word: str) -> str:
    word = expanded(word)
    key, equals, value = word.partition("=")
    if "@" in key:
        raise ValueError(f"{word!r}: choices stand under their own group; set GROUP=CHOICE, without @")
    if not key:
        raise ValueError(f"{word!r} cannot be read as KEY=VALUE: it has no key")
    try:
        override = OverridesParser.create().parse_override(word)
    except HydraException as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{word!r} cannot be read as KEY=VALUE: {reason}") from None
    if override.is_delete() or (override.is_add() and override.key_or_group != PRESET):
        raise ValueError(f"{word!r}: keys cannot be added or deleted; set KEY=VALUE")
    if not equals or not value:
        raise ValueError(f"{word!r} has no value; set KEY=VALUE")
    if override.is_sweep_override():
        return word
    # choice() does not take null; said twice, it is one value all the same
    return f"{key}=null,null" if value.lower() == "null" else f"{key}=choice({value})"


def says_what(word: str) -> bool:
    """Whether a word says what to run; where (hydra.sweep.dir) and how (workers) do not."""
    return "=" in word and not _is_hydras(word) and word.partition("=")[0] not in RUN_KEYS
