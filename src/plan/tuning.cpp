// SPDX-License-Identifier: Apache-2.0
#include "plan/tuning.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

namespace ingot {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* schema = "ingot.tuning/1";
constexpr const char* two_kernels = "pair";  // in the place of a tile

auto key(const TunedTile& tuned) {
  const LinearSpec& l = tuned.linear;
  return std::tuple(l.out, l.in, l.activation, l.gated, l.bias, l.dtype, l.numerics, l.aligned, tuned.tokens);
}
auto key(const TunedMlp& tuned) {
  const MlpSpec& m = tuned.mlp;
  return std::tuple(m.dim, m.hidden, m.activation, m.gated, m.up_bias, m.down_bias, m.dtype, m.numerics,
                    m.aligned, tuned.tokens);
}

/// Where one of this key is, or would be.
template <class Tuned>
auto place(std::vector<Tuned>& sorted, const Tuned& tuned) {
  return std::ranges::lower_bound(sorted, key(tuned), {}, [](const Tuned& each) { return key(each); });
}
template <class Tuned>
const Tuned* find_in(const std::vector<Tuned>& sorted, const Tuned& wanted) {
  const auto key_of = [](const Tuned& each) { return key(each); };
  const auto at = std::ranges::lower_bound(sorted, key(wanted), {}, key_of);
  return at != sorted.end() && key(*at) == key(wanted) ? &*at : nullptr;
}
/// Keeps the faster, or the new one.
template <class Tuned>
void put(std::vector<Tuned>& sorted, Tuned tuned, bool always) {
  const auto at = place(sorted, tuned);
  if (at == sorted.end() || key(*at) != key(tuned)) {
    sorted.insert(at, tuned);
  } else if (always || tuned.us < at->us) {
    *at = tuned;
  }
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
Json to_object(const TunedMlp& tuned) {
  const MlpSpec& m = tuned.mlp;
  return {{"dim", m.dim},
          {"hidden", m.hidden},
          {"activation", to_string(m.activation)},
          {"gated", m.gated},
          {"up_bias", m.up_bias},
          {"down_bias", m.down_bias},
          {"dtype", to_string(m.dtype)},
          {"numerics", to_string(m.numerics)},
          {"aligned", m.aligned},
          {"tokens", tuned.tokens},
          {"tile", tuned.tile ? label(*tuned.tile) : two_kernels},
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

/// What both kinds of lines have in common; false: a field is missing.
template <class Spec>
bool read_common(const Json& object, Spec& spec, std::int64_t& tokens, double& us) {
  const auto gated = field<bool>(object, "gated"), aligned = field<bool>(object, "aligned");
  const auto activation = parse_activation(field<std::string>(object, "activation").value_or(""));
  const auto dtype = parse_dtype(field<std::string>(object, "dtype").value_or(""));
  const auto numerics = parse_numerics(field<std::string>(object, "numerics").value_or(""));
  const auto count = field<std::int64_t>(object, "tokens");
  const auto time = field<double>(object, "us");
  if (!gated || !aligned || !activation || !dtype || !numerics || !count || !time || !(*time > 0) ||
      !std::isfinite(*time)) {
    return false;
  }
  spec.gated = *gated;
  spec.aligned = *aligned;
  spec.activation = *activation;
  spec.dtype = *dtype;
  spec.numerics = *numerics;
  tokens = *count;
  us = *time;
  return true;
}

std::optional<TunedTile> to_tuned_tile(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  TunedTile tuned;
  const auto out = field<std::int64_t>(object, "out"), in = field<std::int64_t>(object, "in");
  const auto bias = field<bool>(object, "bias");
  const auto tile = parse_tile(field<std::string>(object, "tile").value_or(""));
  if (!out || !in || !bias || !tile || !read_common(object, tuned.linear, tuned.tokens, tuned.us))
    return std::nullopt;
  tuned.linear.out = *out;
  tuned.linear.in = *in;
  tuned.linear.bias = *bias;
  tuned.tile = *tile;
  return tuned;
}

std::optional<TunedMlp> to_tuned_mlp(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  TunedMlp tuned;
  const auto dim = field<std::int64_t>(object, "dim"), hidden = field<std::int64_t>(object, "hidden");
  const auto up_bias = field<bool>(object, "up_bias"), down_bias = field<bool>(object, "down_bias");
  const std::string name = field<std::string>(object, "tile").value_or("");
  if (!dim || !hidden || !up_bias || !down_bias || !read_common(object, tuned.mlp, tuned.tokens, tuned.us))
    return std::nullopt;
  if (name != two_kernels) {
    const auto tile = parse_mlp_tile(name);
    if (!tile) return std::nullopt;
    tuned.tile = *tile;
  }
  tuned.mlp.dim = *dim;
  tuned.mlp.hidden = *hidden;
  tuned.mlp.up_bias = *up_bias;
  tuned.mlp.down_bias = *down_bias;
  return tuned;
}

}  // namespace

TuningTable::TuningTable(std::string device, std::string kernels)
    : device_(std::move(device)), kernels_(std::move(kernels)) {}

void TuningTable::add(TunedTile tuned) {
  tuned.linear.gate_first = true;
  put(choices_.tiles, tuned, false);
}
void TuningTable::add(TunedMlp tuned) {
  tuned.mlp.gate_first = true;
  put(choices_.mlps, tuned, false);
}

void TuningTable::replace(const TunedChoices& choices) {
  for (TunedTile tuned : choices.tiles) {
    tuned.linear.gate_first = true;
    put(choices_.tiles, tuned, true);
  }
  for (TunedMlp tuned : choices.mlps) {
    tuned.mlp.gate_first = true;
    put(choices_.mlps, tuned, true);
  }
}

const KernelTile* TuningTable::find(const LinearSpec& linear, std::int64_t representative) const {
  const TunedTile* const found = find_in(choices_.tiles, {linear, representative, {}, 0});
  return found == nullptr ? nullptr : &found->tile;
}
const TunedMlp* TuningTable::find(const MlpSpec& mlp, std::int64_t representative) const {
  return find_in(choices_.mlps, {mlp, representative, {}, 0});
}

std::string to_json(const TuningTable& table) {
  Json tiles = Json::array(), mlps = Json::array();
  for (const TunedTile& tuned : table.tiles()) tiles.push_back(to_object(tuned));
  for (const TunedMlp& tuned : table.mlps()) mlps.push_back(to_object(tuned));
  const Json document{{"schema", schema},
                      {"device", table.device()},
                      {"kernels", table.kernels()},
                      {"tiles", std::move(tiles)},
                      {"mlps", std::move(mlps)}};
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
    if (auto tuned = to_tuned_tile(object)) table.add(*tuned);
  }
  // Documents from before there were kernels of a whole MLP have none.
  if (const auto mlps = json.find("mlps"); mlps != json.end() && mlps->is_array()) {
    for (const Json& object : *mlps) {
      if (auto tuned = to_tuned_mlp(object)) table.add(*tuned);
    }
  }
  return table;
}

TuningTable tuning_for(std::string_view document, const std::string& device, const std::string& kernels) {
  auto parsed = parse_tuning(document);
  if (parsed && parsed->device() == device && parsed->kernels() == kernels) return std::move(parsed).value();
  return {device, kernels};
}

}  // namespace ingot
