// SPDX-License-Identifier: Apache-2.0
//
// A GPU with all that the environment says: driver, compiler, caches, the vendor's library, measured tiles.
#pragma once

#include "base/env.h"
#include "gpu/executor.h"

namespace ingot::gpu {

/// Errors unsupported: no driver, compiler or fitting GPU, each says what to do; invalid_argument: no such
/// ordinal, a description of another kind; device. `description` unset: the device's own.
Result<std::shared_ptr<const Gpu>> open(const base::Environment& environment, int ordinal,
                                        const std::optional<DeviceDescription>& description = {});

/// What `ingot bench --tune` measured on such a device with these kernels, from the cache folder; empty where
/// it never ran.
TuningTable load_tuning(const base::Environment& environment, const std::string& device);

/// Keeps measured choices in the cache folder, beside those of other MLPs that are there. Errors
/// unsupported: there is no cache folder; unreadable: it cannot be written.
Result<void> store_tuning(const base::Environment& environment, const std::string& device,
                          const TunedChoices& choices);

}  // namespace ingot::gpu
