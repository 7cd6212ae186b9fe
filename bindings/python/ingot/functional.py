# SPDX-License-Identifier: Apache-2.0
"""The operator torch.ops.ingot.mlp, and its form for people."""
import ctypes
import os
from pathlib import Path
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor

# PyTorch and Ingot each have a oneDNN, of different versions, and both libraries show some symbols of it. torch.ops.load_library
# would make ours visible to everyone and take what is visible of PyTorch's; loaded like this, each keeps to its own. Loading is
# what registers the operators.
_LIBRARY = str(Path(__file__).parent / "libingot_torch.so")
ctypes.CDLL(_LIBRARY, mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
torch.ops.loaded_libraries.add(_LIBRARY)

run_mlp = torch.ops.ingot.mlp.default
run_warm = torch.ops.ingot.warm.default

ACTIVATIONS = {
    "relu": F.relu,
    "gelu_erf": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": F.silu,
    "identity": lambda x: x,
}
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@torch.library.register_fake("ingot::mlp")
def _(x, up, down, up_bias, down_bias, gate, gate_bias, activation, layout, numerics):
    torch._check(x.shape[-1] == up.shape[1], lambda: "ingot.mlp: x: its last dimension is not the width of up")
    return x.new_empty(x.shape)


@torch.library.register_fake("ingot::warm")
def _(up, down, up_bias, down_bias, gate, gate_bias, activation, layout, numerics, tokens):
    return None


def mlp(
    x: Tensor,
    up: Tensor,
    down: Tensor,
    up_bias: Optional[Tensor] = None,
    down_bias: Optional[Tensor] = None,
    gate: Optional[Tensor] = None,
    gate_bias: Optional[Tensor] = None,
    activation: str = "gelu_tanh",
    numerics: str = "match",
) -> Tensor:
    """y = act(x·upᵀ + up_bias)·downᵀ + down_bias; with a gate, y = (act(x·gateᵀ + gate_bias) * (x·upᵀ + up_bias))·downᵀ + …

    x is [..., dim]; up and gate are [hidden, dim] and down is [dim, hidden], as torch.nn.Linear keeps them, at any row
    stride: halves of a packed projection are fine. Biases are [hidden] and [dim]. All are of one dtype (float32, bfloat16,
    float16) on one device (CPU or CUDA). The result has x's shape and is contiguous.

    activation: relu, gelu_erf, gelu_tanh, quick_gelu, silu or identity. numerics: "match" rounds where the separate
    operators would; "fast" rounds once, at the hidden tensor.

    Where a gradient is wanted, under autocast, for weights whose rows are not contiguous, and on other devices, the same is
    computed by PyTorch's own operators. Raises RuntimeError for shapes, dtypes and devices that do not fit; the message names
    the argument.
    """
    if _is_for_pytorch(x, up, down, up_bias, down_bias, gate, gate_bias):
        return _by_pytorch(x, up, down, up_bias, down_bias, gate, gate_bias, activation, numerics)
    return run_mlp(x, up, down, up_bias, down_bias, gate, gate_bias, activation,
                   "plain" if gate is None else "separate", numerics)


def _is_for_pytorch(x, up, down, *others):
    kind = x.device.type
    if (kind != "cpu" and kind != "cuda") or torch.is_autocast_enabled(kind):
        return True
    if torch.is_grad_enabled():
        for tensor in (x, up, down, *others):
            if tensor is not None and tensor.requires_grad:
                return True
    gate = others[2]
    return _scattered(up) or _scattered(down) or (gate is not None and _scattered(gate))


def _scattered(weight):
    """Whether a weight's rows are not contiguous, as those of a transposed view."""
    return weight.dim() == 2 and weight.shape[1] > 1 and weight.stride(1) != 1


def _by_pytorch(x, up, down, up_bias, down_bias, gate, gate_bias, activation, numerics):
    if activation not in ACTIVATIONS:
        raise RuntimeError(f"ingot.mlp: activation: '{activation}' is unknown, give one of {', '.join(ACTIVATIONS)}")
    if numerics not in ("match", "fast"):
        raise RuntimeError(f"ingot.mlp: numerics: '{numerics}' is unknown, give match or fast")
    if gate is None and gate_bias is not None:
        raise RuntimeError("ingot.mlp: gate_bias: given, but there is no gate")
    if up.dim() != 2:
        raise RuntimeError(f"ingot.mlp: up: shape {list(up.shape)}, expected [hidden, dim]")
    hidden, dim = up.shape
    if x.dim() == 0 or x.shape[-1] != dim:
        raise RuntimeError(f"ingot.mlp: x: shape {list(x.shape)}, expected [..., {dim}], the width of up")
    _check("x", x, list(x.shape), up)
    _check("down", down, [dim, hidden], up)
    for name, tensor, shape in (("up_bias", up_bias, [hidden]), ("down_bias", down_bias, [dim]),
                                ("gate", gate, [hidden, dim]), ("gate_bias", gate_bias, [hidden])):
        if tensor is not None:
            _check(name, tensor, shape, up)
    act = ACTIVATIONS[activation]
    hidden = F.linear(x, up, up_bias)
    hidden = act(hidden) if gate is None else act(F.linear(x, gate, gate_bias)) * hidden
    return F.linear(hidden, down, down_bias)


def _check(name, tensor, shape, up):
    if list(tensor.shape) != shape:
        raise RuntimeError(f"ingot.mlp: {name}: shape {list(tensor.shape)}, expected {shape}")
    if tensor.device != up.device:
        raise RuntimeError(f"ingot.mlp: {name}: on {tensor.device}, but up is on {up.device}")
    if tensor.dtype != up.dtype:
        raise RuntimeError(f"ingot.mlp: {name}: {tensor.dtype}, but up is {up.dtype}")
