# SPDX-License-Identifier: Apache-2.0
"""fuse, unfuse and warm: replaces the forward of MLP modules on the instance, and nothing else.

Modules, parameters and their names stay, so that state dicts, devices, dtypes and adapters work as before. The replacement is
a bound method in the instance's dictionary: copies get one bound to the copy, and a pickle holds the class's own forward.
"""
import inspect
import sys
import types
import warnings
from typing import Callable, Dict, Iterable, Tuple, Union

import torch
from torch import nn

from .choice import trial_of
from .functional import run_mlp, run_warm
from .parts import Parts, ready, unsuited
from .recognise import NO_MLP, Family, family_of, near_miss
from .report import Fused, FuseReport, Left

# On a fused module: the numerics it was fused with.
MARK = "_ingot_numerics"
# On a fused module whose own fast path had to be put off: the attribute's value before.
SAVED = "_ingot_saved"

_replacements: Dict[Tuple[Family, type], Callable] = {}


def _tensors(parts: Parts):
    up, down = parts.up._parameters, parts.down._parameters
    if parts.gate is None:
        return up["weight"], down["weight"], up.get("bias"), down.get("bias"), None, None
    gate = parts.gate._parameters
    return up["weight"], down["weight"], up.get("bias"), down.get("bias"), gate["weight"], gate.get("bias")


def run(parts: Parts, x, numerics):
    up, down, up_bias, down_bias, gate, gate_bias = _tensors(parts)
    return run_mlp(x, up, down, up_bias, down_bias, gate, gate_bias, parts.activation, parts.layout, numerics)


def _replacement(family: Family, kind: type):
    """The function that takes the place of a class's method; one for all its modules, so that compilers see one piece of code."""
    if (family, kind) in _replacements:
        return _replacements[family, kind]
    read, finish, method = family.read, family.finish, family.method

    def forward(self, *args, **kwargs):
        numerics = getattr(self, MARK, None)
        if numerics is not None:
            if len(args) == 1 and not kwargs:
                x = args[0]
            elif not args and len(kwargs) == 1:
                x = next(iter(kwargs.values()))
            else:
                x = None
            if x is not None:
                parts = read(self)
                if type(parts) is Parts and ready(parts, x):
                    if torch.compiler.is_compiling():
                        y = run(parts, x, numerics)
                        return y if finish is None else finish(self, y, x)

                    def ours():
                        try:
                            y = run(parts, x, numerics)
                        except RuntimeError as error:
                            _say_why(error)
                            return original()
                        return y if finish is None else finish(self, y, x)

                    def original():
                        return getattr(type(self), method)(self, *args, **kwargs)

                    trial = trial_of(parts, x)
                    if trial is None or trial.ours_wins:
                        return ours()
                    if trial.ours_wins is None:
                        return trial.run(ours, original)
        return getattr(type(self), method)(self, *args, **kwargs)

    # Pickle writes a bound method as the attribute of that name, which the unpickled module's class has.
    forward.__name__ = method
    forward.__signature__ = inspect.signature(getattr(kind, method))  # some callers count parameters
    forward.ingot_family = family
    _replacements[family, kind] = forward
    return forward


def _say_why(error):
    """Warns, once for each reason, that the original runs. A capture must not record the original instead: raises."""
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        raise error
    warnings.warn(f"{error}; the original forward runs instead", RuntimeWarning, stacklevel=3)


def _is_ours(function) -> bool:
    return isinstance(function, types.MethodType) and hasattr(function.__func__, "ingot_family")


def _overwritten(module, method) -> bool:
    """Whether someone else has put a method of that name on the instance."""
    own = module.__dict__.get(method)
    if own is None or _is_ours(own):
        return False
    # Unpickled modules hold their class's own.
    return not (isinstance(own, types.MethodType) and own.__func__ is getattr(type(module), method))


def _device_obstacle(parts: Parts, numerics: str, known: dict):
    """Why the device of these weights cannot run Ingot, asked once for each device."""
    device = parts.up.weight.device
    if device.type not in ("cpu", "cuda"):
        return None  # the module may be moved later; each call looks
    if device not in known:
        known[device] = None
        if device.type == "cuda":
            try:
                run_warm(*_tensors(parts), parts.activation, parts.layout, numerics, 0)
            except RuntimeError as error:
                known[device] = str(error).removeprefix("ingot.warm: ")
    return known[device]


def fuse(model: nn.Module, numerics: str = "match", verbose: bool = False) -> FuseReport:
    """Runs every MLP of a model through Ingot, in place. Returns what was fused, what was left, and why.

    Knows torch.nn.Sequential(Linear, activation, Linear), torch.nn.TransformerEncoderLayer, diffusers' FeedForward, and any
    class whose forward is written in one of the usual forms, as those of transformers; ingot.register adds others. Weights
    are neither copied nor renamed. Before every call a fused module looks whether it still is what it was: with an adapter, a
    hook on a linear, quantised or differently typed weights, a gradient to compute, autocast or an active dropout, the
    original forward runs. On a CPU the first calls of a shape are timed both ways, and the faster stays: see
    ingot.choose_by_measurement.

    numerics: "match" rounds where the separate operators would; "fast" rounds once, at the hidden tensor. verbose: prints the
    report to standard error.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: {type(model).__name__} is not a torch.nn.Module")
    if numerics not in ("match", "fast"):
        raise ValueError(f"numerics: {numerics!r} is unknown, give 'match' or 'fast'")
    report = FuseReport(numerics)
    devices: dict = {}
    inside = None  # the names below the module that was fused last: modules come parents first
    for name, module in model.named_modules():
        if inside is not None and name.startswith(inside):
            continue
        family = family_of(module)
        if family is None:
            why = near_miss(module)
            if why:
                report.left.append(Left(name, why))
            continue
        parts = family.read(module)
        if parts == NO_MLP:
            continue
        why = unsuited(parts) if isinstance(parts, Parts) else parts
        if why is None and _overwritten(module, family.method):
            why = f"its {family.method} was replaced before"
        if why is None:
            why = _device_obstacle(parts, numerics, devices)
        if why is not None:
            report.left.append(Left(name, why))
            continue
        _install(module, family, numerics)
        report.fused.append(Fused(name, parts.describe(), family.name))
        inside = f"{name}." if name else ""
    if verbose:
        print(report, file=sys.stderr)
    return report


def _install(module, family, numerics):
    own = module.__dict__
    own[MARK] = numerics
    own[family.method] = types.MethodType(_replacement(family, type(module)), module)
    if family.fast_path is not None and SAVED not in own:
        own[SAVED] = (family.fast_path, getattr(module, family.fast_path))
        setattr(module, family.fast_path, 0)


def _methods(module):
    """Names of the attributes that hold a replacement: the method's own, and where a hook of others keeps what it wraps."""
    return [name for name, value in module.__dict__.items() if _is_ours(value)]


def unfuse(model: nn.Module) -> int:
    """Undoes fuse() on a model and everything in it; returns how many modules it was. A forward that something else has
    wrapped meanwhile stays wrapped, and runs the original inside."""
    count = 0
    for module in model.modules():
        own = module.__dict__
        fused = own.pop(MARK, None) is not None
        saved = own.pop(SAVED, None)
        if saved is not None:
            setattr(module, *saved)
        for name in _methods(module):
            family = own[name].__func__.ingot_family
            if name == family.method:
                del own[name]
            else:
                own[name] = getattr(type(module), family.method).__get__(module)
            fused = True
        count += fused
    return count


def warm(model: nn.Module, tokens: Union[int, Iterable[int]]) -> int:
    """Compiles and loads what the fused MLPs of a model need for these numbers of tokens (rows, all leading dimensions
    multiplied), so that neither the first call nor a CUDA-graph capture has to. Returns how many MLPs it was; on a CPU there is
    nothing to compile. Raises RuntimeError where the device or its compiler fails."""
    numbers = [tokens] if isinstance(tokens, int) else list(tokens)
    if not numbers or any(not isinstance(number, int) or number < 1 for number in numbers):
        raise ValueError(f"tokens: {tokens!r} is not accepted, give one or more numbers from 1 on")
    count = 0
    for module in model.modules():
        numerics = module.__dict__.get(MARK)
        ours = _methods(module)
        if numerics is None or not ours:
            continue
        parts = module.__dict__[ours[0]].__func__.ingot_family.read(module)
        if not isinstance(parts, Parts) or unsuited(parts) is not None:
            continue
        for number in numbers:
            run_warm(*_tensors(parts), parts.activation, parts.layout, numerics, number)
        count += 1
    return count
