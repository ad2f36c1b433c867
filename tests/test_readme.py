"""README and its Chinese version: every block runs, in a shortened form where it would take long; numbers are true."""

import math
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
import yaml

import capmem
from capmem import capacity, catalogue, results, theory
from capmem.ensembles import KEYS, VALUES, EquicorrelatedKeys, GaussianKeys, SphereKeys
from capmem.feature_maps import FEATURE_MAPS, Identity, ReLU
from capmem.gallery.told import capacities
from capmem.memory import LinearMemory
from capmem.readouts import READOUTS, Normalized
from capmem.replications import REPLICATIONS
from capmem.sweeps.cluster import Cluster
from capmem.write_rules import WRITE_RULES, Delta, GatedDecay
from tests.conftest import ROOT

TEXT, CHINESE = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md"))
BOTH = pytest.mark.parametrize("text", [TEXT, CHINESE], ids=["README.md", "README.zh.md"])
REGISTRIES = (FEATURE_MAPS, WRITE_RULES, READOUTS, KEYS, VALUES)
SHORT = ["trials=1", "figures=false", "workers=1"]


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def section(title, text=TEXT):
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE).group(1)


def flat(text):
    return " ".join(text.split())


def numbers(text):
    return re.findall(r"(?<![\d.,])\d+(?:,\d{3})*(?:\.\d+)?", text)


def lines_of_shell(text):
    for block in blocks(text, "bash"):
        yield from (line for line in block.replace("\\\n", " ").splitlines() if not line.startswith("#"))


PYTHON = blocks(TEXT, "python")
SHELL = list(lines_of_shell(TEXT))
SWEEPS = [line for line in SHELL if line.startswith("capmem-sweep")]
INLINE = sorted(set(re.findall(r"`(capmem-[a-z-]+(?: [^`]*)?)`", TEXT + CHINESE)))


@pytest.fixture
def registries_restored():
    before = [dict(registry._classes) for registry in REGISTRIES]
    yield
    for registry, classes in zip(REGISTRIES, before, strict=True):
        registry._classes.clear()
        registry._classes.update(classes)


def agree(printed, told):
    """Whether the printed numbers are the told ones, to the digits that are told."""
    found, wanted = (re.findall(r"\d+(?:\.\d+)?", line) for line in (printed, told))
    digits = [len(number.partition(".")[2]) for number in wanted]
    return [f"{float(x):.{n}f}" for x, n in zip(found, digits, strict=True)] == wanted


@pytest.mark.parametrize("block", PYTHON, ids=range(len(PYTHON)))
def test_python_block_runs_and_prints_what_its_comments_say(block, monkeypatch, tmp_path, capsys, registries_restored):
    monkeypatch.chdir(ROOT)
    exec(compile(block.replace("outputs/readme", str(tmp_path)), "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    told = re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE)
    if told:
        assert len(printed) == len(told)
        assert all(agree(*both) for both in zip(printed, told, strict=True)), (printed, told)


def test_a_printed_number_that_differs_in_the_last_told_digit_is_noticed():
    assert agree("0.96875 0.66849", "0.969 and 0.668")
    assert not agree("0.96875 0.66849", "0.969 and 0.669")
    assert not agree("114", "113")


def test_the_rule_and_the_law_of_the_example_are_what_they_say(rng, registries_restored):
    names: dict = {}
    exec(next(block for block in PYTHON if "LaplaceKeys" in block), names)
    keys = names["LaplaceKeys"]().sample(rng, 4000, 16)
    values = rng.standard_normal((4000, 3))
    # |k|^2 has mean 1 and variance 5/16: 5 standard errors
    assert np.mean(np.sum(keys**2, axis=1)) == pytest.approx(1, abs=5 * (5 / 16 / 4000) ** 0.5)
    rule = names["Bounded"](limit=0.5)
    at_once = rule.write(rule.init(16, 3), keys, values)
    cut = rule.write(rule.write(rule.init(16, 3), keys[:7], values[:7]), keys[7:], values[7:])
    assert np.array_equal(at_once.S, cut.S) and np.allclose(at_once.z, cut.z)
    assert np.max(np.abs(at_once.S)) == 0.5
    first = rule.write(rule.init(16, 3), keys[:1] / 10, values[:1])
    assert np.allclose(first.S, keys[0, :, None] / 10 * values[0])


@pytest.mark.parametrize("command", SWEEPS, ids=range(len(SWEEPS)))
def test_sweep_runs(command, tmp_path):
    overrides = shlex.split(command.replace("cluster=slurm", "cluster=debug"))[1:]
    short = SHORT[:2] if "cluster=" in command else SHORT
    run = [sys.executable, "-m", "analyses.sweep", *overrides, *short, f"hydra.sweep.dir={tmp_path}"]
    result = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "Pairs held" in result.stdout


def test_every_line_of_shell_is_of_a_kind_that_is_tested():
    kinds = ("make ", "capmem-sweep ", "pip ", ". .venv/bin/activate")
    assert all(line.startswith(kinds) for line in SHELL)
    assert set(blocks(CHINESE, "bash")) <= set(blocks(TEXT, "bash"))
    assert set(blocks(CHINESE, "python")) <= set(PYTHON)


@BOTH
def test_the_two_commands_come_first_and_three_blocks_follow(text):
    first, *others = re.findall(r"```(?:bash|python)\n(.*?)```", text, re.DOTALL)
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make sweep", "make test"]
    for word, block in zip(("activate", "keys=array", "evaluate"), others, strict=False):
        assert word in block


@BOTH
def test_every_target_of_make_exists(text):
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE))
    assert {"sweep", "test", "docs"} <= named
    assert named <= set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def settings_of(command):
    name = command.split()[0].removeprefix("capmem-").replace("-", "_")
    return yaml.safe_load((ROOT / "conf" / f"{name}.yaml").read_text())


@pytest.mark.parametrize("command", INLINE)
def test_every_command_named_in_the_text_exists_and_has_its_keys(command):
    name, *overrides = command.split()
    if name == "capmem-...":
        return
    assert f"    {name} = capmem.analyses." in (ROOT / "setup.cfg").read_text()
    for override in overrides:
        key, _, value = override.partition("=")
        if key == "+experiment":
            assert (ROOT / "conf" / "experiment" / f"{value}.yaml").exists()
        else:
            assert key in settings_of(command)
            assert key != "study" or value in REPLICATIONS


def slug(title):
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def headings(text):
    return {slug(title) for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@BOTH
def test_every_link_leads_somewhere(text):
    for target in re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        path, _, place = target.partition("#")
        assert path.startswith("https:") or (ROOT / path).exists(), target
        if place:
            assert place in headings((ROOT / path).read_text(encoding="utf-8") if path else text), target


def test_the_table_of_keys_has_every_key_of_a_sweep_with_its_default():
    table = section("What is in it").split("</details>")[1]
    told = {}
    for names, defaults in re.findall(r"^\| (`[^|]*`) \| .* \| ([^|]*) \|$", table, re.MULTILINE):
        keys, values = re.findall(r"`(\w+)`", names), defaults.split(", ")
        told |= dict(zip(keys, values if len(values) > 1 else values * len(keys), strict=True))
    keys = yaml.safe_load((ROOT / "conf" / "sweep.yaml").read_text())
    wanted = {k: "null" if v is None else str(v).lower() if isinstance(v, bool) else str(v) for k, v in keys.items()}
    assert told == {key: value for key, value in wanted.items() if key not in ("defaults", "hydra")}


def test_the_tables_of_choices_are_current(tmp_path):
    copy = tmp_path / "README.md"
    copy.write_text(TEXT)
    assert not catalogue.update(copy), "run: make tables"
    for registry in catalogue.GROUPS.values():
        for name in registry.names():
            assert f"| `{name}` |" in TEXT


@pytest.mark.parametrize("name", ["README.md", "README.zh.md", "CHANGELOG.md"])
def test_choices_are_counted_right(name):
    words = {
        "CHANGELOG.md": ("{} feature maps", "{} write rules", "{} read-outs", "{} laws of keys", "{} of values"),
        "README.md": ("{} feature maps", "{} write rules", "{} read-outs", "{} laws of keys", "{} of values"),
        "README.zh.md": ("{} 种特征映射", "{} 种写入规则", "{} 种读出", "{} 种键分布", "{} 种值分布"),
    }[name]
    text = flat((ROOT / name).read_text(encoding="utf-8"))
    for word, registry in zip(words, REGISTRIES, strict=True):
        assert word.format(len(registry.names())) in text


def test_the_main_job_is_told_as_its_preset_has_it():
    preset = yaml.safe_load((ROOT / "conf" / "experiment" / "main.yaml").read_text())
    swept = preset["hydra"]["sweeper"]["params"]
    assert f"stores {preset['num_pairs'][0]} to {preset['num_pairs'][-1]:,} pairs" in TEXT
    assert "for four key dimensions, feature maps and key correlations" in flat(TEXT)
    assert [len(swept[key].split(",")) for key in ("key_dim", "feature_map", "keys.correlation")] == [4, 4, 4]


FOUND = re.search(r"\*\*Error as pairs are added\.\*\* (.*?) `capmem-sweep`", TEXT).group(1).replace("\\", "")
REAL = re.search(r"\*\*Keys of real heads\.\*\* (.*?) `capmem-sweep", TEXT).group(1).replace("\\", "")


def test_the_first_figure_is_told_as_the_gallery_finds_it():
    told = flat(TEXT.split("## Two commands")[0])
    pairs = dict(re.findall(r"(\w+)(?: \(nu=1\))? (\d+)", FOUND.partition("correlation 0: ")[2].partition(";")[0]))
    assert f"`identity` holds {pairs['identity']} pairs, `dpfp` {pairs['dpfp']}, `relu` {pairs['relu']}" in told
    assert f"`relu` {pairs['relu']}, `elu_plus_one` {pairs['elu_plus_one']}." in told
    (shared,) = re.findall(r"correlation 0\.3: .*?identity (\d+)", FOUND)
    assert f"(correlation 0.3) leave `identity` {shared}." in told
    assert "d = 128" in FOUND and "dimension 128" in told


def test_the_real_heads_are_told_as_the_gallery_finds_them():
    told = flat(section("What the real heads say"))
    ranges = re.findall(r"(identity|dpfp|relu)(?: \(nu=1\))? (\d+) to (\d+)", REAL)
    raw, centred = dict((m, r) for m, *r in ranges[:3]), dict((m, r) for m, *r in ranges[3:])
    assert "hold {} to {} pairs as they are and {} to {} once".format(*raw["identity"], *centred["identity"]) in told
    assert "`dpfp` holds {} to {} and {} to {}".format(*raw["dpfp"], *centred["dpfp"]) in told
    assert "`relu` {} to {} and {} to {}".format(*raw["relu"], *centred["relu"]) in told
    assert "elu_plus_one below 4 to 5" in REAL and "`elu_plus_one` never more than 5" in told
    random = capacity.estimate(LinearMemory(Identity()), SphereKeys(), 32, metric="scale_optimal_error", threshold=0.5)
    assert f"random keys of this dimension hold {random}" in told


@pytest.mark.slow
def test_the_real_heads_come_out_again(tmp_path):
    run = [sys.executable, "-m", "analyses.sweep", "+experiment=real_heads", "figures=false"]
    subprocess.run([*run, f"hydra.sweep.dir={tmp_path}"], cwd=ROOT, check=True, capture_output=True)
    label = {"none": "keys as they are", "mean": "keys centred"}.__getitem__
    assert capacities("key_center", label)("", tmp_path) == REAL.replace("&lt;", "<")
    held = capacity.from_table(results.load(tmp_path), by=["feature_map", "key_center", "keys.name"])
    held = held[held["feature_map"] == "identity"].pivot(index="keys.name", columns="key_center", values="pairs")
    ratio = held["mean"] / held["none"]
    assert f"{ratio.min():.1f} to {ratio.max():.1f} times as many" in flat(TEXT)


def test_the_trained_matrices_hold_as_many_times_more_as_limits_say():
    def guide(dim):  # d^2 = 1.3 N ln N, solved for N
        pairs = dim**2
        for _ in range(100):
            pairs = dim**2 / 1.3 / math.log(pairs)
        return pairs

    held = {d: capacity.estimate(LinearMemory(Identity()), SphereKeys(), key_dim=d).pairs for d in (32, 64, 128, 256)}
    ratios = [guide(dim) / pairs for dim, pairs in held.items()]
    assert f"at {min(ratios):.1f} to {max(ratios):.1f} times the pairs of the Hebbian state here" in flat(
        section("Limits")
    )


@pytest.mark.parametrize(
    ("memory", "keys", "words"),
    [
        (LinearMemory(Identity(), GatedDecay()), SphereKeys(), "gates that depend on the stored features"),
        (LinearMemory(ReLU(), Delta(0.02)), SphereKeys(), "the delta rules through maps other than `identity`"),
        (LinearMemory(Identity(), Delta(0.02)), EquicorrelatedKeys(0.5), "or on correlated keys"),
        (LinearMemory(Identity(), readout=Normalized()), SphereKeys(), "a normalised read-out of a kernel that can be"),
        (LinearMemory(ReLU(), feature_norm="sum"), GaussianKeys(), "features divided by their sum"),
        (LinearMemory(Identity(), state_dtype="bfloat16"), SphereKeys(), "a state held below float32"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_theory_refuses_what_limits_say(memory, keys, words):
    assert words in flat(section("Limits"))
    with pytest.raises(theory.TheoryUnavailable):
        theory.predict(memory, keys, key_dim=32, value_dim=32, num_pairs=24)


def test_what_limits_say_of_replications_is_what_the_gallery_finds():
    (count,) = re.findall(r"numbers: .*, (\d+) are not comparable", TEXT)
    assert f"{count} are not comparable" in flat(section("Limits"))


def test_the_cluster_of_the_text_is_one_and_its_extrapolation_is_arithmetic():
    told = flat(section("On a cluster"))
    assert eval(re.search(r'Cluster\("slurm", shards=50\)', told).group(), {"Cluster": Cluster}).shards == 50
    ms, kb, in_tasks = (
        float(x) for x in re.search(r"([\d.]+) ms CPU and (\d+) kB .*? ([\d.]+) ms CPU in", told).groups()
    )
    minutes, gigabytes, all_tasks = map(
        int, re.search(r"take (\d+) min of CPU and (\d+) GB there, and (\d+) min", told).groups()
    )
    assert round(ms * 1e6 / 1e3 / 60) == minutes
    assert round(kb * 1e6 / 1e6) == gigabytes
    assert abs(in_tasks * 1e6 / 1e3 / 60 - all_tasks) < 3


def extras():
    part = (ROOT / "setup.cfg").read_text().split("[options.extras_require]")[1].split("\n[")[0]
    return set(re.findall(r"^(\w+) =", part, re.MULTILINE))


def test_every_extra_is_told():
    rows = re.findall(r"^\| ((?:`\w+`,? ?)+) \|", section("Install without make"), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"\w+", row)} == extras()
    assert set(re.findall(r"\[(\w+)\]'", TEXT + CHINESE)) <= extras()


@pytest.mark.slow
def test_installing_without_make_as_told(tmp_path):
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in filter(lambda name: not name.startswith(("outputs", "samples", "tests")), names):
        (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "clone" / name).write_bytes((ROOT / name).read_bytes())
    (block,) = [block for block in blocks(TEXT, "bash") if "pip wheel" in block]
    script = f"{sys.executable} -m venv env && . env/bin/activate && cd clone\n{block}\ncd .. && rm -r clone\n"
    script += "capmem-sweep key_dim=8 num_pairs=4 trials=1 figures=false hydra.sweep.dir=out"
    run = subprocess.run(["bash", "-ec", script], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "out" / "results.csv").exists()


def test_version_and_title_are_the_same_wherever_they_stand():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= set(cited)
    for text in (TEXT, CHINESE):
        (bibtex,) = blocks(text, "bibtex")
        fields = dict(re.findall(r"(\w+)\s+= \{+([^}]*)\}", bibtex))
        assert fields["version"] == cited["version"] == capmem.__version__
        assert fields["title"] == cited["title"]
        assert fields["author"] == cited["authors"][0]["name"]
        assert f"capmem-{capmem.__version__}-py3-none-any.whl" in TEXT
    assert f"version = {capmem.__version__}\n" in (ROOT / "setup.cfg").read_text()
    assert f"## {capmem.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_the_chinese_version_lists_the_same_commands_and_no_number_of_its_own():
    rows = [re.findall(r"^\| `(capmem-[a-z-]+[^`]*)` \|", text, re.MULTILINE) for text in (TEXT, CHINESE)]
    assert rows[0] == rows[1]
    assert set(numbers(CHINESE)) <= set(numbers(TEXT))


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        (TEXT.split("## Two commands")[0], CHINESE.split("## 两条命令")[0]),
        (section("What the real heads say"), section("真实注意力头", CHINESE)),
        (section("Limits"), section("局限", CHINESE)),
    ],
    ids=["figure", "heads", "limits"],
)
def test_the_chinese_numbers_stand_in_the_order_of_the_english_ones(english, chinese):
    left = iter(numbers(english))
    assert all(number in left for number in numbers(chinese))
