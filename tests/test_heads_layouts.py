"""Layouts and names of heads: what leaves no doubt is taken and said, what is open is asked for."""

import itertools

import numpy as np
import pytest

from capmem import heads
from capmem.attention import softmax_attention
from capmem.heads.layouts import arrange, parse, sizes
from capmem.heads.names import Place, guess, places

# layouts


@pytest.mark.parametrize(
    ("layout", "shape", "packed"),
    [
        ("bt3hd", (1, 20, 3, 2, 4), True),
        ("3bhtd", (3, 1, 2, 20, 4), True),
        ("bt(3hd)", (1, 20, 24), True),
        ("bt(hd)", (1, 20, 8), False),
        ("t(hd)", (20, 8), False),
        ("bthd", (1, 20, 2, 4), False),
    ],
)
def test_a_layout_puts_every_number_in_its_place(rng, layout, shape, packed):
    array = rng.standard_normal(shape)
    found = sizes(layout, shape, {"h": 2})
    made = arrange(array, layout, found)
    assert made.shape == ((3, 1, 2, 20, 4) if packed else (1, 2, 20, 4))
    for h, t, d in itertools.product(range(2), range(20), range(4)):
        at = {"b": 0, "h": h, "t": t, "d": d, "3": 1}
        place = [np.ravel_multi_index([at[c] for c in axis], [found[c] for c in axis]) for axis in parse(layout)]
        assert made[(1, 0, h, t, d) if packed else (0, h, t, d)] == array[tuple(place)]


def test_packed_arrays_are_taken_apart(rng):
    qkv = rng.standard_normal((1, 40, 3, 2, 8))
    q, k, v = (np.moveaxis(qkv[0, :, i], 1, 0) for i in range(3))
    flat = qkv.reshape(1, 40, -1)
    for packed, options in ((qkv, {}), (flat, {"heads": 2})):
        loaded = heads.from_arrays(qkv=packed, output=softmax_attention(q, k, v), **options)
        held = loaded.layer(0)
        for made, expected in ((held.queries, q), (held.keys, k), (held.values, v)):
            np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("shape", [(1, 12, 12, 8), (1, 12, 16, 8), (1, 128, 200, 64), (12, 256, 32), (1, 256, 384)])
def test_an_open_layout_is_asked_for(rng, shape):
    with pytest.raises(ValueError, match=r"could be .* or .*say layout="):
        heads.from_arrays(np.zeros(shape, np.float32))


@pytest.mark.parametrize(
    ("shape", "options"),
    [((1, 256, 384), {"ids": range(256)}), ((4, 256, 64), {"heads": 4}), ((20, 20, 8), {"heads": 20})],
)
def test_what_else_is_known_may_not_be_enough(shape, options):
    with pytest.raises(ValueError, match=r"could be .*: say layout="):
        heads.from_arrays(np.zeros(shape, np.float32), **options)


def test_sequences_of_a_batch_are_never_mixed():
    with pytest.raises(ValueError, match="2 sequences, which are never mixed: say sequence=0 to 1"):
        heads.from_arrays(np.ones((2, 3, 256, 8)))


@pytest.mark.parametrize(
    ("shape", "options", "layout"),
    [
        ((1, 12, 256, 32), {}, "bhtd"),
        ((1, 256, 12, 32), {}, "bthd"),
        ((1, 12, 16, 8), {"heads": 12}, "bhtd"),
        ((1, 12, 16, 8), {"heads": 16}, "bthd"),
        ((1, 12, 16, 8), {"ids": range(12)}, "bthd"),
        ((1, 12, 16, 8), {"mask": np.ones((1, 16))}, "bhtd"),
        ((12, 256, 32), {"heads": 12}, "htd"),
        ((1, 256, 384), {"heads": 12}, "bt(hd)"),
        ((300, 50), {}, "td"),
    ],
)
def test_a_layout_beyond_doubt_is_taken_and_said(shape, options, layout):
    loaded = heads.from_arrays(np.ones(shape), **options)
    assert loaded.metadata.layout == layout
    assert f"guessed: layout {layout}" in loaded.metadata.notes


@pytest.mark.parametrize("shape", [(1, 20, 3, 2, 4), (1, 12, 3, 256, 32), (20, 3, 2, 4)])
def test_an_open_layout_of_packed_arrays_is_asked_for(shape):
    with pytest.raises(ValueError, match="could be .*: say layout="):
        heads.from_arrays(qkv=np.ones(shape))


def test_heads_that_share_an_axis_are_asked_for():
    with pytest.raises(ValueError, match=r"layout 'bt\(hd\)' does not fit .*: say heads="):
        heads.from_arrays(np.ones((1, 256, 384)), layout="bt(hd)")


def test_grouped_heads_tell_which_axis_they_are(rng):
    keys, queries = np.ones((1, 3, 20, 8)), np.ones((1, 9, 20, 8))
    assert heads.from_arrays(keys, queries).metadata.layout == "bhtd"


@pytest.mark.parametrize("layout", ["bhtx", "bhhd", "bhd", "b(ht)d)", ""])
def test_a_layout_that_spells_no_axes_is_refused(layout):
    with pytest.raises(ValueError, match="layout must spell the axes"):
        parse(layout)


def test_a_layout_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"layout 'bhtd' does not fit the shapes \{'keys': \(4, 5, 6\)\}"):
        heads.from_arrays(np.ones((4, 5, 6)), layout="bhtd")


# names


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("model.layers.3.self_attn.k_proj", Place("keys", 3)),
        ("past_key_values.10.value", Place("values", 10)),
        ("layer1_head0.keys", Place("keys", 1, 0)),
        ("L2H11_q", Place("queries", 2, 11)),
        ("h.4.attn.qkv", Place("qkv", 4)),
        ("blocks.0.attn.out", Place("output", 0)),
        ("K", Place("keys")),
        ("encoder.layer.5.attention.self.query", Place("queries", 5)),
        ("attention_mask", Place("mask")),
        ("keyboard", None),
        ("layers.0.k_proj.weight", None),
    ],
)
def test_names_are_guessed_by_their_words(name, place):
    assert guess(name) == place


def test_what_was_guessed_is_said(tmp_path):
    np.savez(tmp_path / "a.npz", k_proj=np.ones((5, 2)), other=np.ones(3))
    assert "guessed: keys from 'k_proj'" in str(heads.load(tmp_path / "a.npz"))


def test_names_can_be_told(tmp_path):
    np.savez(tmp_path / "a.npz", **{f"x/{i}/first": np.full((5, 2), i) * 1.0 for i in (2, 10)})
    loaded = heads.load(tmp_path / "a.npz", names={"keys": "x/{layer}/first"})
    assert loaded.layers == (2, 10)
    assert (loaded.layer(10).keys == 10).all()
    assert not any("keys from" in note for note in loaded.metadata.notes)


@pytest.mark.parametrize(
    ("held", "message"),
    [
        (["a", "b"], "no array is known as keys among 'a', 'b': say which is which"),
        (["layers.0.k_proj.weight"], "are weights, not keys and values"),
        (["key", "k"], "'key' and 'k' could both be the keys"),
        (["a.3.b.4.k"], "which number in 'a.3.b.4.k' is the layer is open"),
    ],
)
def test_names_that_say_too_little_are_refused(held, message):
    with pytest.raises(ValueError, match=message):
        places(held)


def test_told_names_that_fit_nothing_are_refused():
    with pytest.raises(ValueError, match=r"names\.keys 'q\{layer\}' fits no array, there are 'k0'"):
        places(["k0"], {"keys": "q{layer}"})
    with pytest.raises(ValueError, match="names 'key' does not exist. Did you mean 'keys'"):
        places(["k0"], {"key": "k0"})
