# SPDX-License-Identifier: Apache-2.0
"""What fuse() did."""
import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Fused:
    name: str  #: as in model.named_modules(); "" is the model itself
    what: str  #: "320 -> 1280 gelu_erf gated, bias, float32"
    family: str


@dataclass(frozen=True)
class Left:
    name: str
    why: str


@dataclass
class FuseReport:
    """fused: modules that run through Ingot from now on. left: modules that are MLPs, or nearly, and run as before, and why."""

    numerics: str
    fused: list = field(default_factory=list)
    left: list = field(default_factory=list)

    def __str__(self):
        total = len(self.fused) + len(self.left)
        lines = [f"fused {len(self.fused)} of {total} MLPs, numerics {self.numerics}"]
        for title, rows in (("fused", [(f.name, f.what) for f in self.fused]), ("left", [(m.name, m.why) for m in self.left])):
            groups = _group(rows)
            if not groups:
                continue
            if title == "left":
                lines.append("left as they are")
            width = max(len(name) for _, name, _ in groups)
            lines += [f"  {count:4d} x {name:{width}s}  {text}" for count, name, text in groups]
        return "\n".join(lines)


def _group(rows):
    """Rows alike but for the numbers in their names, counted: "blocks.*.ff"; in the order of their first."""
    groups = {}
    for name, text in rows:
        key = (re.sub(r"\b\d+\b", "*", name), text)
        groups.setdefault(key, []).append(name)
    return [(len(names), (names[0] if len(names) == 1 else key[0]) or "(the model)", key[1])
            for key, names in groups.items()]
