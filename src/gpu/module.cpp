// SPDX-License-Identifier: Apache-2.0
#include "gpu/module.h"

#include <fmt/format.h>

#include "gpu/launch.h"

namespace ingot::gpu {

namespace {

// CUfunction_attribute values of the driver's interface.
constexpr int most_dynamic_shared = 8, preferred_shared_percent = 9;
// CUresult: code that the driver is too old for, or of another chip.
constexpr CuResult invalid_ptx = 218, unsupported_ptx_version = 222, no_binary_for_gpu = 209;
constexpr CuResult invalid_image = 200;
constexpr int relaxed_capture = 2;  // CUstreamCaptureMode

/// While it lives, calls of this thread that a stream capture elsewhere forbids (loading code may allocate)
/// are allowed: nothing of them is meant to be captured.
class UncapturedCalls {
 public:
  explicit UncapturedCalls(const Driver& driver) : driver_(driver) {
    driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  UncapturedCalls(const UncapturedCalls&) = delete;
  UncapturedCalls& operator=(const UncapturedCalls&) = delete;
  ~UncapturedCalls() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }

 private:
  const Driver& driver_;
  int mode_ = relaxed_capture;
};

Error load_error(const Driver& driver, CuResult result, const std::string& name) {
  Error error = driver_error(driver, result, "cuModuleLoadData");
  if (result == invalid_image || result == no_binary_for_gpu || result == invalid_ptx ||
      result == unsupported_ptx_version) {
    error = {ErrorCode::unsupported,
             fmt::format("{}; update the driver, or use an NVRTC of its CUDA version (INGOT_NVRTC)",
                         error.message)};
  }
  error.message = fmt::format("kernel {}: {}", name, error.message);
  return error;
}

}  // namespace

Result<std::shared_ptr<const Module>> Module::load(std::shared_ptr<const Device> device,
                                                   const jit::Cubin& cubin, KernelShape shape) {
  const UncapturedCalls uncaptured(device->driver());
  const std::shared_ptr<Module> module(new Module(std::move(device), std::move(shape)));
  if (auto ok = module->set_up(cubin); !ok) return ok.error();
  return std::shared_ptr<const Module>(module);
}

Result<void> Module::set_up(const jit::Cubin& cubin) {
  const Driver& driver = device_->driver();
  const auto failed = [&](CuResult result, const char* call) {
    Error error = driver_error(driver, result, call);
    error.message = fmt::format("kernel {}: {}", shape_.name, error.message);
    return error;
  };
  CuModule loaded = nullptr;
  if (const CuResult r = driver.cuModuleLoadData(&loaded, cubin.image.data()); r != 0)
    return load_error(driver, r, shape_.name);
  module_ = loaded;
  if (const CuResult r = driver.cuModuleGetFunction(&function_, module_, jit::entry_point); r != 0)
    return failed(r, "cuModuleGetFunction");
  if (const CuResult r = driver.cuFuncSetAttribute(function_, most_dynamic_shared, shape_.shared_bytes);
      r != 0)
    return failed(r, "cuFuncSetAttribute");
  if (const CuResult r =
          driver.cuFuncSetAttribute(function_, preferred_shared_percent, shape_.shared_percent);
      r != 0)
    return failed(r, "cuFuncSetAttribute");
  resident_clusters_ = device_->description().gpu.multiprocessors;
  if (shape_.cluster == 1) return {};
  LaunchShape launch(shape_, static_cast<std::uint32_t>(shape_.cluster), nullptr, false);
  if (const CuResult r = driver.cuOccupancyMaxActiveClusters(&resident_clusters_, function_, launch.config());
      r != 0) {
    return failed(r, "cuOccupancyMaxActiveClusters");
  }
  if (resident_clusters_ >= 1) return {};
  return Error{ErrorCode::unsupported,
               fmt::format("kernel {}: this device holds no cluster of {} blocks of {} bytes", shape_.name,
                           shape_.cluster, shape_.shared_bytes)};
}

Module::~Module() {
  if (module_ == nullptr) return;
  const CurrentContext current(*device_);
  device_->driver().cuModuleUnload(module_);
}

Result<std::shared_ptr<const Module>> ModuleTable::get(const LinearSpec& linear, const KernelTile& tile) {
  return get(jit::kernel_text(linear, tile, device_->target()));
}

Result<std::shared_ptr<const Module>> ModuleTable::get(const MlpSpec& mlp, const MlpTile& tile) {
  return get(jit::kernel_text(mlp, tile, device_->target()));
}

Result<std::shared_ptr<const Module>> ModuleTable::get(const jit::KernelText& kernel) {
  if (auto module = find(kernel.text)) return module;
  auto cubin = store_->get(kernel);
  if (!cubin) return cubin.error();
  const CurrentContext current(*device_);
  if (auto ok = current.ready(); !ok) return ok.error();
  auto module =
      Module::load(device_, **cubin,
                   {kernel.name, kernel.threads, kernel.shared_bytes, kernel.cluster, kernel.shared_percent});
  if (!module) return module.error();
  const std::lock_guard lock(mutex_);
  // Another thread may have been faster; its module stays, this one goes.
  return modules_.emplace(kernel.text, std::move(module).value()).first->second;
}

bool ModuleTable::has(const LinearSpec& linear, const KernelTile& tile) {
  return find(jit::kernel_text(linear, tile, device_->target()).text) != nullptr;
}

bool ModuleTable::has(const MlpSpec& mlp, const MlpTile& tile) {
  return find(jit::kernel_text(mlp, tile, device_->target()).text) != nullptr;
}

std::shared_ptr<const Module> ModuleTable::find(const std::string& text) {
  const std::lock_guard lock(mutex_);
  const auto found = modules_.find(text);
  return found == modules_.end() ? nullptr : found->second;
}

}  // namespace ingot::gpu
