#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fuses video models of diffusers, checks them against the original, and times a denoising step. Weights are random: nothing is
downloaded.

    python examples/fuse_diffusers.py                          # small models, on the CPU
    python examples/fuse_diffusers.py --full --device cuda     # the published sizes, in bf16, 480p

One line a model: MLPs fused, relative difference of the outputs, milliseconds a step before and after. Exits 5 when a
difference is larger than the dtype explains.
"""
import argparse
import statistics
import sys
import time

import diffusers
import torch

import ingot


def wan(full, make):
    """Wan 2.1 1.3B, 480 x 832 x 81 frames: 32,760 tokens of width 1536, hidden 8960."""
    sizes = dict(num_attention_heads=12, attention_head_dim=128, ffn_dim=8960, num_layers=30, text_dim=4096) if full else dict(
        num_attention_heads=4, attention_head_dim=32, ffn_dim=512, num_layers=4, text_dim=64)
    model = diffusers.WanTransformer3DModel(patch_size=(1, 2, 2), in_channels=16, out_channels=16, freq_dim=256, **sizes)
    frames, height, width = (21, 60, 104) if full else (2, 16, 16)
    return model, dict(hidden_states=make(1, 16, frames, height, width), timestep=torch.tensor([500]),
                       encoder_hidden_states=make(1, 512 if full else 8, sizes["text_dim"]))


def ltx(full, make):
    """LTX-Video 2B, 4,992 tokens of width 2048, hidden 8192."""
    sizes = {} if full else dict(num_attention_heads=4, attention_head_dim=32, cross_attention_dim=128, num_layers=4,
                                 caption_channels=64)
    model = diffusers.LTXVideoTransformer3DModel(**sizes)
    frames, height, width = (13, 16, 24) if full else (2, 8, 8)
    text = 128 if full else 8
    return model, dict(hidden_states=make(1, frames * height * width, 128), timestep=torch.tensor([500]),
                       encoder_hidden_states=make(1, text, sizes.get("caption_channels", 4096)),
                       encoder_attention_mask=torch.ones(1, text), num_frames=frames, height=height, width=width)


def cogvideox(full, make):
    """CogVideoX 5B, 17,776 tokens of width 3072, hidden 12288."""
    sizes = dict(num_attention_heads=48, num_layers=42, text_embed_dim=4096) if full else dict(
        num_attention_heads=2, num_layers=4, text_embed_dim=64)
    model = diffusers.CogVideoXTransformer3DModel(attention_head_dim=64, sample_width=90, sample_height=60, sample_frames=49,
                                                  use_rotary_positional_embeddings=True, **sizes)
    frames, height, width = (13, 60, 90) if full else (2, 8, 8)
    return model, dict(hidden_states=make(1, frames, 16, height, width), timestep=torch.tensor([500]),
                       encoder_hidden_states=make(1, 226 if full else 8, sizes["text_embed_dim"]))


def svd(full, make):
    """Stable Video Diffusion's U-Net, 14 frames of 576 x 1024: widths 320, 640 and 1280, gated."""
    sizes = {} if full else dict(block_out_channels=(32, 64, 64, 64), num_attention_heads=(2, 4, 4, 4), cross_attention_dim=64,
                                 addition_time_embed_dim=32, projection_class_embeddings_input_dim=96, layers_per_block=1)
    frames, height, width = (14, 72, 128) if full else (2, 16, 16)
    model = diffusers.UNetSpatioTemporalConditionModel(num_frames=frames, **sizes)
    return model, dict(sample=make(1, frames, 8, height, width), timestep=torch.tensor(500.0),
                       encoder_hidden_states=make(1, 1, sizes.get("cross_attention_dim", 1024)),
                       added_time_ids=make(1, 3))


MODELS = {"wan": wan, "ltx": ltx, "cogvideox": cogvideox, "svd": svd}
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}


def step_ms(step, device, repeats):
    """Median milliseconds of a step."""
    step()
    times = []
    for _ in range(repeats):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL", help=f"of {', '.join(MODELS)}; default: all")
    parser.add_argument("--full", action="store_true", help="the published sizes")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--dtype", default=None, choices=["float32", "bfloat16", "float16"],
                        help="default: bfloat16 on a GPU, else float32")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    if unknown := set(arguments.models) - set(MODELS):
        parser.error(f"unknown model: {', '.join(sorted(unknown))}")
    dtype = getattr(torch, arguments.dtype or ("bfloat16" if arguments.device == "cuda" else "float32"))
    torch.manual_seed(0)
    worst = 0.0
    print(f"{'model':10s} {'fused':>5s} {'left':>4s} {'difference':>10s} {'before ms':>10s} {'after ms':>10s}")
    for name in arguments.models:
        with torch.device(arguments.device), torch.no_grad():
            model, inputs = MODELS[name](arguments.full, lambda *shape: torch.randn(shape, dtype=dtype))
            model = model.to(dtype).eval()

            def step():
                return model(**inputs, return_dict=False)[0]

            before = step()
            before_ms = step_ms(step, arguments.device, arguments.repeats)
            report = ingot.fuse(model)
            after = step()
            after_ms = step_ms(step, arguments.device, arguments.repeats)
        difference = ((after.double() - before.double()).norm() / before.double().norm()).item()
        worst = max(worst, difference)
        print(f"{name:10s} {len(report.fused):5d} {len(report.left):4d} {difference:10.1e} {before_ms:10.1f} {after_ms:10.1f}", flush=True)
        del model, inputs, before, after
    return 0 if worst <= TOLERANCES[dtype] else 5


if __name__ == "__main__":
    sys.exit(main())
