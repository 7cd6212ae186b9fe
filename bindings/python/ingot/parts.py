# SPDX-License-Identifier: Apache-2.0
"""What an MLP module is made of, and whether it can be fused as it stands."""
from typing import Any, Dict, Optional, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn import Linear, Parameter

from .functional import DTYPES


class Parts:
    """The modules of one MLP, in the order of its formula.

    up, down, gate: torch.nn.Linear; gate is None where there is none or where it is packed into up. activation: a name as
    ingot.mlp takes it. layout: "plain" (not gated), "separate", "packed_value_first" (up's rows are value, then gate) or
    "packed_gate_first". inner: every other module the original forward runs, such as dropouts and the activation: a hook on
    one of them, or a dropout that is active, keeps the original.
    """

    __slots__ = ("up", "down", "gate", "activation", "layout", "inner")

    def __init__(self, up, down, activation, gate=None, layout=None, inner=()):
        self.up = up
        self.down = down
        self.gate = gate
        self.activation = activation
        self.layout = layout or ("plain" if gate is None else "separate")
        self.inner = inner

    def describe(self) -> str:
        """"320 -> 1280 gelu_erf gated, bias, float32" """
        hidden, dim = self.up.weight.shape
        if self.layout.startswith("packed"):
            hidden //= 2
        gated = "" if self.layout == "plain" else " gated"
        bias = "bias" if any(m is not None and m.bias is not None for m in (self.up, self.down, self.gate)) else "no bias"
        return f"{dim} -> {hidden} {self.activation}{gated}, {bias}, {str(self.up.weight.dtype).removeprefix('torch.')}"


def _gelu(module):
    return {"none": "gelu_erf", "tanh": "gelu_tanh"}.get(module.approximate)


# Activation modules and functions by the name of their type; a function reads the form off the module. A split one takes
# gate and up from one packed tensor, and says how they lie.
_ACTIVATION_NAMES = {
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.GELU": _gelu,
    "torch.nn.modules.activation.SiLU": "silu",
    "torch.nn.modules.linear.Identity": "identity",
    "transformers.activations.GELUActivation": "gelu_erf",
    "transformers.activations.GELUTanh": "gelu_tanh",
    "transformers.activations.PytorchGELUTanh": "gelu_tanh",
    "transformers.activations.NewGELUActivation": "gelu_tanh",
    "transformers.activations.FastGELUActivation": "gelu_tanh",
    "transformers.activations.AccurateGELUActivation": "gelu_tanh",
    "transformers.activations.QuickGELUActivation": "quick_gelu",
    "transformers.activations.SiLUActivation": "silu",
    "transformers.activations.LinearActivation": "identity",
    "diffusers.models.activations.FP32SiLU": "silu",
}
_FUNCTIONS = ((F.relu, "relu"), (torch.relu, "relu"), (F.gelu, "gelu_erf"), (F.silu, "silu"))
_by_type: Dict[type, Any] = {}


def type_name(thing) -> str:
    kind = type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"


def by_type(thing, names: dict, known: dict):
    """names[type_name(thing)] or None, kept in `known` by type. A compiler must not guard on a table that grows."""
    if torch.compiler.is_compiling():
        return names.get(type_name(thing))
    kind = type(thing)
    if kind not in known:
        known[kind] = names.get(type_name(thing))
    return known[kind]


def activation_of(thing) -> Optional[str]:
    """The name of an activation module or function, None for one Ingot has not."""
    if not isinstance(thing, nn.Module):
        for function, name in _FUNCTIONS:
            if thing is function:
                return name
        return None
    found = by_type(thing, _ACTIVATION_NAMES, _by_type)
    return found if found is None or isinstance(found, str) else found(thing)


def unsuited(parts: Parts) -> Optional[str]:
    """Why these parts can never be fused as they are; None: nothing is in the way."""
    for role in ("up", "down", "gate"):
        linear = getattr(parts, role)
        if linear is None:
            if role != "gate":
                return f"{role} is missing"
            continue
        if type(linear) is not Linear:
            return f"{role} is a {type_name(linear)}, not a torch.nn.Linear"
        weight = linear._parameters.get("weight")
        if type(weight) is not Parameter:
            return f"{role}.weight is a {type_name(weight)}, not a plain parameter"
        if not weight.is_floating_point():
            return f"{role}.weight is {weight.dtype}"
    rows = parts.up.out_features
    if parts.layout.startswith("packed"):
        if rows % 2:
            return f"up has {rows} outputs, which are not gate and up in one"
        rows //= 2
    if parts.down.in_features != rows or parts.down.out_features != parts.up.in_features:
        return (f"{parts.up.in_features} -> {rows} -> {parts.down.out_features}: "
                "Ingot's MLPs end as wide as they begin")
    if parts.gate is not None and (parts.gate.out_features != rows or parts.gate.in_features != parts.up.in_features):
        return "gate and up differ in shape"
    return None


def _hooked(module) -> bool:
    """Whether more than the forward of a module's class runs when it is called."""
    own = module.__dict__
    if own["_forward_hooks"] or own["_forward_pre_hooks"]:
        return True
    # Libraries that take their hooks off again leave the class's forward, bound, behind.
    forward = own.get("forward")
    return forward is not None and getattr(forward, "__func__", None) is not type(module).forward


def ready(parts: Parts, x) -> bool:
    """Whether the fused path may stand for the original now. Called before every run, so plain and short: what moves, casts
    or wraps weights shows as a hook, a replaced forward, another type, or another dtype."""
    if type(x) is not Tensor and type(x) is not Parameter:
        return False
    dtype, kind = x.dtype, x.device.type
    if dtype not in DTYPES or (kind != "cpu" and kind != "cuda") or torch.is_autocast_enabled(kind):
        return False
    grad = torch.is_grad_enabled()
    if grad and x.requires_grad:
        return False
    up, down, gate = parts.up, parts.down, parts.gate
    for linear in (up, down) if gate is None else (up, down, gate):
        if type(linear) is not Linear:
            return False
        if _hooked(linear):
            return False
        parameters = linear._parameters
        weight, bias = parameters.get("weight"), parameters.get("bias")
        if type(weight) is not Parameter or weight.dtype is not dtype or (grad and weight.requires_grad):
            return False
        if bias is not None and (type(bias) is not Parameter or bias.dtype is not dtype):
            return False
    rows = up.out_features if parts.layout == "plain" or gate is not None else up.out_features // 2
    if down.in_features != rows or down.out_features != up.in_features:
        return False
    for module in parts.inner:
        if _hooked(module) or (module.training and getattr(module, "p", 0) > 0):
            return False
    return True


Reading = Union[Parts, str]
