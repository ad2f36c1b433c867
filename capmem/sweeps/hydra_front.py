"""Hydra in front of the engine: a Sweeper and a Launcher that hand over plain configurations, composed once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hydra import main as hydra_main
from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from capmem.schema import unknown
from capmem.sweeps.cluster import WHERE, Cluster, cluster_from
from capmem.sweeps.command_line import (
    PRESET,
    ZIP,
    as_text,
    deferred,
    flags_of,
    grids_of,
    runs,
    says_what,
    values_of,
    zips_of,
)
from capmem.sweeps.exits import guarded, leave
from capmem.sweeps.grid import Config, Grid
from capmem.sweeps.hydra_setup import copy_no_choices, offer_choices_of_other_packages, register_plugins
from capmem.sweeps.spacing import expanded

ROOT = Path(__file__).resolve().parents[2]


class Job(NamedTuple):
    """What a command line asks for: plain configurations, a folder, the words as they were typed, and where to run."""

    configs: list[Config]
    folder: Path
    arguments: list[str]
    cluster: Cluster | None = None


Work = Callable[[Job], bool]


class Application(NamedTuple):
    """What the plugins need to know: what the application does, the command line as typed, its further grids."""

    work: Work
    arguments: list[str]
    further: list[list[str]]


def launch(config_name: str, work: Work, bare_preset: str | None = None) -> None:
    """Run a Hydra application: read the command line, compose every point, and do its work.

    Parameters
    ----------
    config_name : str
        The primary configuration.
    work : callable
        work(job) does everything else, and tells whether all went well; ValueError and RuntimeError become one
        line and exit code 1.
    bare_preset : str, optional
        The preset that a command line stands for which says nothing of what to run.
    """
    typed = sys.argv[1:]
    further: list[list[str]] = []
    if runs(typed):
        if bare_preset and not any(says_what(word) for word in typed):
            sys.argv.append(f"+{PRESET}={bare_preset}")
        further = guarded(_hand_over)

    def task(config: DictConfig) -> None:
        """Run one point, for Hydra's own sweeper and launcher."""
        plain: Any = OmegaConf.to_container(config, resolve=True)
        folder = Path(HydraConfig.get().runtime.output_dir)
        if not work(Job([plain], folder, typed)):
            raise RuntimeError(f"a slab failed, see {folder}")  # Hydra goes on with the next job

    task.application = Application(work, typed, further)  # type: ignore[attr-defined]
    register_plugins(CapmemSweeper, CapmemLauncher)
    offer_choices_of_other_packages()
    copy_no_choices()
    conf = ROOT / "conf"
    path = str(conf) if (conf / f"{config_name}.yaml").is_file() else "pkg://capmem.conf"
    hydra_main(version_base="1.3", config_path=path, config_name=config_name)(task)()


def _hand_over() -> list[list[str]]:
    """Leave to Hydra what it can read of the command line, the first grid; return the words of the others."""
    first, *others = grids_of(sys.argv[1:])
    if others and any(word.startswith("hydra/sweeper=") for word in first):
        raise ValueError("hydra/sweeper=basic knows no union of grids; run one grid after the other")
    sys.argv[1:] = flags_of(first) + deferred(first)
    return [deferred(words) for words in others]


class CapmemLauncher(Launcher):
    """Runs whole points in the engine; it takes them from :class:`CapmemSweeper` only.

    Parameters
    ----------
    **settings
        ``cluster``, and the fields of :class:`capmem.sweeps.cluster.Cluster`.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings: dict[str, Any] = OmegaConf.to_container(OmegaConf.create(settings))  # type: ignore[assignment]

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what the application wants done at the end."""
        self.application: Application = task_function.application  # type: ignore[attr-defined]

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Refuse: another sweeper hands over command lines, not points."""
        print("error: hydra/sweeper=basic needs hydra/launcher=basic, and the other way round", file=sys.stderr)
        sys.exit(1)

    def launch_points(self, configs: list[Config], folder: Path) -> bool:
        """Do the work of the application; return whether all went well."""
        work, arguments, _ = self.application
        cluster = cluster_from(self.settings)
        if cluster is not None and not getattr(work, "spreads", False):
            raise ValueError(f"{WHERE}.cluster does not apply to this command: only a sweep runs in tasks")
        return work(Job(configs, folder, arguments, cluster))


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

    def sweep(self, arguments: list[str]) -> None:
        """Do what the command line describes; leave with exit code 1 unless all went well."""
        leave(guarded(lambda: self._sweep(arguments)))

    def _sweep(self, arguments: list[str]) -> bool:
        if not isinstance(self.launcher, CapmemLauncher):
            raise ValueError("hydra/launcher=basic needs hydra/sweeper=basic, and the other way round")
        first = self._axes(arguments)
        grids = [first, *(first | self._axes(words) for words in self.launcher.application.further)]
        configs = [point for given in grids for point in self._grid(given)]
        return self.launcher.launch_points(configs, self._folder())

    def _grid(self, given: dict[str, list[Any]]) -> list[Config]:
        """Return the points of one grid, with each of its presets."""
        given = dict(given)
        presets = given.pop(PRESET, [None])
        self._check_choices({PRESET: [preset for preset in presets if preset is not None]})
        return [point for preset in presets for point in self._points(given, preset)]

    def _points(self, given: dict[str, list[Any]], preset: str | None) -> list[Config]:
        """Return the points of one preset, or of the command line alone."""
        fixed = [f"+{PRESET}={preset}"] if preset else []
        master = self.loader.load_sweep_config(self.master, fixed) if fixed else self.master
        sweeper: Any = OmegaConf.to_container(master.hydra.sweeper, resolve=True)
        params = sweeper["params"] or {}
        axes = self._axes([expanded(f"{k}={as_text(v)}") for k, v in params.items() if k != ZIP]) | given
        zipped = zips_of(axes.pop(ZIP, [params[ZIP]] if ZIP in params else []))
        groups = self._groups(axes)
        self._check_choices({group: axes[group] for group in groups})
        grid = Grid(axes, groups, lambda choices: self._compose(fixed, choices), zipped)
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
            axes.pop(key, None)
            axes[key] = list(values_of(override))
        return axes

    def _groups(self, axes: dict[str, list[Any]]) -> frozenset[str]:
        return frozenset(key for key in axes if self.loader.get_group_options(key))

    def _check_choices(self, choices: dict[str, list[Any]]) -> None:
        for group, names in choices.items():
            offered = self.loader.get_group_options(group)
            for name in names:
                if name not in offered:
                    raise ValueError(unknown(group, name, offered))

    def _compose(self, fixed: list[str], choices: dict[str, str]) -> Config:
        overrides = fixed + [f"{group}={choice}" for group, choice in choices.items()]
        composed = self.loader.load_sweep_config(self.master, overrides)
        plain: Any = OmegaConf.to_container(composed, resolve=False)
        del plain["hydra"]
        return dict(plain)

    def _folder(self) -> Path:
        """Return hydra.sweep.dir, or hydra.run.dir where only that was set."""
        hydra = self.master.hydra
        named = [o.split("=")[0] for o in hydra.overrides.hydra]
        key = "hydra.run.dir" if "hydra.run.dir" in named and "hydra.sweep.dir" not in named else "hydra.sweep.dir"
        folder = OmegaConf.select(self.master, key)
        if not folder:
            raise ValueError(f"{key} must name a folder, got {folder!r}")
        return Path(folder)


def _resolved(point: Config) -> Config:
    """Resolve interpolations, such as values.name=${keys.name}; most points have none, and are left as they are."""
    if "${" not in repr(point):
        return point
    resolved: Any = OmegaConf.to_container(OmegaConf.create(point), resolve=True)
    return dict(resolved)
