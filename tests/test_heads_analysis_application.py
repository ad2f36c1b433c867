"""The heads analysis from the command line: answers, files, figures that can be redrawn, and one line for a mistake."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf

from capmem import figures, heads
from capmem.heads_analysis import HeadsAnalysis, analyse, analysed
from capmem.heads_analysis.application import show
from capmem.heads_analysis.conversion import key_sets
from capmem.heads_analysis.drawings import drawings, shown_head
from capmem.heads_analysis.listing import listing
from capmem.heads_analysis.page import page
from capmem.heads_analysis.tables import Tables, table_key
from capmem.heads_analysis.task import tasks_of
from capmem.heads_analysis.told import sentences
from capmem.schema import construct
from capmem.sweeps.hydra_front import Job
from tests.conftest import ROOT

TINY = {
    "num_pairs": [2, 8, 32], "trials": 3, "maps": ["elu_plus_one", "taylor, order=2"], "rule_maps": ["identity"],
    "gram_tokens": 5, "workers": 1,
}  # fmt: skip
FRAMES_OWN = {"workers", "figures", "show", "hydra", "defaults"}


def job(folder, **changes):
    config = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / "heads.yaml"))
    config = {k: v for k, v in config.items() if k not in ("hydra", "defaults")}
    return Job([config | TINY | changes], folder, [])


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Two heads of the sample, shown once; what was printed is kept."""
    import contextlib
    import io

    folder = tmp_path_factory.mktemp("heads")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert show(job(folder, path="samples/minilm", layers=[1], heads=[0, 5], figures=False))
    return folder, printed.getvalue()


@pytest.fixture(scope="module")
def tables(shown):
    given = {k: v for k, v in TINY.items() if k != "workers"}
    settings = construct(HeadsAnalysis, given | {"path": "samples/minilm", "layers": [1], "heads": [0, 5]})
    return analyse(settings, shown[0], workers=1)


def test_the_keys_of_the_configuration_are_the_settings():
    config = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / "heads.yaml"))
    given = {k: v for k, v in config.items() if k not in FRAMES_OWN}
    assert construct(HeadsAnalysis, given) == HeadsAnalysis()
    assert set(given) == set(HeadsAnalysis.__dataclass_fields__)
    assert (ROOT / "conf" / "hydra" / "help" / "heads.yaml").is_file()
    assert "capmem-heads = capmem.analyses.heads:main" in (ROOT / "setup.cfg").read_text()


def test_the_answers_come_first_then_the_table_then_the_places(shown):
    folder, printed = shown
    order = [
        "Tokens remembered of 256, top-1 by index >= 0.9",
        "Keys of 32 dim",
        "Best feature map",
        "Spearman",
        "L1H0",
    ]
    places = [printed.index(words) for words in [*order, f"In {folder}"]]
    assert places == sorted(places)


def test_every_table_is_in_the_folder(shown):
    for name in Tables._fields:
        assert len(pd.read_csv(shown[0] / "tables" / f"{name}.csv"))


@pytest.mark.slow
def test_every_figure_is_in_the_folder_and_on_the_page(tmp_path):
    folder = tmp_path / "out"
    assert show(job(folder, path="samples/minilm", layers=[1], heads=[0, 5]))
    html = (folder / "index.html").read_text()
    drawn = sorted(path.stem for path in (folder / "figures").glob("*.png"))
    assert len(drawn) == 9
    for name in drawn:
        assert f'src="figures/{name}.png"' in html
        assert {path.suffix for path in (folder / "figures").glob(f"{name}.*")} == {".png", ".svg", ".pdf", ".csv"}


def test_a_redraw_computes_nothing(shown, monkeypatch, capsys):
    folder, printed = shown
    monkeypatch.setattr("capmem.heads_analysis.tables.one_head", None)
    assert show(job(folder, path="samples/minilm", layers=[1], heads=[0, 5], figures=False))
    assert capsys.readouterr().out.split("In ")[0] == printed.split("In ")[0]


def test_the_sentences_follow_the_tables(tables):
    made = tables._replace(dimensions=tables.dimensions.assign(mean_cosine=0.77, effective_dim=3.3))
    told = " ".join(sentences(made))
    assert "3.3 (3.3-3.3) dimensions" in told and "0.77 (0.77-0.77)" in told
    assert "3.3 (3.3-3.3) dimensions" not in " ".join(sentences(tables))
    capacity = tables.capacity.assign(bound="at least", pairs=np.nan, low=256.0, high=np.nan)
    assert "at least 256 for 2" in sentences(tables._replace(capacity=capacity))[0]


def test_a_head_that_the_mean_output_beats_is_counted(tables):
    assert "beats every map for 0 of the heads" not in " ".join(
        sentences(tables._replace(heads=tables.heads.assign(best_error=9.0, best_error_centred=9.0)))
    )


def test_the_list_of_heads_is_sorted_by_fit(tables):
    lines = listing(tables.heads.assign(best_error_centred=[0.9, 0.1])).splitlines()
    assert lines[3].startswith("L1H5") and lines[4].startswith("L1H0")


def test_figures_draw_what_is_in_the_tables(tables):
    grids = drawings(tables, (1, 5))
    assert grids["head_maps"].axes[0, 0].get_title() == "attended tokens"
    mesh = grids["head_maps"].axes[0, 0].collections[0].get_array()
    np.testing.assert_allclose(np.asarray(mesh).ravel(), tables.heads["attended"])
    gram = np.asarray(grids["head_gram"].axes[0, 0].collections[0].get_array()).reshape(5, 5)
    np.testing.assert_allclose(np.diag(gram), 1)
    np.testing.assert_allclose(gram, gram.T)
    assert [t.get_text() for t in grids["head_gram"].axes[0, 0].get_yticklabels()][0] == "[CLS]"
    assert (grids["head_tokens"].table["head"] == 5).all()
    assert len(grids["head_dimensions"].table) == 4
    pd.testing.assert_frame_equal(grids["head_dimensions"].table, key_sets(tables.heads))


def test_the_gram_matrix_is_of_tokens_spread_over_the_whole_text(tables):
    part = tables.gram[tables.gram["head"] == 5]
    assert sorted(set(part["j"])) == [0, 64, 128, 191, 255]
    grid = drawings(tables, (1, 5))["head_gram"]
    image = np.asarray(grid.axes[0, 0].collections[0].get_array()).reshape(5, 5)
    at = part[(part["i"] == 64) & (part["j"] == 191)].iloc[0]
    assert image[1, 3] == image[3, 1] == at["cosine"]
    assert "5 tokens, spread evenly over positions 0 to 255" in " ".join(t.get_text() for t in grid.figure.texts)


def test_no_band_of_an_accuracy_leaves_0_to_1(tables):
    ends = ["top1_accuracy_low", "top1_accuracy_high"]
    wide = tables.curves[tables.curves["head"] == 5].copy()
    wide[ends] = [-0.2, 1.2]
    drawn = figures.head_recall(wide, tables.dimensions[tables.dimensions["head"] == 5])
    assert drawn.table[ends].min().min() == 0 and drawn.table[ends].max().max() == 1
    assert (wide[ends[1]] == 1.2).all()


def test_variants_of_a_map_share_an_entry_of_the_legend(tables):
    more = [tables.fit.assign(map=name) for name in ("dpfp, nu=1", "dpfp, nu=3")]
    (legend,) = figures.head_fit(pd.concat([tables.fit, *more])).figure.legends
    told = [text.get_text() for text in legend.get_texts()]
    assert "dpfp, nu=1, 3" in told and "elu_plus_one" in told and len(told) == 3 + 3


def test_the_dashed_line_is_the_theory(tables):
    curves = tables.curves[tables.curves["head"] == 5]
    dims = tables.dimensions[tables.dimensions["head"] == 5]
    panel = figures.head_recall(curves, dims).axes[0, 2]
    dashed = [line for line in panel.lines if line.get_linestyle() == "--"]
    expected = dims.set_index("keys")["effective_dim"]
    slopes = {round(float(line.get_ydata()[-1]) / 255, 9) for line in dashed}
    assert {round(1 / expected["as they are"], 9), round(1 / expected["centred"], 9), round(1 / 32, 9)} == slopes


def test_a_file_of_keys_alone_is_answered_as_far_as_it_goes(tmp_path):
    np.save(tmp_path / "keys.npy", np.random.default_rng(0).standard_normal((24, 8)).astype(np.float32))
    found = analyse(HeadsAnalysis(path=str(tmp_path / "keys.npy"), num_pairs=(2, 8), trials=2, layout="td"), workers=1)
    assert set(found.capacity["values"]) == {"random"} and not len(found.fit)
    told = sentences(found)
    assert any("no queries, or no values" in text for text in told)
    grids = drawings(found, shown_head([(0, 0)], None))
    assert "head_fit" not in grids and "head_recall" in grids
    assert listing(found.heads)


def test_query_heads_that_share_keys_are_fitted_one_by_one(tmp_path):
    rng = np.random.default_rng(0)
    keys, values = rng.standard_normal((2, 1, 24, 8))
    queries = rng.standard_normal((2, 24, 8))
    heads.from_arrays(keys[None], queries[None], values[None], layout="bhtd", causal=True).save(tmp_path / "gqa.npz")
    found = analyse(HeadsAnalysis(path=str(tmp_path / "gqa.npz"), num_pairs=(2, 8), trials=2), workers=1)
    assert list(found.heads["query_head"]) == [0, 1] and list(found.heads["head"]) == [0, 0]
    assert found.heads["attended"].nunique() == 2 and found.heads["effective_dim"].nunique() == 1
    assert (found.heads["attended"] <= 12.5).all()  # causal: (T + 1) / 2 at most


def test_the_key_of_a_table_is_the_files_content_and_the_settings(tmp_path):
    rows = np.random.default_rng(0).standard_normal((24, 8))
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", rows)
    first, second = (HeadsAnalysis(path=str(tmp_path / f"{name}.npy")) for name in "ab")
    assert table_key(first) == table_key(second)
    assert table_key(first) != table_key(HeadsAnalysis(path=first.path, trials=17))
    np.save(tmp_path / "b.npy", rows + 1)
    assert table_key(first) != table_key(second)


def test_a_file_that_changed_is_read_again(tmp_path):
    settings = HeadsAnalysis(path=str(tmp_path / "keys.npy"), layout="td")
    found = []
    for seed, count in ((0, 24), (1, 25)):
        np.save(tmp_path / "keys.npy", np.random.default_rng(seed).standard_normal((count, 8)))
        (task,) = tasks_of(settings)
        found.append(analysed(task).keys)
    assert [len(keys) for keys in found] == [24, 25]
    np.testing.assert_allclose(found[1], np.random.default_rng(1).standard_normal((25, 8)))


def test_a_long_sequence_is_cut_at_its_beginning(tmp_path):
    np.save(tmp_path / "long.npy", np.random.default_rng(0).standard_normal((64, 8)))
    (task,) = tasks_of(HeadsAnalysis(path=str(tmp_path / "long.npy"), max_tokens=40, layout="td"))
    assert analysed(task).keys.shape == (40, 8)


def test_a_page_escapes_what_tokens_say():
    assert "<script>" not in page("<b>", ["<script>alert(1)</script>"], [])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "path must be a file or folder"),
        ({"path": "nowhere.npz"}, "nowhere.npz"),
        ({"path": "samples/minilm", "layers": [2]}, "layers 2 does not exist.*Allowed: 1, 3"),
        ({"path": "samples/minilm", "heads": [1]}, "heads of layer 1.* 1 does not exist.*Allowed: 0, 5, 9"),
        ({"path": "samples/minilm", "maps": ["dpfp"]}, "maps 'dpfp' does not exist.*'dpfp, nu=1', "),
        ({"path": "samples/minilm", "accuracy": 90}, "accuracy must be a number between 0 and 1"),
        ({"path": "samples/minilm", "trials": 1}, "trials must be at least 2"),
        ({"path": "samples/minilm", "show": [7, 7]}, "show .7, 7. does not exist"),
        ({"path": "samples/minilm", "show": [7]}, "show must be one .layer, key head."),
        ({"path": "samples/minilm", "similarity": "euclid"}, "similarity must be one of cosine, dot"),
        ({"path": "samples/minilm", "colour": 1}, "key 'colour' does not exist"),
    ],
)
def test_bad_input_is_one_line_before_anything_is_written(changes, told, tmp_path):
    with pytest.raises(ValueError, match=told) as caught:
        show(job(tmp_path / "out", **changes))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_command_runs_in_two_processes(tmp_path):
    words = ["path=samples/minilm", "layers=[3]", "heads=[0,9]", "trials=2", "num_pairs=[2,8]"]
    words += ["maps=[relu]", "rule_maps=[identity]"]
    done = subprocess.run(
        [sys.executable, "-m", "analyses.heads", *words, "figures=false", "workers=2", f"hydra.sweep.dir={tmp_path}"],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Tokens remembered of 256" in done.stdout
    two = pd.read_csv(tmp_path / "tables" / "curves.csv")
    maps = {"maps": ("relu",), "rule_maps": ("identity",)}
    one = analyse(HeadsAnalysis("samples/minilm", (3,), (0, 9), trials=2, num_pairs=(2, 8), **maps), workers=1)
    np.testing.assert_array_equal(two.select_dtypes("number"), one.curves.select_dtypes("number"))
