# SPDX-License-Identifier: Apache-2.0
"""Which modules are MLPs, and how their parts are found.

A family says which method of a module is replaced, how to read the module's parts, and what is left to do with the result. A
reader runs at every call, since adapters, quantisers and users replace submodules; it returns Parts, or why there are none, or
NO_MLP for what only looks like one by its code.
"""
from typing import Callable, Optional

from torch import nn
from torch.nn import Dropout, Linear

from .forms import Form, form_of
from .parts import Parts, Reading, activation_of, by_type, type_name


NO_MLP = ""


class Family:
    """read(module) -> Parts or a reason; method: the name of what is replaced; finish(module, y, x) -> the method's result;
    fast_path: an attribute that must be 0 for the method to be called at all."""

    __slots__ = ("name", "read", "method", "finish", "fast_path")

    def __init__(self, name, read, method="forward", finish=None, fast_path=None):
        self.name = name
        self.read = read
        self.method = method
        self.finish = finish
        self.fast_path = fast_path


# A chain of modules: torch.nn.Sequential and forwards that run one submodule after the other.

_SPLIT = {"diffusers.models.transformers.transformer_flux2.Flux2SwiGLU": ("silu", "packed_gate_first")}
_split_by_type: dict = {}


def _like_linear(module):
    """Linear, or a wrapper of one."""
    return isinstance(module, Linear) or (hasattr(module, "in_features") and hasattr(module, "out_features"))


def _read_chain(modules) -> Reading:
    """Linear, activation, Linear, with dropouts anywhere behind the first."""
    inner = [module for module in modules if type(module) is Dropout]
    rest = [module for module in modules if type(module) is not Dropout]
    if len(rest) != 3 or type(modules[0]) is Dropout or not _like_linear(rest[0]) or not _like_linear(rest[2]):
        return NO_MLP
    first, act, last = rest
    activation, layout = activation_of(act), None
    if isinstance(act, nn.Module):
        inner.append(act)
    if activation is None:
        split = by_type(act, _SPLIT, _split_by_type)
        if split is None:
            return NO_MLP if _like_linear(act) else f"{type_name(act)} is no activation Ingot has"
        activation, layout = split
        inner.extend(act._modules.values())
    return Parts(first, last, activation, None, layout, inner)


def _read_sequential(module) -> Reading:
    modules = module._modules
    if not 3 <= len(modules) <= 5:
        return NO_MLP
    return _read_chain(list(modules.values()))


# A forward of a known form.


def _reader_of_form(form: Form) -> Callable[[nn.Module], Reading]:
    roles = form.roles
    if form.is_chain and form.functional is None:
        # In the order they run; a role used twice stands once, which is right for a dropout.
        names = list(roles.values())

        def read(module):
            modules = module._modules
            chain = []
            for name in names:
                part = modules.get(name)
                if part is None:
                    part = getattr(module, name, None)
                    if not callable(part):
                        return NO_MLP
                chain.append(part)
            return _read_chain(chain)

        return read

    up = roles.get("up") or roles.get("packed") or roles.get("a")
    down = roles.get("down") or roles.get("c")
    gate, act, drop = roles.get("gate"), roles.get("act"), roles.get("drop")

    def read(module):
        modules = module._modules
        inner = []
        activation = form.functional
        if activation is None:
            holder = modules.get(act)
            if holder is None:
                holder = getattr(module, act, None)
            else:
                inner.append(holder)
            activation = activation_of(holder)
            if activation is None:
                return f"{type_name(holder)} is no activation Ingot has"
        if drop is not None:
            dropout = modules.get(drop)
            if type(dropout) is not Dropout:
                return NO_MLP
            inner.append(dropout)
        first, last = modules.get(up), modules.get(down)
        second = None if gate is None else modules.get(gate)
        if first is None or last is None or (gate is not None and second is None):
            return NO_MLP
        return Parts(first, last, activation, second, form.layout, inner)

    return read


# diffusers' FeedForward: net = [projection with its activation, dropout, linear(, dropout)]. Gate and up, where there are both,
# lie in one projection, up first.


def _diffusers_gelu(module):
    return {"none": "gelu_erf", "tanh": "gelu_tanh"}.get(module.approximate), None


def _diffusers_linear(module):
    return activation_of(module._modules["activation"]), None


_PROJECTIONS = {
    "diffusers.models.activations.GELU": _diffusers_gelu,
    "diffusers.models.activations.GEGLU": lambda module: ("gelu_erf", "packed_value_first"),
    "diffusers.models.activations.SwiGLU": lambda module: ("silu", "packed_value_first"),
    "diffusers.models.activations.ApproximateGELU": lambda module: ("quick_gelu", None),
    "diffusers.models.activations.LinearActivation": _diffusers_linear,
}
_projection_by_type: dict = {}


def _read_diffusers(module) -> Reading:
    net = module._modules["net"]._modules
    projection, down = net.get("0"), net.get("2")
    form = by_type(projection, _PROJECTIONS, _projection_by_type)
    if form is None or len(net) not in (3, 4):
        return f"net.0 is a {type_name(projection)}"
    activation, layout = form(projection)
    act = projection._modules.get("activation")
    if activation is None:
        return f"{type_name(projection if act is None else act)} is no activation Ingot has"
    inner = [projection, net["1"]]
    if act is not None:
        inner.append(act)
    if len(net) == 4:
        inner.append(net["3"])
    return Parts(projection._modules.get("proj"), down, activation, None, layout, inner)


# torch.nn.TransformerEncoderLayer: the feed-forward is a method. The layer has a path of its own in C++, which would pass it by.


def _read_encoder_layer(module) -> Reading:
    modules = module._modules
    holder = module.activation
    activation = activation_of(holder)
    if activation is None:
        return f"{type_name(holder)} is no activation Ingot has"
    inner = [modules["dropout"], modules["dropout2"]]
    if isinstance(holder, nn.Module):
        inner.append(holder)
    return Parts(modules["linear1"], modules["linear2"], activation, None, None, inner)


# BERT and its kin: `intermediate` holds the first linear and the activation, `output` the second, the residual and the norm.


def _read_bert(module) -> Reading:
    first, last = module._modules.get("intermediate"), module._modules.get("output")
    if first is None or last is None:
        return NO_MLP
    holder = first._modules.get("intermediate_act_fn", None) or first.__dict__.get("intermediate_act_fn")
    activation = activation_of(holder)
    if activation is None:
        return f"{type_name(holder)} is no activation Ingot has"
    inner = [first, last]
    if isinstance(holder, nn.Module):
        inner.append(holder)
    return Parts(first._modules.get("dense"), last._modules.get("dense"), activation, None, None, inner)


def _finish_bert(module, y, x):
    output = module.output
    return output.LayerNorm(output.dropout(y) + x)


_SEQUENTIAL = Family("torch.nn.Sequential", _read_sequential)
_ENCODER_LAYER = Family("torch.nn.TransformerEncoderLayer", _read_encoder_layer, method="_ff_block",
                        fast_path="activation_relu_or_gelu")
_DIFFUSERS = Family("diffusers FeedForward", _read_diffusers)


# Forms of the three methods that make a BERT layer's feed-forward.
def _bert_chunk(self, x):
    h = self.intermediate(x)
    y = self.output(h, x)
    return y


def _bert_intermediate(self, x):
    x = self.dense(x)
    x = self.intermediate_act_fn(x)
    return x


def _bert_output(self, x, residual):
    x = self.dense(x)
    x = self.dropout(x)
    x = self.LayerNorm(x + residual)
    return x


_BERT = Family("BERT layer", _read_bert, method="feed_forward_chunk", finish=_finish_bert)


def _same_code(function, ours) -> bool:
    theirs, ours = getattr(function, "__code__", None), ours.__code__
    return theirs is not None and (theirs.co_code, theirs.co_names, theirs.co_argcount) == (
        ours.co_code, ours.co_names, ours.co_argcount)


def _is_bert(module) -> bool:
    chunk = getattr(type(module), "feed_forward_chunk", None)
    first, last = module._modules.get("intermediate"), module._modules.get("output")
    return (chunk is not None and first is not None and last is not None and _same_code(chunk, _bert_chunk)
            and _same_code(type(first).forward, _bert_intermediate) and _same_code(type(last).forward, _bert_output))


_registered: dict = {}
_by_class: dict = {}


def register(kind: type, read: Callable[[nn.Module], Reading]) -> None:
    """Lets fuse() take modules of exactly this class for MLPs.

    read(module) returns ingot.Parts, or a string that says why this one is none; it is called before every run and must be
    quick. The class's forward must take one tensor and return what the parts compute.
    """
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        raise TypeError(f"kind: {kind!r} is not a subclass of torch.nn.Module")
    _registered[kind] = Family(kind.__qualname__, read)
    _by_class.pop(kind, None)


def _family_of_class(kind) -> Optional[Family]:
    if kind in _registered:
        return _registered[kind]
    forward = kind.forward
    if forward is nn.Sequential.forward:
        return _SEQUENTIAL
    if forward is nn.TransformerEncoderLayer.forward and kind._ff_block is nn.TransformerEncoderLayer._ff_block:
        return _ENCODER_LAYER
    where = f"{getattr(forward, '__module__', '')}.{getattr(forward, '__qualname__', '')}"
    if where == "diffusers.models.attention.FeedForward.forward":
        return _DIFFUSERS
    form = form_of(forward)
    return None if form is None else Family(kind.__qualname__, _reader_of_form(form))


def family_of(module: nn.Module) -> Optional[Family]:
    """The family of a module, None when it is no MLP by its code."""
    kind = type(module)
    if kind not in _by_class:
        _by_class[kind] = _family_of_class(kind)
    family = _by_class[kind]
    return _BERT if family is None and _is_bert(module) else family


def near_miss(module: nn.Module) -> Optional[str]:
    """Why a module that runs an MLP in another way is left, None for all others."""
    children = module._modules
    if type(children.get("proj_mlp")) is Linear and "proj_out" in children:
        return "its proj_out reads attention and MLP as one tensor"
    return None
