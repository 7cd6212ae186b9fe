// SPDX-License-Identifier: Apache-2.0
//
// A GPU as the engine sees it: MLPs run as one or two launches of kernels compiled for their shape, or by the
// vendor's library where that was asked for.
#pragma once

#include <memory>

#include "gpu/gemm_choice.h"
#include "gpu/module.h"
#include "plan/executor.h"
#include "plan/tuning.h"

namespace ingot::gpu {

/// What everything prepared on one engine shares.
struct Gpu {
  std::shared_ptr<const Device> device;
  std::shared_ptr<ModuleTable> modules;
  DeviceDescription description;           ///< what is planned with
  std::shared_ptr<LibrarySource> library;  ///< null: there are no rungs of it
  TuningTable tuned{"", ""};               ///< measured tiles, which come before forecasts
};

struct GpuOptions {
  std::optional<DeviceDescription> description{};    ///< unset: the device's own
  std::shared_ptr<LibrarySource> library = nullptr;  ///< as Gpu's
  TuningTable tuned{"", ""};                         ///< as Gpu's
};

/// Error invalid_argument: a description of another kind of device.
Result<std::shared_ptr<const Gpu>> open(std::shared_ptr<const Device> device,
                                        std::shared_ptr<jit::KernelStore> store,
                                        const GpuOptions& options = {});

/// Errors as Engine::prepare; a weight that is not in this device's memory is an invalid_argument.
Result<std::shared_ptr<const Executor>> prepare(std::shared_ptr<const Gpu> gpu, const Mlp& mlp,
                                                const Weights& weights, const PrepareOptions& options);

}  // namespace ingot::gpu
