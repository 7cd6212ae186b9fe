# SPDX-License-Identifier: Apache-2.0
"""What others put on the modules inside a fused MLP: hooks, wrappers, adapters, quantisers, offloading."""
import copy

import pytest
import torch
from conftest import DIM, assert_runs, feed_forward
from torch import nn

import ingot


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
