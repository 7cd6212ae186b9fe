// SPDX-License-Identifier: Apache-2.0
#include "plan/tuning.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

namespace ingot {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* schema = "ingot.tuning/1";

auto key(const LinearSpec& l, std::int64_t tokens) {
  return std::make_tuple(l.out, l.in, l.activation, l.gated, l.bias, l.dtype, l.numerics, l.aligned, tokens);
}
bool before(const TunedTile& a, const TunedTile& b) {
  return key(a.linear, a.tokens) < key(b.linear, b.tokens);
}

Json to_object(const TunedTile& tuned) {
  const LinearSpec& l = tuned.linear;
  return {{"out", l.out},
          {"in", l.in},
          {"activation", to_string(l.activation)},
          {"gated", l.gated},
          {"bias", l.bias},
          {"dtype", to_string(l.dtype)},
          {"numerics", to_string(l.numerics)},
          {"aligned", l.aligned},
          {"tokens", tuned.tokens},
          {"tile", label(tuned.tile)},
          {"us", tuned.us}};
}

template <class T>
std::optional<T> field(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return std::nullopt;
  if constexpr (std::is_same_v<T, bool>) {
    if (!found->is_boolean()) return std::nullopt;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!found->is_string()) return std::nullopt;
  } else if constexpr (std::is_same_v<T, double>) {
    if (!found->is_number()) return std::nullopt;
  } else {
    if (!found->is_number_integer()) return std::nullopt;
  }
  return found->template get<T>();
}

std::optional<TunedTile> to_tuned(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  const auto out = field<std::int64_t>(object, "out"), in = field<std::int64_t>(object, "in"),
             tokens = field<std::int64_t>(object, "tokens");
  const auto gated = field<bool>(object, "gated"), bias = field<bool>(object, "bias"),
             aligned = field<bool>(object, "aligned");
  const auto activation = parse_activation(field<std::string>(object, "activation").value_or(""));
  const auto dtype = parse_dtype(field<std::string>(object, "dtype").value_or(""));
  const auto numerics = parse_numerics(field<std::string>(object, "numerics").value_or(""));
  const auto tile = parse_tile(field<std::string>(object, "tile").value_or(""));
  const auto us = field<double>(object, "us");
  if (!out || !in || !tokens || !gated || !bias || !aligned || !activation || !dtype || !numerics || !tile ||
      !us || !(*us > 0) || !std::isfinite(*us)) {
    return std::nullopt;
  }
  TunedTile tuned;
  tuned.linear.out = *out;
  tuned.linear.in = *in;
  tuned.linear.activation = *activation;
  tuned.linear.gated = *gated;
  tuned.linear.bias = *bias;
  tuned.linear.dtype = *dtype;
  tuned.linear.numerics = *numerics;
  tuned.linear.aligned = *aligned;
  tuned.tokens = *tokens;
  tuned.tile = *tile;
  tuned.us = *us;
  return tuned;
}

}  // namespace

TuningTable::TuningTable(std::string device, std::string kernels)
    : device_(std::move(device)), kernels_(std::move(kernels)) {}

void TuningTable::add(TunedTile tuned) {
  tuned.linear.gate_first = true;
  const auto at = std::lower_bound(tiles_.begin(), tiles_.end(), tuned, before);
  if (at == tiles_.end() || before(tuned, *at)) {
    tiles_.insert(at, tuned);
  } else if (tuned.us < at->us) {
    *at = tuned;
  }
}

void TuningTable::replace(TunedTile tuned) {
  std::erase_if(tiles_, [&](const TunedTile& old) {
    return key(old.linear, old.tokens) == key(tuned.linear, tuned.tokens);
  });
  add(tuned);
}

const KernelTile* TuningTable::find(const LinearSpec& linear, std::int64_t representative) const {
  const auto wanted = key(linear, representative);
  const auto at = std::lower_bound(
      tiles_.begin(), tiles_.end(), wanted,
      [](const TunedTile& tuned, const auto& other) { return key(tuned.linear, tuned.tokens) < other; });
  return at != tiles_.end() && key(at->linear, at->tokens) == wanted ? &at->tile : nullptr;
}

std::string to_json(const TuningTable& table) {
  Json tiles = Json::array();
  for (const TunedTile& tuned : table.tiles()) tiles.push_back(to_object(tuned));
  const Json document{{"schema", schema},
                      {"device", table.device()},
                      {"kernels", table.kernels()},
                      {"tiles", std::move(tiles)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<TuningTable> parse_tuning(std::string_view document) {
  const Json json = Json::parse(document, nullptr, false);
  const Error unreadable{ErrorCode::unreadable, std::string("tuning: not a document of ") + schema};
  if (!json.is_object() || field<std::string>(json, "schema") != schema) return unreadable;
  const auto device = field<std::string>(json, "device"), kernels = field<std::string>(json, "kernels");
  const auto tiles = json.find("tiles");
  if (!device || !kernels || tiles == json.end() || !tiles->is_array()) return unreadable;
  TuningTable table(*device, *kernels);
  for (const Json& object : *tiles) {
    if (const auto tuned = to_tuned(object)) table.add(*tuned);
  }
  return table;
}

TuningTable tuning_for(std::string_view document, const std::string& device, const std::string& kernels) {
  auto parsed = parse_tuning(document);
  if (parsed && parsed->device() == device && parsed->kernels() == kernels) return std::move(parsed).value();
  return {device, kernels};
}

}  // namespace ingot
