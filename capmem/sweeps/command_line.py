"""The command line: what its overrides mean, and how they are handed to Hydra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, QuotedString, Transformer
from hydra.errors import HydraException

PRESET = "experiment"
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


def as_text(value: Any) -> str:
    """Write one value of hydra.sweeper.params as the command line would have it; a list sweeps its entries."""
    if isinstance(value, list):
        return ",".join(as_text([v]) if isinstance(v, list) else as_text(v) for v in value)
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def runs(arguments: list[str]) -> bool:
    """Whether the command line asks for a run, not for help or a configuration."""
    return not any(word.partition("=")[0] in NO_RUN_FLAGS for word in arguments)


def deferred(arguments: list[str]) -> list[str]:
    """Turn key_dim=16 into a sweep of one value, key_dim=choice(16); flags come first, as argparse wants them.

    Hydra applies plain overrides to the default choices of groups, which may not have the field (keys.path),
    and has words of its own for a misspelt key or choice; sweeps it leaves to the sweeper, which knows better.

    Raises
    ------
    ValueError
        For an override that cannot be read, or that adds or deletes a key.
    """
    words = list(zip(arguments, ["", *arguments], strict=False))
    flags = [word for word, previous in words if not _is_override(word, previous) and not _is_hydras(word)]
    flags += [] if RUN_FLAGS.intersection(flags) else ["--multirun"]
    own = [_deferred(word) for word, previous in words if _is_override(word, previous)]
    return [*flags, *own, *(word for word, _ in words if _is_hydras(word))]


def _is_override(word: str, previous: str) -> bool:
    """Whether a word sets a key: no flag, no value of a flag, and none of Hydra's own keys."""
    value_of_flag = previous.startswith("-") and "=" not in word
    return not (word.startswith("-") or value_of_flag or _is_hydras(word))


def _is_hydras(word: str) -> bool:
    return word.lstrip("+").startswith(("hydra.", "hydra/"))


def _deferred(word: str) -> str:
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
