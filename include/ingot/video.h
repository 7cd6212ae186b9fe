// SPDX-License-Identifier: Apache-2.0
//
// How many tokens a known model makes of a picture or a video, from its autoencoder's and its patches'
// strides.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ingot/status.h"

namespace ingot {

struct VideoSize {
  std::int64_t height = 0, width = 0;  ///< pixels
  std::int64_t frames = 1;
};

struct VideoModel {
  std::string_view name;     ///< of the catalogue (find_model)
  VideoSize usual;           ///< what the catalogue's tokens stand for
  std::int64_t pixels = 16;  ///< edge of the square that is one token
  std::int64_t frame_stride =
      1;  ///< frames of a token in time: the first is one of its own, then every so many
  std::int64_t text_tokens = 0;      ///< that go through the same feed-forward
  std::int64_t catalogue_batch = 1;  ///< samples that the catalogue's tokens are of
  int guidance = 1;  ///< forwards per step with the model's usual guidance: 2 classifier-free, 1 none
};

/// Null for a model whose tokens are not of pictures or whose strides are not in the table.
const VideoModel* find_video_model(std::string_view name);

/// Tokens of one sample. Edges that are no multiple are rounded down, as the models' pipelines do. Error
/// invalid_argument: an edge below one token, frames below 1, more tokens than 2^40.
Result<std::int64_t> video_tokens(const VideoModel& model, const VideoSize& size);

/// "480x832" as height and width. Error invalid_argument.
Result<VideoSize> parse_resolution(std::string_view text);

}  // namespace ingot
