"""The gallery: every analysis is in it, its findings come from the runs, and its pictures are small."""

import importlib
import re
import sys

import numpy as np
import pytest
from PIL import Image

from capmem import figures, results
from capmem.capacity import from_table
from capmem.gallery import ENTRIES, Entry, page, pictures, section, shrink, update
from capmem.gallery.__main__ import FOLDER, main
from capmem.gallery.page import BEGIN, END
from capmem.gallery.rendering import Rendered
from capmem.gallery.told import capacities, first_sentences, printed
from tests.conftest import ROOT
from tests.synthetic_table import table

WITHOUT_PICTURES = {"capture", "report", "status"}  # they read what others left, or a model
NAMES = [name for entry in ENTRIES for name in entry.pictures]
README = (ROOT / "README.md").read_text()


def test_every_analysis_is_in_the_gallery():
    there = {path.stem for path in (ROOT / "analyses").glob("[a-z]*.py")}
    assert {entry.analysis for entry in ENTRIES} == there - WITHOUT_PICTURES


def test_names_of_entries_and_pictures_are_unique():
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if (ROOT / f"capmem/studies/{e.analysis}.py").exists()],
                         ids=lambda e: e.name)  # fmt: skip
def test_the_figures_of_an_entry_are_drawn_by_its_analysis(entry):
    study = importlib.import_module(f"capmem.studies.{entry.analysis}").STUDY
    assert set(entry.pictures.values()) <= set(study.figures)
    assert bool(entry.pictures) == bool(study.figures)


def test_committed_pictures_are_those_of_the_entries_and_under_three_megabytes():
    there = list((ROOT / FOLDER).glob("*.png"))
    assert {path.stem for path in there} <= set(NAMES)
    assert sum(path.stat().st_size for path in there) < 3_000_000


def test_the_page_and_readme_show_pictures_that_exist():
    for text, folder in (((ROOT / FOLDER / "README.md").read_text(), ROOT / FOLDER), (README, ROOT)):
        shown = re.findall(r"!\[[^]]*\]\(([^)]+\.png)\)|<img src=\"([^\"]+)\"", text)
        assert shown
        for target in shown:
            assert (folder / "".join(target)).exists(), target


def test_readme_lists_every_command_once():
    setup = (ROOT / "setup.cfg").read_text()
    commands = re.findall(r"^    (capmem-[a-z-]+) = ", setup, re.MULTILINE)
    (listed,) = re.findall(r"## The analyses\n(.*?)\n## ", README, re.DOTALL)
    rows = re.findall(r"^\| `(capmem-[a-z-]+)", listed, re.MULTILINE)
    assert sorted(rows) == sorted(commands)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    frame = table(maps=("identity", "dpfp"), key_dims=(16,), trials=2)
    folder = tmp_path_factory.mktemp("drawn")
    figures.save(figures.interference_curves(frame), folder, "drawn")
    return folder / "drawn.png"


def worst_pixels(source, small):
    a, b = (np.asarray(Image.open(path).convert("RGB"), dtype=float) for path in (source, small))
    assert a.shape == b.shape
    return np.quantile(np.abs(a - b).max(axis=2), 0.999)


def test_a_small_picture_looks_the_same_and_is_under_two_thirds_of_the_size(drawn, tmp_path):
    size = shrink(drawn, tmp_path / "small.png")
    assert size == (tmp_path / "small.png").stat().st_size < 2 / 3 * drawn.stat().st_size
    assert worst_pixels(drawn, tmp_path / "small.png") <= 24


def test_too_few_colours_would_be_noticed(drawn, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "COLOURS", 8)
    shrink(drawn, tmp_path / "small.png")
    assert worst_pixels(drawn, tmp_path / "small.png") > 24


def test_the_same_figure_gives_the_same_bytes(drawn, tmp_path):
    for name in ("a.png", "b.png"):
        shrink(drawn, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_the_finding_is_the_printed_paragraph_and_not_what_follows(tmp_path):
    output = "a table\n\nAt d = 8, x holds 3.\nMore of it.\n\nIn /somewhere:\n  results.csv\n"
    assert printed()(output, tmp_path) == "a table"
    assert printed("At d = ")(output, tmp_path) == "At d = 8, x holds 3. More of it."
    assert printed("At d = ", others=False)(output, tmp_path) == "At d = 8, x holds 3."
    with pytest.raises(ValueError, match="Nowhere"):
        printed("Nowhere")(output, tmp_path)


def test_sentences_end_at_a_full_stop_and_not_within_a_number():
    text = "N* is 3.5 at d = 64. The next begins here (see et al. 2021). Third."
    assert first_sentences(text, 1) == "N* is 3.5 at d = 64."
    assert first_sentences(text, 2) == "N* is 3.5 at d = 64. The next begins here (see et al. 2021)."


def test_capacities_of_a_sweep_are_those_of_its_table(tmp_path, monkeypatch):
    frame = table(correlations=(0.0, 0.6))
    monkeypatch.setattr(results, "load", lambda folder: frame)
    told = capacities("keys.correlation", "correlation {:g}".format)("", tmp_path)
    assert told.startswith("Pairs held at d = 128 (scale-optimal error <= 0.5), correlation 0: ")
    found = from_table(frame, by=["feature_map", "keys.correlation", "key_dim"])
    found = found[(found["key_dim"] == 128) & (found["keys.correlation"] == 0.0)].set_index("feature_map")
    assert f"identity {found.loc['identity', 'pairs']:.0f}, " in told
    assert f"{found.loc['dpfp', 'pairs']:.0f}, " in told
    assert found.loc["elu_plus_one", "bound"] == "below"
    assert "elu_plus_one below 8, " in told
    assert told.endswith("; correlation 0.6: all below 8.")


FAKE = '''"""A stand-in for an analysis."""
import sys
from pathlib import Path
from PIL import Image

folder = Path(sys.argv[-1].partition("=")[2])
(folder / "figures").mkdir(exist_ok=True)
runs = len(list(folder.glob("run*")))
(folder / f"run{runs}").touch()
if "fail=true" in sys.argv:
    sys.exit(3)
print(f"It held {runs} pairs_a | b. And more.\\n\\nIn {folder}:")
Image.new("RGB", (8, 8), "white").save(folder / "figures" / "one.png")
'''


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "analyses").mkdir()
    (tmp_path / "analyses" / "__init__.py").touch()
    (tmp_path / "analyses" / "fake.py").write_text(FAKE)
    (tmp_path / "README.md").write_text(f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    return tmp_path


ONE = Entry("one", "A title", "fake", {"one": "one"})
BAD = Entry("bad", "Another", "fake", {"bad": "one"}, overrides=("fail=true",))


def test_a_run_writes_pictures_page_and_readme(checkout, capfd):
    assert main([], checkout, [ONE]) == 0
    assert "1 pictures" in capfd.readouterr().out
    assert (checkout / FOLDER / "one.png").exists()
    readme, own = (checkout / "README.md").read_text(), (checkout / FOLDER / "README.md").read_text()
    assert readme.startswith("before\n") and readme.endswith("after\n") and "old" not in readme
    assert "It held 0 pairs\\_a \\| b. `capmem-fake`" in readme and "And more" not in readme
    assert "It held 0 pairs\\_a | b. And more." in own and "](one.png)" in own


def test_a_second_run_reuses_the_folder_and_drops_pictures_of_no_entry(checkout):
    main([], checkout, [ONE])
    (checkout / FOLDER / "old.png").touch()
    assert main(["one"], checkout, [ONE]) == 0
    assert "It held 1 pairs" in (checkout / "README.md").read_text()
    assert [path.name for path in (checkout / FOLDER).glob("*.png")] == ["one.png"]


def test_a_figure_of_an_earlier_run_is_not_shown_again(checkout, capfd):
    assert main([], checkout, [ONE]) == 0
    script = checkout / "analyses" / "fake.py"
    script.write_text(script.read_text().partition("Image.new")[0])
    assert main([], checkout, [ONE]) == 1
    assert "there is no figure one.png" in capfd.readouterr().err


def test_a_failure_leaves_the_pages_as_they_were(checkout, capfd):
    before = (checkout / "README.md").read_text()
    assert main([], checkout, [ONE, BAD]) == 1
    assert "exit code 3" in (said := capfd.readouterr().err) and "not rendered yet: bad" in said
    assert (checkout / "README.md").read_text() == before
    assert not (checkout / FOLDER).exists()


def test_an_earlier_success_does_not_hide_a_failure(checkout):
    assert main([], checkout, [ONE]) == 0
    (checkout / "analyses" / "fake.py").write_text("raise SystemExit(1)")
    assert main([], checkout, [ONE]) == 1


def test_an_analysis_that_does_not_resume_starts_in_an_empty_folder(checkout):
    fresh = Entry("one", "A title", "fake", {"one": "one"}, resumes=False)
    assert main([], checkout, [fresh]) == main([], checkout, [fresh]) == 0
    assert "It held 0 pairs" in (checkout / "README.md").read_text()


def test_an_unknown_entry_is_one_line(checkout, capfd):
    assert main(["onne"], checkout, [ONE]) == 1
    assert capfd.readouterr().err == "entry 'onne' does not exist. Did you mean 'one'? Allowed: one\n"


def test_an_entry_without_figures_has_its_finding_alone(tmp_path):
    found = [Rendered(Entry("none", "None", "fake", {}), "It is fast.", ())]
    assert "img" not in section(found, FOLDER) and "It is fast." in section(found, FOLDER)
    assert "](" not in page(found)


def test_readme_without_the_marks_is_refused(tmp_path):
    (tmp_path / "README.md").write_text("nothing here")
    with pytest.raises(ValueError, match="marks"):
        update(tmp_path / "README.md", "| |")


def test_importing_the_gallery_loads_no_heavy_module():
    import subprocess

    code = "import sys, capmem.gallery; print([m for m in ('PIL', 'matplotlib', 'pandas') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
