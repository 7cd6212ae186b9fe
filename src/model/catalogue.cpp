// SPDX-License-Identifier: Apache-2.0
//
// Feed-forward blocks of published models, one line each: widths, activation and bias from the models'
// configuration files and code (diffusers, transformers), tokens from the latent size at the stated
// resolution.
#include <array>
#include <string>

#include "base/nearest.h"
#include "ingot/mlp.h"

namespace ingot {

namespace {

using enum Activation;
constexpr DType bf16 = DType::bf16;

constexpr Mlp plain(std::int64_t dim, std::int64_t hidden, Activation activation) {
  return {dim, hidden, activation, false, true, bf16};
}
constexpr Mlp gated(std::int64_t dim, std::int64_t hidden, Activation activation, bool bias) {
  return {dim, hidden, activation, true, bias, bf16};
}

constexpr std::string_view value_first = "packed, value first";
constexpr std::string_view gate_first = "packed, gate first";
constexpr std::string_view separate = "separate";

// clang-format off
const std::array models{
  // name, title, widths and activation, tokens, at, blocks, gate
  KnownModel{"wan2.1-1.3b", "Wan 2.1 1.3B", plain(1536, 8960, gelu_tanh), 32760, "480x832, 81 frames", 30, ""},
  KnownModel{"wan2.1-14b", "Wan 2.1 and 2.2 14B", plain(5120, 13824, gelu_tanh), 32760, "480x832, 81 frames", 40, ""},
  KnownModel{"wan2.2-5b", "Wan 2.2 TI2V 5B", plain(3072, 14336, gelu_tanh), 27280, "704x1280, 121 frames", 30, ""},
  KnownModel{"hunyuanvideo", "HunyuanVideo, video stream", plain(3072, 12288, gelu_tanh), 118800, "720x1280, 129 frames", 20, ""},
  KnownModel{"hunyuanvideo-text", "HunyuanVideo, text stream", plain(3072, 12288, gelu_tanh), 256, "256 text tokens", 20, ""},
  KnownModel{"hunyuanvideo-1.5", "HunyuanVideo 1.5", plain(2048, 8192, gelu_tanh), 49290, "480p, 121 frames", 54, ""},
  KnownModel{"cogvideox-2b", "CogVideoX 2B", plain(1920, 7680, gelu_tanh), 35552, "480x720, 49 frames, batch 2", 30, ""},
  KnownModel{"cogvideox-5b", "CogVideoX 5B", plain(3072, 12288, gelu_tanh), 35552, "480x720, 49 frames, batch 2", 42, ""},
  KnownModel{"ltx-video-2b", "LTX-Video 2B", plain(2048, 8192, gelu_tanh), 14784, "batch 2", 28, ""},
  KnownModel{"ltx-video-13b", "LTX-Video 13B", plain(4096, 16384, gelu_tanh), 14784, "batch 2", 48, ""},
  KnownModel{"ltx-2", "LTX-2, video stream", plain(4096, 16384, gelu_tanh), 12288, "batch 2", 48, ""},
  KnownModel{"ltx-2-audio", "LTX-2, audio stream", plain(2048, 8192, gelu_tanh), 0, "", 48, ""},
  KnownModel{"mochi", "Mochi 1, video stream", gated(3072, 8192, silu, false), 89040, "480x848, 163 frames, batch 2", 48, value_first},
  KnownModel{"mochi-text", "Mochi 1, text stream", gated(1536, 4096, silu, false), 512, "256 text tokens, batch 2", 47, value_first},
  KnownModel{"allegro", "Allegro", plain(2304, 9216, gelu_tanh), 158400, "720x1280, 88 frames, batch 2", 32, ""},
  KnownModel{"svd-320", "Stable Video Diffusion and AnimateDiff, level 1", gated(320, 1280, gelu_erf, true), 129024, "576x1024, 14 frames", 15, value_first},
  KnownModel{"svd-640", "Stable Video Diffusion and AnimateDiff, level 2", gated(640, 2560, gelu_erf, true), 32256, "576x1024, 14 frames", 15, value_first},
  KnownModel{"svd-1280", "Stable Video Diffusion and AnimateDiff, level 3", gated(1280, 5120, gelu_erf, true), 8064, "576x1024, 14 frames", 15, value_first},
  KnownModel{"dit-xl", "DiT-XL/2", plain(1152, 4608, gelu_tanh), 1024, "512x512", 28, ""},
  KnownModel{"flux.1", "Flux.1", plain(3072, 12288, gelu_tanh), 4608, "1024x1024, 512 text tokens", 57, ""},
  KnownModel{"qwen-image", "Qwen-Image, image stream", plain(3072, 12288, gelu_tanh), 6889, "1328x1328", 60, ""},
  KnownModel{"sd3.5-large", "Stable Diffusion 3.5 Large, image stream", plain(2432, 9728, gelu_tanh), 4096, "1024x1024", 38, ""},
  KnownModel{"flux.2", "Flux.2", gated(6144, 18432, silu, false), 4096, "1024x1024", 56, gate_first},
  KnownModel{"t5-xxl", "T5-XXL encoder", gated(4096, 10240, gelu_tanh, false), 512, "512 text tokens", 24, separate},
  KnownModel{"umt5-xxl", "UMT5-XXL encoder", gated(4096, 10240, gelu_tanh, false), 512, "512 text tokens", 24, separate},
  KnownModel{"clip-l", "CLIP ViT-L/14 text encoder", plain(768, 3072, quick_gelu), 77, "77 text tokens", 12, ""},
  KnownModel{"clip-g", "OpenCLIP ViT-bigG/14 text encoder", plain(1280, 5120, gelu_erf), 77, "77 text tokens", 32, ""},
  KnownModel{"llama-3-8b", "Llama 3 8B", gated(4096, 14336, silu, false), 256, "256 text tokens", 32, separate},
  KnownModel{"qwen2.5-vl-7b", "Qwen2.5-VL 7B", gated(3584, 18944, silu, false), 256, "256 text tokens", 28, separate},
};
// clang-format on

}  // namespace

const std::vector<KnownModel>& known_models() {
  static const std::vector<KnownModel> all(models.begin(), models.end());
  return all;
}

Result<KnownModel> find_model(std::string_view name) {
  std::vector<std::string_view> names;
  for (const KnownModel& model : known_models()) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  return Error{ErrorCode::invalid_argument, unknown_name("model", name, names)};
}

}  // namespace ingot
