// SPDX-License-Identifier: Apache-2.0
//
// Compiled kernels on a device: one loaded from its cubin, and the table of all that were loaded.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "gpu/device.h"
#include "jit/kernel.h"

namespace ingot::gpu {

/// How a loaded kernel is launched, beside its grid and arguments.
struct KernelShape {
  std::string name;  ///< for messages
  int threads = 0, shared_bytes = 0, cluster = 1;
  int shared_percent = jit::all_shared;
};

/// A kernel in a device's context.
class Module {
 public:
  /// The context must be current. Errors unsupported: the driver does not take this code, or the device holds
  /// no cluster of this size; out_of_memory; device.
  static Result<std::shared_ptr<const Module>> load(std::shared_ptr<const Device> device,
                                                    const jit::Cubin& cubin, KernelShape shape);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module();

  CuFunction function() const { return function_; }
  const KernelShape& shape() const { return shape_; }
  /// Clusters that the device holds at once, one block a multiprocessor.
  int resident_clusters() const { return resident_clusters_; }

 private:
  Module(std::shared_ptr<const Device> device, KernelShape shape)
      : device_(std::move(device)), shape_(std::move(shape)) {}
  Result<void> set_up(const jit::Cubin& cubin);

  std::shared_ptr<const Device> device_;
  KernelShape shape_;
  CuModule module_ = nullptr;
  CuFunction function_ = nullptr;
  int resident_clusters_ = 0;
};

/// Kernels loaded so far, by their text: MLPs of one shape share them. Thread-safe.
class ModuleTable {
 public:
  ModuleTable(std::shared_ptr<const Device> device, std::shared_ptr<jit::KernelStore> store)
      : device_(std::move(device)), store_(std::move(store)) {}

  /// Loaded already, or from the store, which may compile it. No lock is held meanwhile. Any context may be
  /// current. Errors: of the store and of Module::load.
  Result<std::shared_ptr<const Module>> get(const jit::KernelText& kernel);
  Result<std::shared_ptr<const Module>> get(const LinearSpec& linear, const KernelTile& tile);
  Result<std::shared_ptr<const Module>> get(const MlpSpec& mlp, const MlpTile& tile);

  /// Whether get() would find it loaded.
  bool has(const LinearSpec& linear, const KernelTile& tile);
  bool has(const MlpSpec& mlp, const MlpTile& tile);

 private:
  std::shared_ptr<const Module> find(const std::string& text);

  std::shared_ptr<const Device> device_;
  std::shared_ptr<jit::KernelStore> store_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Module>> modules_;
};

}  // namespace ingot::gpu
