// SPDX-License-Identifier: Apache-2.0
#include "prepared.h"

#include <algorithm>
#include <cstring>

namespace ingot::torch_op {

namespace {

/// Calls f with address and bytes of every bias there is, in a fixed order.
template <class F>
void for_each_bias(const Request& request, const F& f) {
  const auto element = static_cast<std::int64_t>(size_of(request.mlp.dtype));
  const std::int64_t up =
      request.weights.layout == GateLayout::separate ? request.mlp.hidden : 2 * request.mlp.hidden;
  const std::array<std::pair<const void*, std::int64_t>, 3> biases{
      {{request.weights.up.bias, up},
       {request.weights.gate.bias, request.mlp.hidden},
       {request.weights.down.bias, request.mlp.dim}}};
  for (const auto& [address, elements] : biases) {
    if (address != nullptr)
      f(static_cast<const std::byte*>(address), static_cast<std::size_t>(elements * element));
  }
}

}  // namespace

std::size_t PreparedTable::KeyHash::operator()(const Key& key) const {
  // The addresses tell entries apart almost alone; the odd multiplier is that of the golden ratio.
  std::uint64_t hash = 0;
  const auto mix = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32U;
  };
  for (const void* address : key.addresses) mix(reinterpret_cast<std::uintptr_t>(address));
  mix(static_cast<std::uint64_t>(key.mlp.dim));
  mix(static_cast<std::uint64_t>(key.mlp.hidden));
  mix((static_cast<std::uint64_t>(key.mlp.activation) << 16U) |
      (static_cast<std::uint64_t>(key.numerics) << 8U) | static_cast<std::uint64_t>(key.layout));
  mix((static_cast<std::uint64_t>(key.device) << 32U) | static_cast<std::uint32_t>(key.number));
  return hash;
}

PreparedTable::Key PreparedTable::key_of(const Request& request) {
  const Weights& weights = request.weights;
  Key key;
  key.addresses = {weights.up.weight, weights.up.bias,     weights.gate.weight,
                   weights.gate.bias, weights.down.weight, weights.down.bias};
  key.strides = {weights.up.row_stride, weights.gate.row_stride, weights.down.row_stride};
  key.mlp = request.mlp;
  key.layout = weights.layout;
  key.numerics = request.numerics;
  key.device = request.place.is_cuda() ? DeviceKind::cuda : DeviceKind::cpu;
  key.number = request.place.is_cuda() ? request.place.index : cpu_threads();
  return key;
}

std::vector<std::byte> PreparedTable::copy_biases(const Request& request) {
  std::vector<std::byte> copy;
  for_each_bias(request, [&](const std::byte* data, std::size_t bytes) {
    copy.insert(copy.end(), data, data + bytes);
  });
  return copy;
}

bool PreparedTable::same_biases(const Request& request, const std::vector<std::byte>& biases) {
  std::size_t at = 0;
  bool same = true;
  for_each_bias(request, [&](const std::byte* data, std::size_t bytes) {
    same = same && std::memcmp(biases.data() + at, data, bytes) == 0;
    at += bytes;
  });
  return same;
}

Result<Engine> PreparedTable::engine(DeviceKind device, int number) {
  const std::lock_guard lock(engine_mutex_);
  const auto found = engines_.find({device, number});
  if (found != engines_.end()) return found->second;
  EngineOptions options;
  options.device = device;
  (device == DeviceKind::cpu ? options.threads : options.ordinal) = number;
  auto opened = Engine::open(options);
  if (!opened) return opened.error();
  return engines_.emplace(std::pair{device, number}, std::move(opened).value()).first->second;
}

Result<PreparedMlp> PreparedTable::find(const Request& request) {
  const Key key = key_of(request);
  const bool on_cpu = key.device == DeviceKind::cpu;
  const std::uint64_t now = clock_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::shared_lock lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end() && (!on_cpu || same_biases(request, found->second->biases))) {
      found->second->last_used.store(now, std::memory_order_relaxed);
      return found->second->mlp;
    }
  }
  auto opened = engine(key.device, key.number);
  if (!opened) return opened.error();
  // Biases are copied before the engine reads them: were they written in between, the next look-up sees it.
  std::vector<std::byte> biases;
  if (on_cpu) biases = copy_biases(request);
  auto prepared = opened->prepare(request.mlp, request.weights, {.numerics = request.numerics, .rung = {}});
  if (!prepared) return prepared.error();
  auto entry = std::make_shared<Entry>(std::move(prepared).value());
  entry->biases = std::move(biases);
  entry->last_used.store(now, std::memory_order_relaxed);
  PreparedMlp mlp = entry->mlp;
  const std::unique_lock lock(mutex_);
  make_room();
  entries_.insert_or_assign(key, std::move(entry));
  return mlp;
}

void PreparedTable::make_room() {
  if (entries_.size() < most_entries) return;
  // An eighth at once, so that the search through all of them is rare.
  std::vector<std::uint64_t> used;
  used.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) used.push_back(entry->last_used.load(std::memory_order_relaxed));
  const auto border = used.begin() + static_cast<std::ptrdiff_t>(used.size() / 8);
  std::nth_element(used.begin(), border, used.end());
  std::erase_if(entries_, [&](const auto& item) {
    return item.second->last_used.load(std::memory_order_relaxed) <= *border;
  });
}

std::size_t PreparedTable::size() const {
  const std::shared_lock lock(mutex_);
  return entries_.size();
}

}  // namespace ingot::torch_op
