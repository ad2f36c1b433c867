"""Hydra's command line in front of the engine: a Sweeper and a Launcher. All private imports are here."""

from __future__ import annotations

import dataclasses
import importlib
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hydra import main as hydra_main
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, QuotedString, Transformer
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from capmem.experiment import Experiment
from capmem.sweeps.engine import SweepReport, run
from capmem.sweeps.grid import Config, Grid
from capmem.sweeps.points import GROUPS, experiment_from
from capmem.sweeps.record import save_configuration

ROOT = Path(__file__).resolve().parents[2]
PRESET = "experiment"
RUN_KEYS = ("workers", "figures")  # how it is run, not what: part of no point
FLOAT_DIGITS = 12  # a range's 0.1 + 0.2 is meant as 0.3
NO_RUN_FLAGS = frozenset("--help -h --hydra-help --cfg -c --info -i --shell-completion -sc --version".split())

Finish = Callable[[SweepReport, bool], None]


class Application(NamedTuple):
    """What the plugins need to know of the application: its end, and the command line as it was typed."""

    finish: Finish
    arguments: list[str]


def launch(config_name: str, finish: Finish, bare_preset: str) -> None:
    """Run a Hydra application: read the command line, run the sweep, then `finish` it.

    Parameters
    ----------
    config_name : str
        The primary configuration.
    finish : callable
        finish(report, figures): what is shown and drawn at the end.
    bare_preset : str
        The preset that a command line stands for which says nothing of what to run.
    """
    typed = sys.argv[1:]
    if not NO_RUN_FLAGS.intersection(typed):
        if not any(_says_what(argument) for argument in typed):
            sys.argv.append(f"+{PRESET}={bare_preset}")
        sys.argv[1:] = _deferred(sys.argv[1:])

    def task(config: DictConfig) -> None:
        """Run one point, for Hydra's own sweeper and launcher."""
        _guarded(lambda: _run_one(config, finish))

    task.application = Application(finish, typed)  # type: ignore[attr-defined]
    _register_plugins()
    _offer_choices_of_other_packages()
    conf = ROOT / "conf"
    path = str(conf) if (conf / f"{config_name}.yaml").is_file() else "pkg://capmem.conf"
    hydra_main(version_base="1.3", config_path=path, config_name=config_name)(task)()


class CapmemLauncher(Launcher):
    """Runs whole points in the engine; it takes them from :class:`CapmemSweeper` only."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what the application wants done at the end."""
        self.application: Application = task_function.application  # type: ignore[attr-defined]

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Refuse: another sweeper hands over command lines, not points."""
        raise HydraException("hydra/sweeper=basic needs hydra/launcher=basic, and the other way round")

    def launch_points(self, points: list[Experiment], folder: Path, options: Config) -> SweepReport:
        """Run `points` in `folder`, then finish."""
        report = run(points, folder, workers=options["workers"])
        self.application.finish(report, options["figures"])
        return report


class CapmemSweeper(Sweeper):
    """Turns the command line into points: composes once a choice of groups, sets values itself.

    Parameters
    ----------
    params : mapping, optional
        Axes from ``hydra.sweeper.params``; the command line goes before them.
    """

    def __init__(self, params: DictConfig | None = None) -> None:
        self.params = params

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep the composed configuration, and make the launcher."""
        self.loader: ConfigLoader = hydra_context.config_loader
        self.master = config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> SweepReport:
        """Run the sweep that the command line describes; leave with exit code 1 unless all went well."""
        report = _guarded(lambda: self._sweep(arguments))
        if not report.ok:
            sys.exit(1)
        return report

    def _sweep(self, arguments: list[str]) -> SweepReport:
        if not isinstance(self.launcher, CapmemLauncher):
            raise ValueError("hydra/launcher=basic needs hydra/sweeper=basic, and the other way round")
        configs: list[Config] = []
        given = self._axes(arguments)
        for preset in given.pop(PRESET, [None]):
            configs += self._points(given, preset)
        options = self._options(configs)
        points = [experiment_from(config) for config in configs]  # all are checked before anything is written
        folder = self._folder()
        save_configuration(folder, self.launcher.application.arguments, configs)
        return self.launcher.launch_points(points, folder, options)

    def _points(self, given: dict[str, list[Any]], preset: str | None) -> list[Config]:
        """Return the points of one preset, or of the command line alone."""
        fixed = [f"+{PRESET}={preset}"] if preset else []
        master = self.loader.load_sweep_config(self.master, fixed)
        sweeper: Any = OmegaConf.to_container(master.hydra.sweeper, resolve=True)
        params = sweeper["params"] or {}
        axes = self._axes([f"{k}={_text(v)}" for k, v in params.items()]) | given
        grid = Grid(axes, self._groups(axes), lambda choices: self._compose(fixed, choices))
        points = [_resolved(point) for point in grid.points()]
        for key, choices in sorted(grid.dropped.items()):
            print(f"{key} does not apply to {', '.join(sorted(choices))}: left out there", file=sys.stderr)
        return points

    def _axes(self, arguments: Sequence[str]) -> dict[str, list[Any]]:
        """Return the values of each key; the last word on a key counts."""
        parser = OverridesParser.create(config_loader=self.loader)
        axes: dict[str, list[Any]] = {}
        for override in parser.parse_overrides(list(arguments)):
            key = override.key_or_group
            if override.is_delete() or (override.is_add() and key != PRESET):
                raise ValueError(f"{override.input_line!r}: keys cannot be added or deleted; set KEY=VALUE")
            axes.pop(key, None)
            axes[key] = list(_values(override))
        return axes

    def _groups(self, axes: dict[str, list[Any]]) -> frozenset[str]:
        return frozenset(key for key in axes if self.loader.get_group_options(key))

    def _compose(self, fixed: list[str], choices: dict[str, str]) -> Config:
        overrides = fixed + [f"{group}={choice}" for group, choice in choices.items()]
        composed = self.loader.load_sweep_config(self.master, overrides)
        plain: Any = OmegaConf.to_container(composed, resolve=False)
        del plain["hydra"]
        return dict(plain)

    def _options(self, points: list[Config]) -> Config:
        """Take out of all points what says how to run; it must be one for all."""
        options: Config = {}
        for key in RUN_KEYS:
            found = {repr(point[key]): point[key] for point in points}
            if len(found) > 1:
                raise ValueError(f"{key} cannot be swept, got {', '.join(found)}")
            options[key] = next(iter(found.values()))
        if not isinstance(options["figures"], bool):
            raise ValueError(f"figures must be true or false, got {options['figures']!r}")
        workers = options["workers"]
        if workers is not None and (type(workers) is not int or workers < 1):
            raise ValueError(f"workers must be an integer of at least 1, or null, got {workers!r}")
        for point in points:
            for key in RUN_KEYS:
                del point[key]
        return options

    def _folder(self) -> Path:
        """Return hydra.sweep.dir, or hydra.run.dir where only that was set."""
        hydra = self.master.hydra
        named = [o.split("=")[0] for o in hydra.overrides.hydra]
        only_run = "hydra.run.dir" in named and "hydra.sweep.dir" not in named
        return Path(hydra.run.dir if only_run else hydra.sweep.dir)


def _register_plugins() -> None:
    """Make the plugins known under the namespace hydra_plugins, the only one that Hydra 1.3 takes plugins from.

    Done by hand, so that an editable install works, and no other Hydra application ever imports this module.
    """
    plugins = Plugins.instance()  # scans the namespace before ours is in it
    try:
        parent = importlib.import_module("hydra_plugins")
    except ImportError:
        parent = sys.modules.setdefault("hydra_plugins", types.ModuleType("hydra_plugins"))
    module = types.ModuleType("hydra_plugins.capmem")
    sys.modules[module.__name__] = module
    parent.capmem = module  # type: ignore[attr-defined]
    for plugin in (CapmemSweeper, CapmemLauncher):
        plugin.__module__ = module.__name__
        setattr(module, plugin.__name__, plugin)
        plugins.register(plugin)


def _offer_choices_of_other_packages() -> None:
    """Make every choice that has no file in conf/ a choice of its group, with its fields at their defaults."""
    store = ConfigStore.instance()
    for group, registry in GROUPS.items():
        ours = set(registry.names())
        registry.load_entry_points()
        for name in set(registry.names()) - ours:
            fields = dataclasses.fields(registry[name])
            node = {f.name: None if f.default is dataclasses.MISSING else f.default for f in fields if f.init}
            store.store(group=group, name=name, node={"name": name} | node)


def _run_one(config: DictConfig, finish: Finish) -> SweepReport:
    plain: Any = OmegaConf.to_container(config, resolve=True)
    options = {key: plain.pop(key) for key in RUN_KEYS}
    report = run([plain], HydraConfig.get().runtime.output_dir, workers=1)
    finish(report, options["figures"])
    return report


def _guarded(work: Callable[[], SweepReport]) -> SweepReport:
    """Turn every error that a user can cause into one clear message and exit code 1."""
    try:
        return work()
    except (ValueError, RuntimeError, HydraException, OmegaConfBaseException) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("stopped; what is finished is stored, the same command again (same folder) resumes", file=sys.stderr)
        sys.exit(130)


def _values(override: Override) -> Iterator[Any]:
    if not override.is_sweep_override():
        yield _plain(override.value())
    elif override.is_discrete_sweep():
        yield from (_plain(v) for v in override.sweep_iterator(transformer=Transformer.identity))
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
    return round(value, FLOAT_DIGITS) if isinstance(value, float) else value


def _text(value: Any) -> str:
    """Write one value of hydra.sweeper.params as the command line would have it; a list sweeps its entries."""
    if isinstance(value, list):
        return ",".join(_text([v]) if isinstance(v, list) else _text(v) for v in value)
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def _resolved(point: Config) -> Config:
    """Resolve interpolations, such as values.name=${keys.name}; most points have none, and are left as they are."""
    if "${" not in repr(point):
        return point
    resolved: Any = OmegaConf.to_container(OmegaConf.create(point), resolve=True)
    return dict(resolved)


def _deferred(arguments: list[str]) -> list[str]:
    """Turn key_dim=16 into a sweep of one value, key_dim=choice(16).

    Hydra applies plain overrides to the default choices of groups, which may not have the field (keys.path),
    and has words of its own for a misspelt key; sweeps it leaves to the sweeper, which knows better.
    """
    parser = OverridesParser.create()
    try:
        return [_deferred_override(a, parser) if _sets_a_key(a) else a for a in arguments]
    except HydraException:
        return arguments  # Hydra itself will say what is wrong


def _says_what(argument: str) -> bool:
    """Whether an argument says what to run; where (hydra.sweep.dir) and how (workers) do not."""
    key = argument.partition("=")[0]
    return "=" in argument and key.split(".")[0] != "hydra" and "/" not in key and key not in RUN_KEYS


def _sets_a_key(argument: str) -> bool:
    key, _, value = argument.partition("=")
    return bool(value) and key[:1].isalpha() and key.split(".")[0] != "hydra" and not key.startswith("hydra/")


def _deferred_override(argument: str, parser: OverridesParser) -> str:
    override = parser.parse_override(argument)
    if override.key_or_group in GROUPS or override.is_sweep_override():
        return argument
    return f"{override.key_or_group}=choice({argument.partition('=')[2]})"
