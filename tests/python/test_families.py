# SPDX-License-Identifier: Apache-2.0
"""Every family fuse() knows, in every dtype, against its own original module."""
import importlib
import warnings

import pytest
import torch
from conftest import DTYPES, check_family
from torch import nn

import ingot

DIM, HIDDEN = 64, 160


def rows(dtype, *leading):
    return torch.randn(*(leading or (3, 29)), DIM, dtype=dtype)


ACTIVATIONS = {"relu": nn.ReLU(), "gelu_erf": nn.GELU(), "gelu_tanh": nn.GELU(approximate="tanh"), "silu": nn.SiLU(),
               "identity": nn.Identity()}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_sequential(dtype, activation):
    module = nn.Sequential(nn.Linear(DIM, HIDDEN), ACTIVATIONS[activation], nn.Linear(HIDDEN, DIM)).to(dtype)
    report = check_family(module, rows(dtype))
    assert [f.what for f in report.fused] == [f"64 -> 160 {activation}, bias, {str(dtype)[6:]}"] and not report.left


def test_sequential_with_dropouts_and_one_bias():
    module = nn.Sequential(nn.Linear(DIM, HIDDEN, bias=False), nn.GELU(), nn.Dropout(0.1), nn.Linear(HIDDEN, DIM),
                           nn.Dropout(0.1))
    check_family(module, rows(torch.float32))


@pytest.mark.parametrize("modules", [
    [nn.Linear(DIM, HIDDEN), nn.ReLU()],
    [nn.Linear(DIM, HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, DIM)],
    [nn.Conv2d(3, 8, 1), nn.ReLU(), nn.Conv2d(8, 3, 1)],
    [nn.Linear(DIM, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, DIM), nn.ReLU(), nn.Linear(DIM, DIM)],
])
def test_sequentials_that_are_no_mlp(modules):
    report = ingot.fuse(nn.Sequential(*modules))
    assert not report.fused and not report.left


@pytest.mark.parametrize("modules, why", [
    ([nn.Linear(DIM, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, DIM)], "Tanh is no activation Ingot has"),
    ([nn.Linear(DIM, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 7)], "64 -> 160 -> 7: Ingot's MLPs end as wide as they begin"),
    ([nn.Bilinear(DIM, 1, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, DIM)], None),
])
def test_sequentials_that_are_left(modules, why):
    report = ingot.fuse(nn.Sequential(*modules))
    assert not report.fused
    assert [m.why.rpartition(".")[2] if why and "Tanh" in why else m.why for m in report.left] == ([] if why is None else [why])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activation", ["gelu", "gelu-approximate", "geglu", "geglu-approximate", "swiglu", "linear-silu"])
def test_diffusers_feed_forward(dtype, activation):
    from diffusers.models.attention import FeedForward

    for bias in (True, False):
        module = FeedForward(DIM, inner_dim=HIDDEN, activation_fn=activation, bias=bias, final_dropout=bias).to(dtype)
        check_family(module, rows(dtype))
        check_family(module, rows(dtype), call=lambda module, x: module(hidden_states=x))


def test_diffusers_feed_forward_that_changes_the_width_is_left():
    from diffusers.models.attention import FeedForward

    report = ingot.fuse(FeedForward(DIM, dim_out=32))
    assert not report.fused and "end as wide as they begin" in report.left[0].why


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("path, build", [
    ("transformers.transformer_flux2.Flux2FeedForward", lambda kind: kind(DIM, DIM, mult=2.5)),
    ("transformers.auraflow_transformer_2d.AuraFlowFeedForward", lambda kind: kind(DIM, HIDDEN)),
    ("attention.LuminaFeedForward", lambda kind: kind(DIM, HIDDEN)),
])
def test_other_feed_forwards_of_diffusers(dtype, path, build):
    module, _, name = path.rpartition(".")
    kind = getattr(importlib.import_module(f"diffusers.models.{module}"), name)
    check_family(build(kind).to(dtype), rows(dtype))


def config(kind, **more):
    """A configuration with small widths under all the names libraries have for them."""
    made = kind()
    for name, value in {"hidden_size": DIM, "d_model": DIM, "intermediate_size": HIDDEN, "d_ff": HIDDEN, "ffn_dim": HIDDEN,
                        "dropout_rate": 0.1, "hidden_dropout_prob": 0.1, **more}.items():
        setattr(made, name, value)
    return made


# Model, class, what its configuration has beside the widths.
GATED = [("llama", "LlamaMLP", {}), ("llama", "LlamaMLP", {"mlp_bias": True}), ("qwen2", "Qwen2MLP", {}), ("qwen3", "Qwen3MLP", {}),
         ("mistral", "MistralMLP", {}), ("gemma", "GemmaMLP", {}), ("gemma2", "Gemma2MLP", {}), ("phi3", "Phi3MLP", {}),
         ("t5", "T5DenseGatedActDense", {"dense_act_fn": "gelu_new"}), ("umt5", "UMT5DenseGatedActDense", {"dense_act_fn": "gelu_new"}),
         ("modernbert", "ModernBertMLP", {})]
PLAIN = [("clip", "CLIPMLP", {"hidden_act": "quick_gelu"}), ("clip", "CLIPMLP", {"hidden_act": "gelu"}),
         ("siglip", "SiglipMLP", {}), ("vit", "ViTMLP", {}), ("t5", "T5DenseActDense", {"dense_act_fn": "relu"}),
         ("umt5", "UMT5DenseActDense", {"dense_act_fn": "relu"}), ("gpt_neox", "GPTNeoXMLP", {})]
CONFIGS = {"clip": "CLIPVisionConfig", "siglip": "SiglipVisionConfig", "gpt_neox": "GPTNeoXConfig", "modernbert": "ModernBertConfig",
           "umt5": "UMT5Config", "vit": "ViTConfig"}


def transformers_module(model, name, more):
    folder = f"transformers.models.{model}"
    module = importlib.import_module(f"{folder}.modeling_{model}")
    configurations = importlib.import_module(f"{folder}.configuration_{model}")
    kind = getattr(configurations, CONFIGS.get(model, f"{model.capitalize()}Config"))
    return getattr(module, name)(config(kind, **more))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("model, name, more", GATED + PLAIN)
def test_transformers(dtype, model, name, more):
    module = transformers_module(model, name, more).to(dtype)
    report = check_family(module, rows(dtype))
    assert ("gated" in report.fused[0].what) == ((model, name, more) in GATED)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("model, kind", [("bert", "Bert"), ("roberta", "Roberta"), ("electra", "Electra")])
def test_bert_and_kin(dtype, model, kind):
    layers = importlib.import_module(f"transformers.models.{model}.modeling_{model}")
    configuration = getattr(importlib.import_module(f"transformers.models.{model}.configuration_{model}"), f"{kind}Config")
    made = configuration(hidden_size=DIM, intermediate_size=HIDDEN, num_attention_heads=4)
    made._attn_implementation = "eager"
    layer = getattr(layers, f"{kind}Layer")(made).to(dtype)
    check_family(layer, rows(dtype), call=lambda layer, x: layer.feed_forward_chunk(x))
    check_family(layer, rows(dtype), call=lambda layer, x: layer(x)[0] if isinstance(layer(x), tuple) else layer(x), count=2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", nn.SiLU()])
def test_encoder_layer(dtype, norm_first, activation):
    layer = nn.TransformerEncoderLayer(DIM, 4, HIDDEN, activation=activation, batch_first=True, norm_first=norm_first)
    layer = layer.to(dtype).eval()
    before = layer.activation_relu_or_gelu
    with torch.no_grad():
        # The layer's own path in C++ rounds elsewhere; the comparison is with its operators.
        layer.activation_relu_or_gelu = 0
        check_family(layer, rows(dtype))
        layer.activation_relu_or_gelu = before
        ingot.fuse(layer)
        assert layer.activation_relu_or_gelu == 0
        ingot.unfuse(layer)
    assert layer.activation_relu_or_gelu == before and "_ff_block" not in layer.__dict__


def test_whole_encoder_and_its_copies():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(DIM, 4, HIDDEN, batch_first=True), 3, enable_nested_tensor=False)
    for layer in encoder.layers:
        layer.activation_relu_or_gelu = 0
    check_family(encoder, rows(torch.float32), count=3)


def test_a_forward_with_another_step_is_not_taken():
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_proj, self.up_proj = nn.Linear(DIM, HIDDEN), nn.Linear(DIM, HIDDEN)
            self.down_proj, self.act_fn = nn.Linear(HIDDEN, DIM), nn.SiLU()

        def forward(self, x):
            return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x)) * 2

    report = ingot.fuse(Other())
    assert not report.fused and not report.left


def test_gate_and_up_in_the_other_order():
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(DIM, HIDDEN), nn.Linear(DIM, HIDDEN)
            self.last, self.act = nn.Linear(HIDDEN, DIM), nn.SiLU()

        def forward(self, x):
            return self.last(self.act(self.second(x)) * self.first(x))

    check_family(Other(), rows(torch.float32))


def test_registered_class():
    class Mine(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.narrow = nn.Linear(DIM, HIDDEN), nn.Linear(HIDDEN, DIM)

        def forward(self, x):
            h = self.wide(x)
            h = h * torch.sigmoid(h)
            return self.narrow(h)

    assert not ingot.fuse(Mine()).fused
    ingot.register(Mine, lambda module: ingot.Parts(module.wide, module.narrow, "silu"))
    check_family(Mine(), rows(torch.float32))
    with pytest.raises(TypeError, match="kind"):
        ingot.register(Mine(), lambda module: "")


@pytest.mark.parametrize("name, kwargs, inputs", [
    ("WanTransformer3DModel",
     dict(patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=4, text_dim=32, freq_dim=32,
          ffn_dim=96, num_layers=2, rope_max_seq_len=32),
     dict(hidden_states=(1, 4, 2, 8, 8), encoder_hidden_states=(1, 6, 32))),
    ("LTXVideoTransformer3DModel",
     dict(in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=16, cross_attention_dim=32, num_layers=2,
          caption_channels=16),
     dict(hidden_states=(1, 32, 4), encoder_hidden_states=(1, 6, 16))),
])
def test_whole_models_of_diffusers(name, kwargs, inputs):
    import diffusers

    model = getattr(diffusers, name)(**kwargs).eval()
    tensors = {key: torch.randn(shape) for key, shape in inputs.items()}
    if name.startswith("LTX"):
        tensors |= dict(timestep=torch.tensor([3]), encoder_attention_mask=torch.ones(1, 6), num_frames=2, height=4, width=4)
    else:
        tensors |= dict(timestep=torch.tensor([3]))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        before = model(**tensors, return_dict=False)[0]
        report = ingot.fuse(model)
        after = model(**tensors, return_dict=False)[0]
    assert sum(".ffn" in f.name or ".ff" in f.name for f in report.fused) == 2
    assert torch.allclose(before, after, atol=1e-4) and before.abs().mean() > 1e-3


def test_single_blocks_are_left_with_the_reason():
    import diffusers

    model = diffusers.FluxTransformer2DModel(in_channels=4, num_layers=1, num_single_layers=2, attention_head_dim=16,
                                             num_attention_heads=2, joint_attention_dim=32, pooled_projection_dim=32,
                                             axes_dims_rope=(4, 4, 8))
    report = ingot.fuse(model)
    assert sorted(f.name for f in report.fused if f.name.startswith("transformer_blocks")) == [
        "transformer_blocks.0.ff", "transformer_blocks.0.ff_context"]
    assert {m.why for m in report.left if m.name.startswith("single")} == {"its proj_out reads attention and MLP as one tensor"}
