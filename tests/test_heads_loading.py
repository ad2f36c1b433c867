"""Tokens of heads: padding is dropped, odd tokens are reported, and what is not finite or not allowed is named."""

import subprocess
import sys

import numpy as np
import pytest

from capmem import heads
from capmem.attention import softmax_attention

TOKENS, DIM = 40, 8


@pytest.fixture
def layer(rng):
    """Queries of 6 heads, keys and values of 2, and the causal output, in float64."""
    keys, values = rng.standard_normal((2, 2, TOKENS, DIM))
    queries = rng.standard_normal((6, TOKENS, DIM))
    output = softmax_attention(queries, keys, values, causal=True)
    return {"keys": keys, "queries": queries, "values": values, "output": output}


def test_padding_is_dropped_not_zeroed(layer):
    padded = {part: np.concatenate([x, np.full((len(x), 3, DIM), np.nan)], axis=1) for part, x in layer.items()}
    mask = [1] * TOKENS + [0] * 3
    loaded = heads.from_arrays(**padded, layout="htd", mask=mask, ids=range(TOKENS + 3))
    np.testing.assert_array_equal(loaded.layer(0).keys, layer["keys"])
    assert loaded.metadata.ids == tuple(range(TOKENS))
    assert loaded.metadata.error < 1e-14
    assert "3 of 43 tokens are padding and were dropped" in loaded.metadata.notes


def test_padding_on_the_left_is_dropped(layer):
    padded = {part: np.concatenate([np.zeros((len(x), 3, DIM)), x], axis=1) for part, x in layer.items()}
    loaded = heads.from_arrays(**padded, layout="htd", mask=[0] * 3 + [1] * TOKENS)
    assert loaded.metadata.error < 1e-14


def test_one_sequence_of_a_batch_is_taken_with_its_own_padding_and_tokens(layer, rng):
    batch = {part: np.stack([rng.standard_normal(x.shape), x]) for part, x in layer.items()}
    told = {"mask": np.ones((2, TOKENS)), "ids": np.arange(2 * TOKENS).reshape(2, TOKENS)}
    told["mask"][0, 5:] = 0
    loaded = heads.from_arrays(**batch, layout="bhtd", sequence=1, **told)
    np.testing.assert_array_equal(loaded.layer(0).keys, layer["keys"])
    assert loaded.metadata.ids[0] == TOKENS
    with pytest.raises(ValueError, match="sequence must be below 2"):
        heads.from_arrays(**batch, layout="bhtd", sequence=2)


@pytest.mark.parametrize(("part", "value", "kind"), [("keys", np.nan, "nan"), ("output", -np.inf, "inf")])
def test_nan_and_inf_are_named_by_layer_head_and_token(layer, part, value, kind):
    layer[part][1, 17, 3] = value
    named = {name: {4: x} for name, x in layer.items()}
    told = {"layout": "htd", "tokens": list(map(str, range(TOKENS)))}
    message = rf"{part} of layer 4 hold {kind} in head 1 at token 17 \('17'\)"
    with pytest.raises(ValueError, match=message):
        heads.from_arrays(**named, **told)
    loaded = heads.from_arrays(**named, **told, confirm=False)
    with pytest.raises(ValueError, match=message):
        loaded.layer(4)


def test_mask_and_ids_are_taken_from_the_file(tmp_path, layer):
    mask = np.arange(TOKENS) < 30
    np.savez(tmp_path / "a.npz", **layer, attention_mask=mask[None].astype(int), input_ids=np.arange(TOKENS)[None])
    loaded = heads.load(tmp_path / "a.npz", layout="htd")
    assert loaded.metadata.ids == tuple(range(30))
    assert loaded.metadata.error < 1e-14


def test_special_tokens_and_sinks_are_reported_with_and_without(rng):
    keys = rng.standard_normal((1, 30, 8)) + 2.0
    keys[0, 0] *= -40
    special = [True] + [False] * 29
    loaded = heads.from_arrays(keys, layout="htd", special=special, ids=[0] * 30)
    records = {record["choice"]: record for record in heads.summary(loaded)}
    assert set(records) == {"all", "without special", "without outliers"}
    assert records["all"]["outliers"] == (0,)
    assert [records[c]["tokens"] for c in ("all", "without special")] == [30, 29]
    assert records["all"]["distinct"] == 1
    assert records["all"]["mean_cosine"] < records["without special"]["mean_cosine"] - 0.05
    left = loaded.without_special()
    np.testing.assert_array_equal(left.layer(0).keys, keys[:, 1:])
    assert left.metadata.special == (False,) * 29
    assert "token 0" in str(loaded)


def test_the_numbers_of_the_report_are_means_over_pairs(rng):
    keys = rng.standard_normal((12, 5)) * rng.uniform(0.5, 2, (12, 1)) + 0.5

    def cosines(x):
        return [x[i] @ x[j] / np.linalg.norm(x[i]) / np.linalg.norm(x[j]) for i in range(12) for j in range(i)]

    (record,) = heads.summary(heads.from_arrays(keys[None], layout="htd"))
    assert record["mean_cosine"] == pytest.approx(np.mean(cosines(keys)), rel=1e-12)
    assert record["effective_dim"] == pytest.approx(1 / np.mean(np.square(cosines(keys))), rel=1e-12)
    centred = np.mean(np.square(cosines(keys - keys.mean(axis=0))))
    assert record["effective_dim_centred"] == pytest.approx(1 / centred, rel=1e-12)
    assert record["norm"] == pytest.approx(np.median(np.linalg.norm(keys, axis=1)))


def test_ordinary_norms_are_no_outliers(rng):
    assert not heads.outliers(rng.standard_normal((20, 500, 32))).any()
    keys = np.ones((10, 4))
    keys[3] *= 1.9
    assert not heads.outliers(keys).any()
    keys[3] *= 1.2
    assert heads.outliers(keys).tolist() == [i == 3 for i in range(10)]


def test_tokens_of_another_number_are_refused(layer):
    with pytest.raises(ValueError, match="does not fit the shapes"):
        heads.from_arrays(**layer, layout="htd", tokens=["a"] * 7)
    with pytest.raises(ValueError, match="of the same tokens"):
        heads.from_arrays(**layer, layout="htd", tokens=["a"] * 7, ids=[1] * 8)


def test_heads_left_with_some_tokens_give_no_output(layer):
    loaded = heads.from_arrays(**layer, layout="htd").take([3, 5])
    assert loaded.layer(0).output is None
    np.testing.assert_array_equal(loaded.layer(0).queries, layer["queries"][:, [3, 5]])


def test_heads_go_by_query_or_by_key(layer):
    loaded = heads.from_arrays(**layer, layout="htd")
    by_query, by_key = list(loaded.each()), list(loaded.each(by="key"))
    assert [head.key_head for head in by_query] == [0, 0, 0, 1, 1, 1]
    assert [head.queries.shape for head in by_key] == [(3, TOKENS, DIM)] * 2
    np.testing.assert_array_equal(by_query[4].keys, layer["keys"][1])
    np.testing.assert_array_equal(by_key[1].queries[1], by_query[4].queries)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"scales": 1}, "option 'scales' does not exist. Did you mean 'scale'"),
        ({"scale": 0.0}, "scale must be a positive number"),
        ({"heads": 0}, "heads must be an integer of at least 1"),
        ({"rotary": "later"}, "rotary must be"),
        ({"mask": [2] * TOKENS}, "mask must be 1 for tokens"),
        ({"mask": [0] * TOKENS}, "mask must be 1 for tokens"),
        ({"layout": {"k": "htd"}}, "layout must be a text, or a mapping"),
    ],
)
def test_an_option_that_is_not_allowed_is_refused(layer, option, message):
    with pytest.raises(ValueError, match=message):
        heads.from_arrays(**layer, **{"layout": "htd"} | option)


def test_integers_are_no_keys():
    with pytest.raises(ValueError, match="must be real floating point, got dtype int64"):
        heads.from_arrays(np.ones((4, 3), int))


def test_importing_loads_no_heavy_module():
    heavy = "torch safetensors pandas matplotlib transformers hydra pyarrow scipy.stats"
    code = (
        f"import sys, capmem.heads, capmem.heads.application; print([m for m in {heavy.split()} if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
