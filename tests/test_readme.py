"""Every block of README runs as it stands, in a shortened form where it would take long."""

import re
import shlex
import subprocess
import sys

import pytest

from capmem import catalogue
from capmem.feature_maps import FEATURE_MAPS
from tests.conftest import ROOT

TEXT = (ROOT / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = [
    line
    for block in re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("capmem-sweep")
] + re.findall(r"`(capmem-sweep \+experiment=\w+)`", TEXT)


@pytest.mark.parametrize("block", PYTHON, ids=range(len(PYTHON)))
def test_python_block_runs(block, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    registered = dict(FEATURE_MAPS._classes)
    names: dict = {}
    exec(compile(block.replace("outputs/readme", str(tmp_path)), "README.md", "exec"), names)
    FEATURE_MAPS._classes.clear()
    FEATURE_MAPS._classes.update(registered)
    if "as_is" in names:
        assert names["as_is"].scale_optimal_error == pytest.approx(0.969, abs=5e-4)
        assert names["centred"].scale_optimal_error == pytest.approx(0.668, abs=2e-3)


@pytest.mark.parametrize("command", COMMANDS, ids=range(len(COMMANDS)))
def test_command_runs(command, tmp_path):
    _, *overrides = shlex.split(command)
    short = ["trials=1", "figures=false", "workers=1", f"hydra.sweep.dir={tmp_path}"]
    run = [sys.executable, "-m", "analyses.sweep", *overrides, *short]
    result = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "Pairs held" in result.stdout


def test_readme_shows_the_two_commands_first():
    first = re.search(r"```bash\n(.*?)```", TEXT, re.DOTALL).group(1)
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make sweep", "make test"]


def test_every_picture_and_file_that_readme_links_exists():
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (ROOT / target).exists(), target


def test_the_tables_of_choices_are_current(tmp_path):
    copy = tmp_path / "README.md"
    copy.write_text(TEXT)
    assert not catalogue.update(copy), "run: make tables"
    for registry in catalogue.GROUPS.values():
        for name in registry.names():
            assert f"| `{name}` |" in TEXT
