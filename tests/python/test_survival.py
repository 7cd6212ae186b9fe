# SPDX-License-Identifier: Apache-2.0
"""What happens to a fused model: copies, dtypes, gradients, threads, GPUs."""
import copy
import io
import pickle
import threading
import warnings

import pytest
import torch
from conftest import DIM, assert_runs, counted, feed_forward
from diffusers.models.attention import FeedForward
from torch import nn

import ingot

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


def test_weights_replaced(fused):
    module, twin, x = fused
    module.net[2] = nn.Linear(4 * DIM, 32)
    twin.net[2] = copy.deepcopy(module.net[2])
    assert_runs(module, x, twin(x), 0, exact=True)
    module.net[2] = nn.Linear(4 * DIM, DIM)
    twin.net[2] = copy.deepcopy(module.net[2])
    assert_runs(module, x, twin(x), 1)


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
