// SPDX-License-Identifier: Apache-2.0
#include "shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace ingot::gpu_bench {

namespace {

Shape shape(const char* name, std::int64_t tokens, std::int64_t dim, std::int64_t hidden,
            Activation activation, bool bias, bool gated, GateLayout layout = GateLayout::separate) {
  return {name, tokens, {dim, hidden, activation, gated, bias, DType::bf16}, layout};
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t colon = text.find(':'); colon != std::string::npos; colon = text.find(':', start)) {
    parts.push_back(text.substr(start, colon - start));
    start = colon + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

bool parse(const std::string& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

const std::vector<Shape>& known_shapes() {
  using enum Activation;
  constexpr auto packed = GateLayout::packed_value_first;
  static const std::vector<Shape> shapes{
      shape("seed_relu_64", 64, 256, 1024, relu, true, false),
      shape("seed_relu_1k", 1024, 256, 1024, relu, true, false),
      shape("seed_relu_16k", 16384, 256, 1024, relu, true, false),
      shape("blog_geglu_128", 128, 768, 3072, gelu_tanh, false, true),
      shape("blog_geglu_8k", 8192, 768, 3072, gelu_tanh, false, true),
      shape("clip_l_77", 77, 768, 3072, gelu_erf, true, false),
      shape("dit_xl_1k", 1024, 1152, 4608, gelu_tanh, true, false),
      shape("wan1.3b_256", 256, 1536, 8960, gelu_tanh, true, false),
      shape("t5xxl_512", 512, 4096, 10240, gelu_tanh, false, true),
      shape("ltx2b_5k", 4992, 2048, 8192, gelu_tanh, true, false),
      shape("svd320_129k", 129024, 320, 1280, gelu_erf, true, true, packed),
      shape("svd640_32k", 32256, 640, 2560, gelu_erf, true, true, packed),
      shape("svd1280_8k", 8064, 1280, 5120, gelu_erf, true, true, packed),
      shape("cogx5b_18k", 17776, 3072, 12288, gelu_tanh, true, false),
      shape("wan1.3b_33k", 32760, 1536, 8960, gelu_tanh, true, false),
      shape("wan14b_33k", 32760, 5120, 13824, gelu_tanh, true, false)};
  return shapes;
}

Result<Shape> parse_shape(const std::string& text) {
  const auto known = std::ranges::find(known_shapes(), text, &Shape::name);
  if (known != known_shapes().end()) return *known;
  const auto wrong = [&] {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("shape {}: give NAME:TOKENS:DIM:HIDDEN:ACT[:gated|:packed][:nobias]", text)};
  };
  const std::vector<std::string> parts = split(text);
  if (parts.size() < 5) return wrong();
  Shape made;
  made.name = parts[0];
  made.mlp.dtype = DType::bf16;
  if (!parse(parts[1], made.tokens) || !parse(parts[2], made.mlp.dim) || !parse(parts[3], made.mlp.hidden))
    return wrong();
  const auto activation = parse_activation(parts[4]);
  if (!activation) return activation.error();
  made.mlp.activation = *activation;
  for (std::size_t i = 5; i < parts.size(); ++i) {
    if (parts[i] == "nobias") {
      made.mlp.bias = false;
    } else if (parts[i] == "gated" || parts[i] == "packed") {
      made.mlp.gated = true;
      if (parts[i] == "packed") made.layout = GateLayout::packed_value_first;
    } else {
      return wrong();
    }
  }
  if (auto ok = validate(made.mlp, made.tokens); !ok) return ok.error();
  if (made.tokens == 0) return wrong();
  return made;
}

}  // namespace ingot::gpu_bench
