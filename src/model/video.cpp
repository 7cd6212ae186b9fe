// SPDX-License-Identifier: Apache-2.0
//
// Strides from the models' configuration files: pixels of a token are the autoencoder's spatial stride times
// the patch.
#include "ingot/video.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace ingot {

namespace {

// clang-format off
constexpr std::array video_models{
  // name, height x width x frames, pixels, frame stride, text tokens, catalogue's batch, forwards per step
  VideoModel{"wan2.1-1.3b", {480, 832, 81}, 16, 4, 0, 1, 2},
  VideoModel{"wan2.1-14b", {480, 832, 81}, 16, 4, 0, 1, 2},
  VideoModel{"wan2.2-5b", {704, 1280, 121}, 32, 4, 0, 1, 2},
  VideoModel{"hunyuanvideo", {720, 1280, 129}, 16, 4, 0, 1, 1},
  VideoModel{"hunyuanvideo-1.5", {480, 848, 121}, 16, 4, 0, 1, 2},
  VideoModel{"cogvideox-2b", {480, 720, 49}, 16, 4, 226, 2, 2},
  VideoModel{"cogvideox-5b", {480, 720, 49}, 16, 4, 226, 2, 2},
  VideoModel{"ltx-video-2b", {512, 704, 161}, 32, 8, 0, 2, 2},
  VideoModel{"ltx-video-13b", {512, 704, 161}, 32, 8, 0, 2, 2},
  VideoModel{"ltx-2", {512, 768, 121}, 32, 8, 0, 2, 2},
  VideoModel{"mochi", {480, 848, 163}, 16, 6, 0, 2, 2},
  VideoModel{"allegro", {720, 1280, 88}, 16, 4, 0, 2, 2},
  VideoModel{"svd-320", {576, 1024, 14}, 8, 1, 0, 1, 2},
  VideoModel{"svd-640", {576, 1024, 14}, 16, 1, 0, 1, 2},
  VideoModel{"svd-1280", {576, 1024, 14}, 32, 1, 0, 1, 2},
  VideoModel{"dit-xl", {512, 512, 1}, 16, 1, 0, 1, 2},
  VideoModel{"flux.1", {1024, 1024, 1}, 16, 1, 512, 1, 1},
  VideoModel{"qwen-image", {1328, 1328, 1}, 16, 1, 0, 1, 2},
  VideoModel{"sd3.5-large", {1024, 1024, 1}, 16, 1, 0, 1, 2},
  VideoModel{"flux.2", {1024, 1024, 1}, 16, 1, 0, 1, 1},
};
// clang-format on

constexpr std::int64_t most_edge = 1 << 20;

}  // namespace

const VideoModel* find_video_model(std::string_view name) {
  for (const VideoModel& model : video_models) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

Result<std::int64_t> video_tokens(const VideoModel& model, const VideoSize& size) {
  for (const std::int64_t edge : {size.height, size.width}) {
    if (edge < model.pixels || edge > most_edge) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("resolution: {}x{} is not accepted, give {} to {} pixels an edge", size.height,
                               size.width, model.pixels, most_edge)};
    }
  }
  if (size.frames < 1 || size.frames > most_edge) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("frames: {} is not accepted, give 1 to {}", size.frames, most_edge)};
  }
  const std::int64_t latent_frames = (size.frames - 1) / model.frame_stride + 1;
  const std::int64_t picture = (size.height / model.pixels) * (size.width / model.pixels);  // below 2^34
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (picture > most / latent_frames)
    return Error{ErrorCode::invalid_argument, "resolution and frames: more than 2^40 tokens"};
  return picture * latent_frames + model.text_tokens;
}

Result<VideoSize> parse_resolution(std::string_view text) {
  VideoSize size;
  const auto cross = text.find('x');
  const auto number = [](std::string_view part, std::int64_t& value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc() && end == part.data() + part.size();
  };
  if (cross == std::string_view::npos || !number(text.substr(0, cross), size.height) ||
      !number(text.substr(cross + 1), size.width)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("resolution '{}': give height and width in pixels, such as 480x832", text)};
  }
  return size;
}

}  // namespace ingot
