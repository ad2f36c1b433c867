"""The page of a folder: self-contained, valid, escaped, with the tables' numbers; and what a browser makes of it."""

import base64
import html.parser
import importlib
import json
import re
import shutil
import subprocess
from collections import Counter

import pandas as pd
import pytest
from omegaconf import OmegaConf

from capmem import capacity, figures, results
from capmem.capacity import Criterion
from capmem.parts import write_part
from capmem.report import write
from capmem.report.contents import all_studies, configurations, study_of, study_tables
from capmem.report.dark import contrast, darkened, lifted
from capmem.report.html import Markup, tag
from capmem.report.page import page as page_of
from capmem.report.section import Section
from capmem.store import StoreError
from capmem.sweeps import run
from capmem.sweeps.hydra_front import Job
from tests.conftest import ROOT
from tests.test_studies_frame import TINY, job

NAME = "a <b>&\"odd'name"
EVIL = "<script>alert(1)</script> & \"'"
VOID = {"meta", "img", "source"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page(html.parser.HTMLParser):
    """Reads a page strictly: every element closed, and what is needed of it kept."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.found, self.text = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, name, attributes):
        assert len(dict(attributes)) == len(attributes)
        self.found.append((name, dict(attributes), [*self.open]))
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, text):
        if not {"style", "script"} & {*self.open}:
            self.text.append(text)

    def all(self, *names):
        return [(name, attributes) for name, attributes, _ in self.found if name in names]

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / NAME
    points = [
        {
            "keys": "equicorrelated",
            "feature_map": phi,
            "key_dim": 16,
            "value_dim": 16,
            "num_pairs": [4, 16, 64],
            "trials": 3,
        }
        for phi in ("identity", "relu")
    ]
    assert run(points, folder, workers=1, progress=False).ok
    failed = results.load(folder).iloc[0].dropna().to_dict() | {"trial": 7, "status": "failed", "error": EVIL}
    write_part(folder, [{k: v for k, v in failed.items() if not str(k).startswith("theory_")}])
    return folder


@pytest.fixture(scope="module")
def text(sweep):
    return write(sweep).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "growth"
    growth = next(s for s in all_studies() if s.name == "memory_growth")
    assert growth.show(job("memory_growth", folder, correlation=0.25, figures=False))
    return folder


def test_the_page_is_whole_valid_and_accessible(text):
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>\n<html ")
    assert page.all("html")[0][1]["lang"] == "en"
    assert len(page.all("h1")) == len(page.all("title")) == len(page.all("main")) == 1
    levels = [int(name[1]) for name, _ in page.all("h1", "h2", "h3")]
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:], strict=False))
    ids = Counter(attributes["id"] for _, attributes, _ in page.found if "id" in attributes)
    assert set(ids.values()) == {1}
    assert {a["href"][1:] for _, a in page.all("a") if a["href"].startswith("#")} <= set(ids)
    assert all(a["alt"].endswith(".") and len(a["alt"]) > 40 for _, a in page.all("img"))
    assert all(a["scope"] in ("col", "row") for _, a in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table")) > 2


def test_a_page_that_is_not_closed_is_seen(text):
    with pytest.raises(AssertionError):
        Page(text.replace("</section>", "", 1))


def references(text):
    """Everything that a page would load or lead to, in its images too."""
    found = re.findall(r"(?:src|href|srcset|action|data|poster)=[\"']([^\"']*)", text)
    found += re.findall(r"url\(([^)]*)\)|@import\s+(\S+)", text)
    for image in re.findall(r"data:image/svg\+xml;base64,([^\"]+)", text):
        found += re.findall(r"(?:src|href)=[\"']([^\"']*)", base64.b64decode(image).decode())
    return ["".join(f) if isinstance(f, tuple) else f for f in found]


def test_nothing_is_loaded_from_anywhere(text):
    assert all(f.startswith(("data:", "#")) for f in references(text))
    images = [base64.b64decode(i).decode() for i in re.findall(r"data:image/svg\+xml;base64,([^\"]+)", text)]
    assert all("<!DOCTYPE" not in i and "<metadata" not in i for i in images)
    assert "default-src 'none'" in html.unescape(text)
    with pytest.raises(AssertionError):  # the search is awake
        assert all(f.startswith(("data:", "#")) for f in references(text + '<img src="https://example.org/x.png">'))


def test_names_and_errors_are_text_and_no_markup(text):
    page = Page(text)
    assert NAME in page.words and "alert(1)" in page.words
    assert len(page.all("script")) == 1 and not page.all("b")
    assert tag("p", "<i>", Markup("<b></b>"), title='"&').startswith('<p title="&quot;&amp;">&lt;i&gt;<b></b>')


def test_the_findings_are_those_of_the_table(sweep, text):
    words = Page(text).words
    held = capacity.from_table(results.load(sweep), Criterion(), ["feature_map"]).set_index("feature_map")
    assert f"most by feature_map identity, N* = {held.loc['identity', 'pairs']:.0f}" in words
    frame = results.load(sweep)
    frame = frame[frame["status"] == "ok"]
    means = frame.groupby(["feature_map", "num_pairs"])[["scale_optimal_error", "theory_scale_optimal_error"]].mean()
    gap = (means.iloc[:, 0] - means.iloc[:, 1]).abs().max()
    assert f"6 of 6 means of the scale-optimal error have a closed form; the largest deviation is {gap:.4g}" in words


def test_what_is_missing_or_not_to_be_trusted_is_told(text):
    words = Page(text).words
    assert "Not to be trusted, or missing" in words
    assert f"A measurement failed: {EVIL}".split("<")[0] in words and "1 failed" in words
    assert "below 6, intervals are too narrow" in words


@pytest.fixture
def undrawn(monkeypatch):
    monkeypatch.setattr("capmem.report.sections.sweep_figures", lambda *_: iter(()))


def test_another_criterion_gives_other_capacities(sweep, text, undrawn):
    other = write(sweep, Criterion("top1_accuracy", 0.9)).read_text(encoding="utf-8")
    assert "top-1 accuracy ≥ 0.9" in Page(other).words and "top-1 accuracy ≥ 0.9" not in Page(text).words


def downloads(text):
    links = [a for _, a in Page(text).all("a") if a["href"].startswith("data:text/csv")]
    return {a["download"]: base64.b64decode(a["href"].partition(",")[2]).decode() for a in links}


def test_the_download_holds_every_row(sweep, text, tmp_path):
    found = downloads(text)
    whole = next(csv for name, csv in found.items() if name.endswith("-1.csv"))
    (tmp_path / "x.csv").write_text(whole)
    frame, stored_rows = pd.read_csv(tmp_path / "x.csv"), results.load(sweep)
    assert len(frame) == len(stored_rows) == 19
    pd.testing.assert_series_equal(frame["scale_optimal_error"], stored_rows["scale_optimal_error"], rtol=0)
    assert {"interference_curves.csv"} <= set(found)


def test_long_tables_are_cut_with_a_note(sweep, undrawn):
    words = Page(write(sweep, most_rows=1).read_text(encoding="utf-8")).words
    assert "The first 1 of 2 rows." in words
    with pytest.raises(ValueError, match="^rows must be an integer of at least 1, got 0"):
        write(sweep, most_rows=0)


def test_it_is_written_by_renaming_and_leaves_nothing_else(sweep, text, undrawn):
    before = {p.name for p in sweep.iterdir()}
    write(sweep)
    assert {p.name for p in sweep.iterdir()} == before
    assert not list(sweep.glob(".*partial*"))


def test_a_study_is_told_by_its_own_sentences_and_how_to_repeat_it(study):
    page = Page(write(study).read_text(encoding="utf-8"))
    (configuration,) = configurations(study)
    table = study_of(set(configuration.common)).source.stored(_settings(configuration), study)
    sentence = next(s for s in all_studies() if s.name == "memory_growth").finding(table).partition(". ")[0]
    assert sentence in page.words
    assert "python -m analyses.memory_growth correlation=0.25" in page.words
    assert len(page.all("img")) == 3
    assert "Configuration of memory_growth" in page.words


def _settings(configuration):
    from capmem.schema import construct

    return construct(study_of(set(configuration.common)).settings, configuration.common)


OWN = {
    "capacity": ({"key_dim": 8, "trials": 2, "wanted": [4], "feature_map": "identity"}, "holds"),
    "heads": ({"path": "samples/minilm", "layers": [3], "heads": [5], "num_pairs": [2, 8], "trials": 2,
               "maps": ["relu"], "rule_maps": ["identity"]}, "Tokens remembered of 256"),
    "replicate": ({"study": "feature_cosines", "trials": 2}, "6 agree, 0 differ, 0 are not comparable."),
    "worked_example": ({"cosine": 0.25}, "v1 + 0.25 v3"),
    "heatmap": (TINY["heatmap"], "The mean scale-optimal error goes from"),
    "theory_check": (TINY["theory_check"], "agree"),
}  # fmt: skip
RUNS = {
    "capacity": "capmem.capacity_study", "heads": "capmem.heads_analysis.application",
    "replicate": "capmem.replications.application", "worked_example": "analyses.worked_example",
}  # fmt: skip
COMPUTES = {
    "capacity": "capmem.capacity_tables._measure", "heads": "capmem.heads_analysis.tables.one_head",
    "replicate": "capmem.replications.stored._run", "heatmap": "capmem.sweeps.engine.run",
    "theory_check": "capmem.sweeps.engine.run",
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_every_analysis_has_its_page_without_computing_again(name, tmp_path, monkeypatch):
    changes, told = OWN[name]
    config = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / f"{name}.yaml"))
    groups = {group: choice for entry in config.pop("defaults") if isinstance(entry, dict)
              for group, choice in entry.items() if "hydra" not in group and choice}  # fmt: skip
    del config["hydra"]
    how = {"figures": False} | ({"workers": 1} if "workers" in config else {})
    show = all_shows()[name]
    show(Job([groups | config | changes | how], tmp_path, ["a=b"]))
    one = "capmem.report.own.heads_drawings"  # of the nine that it has, to save time
    monkeypatch.setattr(one, lambda tables, _: {"head_rules": figures.head_rules(tables.rules)})
    if name in COMPUTES:
        monkeypatch.setattr(COMPUTES[name], None)
    page = Page(write(tmp_path).read_text(encoding="utf-8"))
    assert told in page.words and f"python -m analyses.{name} a=b" in page.words
    assert page.all("img") and f"Configuration of {name}" in page.words
    assert all(len(a["alt"]) > 40 for _, a in page.all("img"))
    links = [a["download"] for _, a in page.all("a") if "download" in a]
    assert ("required_dim.csv" in links) == (name == "capacity") and ("fit.csv" in links) == (name == "heads")


def all_shows():
    own = {name: importlib.import_module(module).show for name, module in RUNS.items()}
    return {s.name: s.show for s in all_studies()} | own


def test_a_folder_whose_tables_are_gone_has_no_page(tmp_path):
    config = {"study": "feature_cosines", "trials": 2, "seed": 0, "workers": 1, "figures": False}
    all_shows()["replicate"](Job([config], tmp_path, []))
    shutil.rmtree(tmp_path / "parts")
    with pytest.raises(StoreError, match="holds no table to report"):
        write(tmp_path)


def test_what_is_laid_out_in_lines_stays_so_and_sentences_are_paragraphs(tmp_path):
    frame = pd.DataFrame({"x": [1]})
    section = Section("A title", frame, ["One is 2.5. Two <= 3.\n\nname  error\nplain    0.5"])
    text = page_of(tmp_path, [], [section], 10)
    assert "<p>Two \u2264 3.</p>" in text and '<pre class="laid-out">name  error\nplain    0.5</pre>' in text


def test_nothing_is_computed_for_a_page(study, tmp_path):
    (configuration,) = configurations(study)
    shutil.copytree(study, tmp_path / "copy")
    for path in (tmp_path / "copy" / "parts").iterdir():
        path.unlink()
    with pytest.raises(StoreError, match="holds no table to report"):
        write(tmp_path / "copy")
    source = study_of(set(configuration.common)).source
    assert source.stored(_settings(configuration), tmp_path / "copy") is None


def test_tables_of_one_command_line_are_told_apart_and_each_is_read(tmp_path):
    study = next(s for s in all_studies() if s.name == "interference")
    jobs = [job("interference", tmp_path, figures=False, by=by) for by in ("correlation", "readout")]
    assert study.show(jobs[0]._replace(configs=[j.configs[0] for j in jobs]))
    (configuration,) = configurations(tmp_path)
    found = list(study_tables(tmp_path, configuration))
    assert [table.label for table in found] == ["by=correlation", "by=readout"]
    assert [set(table.frame["by"]) for table in found] == [{"correlation"}, {"readout"}]


def test_no_two_analyses_have_settings_of_the_same_names():
    fields = [frozenset(s.settings.__dataclass_fields__) for s in all_studies()]
    assert len(set(fields)) == len(fields) >= len(TINY) - 1


def test_a_folder_without_results_is_one_line(tmp_path):
    with pytest.raises(StoreError, match="^there is no folder"):
        write(tmp_path / "none")
    (tmp_path / "other.txt").write_text("x")
    with pytest.raises(StoreError, match="holds no table to report") as told:
        write(tmp_path)
    assert "\n" not in str(told.value) and not (tmp_path / "report.html").exists()
    assert "it holds runs" not in str(told.value)


def test_the_parent_of_runs_names_the_latest_of_them(tmp_path):
    for day in range(1, 8):
        (tmp_path / f"2025-01-0{day}").mkdir()
        (tmp_path / f"2025-01-0{day}" / "configuration.yaml").write_text("axes: {}\n")
    with pytest.raises(StoreError) as told:
        write(tmp_path)
    named = ", ".join(str(tmp_path / f"2025-01-0{day}") for day in range(3, 8))
    assert str(told.value).endswith(f"; it holds runs, give one of them: 2 more, {named}")


def scheme(css, dark):
    part = css.partition("@media (prefers-color-scheme: dark)")[2 if dark else 0]
    found = re.findall(r"--(\w+): #(\w{6})", part.partition("* {")[0])
    return {name: tuple(int(value[i : i + 2], 16) for i in (0, 2, 4)) for name, value in found}


@pytest.mark.parametrize("dark", [False, True])
def test_words_can_be_read_in_both_schemes(dark):
    colours = scheme((ROOT / "capmem" / "report" / "page.css").read_text(), dark)
    for name in ("ink", "quiet", "link", "doubt"):
        assert contrast(colours[name], colours["paper"]) >= 4.5
        assert contrast(colours[name], colours["band"]) >= 4.5
    assert contrast(colours["line"], colours["paper"]) < 4.5  # the measure tells colours apart


def test_golden_contrasts():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)


def test_lines_of_a_dark_figure_stand_out_and_areas_keep_their_colour():
    svg = (b'<svg a="b"><path style="fill: none; stroke: #440154"/><path style="fill: #440154"/>'
           b'<path style="fill: #ffffff"/><path style="stroke: #000000"/></svg>')  # fmt: skip
    dark = darkened(svg).decode()
    line, area, paper, axis = re.findall(r"(?:stroke|fill): (#\w{6})", dark)
    assert contrast(tuple(int(line[i : i + 2], 16) for i in (1, 3, 5)), (0x14,) * 3) >= 3
    assert (area, paper, axis) == ("#440154", "#141414", "#e8e8e8")
    assert lifted((255, 200, 0)) == (255, 200, 0)
    assert dark.startswith('<svg fill="#e8e8e8" ')


def test_the_command_checks_its_keys_first(tmp_path):
    from capmem.report.application import show
    from capmem.sweeps.hydra_front import Job

    asked = {"folder": None, "criterion": "top1_accuracy", "threshold": 0.9, "rows": 10}
    for change, told in (({}, "folder must be"), ({"folder": "x", "rows": 0}, "rows must be"),
                         ({"folder": "x", "criterion": "top"}, "criterion 'top'")):  # fmt: skip
        with pytest.raises(ValueError, match=f"^{told}"):
            show(Job([asked | change], tmp_path, []))


PROBE = """<script>
window.addEventListener("load", () => {
  const images = [...document.images];
  const table = document.querySelector("table");
  const read = () => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent);
  const told = {broken: images.filter((i) => !(i.complete && i.naturalWidth > 100)).length, images: images.length,
    before: read(), paper: getComputedStyle(document.body).backgroundColor,
    source: images.length ? images[0].currentSrc.slice(-4000) : "",
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth};
  table.querySelector("thead button").click();
  table.querySelector("thead button").click();
  told.after = read();
  document.title = JSON.stringify(told);
});
</script></body>"""


def browse(page, folder, *options, change=lambda text: text):
    """Load a page; return what it shows, and what its console says."""
    probed = folder / "probed.html"
    probed.write_text(change(page.replace("</body>", PROBE)), encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}",
               "--enable-logging=stderr", "--virtual-time-budget=5000", "--window-size=800,900", *options, "--dump-dom",
               probed.as_uri()]  # fmt: skip
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120)
    title = re.search(r"<title>(.*?)</title>", shown.stdout, re.DOTALL)
    told = json.loads(html.unescape(title[1])) if title and title[1].startswith("{") else {}
    return told, [line for line in shown.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_shows_every_figure_sorts_the_tables_and_has_nothing_to_complain_of(text, tmp_path):
    page = text
    light, console = browse(page, tmp_path)
    assert (light["broken"], console) == (0, []) and light["images"] >= 1
    assert light["paper"] == "rgb(255, 255, 255)"
    assert light["after"] == light["before"][::-1] != light["before"]
    assert light["wide"] <= 0  # only tables scroll sideways
    dark, console = browse(page, tmp_path, "--blink-settings=preferredColorScheme=0")
    assert (dark["broken"], console, dark["paper"]) == (0, [], "rgb(20, 20, 20)")
    assert dark["source"] != light["source"]


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_that_cannot_show_a_figure_or_would_load_one_is_seen(text, tmp_path):
    page = text
    broken, _ = browse(page, tmp_path, change=lambda text: text.replace("base64,PHN2", "base64,AAAA"))
    assert broken["broken"] == broken["images"]
    _, console = browse(
        page, tmp_path, change=lambda t: t.replace("</main>", '<img src="https://example.org/a.png"></main>')
    )
    assert any("Content Security Policy" in line for line in console)
