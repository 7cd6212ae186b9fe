# SPDX-License-Identifier: Apache-2.0
"""torch.compile around the operator and around fused models."""
import copy

import pytest
import torch
from conftest import counted, make_weights
from diffusers.models.attention import FeedForward
from torch import nn

import ingot

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def graphs():
    """A backend that runs what it gets and keeps it."""
    kept = []

    def backend(graph, inputs):
        kept.append(graph)
        return graph.forward

    return kept, backend


def operators(graph):
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck(gated, dtype):
    weights = make_weights(16, 24, dtype, gated)
    for x in (torch.randn(2, 3, 16, dtype=dtype), torch.randn(3, 32, dtype=dtype)[:, :16], torch.randn(0, 16, dtype=dtype)):
        torch.library.opcheck(torch.ops.ingot.mlp.default,
                              (x, weights["up"], weights["down"], weights["up_bias"], weights["down_bias"], weights["gate"],
                               weights["gate_bias"], "silu", "separate" if gated else "plain", "match"))


def test_function_in_one_graph():
    weights = make_weights(16, 24, torch.float32)
    kept, backend = graphs()
    call = torch.compile(lambda x: ingot.mlp(x, **weights) + 1, fullgraph=True, backend=backend)
    x = torch.randn(5, 16)
    assert torch.equal(call(x), ingot.mlp(x, **weights) + 1)
    assert [op for op in operators(kept[0]) if "ingot" in op] == ["ingot.mlp.default"]


@pytest.mark.parametrize("activation", ["gelu-approximate", "geglu"])
def test_fused_module_in_one_graph(activation):
    module = FeedForward(32, activation_fn=activation).eval()
    expected = copy.deepcopy(module)
    ingot.fuse(module)
    kept, backend = graphs()
    compiled = torch.compile(module, fullgraph=True, backend=backend)
    for tokens in (5, 6, 7, 900, 2):
        x = torch.randn(tokens, 32)
        assert torch.allclose(compiled(x), expected(x), atol=1e-5)
    assert [operators(graph) for graph in kept] == [["ingot.mlp.default"]] * len(kept)
    assert len(kept) <= 2  # one for the first number of tokens, one for all others


def test_a_fused_encoder_layer_in_one_graph():
    layer = nn.TransformerEncoderLayer(32, 2, 64, batch_first=True, activation=nn.functional.gelu).eval()
    x = torch.randn(2, 5, 32)
    expected = layer(x)
    ingot.fuse(layer)
    kept, backend = graphs()
    assert torch.allclose(torch.compile(layer, fullgraph=True, backend=backend)(x), expected, atol=1e-5)
    assert operators(kept[0]).count("ingot.mlp.default") == 1


def test_fusing_another_model_leaves_graphs_valid():
    module, x = FeedForward(32, activation_fn="swiglu").eval(), torch.randn(3, 32)
    ingot.fuse(module)
    kept, backend = graphs()
    compiled = torch.compile(module, fullgraph=True, backend=backend)
    compiled(x)
    ingot.fuse(FeedForward(16, activation_fn="geglu-approximate"))
    ingot.fuse(nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 8)))
    compiled(x)
    assert len(kept) == 1


def test_ahead_of_time_autograd():
    module = nn.Sequential(FeedForward(32).eval(), nn.LayerNorm(32))
    expected = copy.deepcopy(module)
    ingot.fuse(module)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for shape in ((4, 32), (2, 9, 32)):
        x = torch.randn(shape)
        assert torch.allclose(compiled(x), expected(x), atol=1e-5)


def test_an_adapter_in_a_compiled_model_is_seen():
    from peft import LoraConfig, inject_adapter_in_model

    module, x = FeedForward(32).eval(), torch.randn(3, 32)
    ingot.fuse(module)
    compiled = torch.compile(module, backend="eager")
    plain = compiled(x)
    inject_adapter_in_model(LoraConfig(r=2, target_modules=["net.2"], init_lora_weights=False), module)
    tuned = copy.deepcopy(module)
    ingot.unfuse(tuned)
    assert not torch.allclose(tuned(x), plain, atol=1e-4)
    assert torch.allclose(compiled(x), tuned(x), atol=1e-5)


def test_hot_swapped_adapters_need_no_new_graph():
    from peft import LoraConfig, inject_adapter_in_model

    module, x = nn.Sequential(FeedForward(32).eval(), FeedForward(32).eval()), torch.randn(3, 32)
    inject_adapter_in_model(LoraConfig(r=2, target_modules=["0.net.2"], init_lora_weights=False), module)
    assert len(ingot.fuse(module).fused) == 1
    kept, backend = graphs()
    compiled = torch.compile(module, fullgraph=True, backend=backend)
    compiled(x)
    for name, parameter in module.named_parameters():
        if "lora_B" in name:
            parameter.mul_(5)
    plain = copy.deepcopy(module)
    ingot.unfuse(plain)
    assert torch.allclose(compiled(x), plain(x), atol=1e-5)
    assert len(kept) == 1


def test_repeated_blocks():
    import diffusers

    model = diffusers.WanTransformer3DModel(patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=16, in_channels=4,
                                            out_channels=4, text_dim=32, freq_dim=32, ffn_dim=96, num_layers=3,
                                            rope_max_seq_len=32).eval()
    inputs = dict(hidden_states=torch.randn(1, 4, 2, 8, 8), encoder_hidden_states=torch.randn(1, 6, 32),
                  timestep=torch.tensor([3]), return_dict=False)
    expected = model(**inputs)[0]
    ingot.fuse(model)
    kept, backend = graphs()
    model.compile_repeated_blocks(fullgraph=True, backend=backend)
    assert torch.allclose(model(**inputs)[0], expected, atol=1e-4)
    assert len(kept) == 1 and "ingot.mlp.default" in operators(kept[0])


def test_eager_and_compiled_calls_of_one_module():
    module, x = FeedForward(32).eval(), torch.randn(3, 32)
    ingot.fuse(module)
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    with counted() as calls:
        assert torch.equal(compiled(x), module(x))
    assert calls
