// SPDX-License-Identifier: Apache-2.0
#include "gpu/open.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/publish.h"
#include "gpu/nvrtc.h"
#include "jit/store.h"

namespace ingot::gpu {

namespace {

/// Of the device code: what was measured holds for the kernels it was measured with.
std::string kernels_identity() {
  std::string all;
  for (const jit::SourceFile& file : jit::kernel_sources()) {
    all += file.name;
    all += '\0';
    all += file.text;
    all += '\0';
  }
  return to_string(hash_of(all));
}

/// One file a model of GPU: their names are no file names.
std::optional<std::string> tuning_path(const base::Environment& environment, const std::string& device) {
  const auto folder = base::cache_folder(environment);
  if (!folder) return std::nullopt;
  return fmt::format("{}/tuning/{}.json", *folder, to_string(hash_of(device)));
}

}  // namespace

Result<std::shared_ptr<const Gpu>> open(const base::Environment& environment, int ordinal,
                                        const std::optional<DeviceDescription>& description) {
  auto driver = open_driver(environment);
  if (!driver) return driver.error();
  auto device = Device::open(std::move(driver).value(), ordinal);
  if (!device) return device.error();
  auto compiler = open_nvrtc(environment);
  if (!compiler) return compiler.error();
  auto store =
      std::make_shared<jit::CachedKernelStore>(std::move(compiler).value(), jit::kernel_cache(environment));
  GpuOptions options{.description = description,
                     .library = std::make_shared<LibrarySource>(environment),
                     .tuned = load_tuning(environment, (*device)->description().name)};
  return open(std::move(device).value(), std::move(store), options);
}

TuningTable load_tuning(const base::Environment& environment, const std::string& device) {
  const auto path = tuning_path(environment, device);
  return tuning_for(path ? base::read_whole(*path) : std::string(), device, kernels_identity());
}

Result<void> store_tuning(const base::Environment& environment, const std::string& device,
                          const TunedChoices& choices) {
  const auto path = tuning_path(environment, device);
  if (!path)
    return Error{ErrorCode::unsupported, "there is no cache folder: set INGOT_CACHE to a folder, or HOME"};
  TuningTable table = load_tuning(environment, device);
  table.replace(choices);
  return base::publish(*path, to_json(table));
}

}  // namespace ingot::gpu
