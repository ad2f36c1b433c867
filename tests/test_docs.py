"""The documentation: every public name is in it, links lead somewhere, code runs, commands are valid, pages build."""

import importlib
import os
import pkgutil
import re
import shlex
import subprocess
import sys

import pytest
import yaml
from hydra.core.global_hydra import GlobalHydra

import capmem
from capmem import results
from capmem.catalogue import GROUPS
from capmem.experiment import Experiment
from capmem.sweeps.plan import plan
from capmem.sweeps.slab import run_slab
from tests.conftest import ROOT

DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

import commands  # noqa: E402
import docstrings  # noqa: E402
import glossary  # noqa: E402
import public_names  # noqa: E402
import repository_pages  # noqa: E402

PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
GUIDES = sorted((DOCS / "guides").glob("*.md"))
REFERENCE = sorted((DOCS / "reference").glob("*.rst"))
MODULES = ["cues", "geometry", "metrics", "readouts"]  # public modules without __all__: all that they define
MAINTENANCE = {"gallery", "report"}  # packages that nobody imports: commands show them


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


# What is public


def described():
    """Return the objects that the directives of the reference describe."""
    found = [getattr(module, module.STUDY.settings.__name__) for module in public_names.studies()]
    for page in REFERENCE:
        for module, options in re.findall(r"\.\. api:: (\S+)\n((?:   :.*\n)*)", page.read_text()):
            given = dict(re.findall(r":(choices|names|without): (.*)", options))
            given["group"] = given.pop("choices", None)
            listed = public_names.listed(module, **given)
            found += [public_names.at(path) for path in [*listed.choices.values(), *listed.names]]
    return found


def public():
    """Return every public object of every public package by its path, but for registries and plain values."""
    packages = [m.name for m in pkgutil.iter_modules(capmem.__path__) if m.ispkg and m.name not in MAINTENANCE]
    modules = [
        capmem,
        *(importlib.import_module(f"capmem.{name}") for name in [*packages, *MODULES, "theory.classical"]),
    ]
    paths = [f"{module.__name__}.{name}" for module in modules for name in public_names.public(module)]
    return {path: public_names.at(path) for path in paths if callable(public_names.at(path))}


def missing(objects):
    ids = {id(each) for each in objects}
    return [path for path, each in public().items() if id(each) not in ids]


def test_every_public_name_is_in_the_reference():
    assert len(public()) > 150
    assert missing(described()) == []


def test_a_name_that_is_left_out_is_noticed():
    left = [each for each in described() if each is not capmem.metrics.scale_optimal_error]
    assert missing(left) == ["capmem.metrics.scale_optimal_error"]


def test_a_new_choice_is_listed_without_a_line_in_docs(monkeypatch):
    class New:
        __module__ = "capmem.feature_maps.new"

    monkeypatch.setitem(GROUPS["feature_map"]._classes, "new", New)
    assert public_names.listed("capmem.feature_maps", "feature_map").choices["new"] == "capmem.feature_maps.new.New"


def test_every_page_of_the_reference_is_in_a_table_of_contents():
    trees = (DOCS / "index.md").read_text() + (DOCS / "reference/index.rst").read_text()
    words = set(trees.split())
    assert {page.stem for page in REFERENCE} - {word.removeprefix("reference/") for word in words} == set()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("phi(x) = r * roll(r, 1), |x|^2", r"phi(x) = r \* roll(r, 1), \|x\|^2"),
        ("sum_j w_ij v_j of k_ and k_i", r"sum_j w_ij v_j of k\_ and k_i"),
        ("see :meth:`Memory.read`, ``a * |b|`` and `x`", "see :meth:`Memory.read`, ``a * |b|`` and `x`"),
        ("* an item: E|v|", r"* an item: E\|v\|"),
        ("**options", "**options"),
    ],
)
def test_formulas_in_docstrings_stay_plain_text(written, shown):
    assert docstrings.escaped(written) == shown


def test_a_role_is_found_from_the_module_that_it_was_written_in():
    text = docstrings.qualified("see :class:`SphereValues`", "capmem.theory.predict")
    assert text == "see :class:`SphereValues <capmem.theory.predict.SphereValues>`"
    assert docstrings.qualified("see :class:`Nothing`", "capmem.theory.predict") == "see :class:`Nothing`"


# Commands and columns


def test_every_key_of_every_command_has_its_default_and_a_meaning():
    found = commands.commands()
    assert [c.name for c in found][0] == "capmem-sweep" and len(found) == 19
    for command in found:
        config = yaml.safe_load(
            (ROOT / "conf" / f"{command.name.removeprefix('capmem-').replace('-', '_')}.yaml").read_text()
        )
        assert command.question and command.examples, command.name
        assert {key.name for key in command.keys} == config.keys() - {"defaults", "hydra"}
        for key in command.keys:
            assert yaml.safe_load(key.default) == config[key.name], (command.name, key)
            assert key.meaning, f"{command.name}: the key {key.name} has no comment"


def test_every_preset_is_told():
    told = [word.partition("=")[2] for command in commands.commands() for word, _ in command.presets]
    assert sorted(told) == sorted(path.stem for path in (ROOT / "conf/experiment").rglob("*.yaml"))


def columns():
    return {column.name for section in glossary.sections().values() for column in section}


@pytest.fixture(scope="module")
def rows():
    """Rows of all kinds: by age, skipped, failed, without a closed form, of a file."""
    sample = {"kind": "array", "path": str(ROOT / "samples/minilm/keys.npz"), "name": "layer1_head5"}
    points = [
        {"keys": "sphere", "feature_map": "dpfp", "readout": "normalized", "num_pairs": [4], "age_bins": 2},
        {"keys": "orthonormal", "write_rule": "gated_decay", "num_pairs": [4, 16]},
        {"keys": "equicorrelated", "memory": "softmax"},
        {"keys": sample, "key_dim": 32},
    ]
    small = {"key_dim": 8, "value_dim": 4, "trials": 1, "num_pairs": 4}
    finished = [run_slab(slab) for slab in plan(small | point for point in points)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Experiment, "run_with_ages", lambda *_: 1 / 0)
        finished.append(run_slab(plan([small | {"keys": "gaussian"}])[0]))
    return [record for each in finished for record in [*each.records, *each.by_age]]


def test_every_column_is_explained(rows):
    assert {row["status"] for row in rows} == {"ok", "skipped", "failed"}
    found = {name for row in rows for name in row}
    assert {"age_bin", "traceback", "keys.sha256", "theory_unavailable", "state_bytes"} <= found
    assert found - columns() == set()
    assert found - (columns() - {"state_bytes"}) == {"state_bytes"}


def test_every_column_of_the_glossary_has_a_meaning_and_every_metric_a_unit():
    for section in glossary.sections().values():
        for column in section:
            assert column.meaning.rstrip(": ") and not column.meaning.endswith(":"), column
    assert all(column.unit for column in glossary.measured())
    assert {column.name for column in glossary.measured()} == set(results.METRICS)


# Pages as Markdown


def anchors(text):
    """Return the anchors of a Markdown text's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page, text):
    """Return the links of a page that lead nowhere."""
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)):
        path, _, anchor = target.partition("#")
        if re.match(r"\w+:", target):
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            lost.append(target)
    return lost


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    assert broken(page, page.read_text()) == []


def test_a_broken_link_is_noticed():
    text = "[a](nothing.md) [b](sweep.md#nowhere) [c](sweep.md#sweep-a-grid)"
    assert broken(DOCS / "guides/index.md", text) == ["nothing.md", "sweep.md#nowhere"]


def python_of(page):
    text = page.read_text()
    if page.suffix == ".md":
        return blocks(text, "python")
    indented = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text)
    return [re.sub(r"(?m)^   ", "", block) for block in indented]


@pytest.fixture
def registries_restored():
    before = {name: dict(registry._classes) for name, registry in GROUPS.items()}
    yield
    for name, registry in GROUPS.items():
        registry._classes.clear()
        registry._classes.update(before[name])


@pytest.mark.parametrize("page", [p for p in [*GUIDES, *REFERENCE] if python_of(p)], ids=lambda page: page.stem)
def test_python_runs_from_the_top_of_the_page(page, monkeypatch, tmp_path, registries_restored):
    monkeypatch.chdir(ROOT)
    names = {}
    for block in python_of(page):
        exec(compile(block.replace('"outputs/', f'"{tmp_path}/'), page.name, "exec"), names)


def test_the_guides_numbers_say_what_the_text_says(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    exec(python_of(DOCS / "guides/heads.md")[0], {})
    errors = {name: float(error) for name, error in map(str.split, capsys.readouterr().out.splitlines())}
    assert errors["none"] > 2 * errors["mean"]


def lines_of_shell(page):
    for block in blocks(page.read_text(), "bash"):
        yield from (line for line in block.replace("\\\n", " ").splitlines() if line.startswith("capmem-"))


SHELL = [(page.stem, line) for page in GUIDES for line in lines_of_shell(page)]
LEFT_AT_ONCE = {"capture": "capmem.heads.application.run", "report": "capmem.report.application.show"}


def checked(line, monkeypatch, tmp_path):
    """Give a command line to its application, up to where all of it was checked; return how it was left."""
    name, *words = shlex.split(line.replace("cluster=slurm", "cluster=debug"))
    module = importlib.import_module(f"analyses.{name.removeprefix('capmem-').replace('-', '_')}")

    def leave(*_, **__):
        raise SystemExit("checked")

    for place in ("capmem.sweeps.folder.check_folder", "capmem.sweeps.application.check_folder"):
        monkeypatch.setattr(place, leave)
    monkeypatch.setattr("capmem.sweeps.status.status", leave)
    for place in LEFT_AT_ONCE.values():
        monkeypatch.setattr(place, leave)
    words = [word for word in words if word not in ("--cfg", "job")]
    monkeypatch.setattr(sys, "argv", [name, *words, f"hydra.sweep.dir={tmp_path}"])
    GlobalHydra.instance().clear()
    with pytest.raises(SystemExit) as left:
        module.main()
    return left.value.code


COMPOSED = [
    pytest.param(page, line, id=f"{page}-{i}", marks=[] if page == "sweep" else pytest.mark.slow)
    for i, (page, line) in enumerate(SHELL)
]


@pytest.mark.parametrize(("page", "line"), COMPOSED)
def test_command_is_valid(page, line, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    assert checked(line, monkeypatch, tmp_path) == "checked"


HERE = [line for _, line in SHELL if not re.search(r"cluster=slurm|FOLDER|/shared/", line)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("guides")


@pytest.mark.slow
@pytest.mark.parametrize("line", HERE, ids=range(len(HERE)))
def test_command_runs(line, place):
    """In the order of the guides, in one place: some read what others wrote."""
    name, *words = shlex.split(line.replace("outputs/", f"{place}/"))
    if name in ("capmem-sweep", "capmem-heads") and "--cfg" not in words:
        words += ["figures=false", "trials=2"] + ["workers=1"] * ("cluster=" not in line)
    if name in ("capmem-capacity", "capmem-heads") and "hydra.sweep.dir" not in line:
        words.append(f"hydra.sweep.dir={place / 'unnamed'}-{HERE.index(line)}")
    module = f"analyses.{name.removeprefix('capmem-').replace('-', '_')}"
    done = subprocess.run([sys.executable, "-m", module, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "capmem-sweep key_dims=16",
        "capmem-sweep keys=array keys.path=nowhere.npz",
        "capmem-heads path=samples/minilm layers=[9]",
        "capmem-status foldr=x",
    ],
)
def test_a_command_that_is_not_valid_is_noticed(line, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    assert checked(line, monkeypatch, tmp_path) == 1


def test_every_guide_is_in_the_table_of_contents():
    contents = (DOCS / "index.md").read_text() + (DOCS / "guides/index.md").read_text()
    for page in GUIDES:
        assert page.stem == "index" or (f"guides/{page.stem}\n" in contents and f"({page.name})" in contents)


# Pages as HTML


def test_formulas_become_mathml_and_what_cannot_be_read_is_refused():
    pytest.importorskip("sphinx")
    pytest.importorskip("latex2mathml")
    import mathml

    assert "<msub><mi>k</mi><mi>i</mi></msub>" in mathml.to_mathml(r"\phi(k_i)", "inline")
    assert mathml.to_mathml(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "block").count("<mtr>") == 2
    for latex in (r"\foo x", r"\begin{gathered} a \\ b \end{gathered}"):
        with pytest.raises(ValueError, match="unknown"):
            mathml.to_mathml(latex, "inline")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    for name in ("sphinx", "furo", "myst_parser", "numpydoc", "latex2mathml"):
        pytest.importorskip(name)
    out = tmp_path_factory.mktemp("html")
    nowhere = {name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")}
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(out / ".doctrees"), "-b", "html"]
    made = subprocess.run(
        [*command, str(DOCS), str(out)], cwd=ROOT, env=os.environ | nowhere, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    return out


def loaded_from_elsewhere(page):
    """Return what a page makes a browser load from another host: scripts, styles, pictures, fonts."""
    tags = re.findall(r"<(?:script|link|img|iframe|source|object|embed)\b[^>]*>", page)
    urls = [url for tag in tags for url in re.findall(r"(?:src|href|srcset|data)\s*=\s*[\"']?([^\"'\s>]+)", tag)]
    urls += re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')\s;]+)", page)
    return [url for url in urls if re.match(r"(?:\w+:)?//", url)]


@pytest.mark.slow
def test_pages_build_without_a_warning_and_load_nothing_from_elsewhere(built):
    files = [path for kind in ("html", "css") for path in built.rglob(f"*.{kind}")]
    assert len(files) > 25
    for path in files:
        assert loaded_from_elsewhere(path.read_text()) == [], path


@pytest.mark.slow
def test_every_picture_and_page_that_a_page_names_is_there(built):
    for path in built.rglob("*.html"):
        for target in re.findall(r"(?:src|href)=\"([^\"#?]+)", path.read_text()):
            if not re.match(r"\w+:", target):
                assert (path.parent / target).exists(), (path.name, target)


@pytest.mark.slow
def test_formulas_of_docstrings_are_on_the_pages_as_they_were_written(built):
    page = (built / "reference/feature_maps.html").read_text()
    shown = " ".join(re.sub(r"<[^>]+>", "", page).split())
    assert "phi(x) = [r * roll(r, 1), ..., r * roll(r, nu)] with r = relu([x, -x]); D = 2 nu d." in shown
    assert "phi(x) = exp(w_r . u - |u|^2 / 2) / sqrt(m)" in shown


def test_a_page_that_loads_from_elsewhere_is_noticed():
    assert loaded_from_elsewhere('<script async src="https://x.org/a.js">') == ["https://x.org/a.js"]
    assert loaded_from_elsewhere("@font-face { src: url(//x.org/f.woff2) }") == ["//x.org/f.woff2"]
    assert loaded_from_elsewhere('<a href="https://x.org">x</a> <img src="a.png">') == []


def test_a_link_to_what_has_no_page_names_its_path_once():
    told = repository_pages._from_here("[samples/minilm](samples/minilm), [heads](samples/minilm), [x](#x)", ROOT)
    assert told == "`samples/minilm`, heads (`samples/minilm`), [x](#x)"
