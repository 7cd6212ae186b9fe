# SPDX-License-Identifier: Apache-2.0
"""The ways an MLP's forward is written, recognised by what its code does.

A form is a function whose attributes of `self` are roles: up, gate, down, packed (gate and up in one), act, drop…; a, b, c… are
modules run one after the other, whose types say what they are. A class's forward has a form when both compile to the same
instructions, whatever the names of attributes and variables: then no other thing happens in it. So a library's new classes of
an old form are known the day they come, and a forward that was changed is not taken for what it was.
"""
import dis
import types
from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn


class Form:
    """roles: attribute names by role; order of gate and up for packed ones."""

    def __init__(self, roles, layout, functional):
        self.roles = roles
        self.layout = layout
        self.functional = functional  # the activation when it is called as a function

    @property
    def is_chain(self):
        return "a" in self.roles


_SKIPPED = {"CACHE", "NOP", "RESUME", "PRECALL", "EXTENDED_ARG", "COPY_FREE_VARS"}
_ABSENT = object()


def _normal_form(function):
    """The instructions with variables and attributes of `self` numbered by first appearance; the attributes' names in that
    order; the globals read. None for anything but a plain function of (self, x)."""
    code = function.__code__
    plain = code.co_argcount == 2 and code.co_kwonlyargcount == 0 and not code.co_freevars and not code.co_flags & 0x2C
    if not plain:
        return None
    receiver = code.co_varnames[0]
    variables, attributes, global_names, out = {}, {}, [], []
    on_self = False
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        if name in _SKIPPED:
            continue
        if "FAST" in name:
            names = value if isinstance(value, tuple) else (value,)
            out.append((name, *(variables.setdefault(each, len(variables)) for each in names)))
            on_self = "LOAD" in name and names[-1] == receiver
            continue
        if on_self and name in ("LOAD_ATTR", "LOAD_METHOD"):
            out.append((name, "self", attributes.setdefault(value, len(attributes))))
        elif name == "LOAD_GLOBAL":
            global_names.append(value)
            out.append((name, "global"))
        elif "JUMP" in name:
            out.append((name,))  # where to follows from equal instructions on the way
        else:
            out.append((name, repr(value)))
        on_self = False
    return tuple(out), tuple(attributes), global_names


def _globals(function, names):
    builtins = function.__globals__.get("__builtins__", {})
    builtins = vars(builtins) if isinstance(builtins, types.ModuleType) else builtins
    return [function.__globals__.get(name, builtins.get(name, _ABSENT)) for name in names]


_forms: dict = {}


def _form(layout=None, functional=None):
    def add(function):
        code, roles, names = _normal_form(function)
        _forms[code] = (roles, _globals(function, names), layout, functional)
        return function

    return add


def form_of(function) -> Optional[Form]:
    """The form of a class's forward, None for one that is not here."""
    if not isinstance(function, types.FunctionType):
        return None
    normal = _normal_form(function)
    if normal is None or normal[0] not in _forms:
        return None
    code, attributes, names = normal
    roles, values, layout, functional = _forms[code]
    if any(ours is not theirs for ours, theirs in zip(values, _globals(function, names))):
        return None
    return Form(dict(zip(roles, attributes)), layout, functional)


# Modules one after the other.


@_form()
def _(self, x):
    x = self.a(x)
    x = self.b(x)
    x = self.c(x)
    return x


@_form()
def _(self, x):
    x = self.a(x)
    x = self.b(x)
    x = self.c(x)
    x = self.d(x)
    return x


@_form()
def _(self, x):
    x = self.a(x)
    x = self.b(x)
    x = self.c(x)
    x = self.d(x)
    x = self.e(x)
    return x


@_form()
def _(self, x):
    x = self.a(x)
    x = self.b(x)
    x = self.drop(x)
    x = self.c(x)
    x = self.drop(x)
    return x


@_form()
def _(self, x):
    return self.c(self.b(self.a(x)))


@_form()
def _(self, x):
    y = self.c(self.b(self.a(x)))
    return y


@_form()
def _(self, x):
    x = self.b(self.a(x))
    x = self.c(x)
    return x


@_form()
def _(self, x):
    x = self.b(self.a(x))
    return self.c(x)


# The same with the activation as a function.


@_form(functional="relu")
def _(self, x):
    return self.c(F.relu(self.a(x)))


@_form(functional="gelu_erf")
def _(self, x):
    return self.c(F.gelu(self.a(x)))


@_form(functional="silu")
def _(self, x):
    return self.c(F.silu(self.a(x)))


# Gated.


@_form()
def _(self, x):
    return self.down(self.act(self.gate(x)) * self.up(x))


@_form()
def _(self, x):
    y = self.down(self.act(self.gate(x)) * self.up(x))
    return y


@_form()
def _(self, x):
    h = self.act(self.gate(x)) * self.up(x)
    return self.down(h)


@_form()
def _(self, x):
    h = self.act(self.gate(x)) * self.up(x)
    h = self.drop(h)
    y = self.down(h)
    return y


@_form(functional="silu")
def _(self, x):
    return self.down(F.silu(self.gate(x)) * self.up(x))


@_form(functional="silu")
def _(self, x):
    return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


@_form(functional="silu")
def _(self, x):
    return self.down(torch.nn.functional.silu(self.gate(x)) * self.up(x))


@_form(functional="silu")
def _(self, x):
    x = F.silu(self.gate(x)) * self.up(x)
    x = self.down(x)
    return x


# Gate and up in one linear.


@_form(layout="packed_gate_first")
def _(self, x):
    u = self.packed(x)
    g, u = u.chunk(2, dim=-1)
    u = u * self.act(g)
    return self.down(u)


@_form(layout="packed_gate_first")
def _(self, x):
    g, u = self.packed(x).chunk(2, dim=-1)
    return self.down(self.drop(self.act(g) * u))


@_form(layout="packed_gate_first")
def _(self, x):
    x = self.packed(x)
    halves = x.chunk(2, dim=-1)
    x = self.act(halves[0]) * halves[1]
    x = self.down(x)
    return x


@_form(layout="packed_value_first")
def _(self, x):
    x = self.packed(x)
    x, g = x.chunk(2, dim=-1)
    x = self.act(g) * x
    x = self.down(x)
    return x


# T5, whose last linear may be kept in another dtype. Weights of several dtypes are not fused, and in one dtype the cast is none.


@_form()
def _(self, x):
    x = self.up(x)
    x = self.act(x)
    x = self.drop(x)
    if (
        isinstance(self.down.weight, torch.Tensor)
        and x.dtype != self.down.weight.dtype
        and self.down.weight.dtype != torch.int8
    ):
        x = x.to(self.down.weight.dtype)
    x = self.down(x)
    return x


@_form()
def _(self, x):
    g = self.act(self.gate(x))
    u = self.up(x)
    x = g * u
    x = self.drop(x)
    if (
        isinstance(self.down.weight, torch.Tensor)
        and x.dtype != self.down.weight.dtype
        and self.down.weight.dtype != torch.int8
    ):
        x = x.to(self.down.weight.dtype)
    x = self.down(x)
    return x
