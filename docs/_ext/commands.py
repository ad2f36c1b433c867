"""What each command takes: its keys with defaults, groups and presets, from the files that ``--help`` prints."""

import configparser
import math
import re
from pathlib import Path
from typing import NamedTuple

import yaml
from docstrings import field_texts
from public_names import studies
from yaml.constructor import SafeConstructor

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
# What keys of many configurations set, where the comment beside one names the choices only, or there is none.
COMMON = {
    "trials": "repetitions",
    "seed": "a draw depends on it, on the trial and on nothing else",
    "figures": "whether figures are drawn",
    "key_center": "mean: one fixed vector is taken from every key",
    "key_norm": "what every key is divided by",
    "key_scale": "what keys are multiplied by after that",
    "feature_center": "mean: one fixed vector is taken from every feature vector",
    "feature_norm": "what every feature vector is divided by",
    "max_queries": "above so many pairs, a sample of them is read",
    "dtype": "what the memory computes in",
}
TOLD_ELSEWHERE = ("Presets", "Configuration", "Groups", "Keys")  # sections of --help that have a table here


class Key(NamedTuple):
    """A key of a configuration: its default, as written, and the comment beside it."""

    name: str
    default: str
    meaning: str


class Command(NamedTuple):
    """A console command, as its configuration tells of it.

    `groups` are (group, default choice), `swept` the axes that are swept unless others are asked for, `presets`
    (what to write, what it is), `sections` further text of ``--help`` by title.
    """

    name: str
    question: str
    keys: list[Key]
    groups: list[tuple[str, str]]
    swept: dict[str, str]
    presets: list[tuple[str, str]]
    sections: dict[str, str]
    examples: str


def commands() -> list[Command]:
    """Return all console commands of setup.cfg, the sweep first."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["options.entry_points"]["console_scripts"].split("\n")
    scripts = dict(line.split(" = ") for line in lines if line)
    return [_command(name, scripts[name]) for name in sorted(scripts, key=lambda name: (name != "capmem-sweep", name))]


def _command(script: str, entry: str) -> Command:
    config = entry.partition(":")[0].rpartition(".")[2]
    text = (CONF / f"{config}.yaml").read_text()
    tree = yaml.safe_load(text)
    words = yaml.safe_load((CONF / "hydra/help" / f"{_help_of(tree)}.yaml").read_text())
    groups = [pair for entry in tree["defaults"] if isinstance(entry, dict) for pair in entry.items()]
    return Command(
        name=script,
        question=_sentence(words["header"].partition(": ")[2]),
        keys=keys_of(text, _said(config)),
        groups=[(group, choice) for group, choice in groups if " " not in group and "/" not in group],
        swept=tree["hydra"].get("sweeper", {}).get("params", {}),
        presets=_presets(config, {group for group, _ in groups}),
        sections=_sections(words["template"]),
        examples=re.sub(r"(?m)^ {2}", "", words["footer"].partition("Examples\n")[2]).rstrip(),
    )


def keys_of(text: str, said: dict[str, str]) -> list[Key]:
    """Return the keys of a configuration file, but for Hydra's own, with their comments, or else what is `said`."""
    lines = text.splitlines()
    keys = []
    for key, value in yaml.compose(text).value:
        if key.value not in ("defaults", "hydra"):
            default = text[value.start_mark.index : value.end_mark.index]
            comment = lines[key.start_mark.line].partition(" # ")[2].strip()
            told = "; ".join(part for part in (COMMON.get(key.value), comment) if part)
            keys.append(Key(key.value, _in_line(value, default), told or said.get(key.value, "")))
    return keys


def _said(config: str) -> dict[str, str]:
    """Return what an analysis says of its settings in its docstring."""
    return next((field_texts(m.STUDY.settings) for m in studies() if m.STUDY.name == config), {})


def _in_line(value: yaml.Node, text: str) -> str:
    if isinstance(value, yaml.SequenceNode) and not value.flow_style:
        return yaml.safe_dump(
            SafeConstructor().construct_document(value), default_flow_style=True, width=math.inf
        ).strip()
    return text.strip()


def _help_of(tree: dict) -> str:
    return next(
        e["override hydra/help"] for e in tree["defaults"] if isinstance(e, dict) and "override hydra/help" in e
    )


def _presets(config: str, groups: set[str]) -> list[tuple[str, str]]:
    group = f"experiment/{config}"
    folder, word = (group, group) if group in groups else ("experiment", "+experiment")
    if group not in groups and config != "sweep":
        return []
    files = sorted((CONF / folder).glob("*.yaml"))
    return [(f"{word}={file.stem}", file.read_text().splitlines()[1].lstrip("# ")) for file in files]


def _sections(template: str) -> dict[str, str]:
    found = re.findall(r"== ([^=]*(?:=\w+[^=]*)*?) ==\n(.*?)(?=\n\n|\Z)", template, re.DOTALL)
    named = {title.partition(":")[0]: re.sub(r"(?m)^ {4}", "", body) for title, body in found}
    return {title: body for title, body in named.items() if title not in TOLD_ELSEWHERE}


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text[:1].upper() + text[1:]
