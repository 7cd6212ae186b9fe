# SPDX-License-Identifier: Apache-2.0
"""What happens to models around a fused MLP: adapters, hooks, quantisation, copies, dtypes, threads."""
import copy
import io
import pickle
import threading
import warnings

import pytest
import torch
from conftest import counted
from diffusers.models.attention import FeedForward
from torch import nn

import ingot

DIM = 64


def feed_forward(activation="gelu-approximate"):
    return FeedForward(DIM, activation_fn=activation).eval()


@pytest.fixture
def fused():
    """A fused module, its unfused twin with the same weights, and an input."""
    module = feed_forward()
    twin = copy.deepcopy(module)
    assert len(ingot.fuse(module).fused) == 1
    with torch.no_grad():
        yield module, twin, torch.randn(3, 7, DIM)


def assert_runs(module, x, expected, times, exact=False):
    """The module's result, and how many of its MLPs ran through Ingot."""
    with counted() as calls, warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        value = module(x)
    assert len(calls) == times
    assert torch.equal(value, expected) if exact else torch.allclose(value, expected, atol=2e-2 if x.dtype != torch.float32 else 1e-5)


def test_state_dict_is_untouched(fused):
    module, twin, x = fused
    ours, theirs = module.state_dict(), twin.state_dict()
    assert list(ours) == list(theirs) and all(torch.equal(ours[k], theirs[k]) for k in ours)
    assert [n for n, _ in module.named_modules()] == [n for n, _ in twin.named_modules()]
    assert repr(module) == repr(twin) and type(module) is type(twin)


def test_no_weight_is_copied():
    module = feed_forward()
    before = {name: p.data_ptr() for name, p in module.named_parameters()}
    with torch.no_grad():
        ingot.fuse(module)
        module(torch.randn(2, DIM))
    assert {name: p.data_ptr() for name, p in module.named_parameters()} == before


def test_load_state_dict_after_fusing(fused):
    module, twin, x = fused
    other = feed_forward()
    module(x)
    module.load_state_dict(other.state_dict())
    assert_runs(module, x, other(x), 1)
    module.load_state_dict(twin.state_dict(), assign=True)
    assert_runs(module, x, twin(x), 1)


def test_deepcopy_runs_on_its_own_weights(fused):
    module, twin, x = fused
    duplicate = copy.deepcopy(module)
    for parameter in module.parameters():
        parameter.data.zero_()
    assert_runs(duplicate, x, twin(x), 1)
    assert duplicate.forward.__self__ is duplicate


@pytest.mark.parametrize("layer", [feed_forward, lambda: nn.TransformerEncoderLayer(DIM, 4, 128, batch_first=True).eval()])
def test_pickle_holds_the_original(layer):
    module = layer()
    x = torch.randn(2, 5, DIM)
    with torch.no_grad():
        expected = module(x)
        ingot.fuse(module)
        restored = pickle.loads(pickle.dumps(module))
        assert_runs(restored, x, expected, 0)
        assert len(ingot.fuse(restored).fused) == 1
        assert_runs(restored, x, expected, 1)
        ingot.unfuse(restored)
        assert_runs(restored, x, expected, 0, exact=not isinstance(module, nn.TransformerEncoderLayer))


def test_save_and_load(fused):
    module, twin, x = fused
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    assert_runs(torch.load(file, weights_only=False), x, twin(x), 0, exact=True)


def test_fusing_twice_and_unfusing(fused):
    module, twin, x = fused
    assert len(ingot.fuse(module, numerics="fast").fused) == 1
    with counted() as calls:
        module(x)
    assert calls[0][-1] == "fast"
    assert ingot.unfuse(module) == 1 and ingot.unfuse(module) == 0
    assert set(module.__dict__) == set(twin.__dict__)
    assert_runs(module, x, twin(x), 0, exact=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_to_dtype_after_fusing(fused, dtype):
    module, twin, x = fused
    module.to(dtype), twin.to(dtype)
    assert_runs(module, x.to(dtype), twin(x.to(dtype)), 1)


def test_dtypes_ingot_has_not(fused):
    module, twin, x = fused
    assert_runs(module.double(), x.double(), twin.double()(x.double()), 0, exact=True)


def test_input_of_another_dtype_fails_as_before(fused):
    module, twin, x = fused
    with pytest.raises(RuntimeError) as theirs:
        twin(x.half())
    with pytest.raises(RuntimeError) as ours:
        module(x.half())
    assert str(ours.value) == str(theirs.value)


def test_weights_on_the_meta_device(fused):
    module, twin, x = fused
    module.to("meta")
    assert module(x.to("meta")).device.type == "meta"
    module.to_empty(device="cpu").load_state_dict(twin.state_dict())
    assert_runs(module, x, twin(x), 1)


def test_gradients_take_the_original(fused):
    module, twin, x = fused
    with torch.enable_grad():
        assert_runs(module, x, twin(x), 0, exact=True)
        module(x).sum().backward()
        assert module.net[2].weight.grad is not None
        for parameter in module.parameters():
            parameter.requires_grad_(False)
        assert_runs(module, x, twin(x), 1)
        assert_runs(module, x.clone().requires_grad_(), twin(x), 0, exact=True)


def test_autocast_takes_the_original(fused):
    module, twin, x = fused
    with torch.autocast("cpu", torch.bfloat16):
        assert_runs(module, x, twin(x), 0, exact=True)


def test_inference_mode(fused):
    module, twin, x = fused
    with torch.inference_mode():
        assert_runs(module, x, twin(x), 1)


def test_active_dropout_takes_the_original():
    module = FeedForward(DIM, dropout=0.5)
    ingot.fuse(module)
    x = torch.randn(4, DIM)
    with torch.no_grad(), counted() as calls:
        module.train()(x)
        assert not calls
        module.eval()(x)
        assert len(calls) == 1


def test_extra_arguments_take_the_original(fused):
    module, twin, x = fused
    with counted() as calls:
        assert torch.equal(module(x, scale=None), twin(x, scale=None))
    assert not calls


@pytest.mark.parametrize("where", ["net.0", "net.0.proj", "net.1", "net.2"])
@pytest.mark.parametrize("kind", ["register_forward_hook", "register_forward_pre_hook"])
def test_hooks_inside_run(fused, where, kind):
    module, twin, x = fused
    seen = []
    handle = getattr(module.get_submodule(where), kind)(lambda *arguments: seen.append(1))
    assert_runs(module, x, twin(x), 0, exact=True)
    assert seen == [1]
    handle.remove()
    assert_runs(module, x, twin(x), 1)


def test_hooks_on_the_module_itself(fused):
    module, twin, x = fused
    module.register_forward_hook(lambda module, inputs, output: output + 1)
    assert_runs(module, x, twin(x) + 1, 1)


@pytest.mark.parametrize("where", ["", "net.0", "net.0.proj", "net.2"])
def test_forward_overwritten_after_fusing(fused, where):
    module, twin, x = fused
    target = module.get_submodule(where)
    original = target.forward
    target.forward = lambda *a, **k: original(*a, **k) + 1
    reference = twin.get_submodule(where)
    theirs = reference.forward
    reference.forward = lambda *a, **k: theirs(*a, **k) + 1
    assert_runs(module, x, twin(x), 1 if where == "" else 0)
    ingot.unfuse(module)
    assert_runs(module, x, twin(x), 0, exact=True)


def test_forward_overwritten_before_fusing():
    module = feed_forward()
    module.forward = lambda x: x + 5
    report = ingot.fuse(module)
    assert not report.fused and report.left[0].why == "its forward was replaced before"
    x = torch.randn(2, DIM)
    assert torch.equal(module(x), x + 5)
    assert ingot.unfuse(module) == 0 and torch.equal(module(x), x + 5)


def test_weights_replaced(fused):
    module, twin, x = fused
    module.net[2] = nn.Linear(4 * DIM, 32)
    twin.net[2] = copy.deepcopy(module.net[2])
    assert_runs(module, x, twin(x), 0, exact=True)
    module.net[2] = nn.Linear(4 * DIM, DIM)
    twin.net[2] = copy.deepcopy(module.net[2])
    assert_runs(module, x, twin(x), 1)


def test_parametrised_weights(fused):
    module, twin, x = fused
    for each in (module, twin):
        nn.utils.parametrizations.weight_norm(each.net[2])
    assert_runs(module, x, twin(x), 0, exact=True)
    assert "not a torch.nn.Linear" in ingot.fuse(twin).left[0].why


class Int8Linear(nn.Linear):
    """Weights in int8, as quantisers keep them."""

    def quantise(self):
        self.scale = self.weight.detach().abs().max() / 127
        self.weight = nn.Parameter((self.weight.detach() / self.scale).round().to(torch.int8), requires_grad=False)
        return self

    def forward(self, x):
        return nn.functional.linear(x, self.weight.to(x.dtype) * self.scale, self.bias)


class WrappedWeight(torch.Tensor):
    """A tensor subclass, as quantisers hand them out."""


def test_quantised_subclass_of_linear(fused):
    module, twin, x = fused
    for each in (module, twin):
        torch.manual_seed(1)
        each.net[2] = Int8Linear(4 * DIM, DIM).quantise()
    assert_runs(module, x, twin(x), 0, exact=True)
    report = ingot.fuse(twin)
    assert not report.fused and "Int8Linear, not a torch.nn.Linear" in report.left[0].why


def test_quantised_weight_of_linear(fused):
    module, twin, x = fused
    for each in (module, twin):
        each.net[2].weight = nn.Parameter(each.net[2].weight.detach().as_subclass(WrappedWeight), requires_grad=False)
    assert_runs(module, x, twin(x), 0, exact=True)
    assert "WrappedWeight, not a plain parameter" in ingot.fuse(twin).left[0].why


def test_adapters_come_and_go():
    from peft import LoraConfig, inject_adapter_in_model
    from peft.tuners.tuners_utils import BaseTunerLayer

    module, x = nn.Sequential(feed_forward(), feed_forward()), torch.randn(5, DIM)
    with torch.no_grad():
        plain = module(x)
        assert len(ingot.fuse(module).fused) == 2
        inject_adapter_in_model(LoraConfig(r=4, target_modules=["0.net.0.proj", "0.net.2"], init_lora_weights=False), module)
        tuned = copy.deepcopy(module)
        ingot.unfuse(tuned)
        with_adapter = tuned(x)
        assert not torch.allclose(plain, with_adapter, atol=1e-3)
        assert_runs(module, x, with_adapter, 1)
        # A hot swap writes new weights into the adapter in place.
        for each in (module, tuned):
            for name, parameter in each.named_parameters():
                if "lora_B" in name:
                    parameter.mul_(-3)
        assert_runs(module, x, tuned(x), 1)
        report = ingot.fuse(module)
        assert [m.name for m in report.left] == ["0"] and "not a torch.nn.Linear" in report.left[0].why
        for name, layer in [(n, m) for n, m in module.named_modules() if isinstance(m, BaseTunerLayer)]:
            module.set_submodule(name, layer.get_base_layer())
        assert_runs(module, x, plain, 2)


def test_offload_hooks_on_linears(fused):
    from accelerate.hooks import AlignDevicesHook, add_hook_to_module, remove_hook_from_module

    module, twin, x = fused
    weights = {name: tensor.clone() for name, tensor in module.net[2].state_dict().items()}
    hook = AlignDevicesHook(execution_device="cpu", offload=True, weights_map=weights, place_submodules=False)
    add_hook_to_module(module.net[2], hook)
    assert module.net[2].weight.device.type == "meta"
    assert_runs(module, x, twin(x), 0, exact=True)
    remove_hook_from_module(module.net[2])
    assert_runs(module, x, twin(x), 1)


def test_offload_hook_on_the_module(fused):
    from accelerate.hooks import AlignDevicesHook, add_hook_to_module, remove_hook_from_module

    module, twin, x = fused
    add_hook_to_module(module, AlignDevicesHook(execution_device="cpu"))
    assert_runs(module, x, twin(x), 1)
    ingot.unfuse(module)
    assert_runs(module, x, twin(x), 0, exact=True)
    remove_hook_from_module(module)
    assert_runs(module, x, twin(x), 0, exact=True)


def test_layerwise_casting(fused):
    from diffusers.hooks import apply_layerwise_casting

    module, twin, x = fused
    for each in (module, twin):
        each.to(torch.bfloat16)
        apply_layerwise_casting(each, storage_dtype=torch.float8_e4m3fn, compute_dtype=torch.bfloat16)
    assert module.net[2].weight.dtype == torch.float8_e4m3fn
    assert_runs(module, x.bfloat16(), twin(x.bfloat16()), 0, exact=True)


def test_last_linear_in_another_dtype():
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5DenseGatedActDense

    module = T5DenseGatedActDense(T5Config(d_model=DIM, d_ff=96, dense_act_fn="gelu_new")).eval().half()
    module.wo.float()
    twin, x = copy.deepcopy(module), torch.randn(3, DIM).half()
    ingot.fuse(module)
    with torch.no_grad():
        assert_runs(module, x, twin(x), 0, exact=True)


def test_shared_modules():
    shared = feed_forward()
    module = nn.Sequential(shared, shared, nn.LayerNorm(DIM))
    x = torch.randn(2, DIM)
    with torch.no_grad():
        expected = module(x)
        assert len(ingot.fuse(module).fused) == 1
        assert_runs(module, x, expected, 2)


def test_chunked_along_a_leading_dimension(fused):
    module, twin, x = fused
    value = torch.cat([module(part) for part in x.chunk(3, dim=1)], dim=1)
    assert torch.allclose(value, twin(x), atol=1e-5)


def test_threads(fused):
    module, twin, x = fused
    inputs = [torch.randn(n, DIM) for n in (1, 3, 40, 200)]
    expected = [twin(each) for each in inputs]
    wrong = []

    def work(start):
        with torch.no_grad():
            for i in range(40):
                which = (start + i) % 4
                if not torch.allclose(module(inputs[which]), expected[which], atol=1e-5):
                    wrong.append(which)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_engine_that_fails_runs_the_original_and_says_why(fused, monkeypatch):
    module, twin, x = fused

    def failing(*arguments):
        raise RuntimeError("ingot.mlp: no such device")

    monkeypatch.setattr(ingot.swap, "run_mlp", failing)
    with pytest.warns(RuntimeWarning, match="no such device; the original forward runs instead"):
        assert torch.equal(module(x), twin(x))


def test_arguments_of_fuse():
    with pytest.raises(TypeError, match="model"):
        ingot.fuse(feed_forward)
    with pytest.raises(ValueError, match="numerics"):
        ingot.fuse(feed_forward(), numerics="exact")
    with pytest.raises(ValueError, match="tokens"):
        ingot.warm(feed_forward(), tokens=[])
    with pytest.raises(ValueError, match="tokens"):
        ingot.warm(feed_forward(), tokens=[0])


def test_warm_counts_fused_modules(fused):
    module, twin, x = fused
    assert ingot.warm(module, tokens=[1, 77]) == 1 and ingot.warm(module, tokens=5) == 1
    assert ingot.warm(twin, tokens=5) == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
class TestCuda:
    """What needs a GPU."""

    def both(self, dtype=torch.bfloat16):
        module = feed_forward().to("cuda", dtype)
        twin = copy.deepcopy(module)
        ingot.fuse(module)
        return module, twin, torch.randn(130, DIM, device="cuda", dtype=dtype)

    @torch.no_grad()
    def test_moves_and_runs(self):
        module, twin, x = self.both()
        assert_runs(module, x, twin(x), 1)
        assert_runs(module.cpu(), x.cpu(), twin.cpu()(x.cpu()), 1)

    @torch.no_grad()
    def test_capture_needs_warm(self):
        module, twin, x = self.both(torch.float32)
        module.net[0].proj.weight.data = module.net[0].proj.weight.data.clone()
        with pytest.raises(RuntimeError, match="ingot.warm"):
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                module(x)
        ingot.warm(module, tokens=[len(x)])
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = module(x)
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.allclose(y, twin(x), atol=1e-4)

    @torch.no_grad()
    def test_two_streams(self):
        module, twin, x = self.both()
        streams, inputs = [torch.cuda.Stream() for _ in range(2)], [x, torch.randn_like(x)]
        torch.cuda.synchronize()
        results = [[], []]
        for _ in range(20):
            for i, stream in enumerate(streams):
                with torch.cuda.stream(stream):
                    results[i].append(module(inputs[i]))
        torch.cuda.synchronize()
        for i in range(2):
            assert all(torch.equal(r, results[i][0]) for r in results[i])
            assert torch.allclose(results[i][0], twin(inputs[i]), atol=2e-2)
