"""Heads are confirmed by the layer's own output: the right reading reproduces it, and every wrong one is refused."""

import numpy as np
import pytest

from capmem import heads
from capmem.attention import softmax_attention
from capmem.heads.confirming import BLOCKS, CYCLES, Variant, reproduction_error

TOKENS, DIM = 40, 8


@pytest.fixture
def layer(rng):
    """Queries of 6 heads, keys and values of 2, and the causal output, in float64."""
    keys, values = rng.standard_normal((2, 2, TOKENS, DIM))
    queries = rng.standard_normal((6, TOKENS, DIM))
    output = softmax_attention(queries, keys, values, causal=True)
    return {"keys": keys, "queries": queries, "values": values, "output": output}


def laid_out(layer, letters):
    """Return the parts with the axes (h, t, d) in another order, and a batch axis where `letters` have one."""
    return {
        part: np.transpose(
            x[None] if "b" in letters else x, [("bhtd" if "b" in letters else "htd").index(c) for c in letters]
        )
        for part, x in layer.items()
    }


def test_the_output_confirms_scale_mask_and_grouping(layer):
    found = heads.from_arrays(**layer, layout="htd").metadata
    assert (found.scale, found.causal) == (DIM**-0.5, True)
    assert found.error < 1e-14
    assert any(note.startswith("confirmed, error") for note in found.notes)


@pytest.mark.parametrize("letters", ["bhtd", "bthd", "htd", "thd"])
def test_the_output_tells_the_layout(layer, letters):
    loaded = heads.from_arrays(**laid_out(layer, letters))
    assert loaded.metadata.layout == letters
    np.testing.assert_array_equal(loaded.layer(0).keys, layer["keys"])


def test_the_output_tells_the_layout_where_the_shapes_cannot(rng):
    queries, keys, values = rng.standard_normal((3, 10, 10, 4))
    output = softmax_attention(queries, keys, values)
    swapped = [np.swapaxes(x, 0, 1) for x in (keys, queries, values, output)]
    for arrays, layout in (((keys, queries, values, output), "htd"), (swapped, "thd")):
        loaded = heads.from_arrays(*arrays)
        assert loaded.metadata.layout == layout
        np.testing.assert_array_equal(loaded.layer(0).keys, keys)


def test_the_output_may_have_axes_of_its_own(layer):
    layer["output"] = np.moveaxis(layer["output"], 0, 1).reshape(1, TOKENS, 6 * DIM)
    layer |= {part: layer[part][None] for part in ("keys", "queries", "values")}
    loaded = heads.from_arrays(**layer)
    assert loaded.metadata.layout == "bhtd (output bt(hd))"
    assert loaded.metadata.error < 1e-14


def test_a_layout_with_several_sequences_is_no_rival_of_one_without(rng):
    queries, keys, values = rng.standard_normal((3, 4, 20, 8))
    output = softmax_attention(queries, keys, values)
    assert heads.from_arrays(keys, queries, values, output, heads=4).metadata.layout == "htd"  # or bt(hd), 4 sequences


def test_an_output_that_is_not_confirmed_is_said(layer):
    for options in ({"confirm": False}, {"rotary": "before"}):
        loaded = heads.from_arrays(**layer, layout="htd", **options)
        assert any("the output is not confirmed" in note for note in loaded.metadata.notes)
        assert loaded.metadata.error is None


def test_a_scale_left_out_is_refused(layer):
    with pytest.raises(ValueError, match=r"contradicts scale=1\.0.*scale 0\.3536, causal.*error"):
        heads.from_arrays(**layer, layout="htd", scale=1.0)


def test_a_wrong_mask_is_refused(layer):
    with pytest.raises(ValueError, match="contradicts causal=False"):
        heads.from_arrays(**layer, layout="htd", causal=False)


def test_rolled_heads_are_refused(layer):
    layer["keys"] = np.roll(layer["keys"], 1, axis=0)
    with pytest.raises(ValueError, match="no variant reproduces its output .* Tried, best first: .*error"):
        heads.from_arrays(**layer, layout="htd")


def test_a_wrong_layout_is_refused(rng):
    queries, keys, values = rng.standard_normal((3, 10, 10, 4))
    with pytest.raises(ValueError, match="no variant"):
        heads.from_arrays(keys, queries, values, softmax_attention(queries, keys, values), layout="thd")


def test_wrong_variants_are_far_from_the_right_one(layer):
    held = heads.from_arrays(**layer, layout="htd").layer(0)
    assert reproduction_error(held, Variant(DIM**-0.5, True)) < 1e-14
    for wrong in (Variant(1.0, True), Variant(DIM**-0.5, False), Variant(DIM**-0.5, True, CYCLES)):
        assert reproduction_error(held, wrong) > 0.1


def test_the_error_is_the_relative_frobenius_one(layer):
    layer["output"] = layer["output"] * 1.001
    loaded = heads.from_arrays(**layer, layout="htd", tolerance=0.01)
    assert loaded.metadata.error == pytest.approx(0.001 / 1.001, rel=1e-9)
    with pytest.raises(ValueError, match="no variant"):
        heads.from_arrays(**layer, layout="htd")


def test_heads_grouped_in_cycles_are_put_in_order(layer):
    order = [0, 2, 4, 1, 3, 5]  # query head i of this model was number order[i], and used key head i % 2
    cycled = layer | {part: layer[part][[0, 3, 1, 4, 2, 5]] for part in ("queries", "output")}
    loaded = heads.from_arrays(**cycled, layout="htd")
    held = loaded.layer(0)
    assert held.query_heads == tuple(order)
    np.testing.assert_array_equal(held.queries, layer["queries"])
    assert reproduction_error(held, Variant(DIM**-0.5, True, BLOCKS)) < 1e-14
    for head in loaded.each():
        assert head.key_head == head.head % 2
        np.testing.assert_array_equal(head.queries, cycled["queries"][head.head])


def test_every_layer_is_confirmed_not_the_first_alone(layer):
    wrong = layer["output"] + 0.1
    two = {part: {0: x, 7: x} for part, x in layer.items()}
    assert heads.from_arrays(**two, layout="htd").metadata.error < 1e-14
    with pytest.raises(ValueError, match="not that of 7"):
        heads.from_arrays(**two | {"output": {0: layer["output"], 7: wrong}}, layout="htd")


def test_what_the_output_cannot_tell_apart_is_said(rng):
    one = rng.standard_normal((2, 1, 4))
    notes = heads.from_arrays(one, one, one, one, layout="htd").metadata.notes
    assert any("does not rule out" in note and ", causal" in note for note in notes)


def test_the_best_variant_is_taken_where_a_loose_tolerance_lets_several_pass(rng):
    queries, keys = 0.1 * rng.standard_normal((2, 30, 4)), rng.standard_normal((2, 30, 4))
    values = 1 + 0.05 * rng.standard_normal((2, 30, 4))
    output = softmax_attention(queries, keys, values, beta=1.0)
    found = heads.from_arrays(keys, queries, values, output, layout="htd", tolerance=0.1).metadata
    assert (found.scale, found.causal) == (1.0, False)


def test_rows_beyond_a_block_are_masked_rightly(rng):
    queries, keys, values = rng.standard_normal((3, 1, 1100, 4))
    output = softmax_attention(queries, keys, values, causal=True)
    assert heads.from_arrays(keys, queries, values, output, layout="htd").metadata.error < 1e-13
