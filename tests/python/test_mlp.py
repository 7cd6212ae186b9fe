# SPDX-License-Identifier: Apache-2.0
"""ingot.mlp and torch.ops.ingot.mlp."""
import threading

import pytest
import torch
from conftest import DTYPES, FORMULAS, ROUNDOFF, assert_match, by_operators, doubles, make_weights, relative

import ingot

pytestmark = pytest.mark.usefixtures("no_grad")


def check(x, weights, activation="gelu_tanh"):
    value = ingot.mlp(x, **weights, activation=activation)
    assert_match(value, by_operators(x, **weights, activation=activation),
                 by_operators(x.double(), **doubles(weights), activation=activation))
    return value


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("activation", FORMULAS)
def test_formula(dtype, gated, activation):
    weights = make_weights(64, 160, dtype, gated)
    y = check(torch.randn(77, 64, dtype=dtype), weights, activation)
    assert y.is_contiguous()


@pytest.mark.parametrize("dtype", DTYPES)
def test_fast_is_no_worse_than_the_operators(dtype):
    weights = make_weights(96, 256, dtype, gated=True)
    x = torch.randn(200, 96, dtype=dtype)
    exact = by_operators(x.double(), **doubles(weights))
    fast = ingot.mlp(x, **weights, numerics="fast")
    assert relative(fast, exact) <= 1.1 * relative(by_operators(x, **weights), exact) + 6 * ROUNDOFF[torch.float32]


@pytest.mark.parametrize("shape", [(64,), (1, 64), (3, 64), (2, 5, 64), (2, 1, 3, 1, 64), (1, 1, 64)])
def test_leading_dimensions_are_kept(shape):
    x = torch.randn(shape)
    assert check(x, make_weights(64, 128, torch.float32)).shape == x.shape


@pytest.mark.parametrize("shape", [(0, 64), (2, 0, 64), (0, 3, 64)])
def test_empty_inputs(shape):
    y = ingot.mlp(torch.randn(shape), **make_weights(64, 128, torch.float32))
    assert y.shape == shape and y.dtype == torch.float32


@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_of_any_strides(dtype):
    weights = make_weights(32, 96, dtype)
    base = torch.randn(6, 10, 64, dtype=dtype)
    views = [base[:, :, :32], base[:, :, 7:39], base[::2, :, :32], base[:, 3:4, :32], base[:, ::3, 1:33],
             base[:, :, :32].transpose(0, 1), torch.randn(32, 20, dtype=dtype).t(),
             torch.randn(1, 32, dtype=dtype).expand(9, 32), torch.randn(5, 1, 32, dtype=dtype).expand(5, 4, 32),
             torch.randn(4, 64, dtype=dtype)[:, ::2]]
    for x in views:
        y = check(x, weights)
        assert torch.equal(y, ingot.mlp(x.contiguous(), **weights))


@pytest.mark.parametrize("dtype", DTYPES)
def test_packed_halves_and_padded_rows_are_read_in_place(dtype):
    packed, bias = torch.randn(256, 72, dtype=dtype) / 8, torch.randn(256, dtype=dtype)
    down = (torch.randn(64, 200, dtype=dtype) / 11)[:, 20:148]
    weights = dict(up=packed[:128, :64], gate=packed[128:, :64], up_bias=bias[:128], gate_bias=bias[128:], down=down)
    check(torch.randn(33, 64, dtype=dtype), weights, "gelu_erf")


def test_transposed_weights():
    weights = make_weights(64, 128, torch.float32)
    weights["up"] = weights["up"].t().contiguous().t()
    check(torch.randn(9, 64), weights)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_views_at_two_byte_addresses(dtype):
    def shifted(tensor):
        room = torch.empty(tensor.numel() + 1, dtype=dtype)
        view = room[1:].view(tensor.shape)
        assert view.copy_(tensor).data_ptr() % 4 == 2
        return view

    weights = {name: t if t is None else shifted(t) for name, t in make_weights(48, 80, dtype, gated=True).items()}
    check(shifted(torch.randn(21, 48, dtype=dtype)), weights)


@pytest.mark.parametrize("dim, hidden", [(1, 1), (3, 5), (63, 171), (131, 257), (1, 64), (64, 1)])
def test_odd_widths(dim, hidden):
    for dtype in DTYPES:
        weights = make_weights(dim, hidden, dtype)
        x = torch.randn(50, dim, dtype=dtype)
        value, exact = ingot.mlp(x, **weights), by_operators(x.double(), **doubles(weights))
        assert relative(value, exact) <= 8 * ROUNDOFF[dtype]


@pytest.mark.parametrize("missing", [("up_bias",), ("down_bias",), ("gate_bias",), ("up_bias", "gate_bias"),
                                     ("up_bias", "down_bias", "gate_bias")])
def test_any_bias_may_be_missing(missing):
    weights = make_weights(64, 128, torch.float32, gated=True)
    check(torch.randn(12, 64), {**weights, **dict.fromkeys(missing)})


def test_offsets_beyond_32_bits():
    rows, stride, dim = 2, 2**31 + 64, 32
    x = torch.empty(stride + dim, dtype=torch.bfloat16).as_strided((rows, dim), (stride, 1))  # pages never touched cost nothing
    x.copy_(torch.randn(rows, dim))
    check(x, make_weights(dim, 64, torch.bfloat16))


def test_one_result_for_one_input():
    weights, x = make_weights(64, 256, torch.bfloat16), torch.randn(300, 64, dtype=torch.bfloat16)
    first = ingot.mlp(x, **weights)
    for _ in range(5):
        assert torch.equal(ingot.mlp(x, **weights), first)


@pytest.mark.parametrize("name", ["up", "down", "gate", "up_bias", "down_bias", "gate_bias"])
def test_weights_may_change_in_place(name):
    weights, x = make_weights(64, 128, torch.float32, gated=True), torch.randn(10, 64)
    before = ingot.mlp(x, **weights)
    weights[name].data.mul_(-1.5)  # no version counter sees this
    after = check(x, weights)
    assert not torch.allclose(before, after, atol=1e-3)


def test_weights_may_move():
    x = torch.randn(10, 64)
    for _ in range(50):  # addresses come again with other contents
        check(x, make_weights(64, 128, torch.float32))


def test_threads_share_the_operator():
    weights = [make_weights(64, 128, torch.float32, gated=bool(i % 2)) for i in range(4)]
    x = torch.randn(40, 64)
    expected = [ingot.mlp(x, **w) for w in weights]
    wrong = []

    def work(start):
        with torch.no_grad():
            for i in range(60):
                which = (start + i) % 4
                if not torch.equal(ingot.mlp(x, **weights[which]), expected[which]):
                    wrong.append(which)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_number_of_threads_may_change():
    weights, x = make_weights(64, 128, torch.float32), torch.randn(100, 64)
    first = ingot.mlp(x, **weights)
    torch.set_num_threads(1)
    assert torch.allclose(ingot.mlp(x, **weights), first, atol=1e-5)


GOOD = dict(dim=64, hidden=128, dtype=torch.float32, gated=True)
BAD = [
    ("x", dict(x=torch.randn(4, 63)), r"x: shape \[4, 63\], expected \[\.\.\., 64\]"),
    ("x", dict(x=torch.randn(4, 64, dtype=torch.float16)), "x: torch.float16, but up is torch.float32"),
    ("up", dict(up=torch.randn(128, 64, 1)), r"up: shape \[128, 64, 1\], expected \[hidden, dim\]"),
    ("up", dict(up=torch.randn(128, 64, dtype=torch.float64)), "up: torch.float64 is not supported"),
    ("down", dict(down=torch.randn(64, 127)), r"down: shape \[64, 127\], expected \[64, 128\]"),
    ("down", dict(down=torch.randn(63, 128)), r"down: shape \[63, 128\], expected \[64, 128\]"),
    ("down", dict(down=torch.randn(64, 128).bfloat16()), "down: torch.bfloat16, but up is torch.float32"),
    ("up_bias", dict(up_bias=torch.randn(127)), r"up_bias: shape \[127\], expected \[128\]"),
    ("up_bias", dict(up_bias=torch.randn(256)[::2]), "up_bias: elements do not adjoin"),
    ("down_bias", dict(down_bias=torch.randn(64, 1)), r"down_bias: shape \[64, 1\], expected \[64\]"),
    ("gate", dict(gate=torch.randn(64, 64)), r"gate: shape \[64, 64\], expected \[128, 64\]"),
    ("gate_bias", dict(gate_bias=torch.randn(128).half()), "gate_bias: torch.float16, but up is torch.float32"),
    ("gate_bias", dict(gate=None), "gate_bias: given, but there is no gate"),
    ("activation", dict(activation="gelu"), "activation.*gelu"),
    ("numerics", dict(numerics="exact"), "numerics.*exact"),
]


@pytest.mark.parametrize("name, change, message", BAD)
def test_errors_name_the_argument(name, change, message):
    arguments = {"x": torch.randn(4, 64), **make_weights(**GOOD), **change}
    with pytest.raises(RuntimeError, match=rf"ingot\.mlp: .*{message}"):
        ingot.mlp(**arguments)


@pytest.mark.parametrize("name, change, message", [bad for bad in BAD if "float64" not in bad[2] and "adjoin" not in bad[2]])
def test_errors_of_the_other_path_name_the_argument(name, change, message):
    arguments = {"x": torch.randn(4, 64), **make_weights(**GOOD), **change}
    arguments["x"].requires_grad_()
    with torch.enable_grad(), pytest.raises(RuntimeError, match=f"ingot.mlp: .*{message}"):
        ingot.mlp(**arguments)


def test_gradients():
    weights = make_weights(16, 24, torch.float64, gated=True)
    with torch.enable_grad():
        x = torch.randn(3, 16, dtype=torch.float64, requires_grad=True)
        weights["up"].requires_grad_()
        value = ingot.mlp(x, **weights)
        expected = by_operators(x, **weights)
        assert torch.equal(value, expected)
        ours = torch.autograd.grad(value.sum(), (x, weights["up"]))
        theirs = torch.autograd.grad(expected.sum(), (x, weights["up"]))
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs))


def test_autocast():
    weights, x = make_weights(64, 128, torch.float32), torch.randn(5, 64)
    with torch.autocast("cpu", torch.bfloat16):
        value, expected = ingot.mlp(x, **weights), by_operators(x, **weights)
    assert value.dtype == torch.bfloat16 and torch.equal(value, expected)


@pytest.mark.parametrize("layout", ["packed_value_first", "packed_gate_first"])
def test_packed_layouts_of_the_operator(layout):
    packed, bias = torch.randn(256, 64) / 8, torch.randn(256)
    down, x = torch.randn(64, 128) / 11, torch.randn(20, 64)
    first, second = (packed[:128], bias[:128]), (packed[128:], bias[128:])
    (up, up_bias), (gate, gate_bias) = (first, second) if layout == "packed_value_first" else (second, first)
    value = torch.ops.ingot.mlp(x, packed, down, bias, None, None, None, "silu", layout, "match")
    expected = by_operators(x, up, down, up_bias, None, gate, gate_bias, "silu")
    assert torch.allclose(value, expected, atol=1e-5)


def test_unknown_layout():
    weights = make_weights(8, 8, torch.float32, bias=False)
    with pytest.raises(RuntimeError, match="layout: 'rows' is unknown"):
        torch.ops.ingot.mlp(torch.randn(2, 8), weights["up"], weights["down"], None, None, None, None, "relu", "rows", "match")


def test_warm_on_a_cpu_has_nothing_to_do():
    weights = make_weights(8, 16, torch.float32)
    assert torch.ops.ingot.warm(weights["up"], weights["down"], None, None, None, None, "relu", "plain", "match", 4) is None
