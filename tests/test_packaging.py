"""What is built holds everything, and runs from any folder; importing the library is quick."""

import subprocess
import sys
import zipfile

import pytest

from capmem import store
from tests.conftest import ROOT

HEAVY = "hydra omegaconf pandas matplotlib seaborn pyarrow tqdm scipy.stats"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        if name.split("/")[0] in ("capmem", "conf", "analyses", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_a_wheel_holds_every_module_and_every_configuration(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    for path in (ROOT / "conf").rglob("*.yaml"):
        assert f"capmem/conf/{path.relative_to(ROOT / 'conf')}" in held
    for folder, inside in (("capmem", "capmem"), ("analyses", "capmem/analyses")):
        for path in (ROOT / folder).rglob("*.py"):
            assert f"{inside}/{path.relative_to(ROOT / folder)}" in held
    assert "capmem/py.typed" in held
    assert any(name.endswith("LICENSE") for name in held)


def test_an_installed_wheel_runs_from_another_folder(wheel, tmp_path):
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    code = f"import sys; sys.path.insert(0, {str(site)!r}); import capmem; print(capmem.__file__); " + (
        "from capmem.analyses.sweep import main; main()"
    )
    overrides = ["key_dim=8", "num_pairs=4", "trials=2", "workers=1", "figures=false", "hydra.sweep.dir=out"]
    result = subprocess.run([sys.executable, "-c", code, *overrides], cwd=elsewhere, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert str(site) in result.stdout
    assert len(store.read(elsewhere / "out")) == 2


def test_importing_the_library_loads_no_heavy_module():
    modules = (
        "capmem, capmem.results, capmem.capacity, capmem.figures, capmem.store, capmem.theory, capmem.attention, "
        "capmem.worked_example, capmem.catalogue"
    )
    code = f"import sys, {modules}; print([m for m in {HEAVY.split()} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_importing_the_library_takes_under_half_a_second():
    def once():
        """CPU time of the child, its start included: that of the clock depends on what else runs."""
        code = "import capmem, time; print(time.process_time())"
        return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)

    assert min(once() for _ in range(5)) < 0.5
