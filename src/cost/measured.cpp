// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/publish.h"
#include "ingot/cost.h"

namespace ingot {

namespace {

using Json = nlohmann::json;

Error unreadable(const std::string& path, std::string_view why) {
  return {ErrorCode::unreadable, fmt::format("{}: {}", path, why)};
}

std::optional<double> median_of(const Json& rung) {
  const auto time = rung.find("time_us");
  if (time == rung.end() || !time->is_object() || !time->contains("median") || !(*time)["median"].is_number())
    return std::nullopt;
  const double us = (*time)["median"].get<double>();
  return us > 0 ? std::optional(us) : std::nullopt;
}

/// Throws what the JSON library throws for a document of another shape.
std::optional<MeasuredMlp> read_ladder(const Json& ladder) {
  MeasuredMlp out;
  const Json& mlp = ladder.at("mlp");
  const auto activation = parse_activation(mlp.at("activation").get<std::string>());
  const auto dtype = parse_dtype(mlp.at("dtype").get<std::string>());
  if (!activation || !dtype) return std::nullopt;
  out.mlp = {.dim = mlp.at("dim").get<std::int64_t>(),
             .hidden = mlp.at("hidden").get<std::int64_t>(),
             .activation = *activation,
             .gated = mlp.at("gated").get<bool>(),
             .bias = mlp.at("bias").get<bool>(),
             .dtype = *dtype};
  out.tokens = mlp.at("tokens").get<std::int64_t>();
  out.device = ladder.at("device").at("name").get<std::string>();
  for (const Json& rung : ladder.at("rungs")) {
    const auto us = median_of(rung);
    if (us && rung.at("name") == "unfused" && rung.at("ok").get<bool>()) out.unfused_us = *us;
  }
  if (out.unfused_us <= 0 || out.tokens <= 0) return std::nullopt;
  // Where no rung is faster Ingot stays out of the way.
  out.fused_us = out.unfused_us;
  out.fused_rung = "unfused";
  for (const Json& rung : ladder.at("rungs")) {
    const auto us = median_of(rung);
    if (!us || !rung.at("ok").get<bool>() || *us >= out.fused_us) continue;
    out.fused_us = *us;
    out.fused_rung = rung.at("name").get<std::string>();
  }
  return out;
}

}  // namespace

Result<std::vector<MeasuredMlp>> read_measured(const std::string& path) {
  const std::string text = base::read_whole(path);
  if (text.empty()) return unreadable(path, "is empty or cannot be read");
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded() || !document.is_object() || document.value("schema", Json()) != "ingot.bench/1")
    return unreadable(path, "is not a document of ingot bench --json");
  std::vector<MeasuredMlp> out;
  try {
    const Json ladders = document.contains("ladders") ? document["ladders"] : Json::array({document});
    for (const Json& ladder : ladders) {
      if (auto measured = read_ladder(ladder)) out.push_back(*std::move(measured));
    }
  } catch (const Json::exception&) {
    return unreadable(path, "lacks keys that ingot bench --json writes");
  }
  if (out.empty()) return unreadable(path, "holds no ladder with a time of the rung unfused");
  return out;
}

}  // namespace ingot
