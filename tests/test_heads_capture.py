"""Capturing heads of PyTorch models: what attention really used, confirmed by its own output."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from capmem import heads  # noqa: E402
from capmem.heads.confirming import CYCLES, Variant, reproduction_error  # noqa: E402
from capmem.heads.modules import sites  # noqa: E402

ERROR_LIMIT, CONTROL_LIMIT = 1e-6, 0.1
LENGTH = 24


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(7)


def attention(**options):
    """Return PyTorch's module with scores of order 1: at its own scale all weights would be nearly equal."""
    return sharpened(torch.nn.MultiheadAttention(16, 4, **options))


def sharpened(model):
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if any(part in name for part in ("q_proj", "k_proj", "in_proj_weight")):
                weight.mul_(2)
    return model.eval()


def llama(implementation="eager", **options):
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 3, "intermediate_size": 32}
    config = transformers.LlamaConfig(vocab_size=50, num_hidden_layers=2, **sizes, initializer_range=0.2, **options)
    return transformers.LlamaModel._from_config(config, attn_implementation=implementation).eval()


def bert(implementation="eager"):
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 32, "num_hidden_layers": 2}
    config = transformers.BertConfig(vocab_size=50, **sizes, initializer_range=0.2)
    return transformers.BertModel._from_config(config, attn_implementation=implementation).eval()


def ids(batch=1):
    return torch.randint(0, 50, (batch, LENGTH))


def run(model, layers=None, **inputs):
    with torch.inference_mode(), heads.capture(model, layers) as captured:
        model(**inputs)
    return captured


def hooks_of(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


# Hugging Face


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_a_causal_model_with_grouped_heads_and_rotation_is_reproduced(implementation):
    loaded = run(llama(implementation), input_ids=ids()).heads()
    held = loaded.metadata
    assert held.error < ERROR_LIMIT
    assert (held.causal, held.rotary, held.scale) == (True, "after", 8**-0.5)
    assert loaded.layers == (0, 1)
    layer = loaded.layer(1)
    assert (layer.keys.shape, layer.queries.shape) == ((3, LENGTH, 8), (6, LENGTH, 8))
    right = Variant(8**-0.5, True)
    for wrong in (right._replace(scale=1.0), right._replace(causal=False), right._replace(grouping=CYCLES)):
        assert reproduction_error(layer, wrong) > CONTROL_LIMIT


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_a_bidirectional_model_is_reproduced(implementation):
    loaded = run(bert(implementation), input_ids=ids()).heads()
    held = loaded.metadata
    assert held.error < ERROR_LIMIT
    assert (held.causal, held.rotary) == (False, "none")
    assert reproduction_error(loaded.layer(0), Variant(1.0, False)) > CONTROL_LIMIT


def test_a_wrong_scale_is_refused():
    captured = run(llama(), input_ids=ids())
    with pytest.raises(ValueError, match="contradicts scale=1.0"):
        captured.heads(scale=1.0)


def test_rolled_heads_are_refused():
    captured = run(llama(), input_ids=ids())
    for site in captured.sites.values():
        site.taken["rotated_keys"] = site.taken["rotated_keys"].roll(1, dims=1)
    with pytest.raises(ValueError, match="no variant reproduces"):
        captured.heads()


def test_keys_come_before_and_after_the_rotation():
    model = llama()
    captured = run(model, input_ids=ids())
    after, before = captured.heads(), captured.heads(rotary="before")
    assert before.metadata.rotary == "before" and before.metadata.causal is True
    assert before.layer(0).output is None
    q, k = (torch.tensor(getattr(before.layer(1), part))[None] for part in ("queries", "keys"))
    cos, sin = model.rotary_emb(k, torch.arange(LENGTH)[None])
    module = __import__(type(model).__module__, fromlist=["apply_rotary_pos_emb"])
    rotated = module.apply_rotary_pos_emb(q, k, cos, sin)
    for made, part in zip(rotated, ("queries", "keys"), strict=True):
        np.testing.assert_allclose(made[0].numpy(), getattr(after.layer(1), part), atol=1e-6)
    np.testing.assert_array_equal(before.layer(1).keys[:, 0], after.layer(1).keys[:, 0])  # position 0
    assert np.abs(before.layer(1).keys - after.layer(1).keys).max() > 0.1


def test_keys_before_the_rotation_do_not_reproduce_the_output():
    captured = run(llama(), input_ids=ids())
    for site in captured.sites.values():
        del site.taken["rotated_keys"], site.taken["rotated_queries"]
    with pytest.raises(ValueError, match="no variant reproduces"):
        captured.heads()


def test_what_is_captured_is_what_the_layer_saw():
    model, tokens = bert(), ids()
    captured = run(model, input_ids=tokens).heads()
    with torch.inference_mode():
        embedded = model.embeddings(tokens)
        keys = model.encoder.layer[0].attention.self.key(embedded)[0]
    np.testing.assert_array_equal(captured.layer(0).keys[2], keys[:, 16:24].numpy())


def test_padding_is_dropped_and_one_sequence_of_a_batch_is_taken():
    model, tokens, mask = llama(), ids(2), torch.ones(2, LENGTH, dtype=torch.long)
    mask[1, -5:] = 0
    captured = run(model, input_ids=tokens, attention_mask=mask)
    with pytest.raises(ValueError, match="2 sequences"):
        captured.heads()
    loaded = captured.heads(sequence=1)
    assert loaded.metadata.error < ERROR_LIMIT
    assert loaded.metadata.ids == tuple(tokens[1, :-5].tolist())
    alone = run(model, input_ids=tokens[1:, :-5]).heads()
    np.testing.assert_allclose(loaded.layer(1).keys, alone.layer(1).keys, atol=1e-5)


def test_some_layers_are_captured(tmp_path):
    loaded = run(bert(), [1], input_ids=ids()).heads(licence="none")
    assert loaded.layers == (1,)
    loaded.save(tmp_path / "a.safetensors")
    assert heads.load(tmp_path / "a.safetensors").metadata == loaded.metadata
    with pytest.raises(ValueError, match="layer 5 does not exist"):
        heads.capture(bert(), [5])


def test_the_numbers_of_a_bfloat16_model_are_widened_exactly():
    model = llama().to(torch.bfloat16)
    captured = run(model, input_ids=ids())
    loaded = captured.heads()
    assert loaded.metadata.dtype == "bfloat16"
    raw = captured.sites[0].taken["values"][0]
    np.testing.assert_array_equal(
        loaded.layer(0).values.view(np.uint32) >> 16, raw.view(torch.int16).numpy().view("u2")
    )
    assert not (loaded.layer(0).values.view(np.uint32) & 0xFFFF).any()


def test_the_outputs_of_the_model_are_the_same_with_and_without_capture():
    model, tokens = llama(), ids()
    with torch.inference_mode():
        plain = model(input_ids=tokens).last_hidden_state
        with heads.capture(model):
            heard = model(input_ids=tokens).last_hidden_state
    assert torch.equal(plain, heard)


# nn.MultiheadAttention


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 16, "vdim": 16}])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
def test_multihead_attention_is_reproduced(batch_first, need_weights, options, mode):
    module = attention(batch_first=batch_first, **options)
    x = torch.randn(3, LENGTH, 16)
    with mode(), heads.capture(module) as captured:
        given = x if batch_first else x.transpose(0, 1)
        result, _ = module(given, given, given, need_weights=need_weights)
    loaded = captured.heads(sequence=2)
    assert loaded.metadata.error < ERROR_LIMIT
    assert (loaded.metadata.scale, loaded.metadata.causal) == (0.5, False)
    layer = loaded.layer(0)
    assert reproduction_error(layer, Variant(1.0, False)) > CONTROL_LIMIT
    flat = torch.tensor(layer.output).transpose(0, 1).flatten(1)
    expected = result[2] if batch_first else result[:, 2]
    np.testing.assert_allclose(module.out_proj(flat).detach(), expected.detach(), atol=1e-5)


def test_a_causal_transformer_encoder_is_reproduced():
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    model = sharpened(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
    mask = torch.nn.Transformer.generate_square_subsequent_mask(LENGTH)
    with torch.inference_mode(), heads.capture(model) as captured:
        model(torch.randn(1, LENGTH, 16), mask=mask, is_causal=True)
    loaded = captured.heads()
    assert loaded.layers == (0, 1)
    assert loaded.metadata.causal is True and loaded.metadata.error < ERROR_LIMIT


def test_a_layer_without_a_batch_is_captured():
    module = attention()
    x = torch.randn(LENGTH, 16)
    with heads.capture(module) as captured:
        module(x, x, x)
    assert captured.heads().metadata.error < ERROR_LIMIT


def test_keys_of_no_token_are_refused():
    module = torch.nn.MultiheadAttention(16, 4, add_bias_kv=True)
    x = torch.randn(LENGTH, 1, 16)
    with pytest.raises(ValueError, match="keys of no token"), heads.capture(module):
        module(x, x, x)
    assert hooks_of(module) == 0


# hooks


@pytest.mark.parametrize("make", [llama, bert])
def test_hooks_are_removed_after_use_and_after_errors(make):
    model = make()
    module = __import__(type(model).__module__, fromlist=["x"])
    rotation = getattr(module, "apply_rotary_pos_emb", None)
    before = hooks_of(model)
    run(model, input_ids=ids())
    assert hooks_of(model) == before
    failing = sites(model)[1].module
    failing.forward = lambda *args, **kwargs: 1 / 0
    with pytest.raises(ZeroDivisionError), heads.capture(model):
        model(input_ids=ids())
    assert hooks_of(model) == before
    assert getattr(module, "apply_rotary_pos_emb", None) is rotation


def test_the_fast_path_is_given_back_after_errors():
    module = torch.nn.MultiheadAttention(16, 4)
    enabled = torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(RuntimeError), heads.capture(module):
        module(*[torch.randn(3, 1, 5)] * 3)
    assert torch.backends.mha.get_fastpath_enabled() is enabled
    assert hooks_of(module) == 0
    assert torch.overrides._get_current_function_mode_stack() == []


@pytest.mark.parametrize("runs", [0, 2])
def test_a_model_has_to_run_once(runs):
    model = bert()
    with heads.capture(model) as captured:
        for _ in range(runs):
            model(input_ids=ids())
    with pytest.raises(ValueError, match=f"ran {runs} times"):
        captured.heads()


def test_a_capture_can_be_used_again():
    model = bert()
    captured = heads.capture(model)
    for tokens in (ids(), ids()):
        with captured:
            model(input_ids=tokens)
    assert captured.heads().metadata.ids == tuple(tokens[0].tolist())


def test_a_model_without_attention_is_refused():
    with pytest.raises(ValueError, match="Linear has no attention layer of a known kind"):
        heads.capture(torch.nn.Linear(2, 2))


# files of PyTorch


def test_pt_files_are_read_and_nothing_is_unpickled(tmp_path):
    cache = [(torch.randn(1, 2, 300, 4), torch.randn(1, 2, 300, 4).to(torch.bfloat16)) for _ in range(2)]
    torch.save({"cache": cache}, tmp_path / "a.pt")
    loaded = heads.load(tmp_path / "a.pt", names={"keys": "cache.{layer}.0", "values": "cache.{layer}.1"})
    assert loaded.metadata.dtype == "bfloat16, float32"
    np.testing.assert_array_equal(loaded.layer(1).values, cache[1][1][0].float().numpy())
    torch.save({"keys": print}, tmp_path / "b.pt")
    with pytest.raises(ValueError, match="nothing is ever unpickled"):
        heads.load(tmp_path / "b.pt")


def test_safetensors_are_read_as_their_own_package_writes_them(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    held = {"keys": torch.randn(3, 40, 8).to(torch.bfloat16), "queries": torch.randn(6, 40, 8).half()}
    safetensors.save_file(held, tmp_path / "a.safetensors", metadata={"format": "pt"})
    layer = heads.load(tmp_path / "a.safetensors", layout="htd").layer(0)
    for part, tensor in held.items():
        np.testing.assert_array_equal(getattr(layer, part), tensor.float().numpy())


def test_what_is_saved_is_read_by_that_package(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    keys = np.random.default_rng(0).standard_normal((2, 5, 3))
    heads.from_arrays(keys, layout="htd").save(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(safetensors.load_file(tmp_path / "a.safetensors")["layers.0.keys"], keys)


def test_tensors_at_hand_are_taken():
    keys = torch.randn(2, 5, 3, requires_grad=True)
    loaded = heads.from_arrays(keys.to(torch.bfloat16), layout="htd")
    assert loaded.metadata.dtype == "bfloat16"
    np.testing.assert_array_equal(loaded.layer(0).keys, keys.detach().to(torch.bfloat16).float().numpy())


def test_a_replay_takes_tensors():
    keys, queries, values = (torch.randn(2, 30, 4) for _ in range(3))
    keys = keys / keys.norm(dim=-1, keepdim=True)
    made = heads.replay(keys, values, queries)
    assert isinstance(made.state, torch.Tensor)
    plain = heads.replay(*(x.numpy() for x in (keys, values, queries)))
    errors = heads.compare(plain, made.state, made.outputs)
    assert errors.state < ERROR_LIMIT and errors.output < ERROR_LIMIT
