# SPDX-License-Identifier: Apache-2.0
"""The report's text, byte for byte."""
import torch
from torch import nn

import ingot


class Block(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.mlp = nn.Sequential(nn.Linear(8, 32), activation, nn.Linear(32, 8))


def model():
    made = nn.Module()
    made.blocks = nn.ModuleList([Block(nn.GELU()) for _ in range(12)])
    made.blocks[3].mlp[1] = nn.Tanh()
    made.blocks[7].mlp[1] = nn.Tanh()
    made.head = nn.Sequential(nn.Linear(8, 16, bias=False), nn.SiLU(), nn.Linear(16, 8, bias=False)).to(torch.bfloat16)
    made.tail = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    return made


def test_text():
    assert str(ingot.fuse(model())) == """\
fused 11 of 14 MLPs, numerics match
    10 x blocks.*.mlp  8 -> 32 gelu_erf, bias, float32
     1 x head          8 -> 16 silu, no bias, bfloat16
left as they are
     2 x blocks.*.mlp  torch.nn.modules.activation.Tanh is no activation Ingot has
     1 x tail          8 -> 16 -> 3: Ingot's MLPs end as wide as they begin"""


def test_rows():
    report = ingot.fuse(model(), numerics="fast")
    assert report.numerics == "fast" and len(report.fused) == 11
    assert report.fused[3].name == "blocks.4.mlp" and report.left[0].name == "blocks.3.mlp"


def test_nothing_to_fuse(capsys):
    report = ingot.fuse(nn.LayerNorm(8), verbose=True)
    assert str(report) == "fused 0 of 0 MLPs, numerics match"
    assert capsys.readouterr().err == "fused 0 of 0 MLPs, numerics match\n"


def test_the_model_itself():
    assert "1 x (the model)  8 -> 32 relu, bias, float32" in str(
        ingot.fuse(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))))
