// SPDX-License-Identifier: Apache-2.0
//
// Engines by device and prepared MLPs by weights, so that a call finds ready what an earlier one made.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ingot/engine.h"
#include "request.h"

namespace ingot::torch_op {

/// Thread-safe. A prepared MLP stands for the addresses of its weights, not for their contents: on a GPU
/// kernels read the weights in place, and so does the CPU but for biases, whose copy is compared with the
/// tensor at every look-up. So weights may be overwritten, freed and allocated anew at any time.
class PreparedTable {
 public:
  /// Entries kept; the least recently used go first. A model has tens to hundreds of MLPs.
  static constexpr std::size_t most_entries = 4096;

  Result<PreparedMlp> find(const Request& request);

  /// For tests.
  std::size_t size() const;

 private:
  struct Key {
    std::array<const void*, 6> addresses{};  ///< weight and bias of up, gate, down
    std::array<std::int64_t, 3> strides{};
    Mlp mlp;
    GateLayout layout = GateLayout::separate;
    Numerics numerics = Numerics::match;
    DeviceKind device = DeviceKind::cpu;
    int number = 0;  ///< which GPU, or how many threads

    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Entry {
    explicit Entry(PreparedMlp prepared) : mlp(std::move(prepared)) {}
    PreparedMlp mlp;
    std::vector<std::byte> biases;  ///< CPU: as they were when the MLP was prepared
    std::atomic<std::uint64_t> last_used{0};
  };

  static Key key_of(const Request& request);
  static std::vector<std::byte> copy_biases(const Request& request);
  static bool same_biases(const Request& request, const std::vector<std::byte>& biases);

  Result<Engine> engine(DeviceKind device, int number);
  void make_room();

  mutable std::shared_mutex mutex_;  ///< of entries_
  std::unordered_map<Key, std::shared_ptr<Entry>, KeyHash> entries_;
  std::atomic<std::uint64_t> clock_{0};

  std::mutex engine_mutex_;
  std::map<std::pair<DeviceKind, int>, Engine> engines_;
};

}  // namespace ingot::torch_op
