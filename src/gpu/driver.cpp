// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver.h"

#include <fmt/format.h>

#include <type_traits>

#include "gpu/library.h"

namespace ingot::gpu {

namespace {

// CUresult values of the driver's interface.
constexpr CuResult success = 0, out_of_memory = 2, no_device = 100, uncorrectable_memory = 214;
constexpr CuResult illegal_address = 700, launch_timeout = 702, context_destroyed = 709,
                   first_of_kernel_faults = 714, last_of_kernel_faults = 719;

/// A dependent launch that a graph captures as such came with CUDA 12.3; everything else called is older.
constexpr int least_version = 12030;

/// Whether the error is one that a kernel or the device left behind: every later call returns it.
bool lost_context(CuResult result) {
  return result == illegal_address || result == launch_timeout || result == context_destroyed ||
         result == uncorrectable_memory ||
         (result >= first_of_kernel_faults && result <= last_of_kernel_faults);
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// Fills in the table; the first name that the library lacks, or null.
const char* fill(const Library& library, Driver& driver) {
  Symbols symbols(library);
#define INGOT_TAKE(name) symbols.take(driver.name, #name)
  INGOT_TAKE(cuInit);
  INGOT_TAKE(cuDriverGetVersion);
  INGOT_TAKE(cuGetErrorName);
  INGOT_TAKE(cuGetErrorString);
  INGOT_TAKE(cuDeviceGetCount);
  INGOT_TAKE(cuDeviceGet);
  INGOT_TAKE(cuDeviceGetName);
  INGOT_TAKE(cuDeviceGetAttribute);
  INGOT_TAKE(cuDeviceTotalMem_v2);
  INGOT_TAKE(cuDevicePrimaryCtxRetain);
  INGOT_TAKE(cuDevicePrimaryCtxRelease_v2);
  INGOT_TAKE(cuCtxGetCurrent);
  INGOT_TAKE(cuCtxSetCurrent);
  INGOT_TAKE(cuCtxSynchronize);
  INGOT_TAKE(cuModuleLoadData);
  INGOT_TAKE(cuModuleUnload);
  INGOT_TAKE(cuModuleGetFunction);
  INGOT_TAKE(cuFuncSetAttribute);
  INGOT_TAKE(cuFuncGetAttribute);
  INGOT_TAKE(cuOccupancyMaxActiveClusters);
  INGOT_TAKE(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  INGOT_TAKE(cuLaunchKernelEx);
  INGOT_TAKE(cuTensorMapEncodeTiled);
  INGOT_TAKE(cuPointerGetAttributes);
  INGOT_TAKE(cuMemGetInfo_v2);
  INGOT_TAKE(cuMemAlloc_v2);
  INGOT_TAKE(cuMemFree_v2);
  INGOT_TAKE(cuMemcpyHtoD_v2);
  INGOT_TAKE(cuMemcpyDtoH_v2);
  INGOT_TAKE(cuMemsetD8_v2);
  INGOT_TAKE(cuMemsetD8Async);
  INGOT_TAKE(cuStreamCreate);
  INGOT_TAKE(cuStreamDestroy_v2);
  INGOT_TAKE(cuStreamSynchronize);
  INGOT_TAKE(cuStreamIsCapturing);
  INGOT_TAKE(cuStreamBeginCapture_v2);
  INGOT_TAKE(cuStreamEndCapture);
  INGOT_TAKE(cuThreadExchangeStreamCaptureMode);
  INGOT_TAKE(cuGraphInstantiateWithFlags);
  INGOT_TAKE(cuGraphLaunch);
  INGOT_TAKE(cuGraphExecDestroy);
  INGOT_TAKE(cuGraphDestroy);
  INGOT_TAKE(cuEventCreate);
  INGOT_TAKE(cuEventDestroy_v2);
  INGOT_TAKE(cuEventRecord);
  INGOT_TAKE(cuEventSynchronize);
  INGOT_TAKE(cuEventElapsedTime);
#undef INGOT_TAKE
  return symbols.missing();
}

Error unsupported(std::string message) {
  return {ErrorCode::unsupported, std::move(message)};
}

}  // namespace

Result<std::shared_ptr<const Driver>> open_driver(const base::Environment& environment) {
  const std::string file = environment.ingot_driver.empty() ? "libcuda.so.1" : environment.ingot_driver;
  const Library library(file);
  if (!library) {
    return unsupported(
        fmt::format("device cuda: no NVIDIA driver ({}); install one, or name its library in INGOT_DRIVER",
                    library.error()));
  }
  auto driver = std::make_shared<Driver>();
  const char* const missing = fill(library, *driver);
  int version = 0;
  // Before cuInit, which fails by itself on some machines whose driver is too old.
  const bool known = driver->cuDriverGetVersion != nullptr && driver->cuDriverGetVersion(&version) == success;
  if (missing != nullptr || (known && version < least_version)) {
    return unsupported(
        fmt::format("device cuda: the NVIDIA driver {} is {}, {} or newer is needed; update the driver", file,
                    known ? "for CUDA " + version_text(version) : fmt::format("without {}", missing),
                    "one for CUDA " + version_text(least_version)));
  }
  if (const CuResult result = driver->cuInit(0); result == no_device) {
    return unsupported("device cuda: the driver finds no GPU; see nvidia-smi and CUDA_VISIBLE_DEVICES");
  } else if (result != success) {
    return unsupported("device cuda: " + driver_error(*driver, result, "cuInit").message);
  }
  return std::shared_ptr<const Driver>(std::move(driver));
}

Error driver_error(const Driver& driver, CuResult result, const char* call) {
  const char *name = nullptr, *text = nullptr;
  if (driver.cuGetErrorName(result, &name) != success || name == nullptr) name = "unknown error";
  if (driver.cuGetErrorString(result, &text) != success || text == nullptr) text = "no description";
  std::string message = fmt::format("{}: {} ({}), {}", call, name, result, text);
  if (lost_context(result)) {
    message +=
        "; a kernel launched earlier has failed and its results are lost, this process cannot use the "
        "device any more";
  }
  return {result == out_of_memory ? ErrorCode::out_of_memory : ErrorCode::device, std::move(message)};
}

Result<bool> is_capturing(const Driver& driver, CuStream stream) {
  int capturing = 0;
  if (const CuResult r = driver.cuStreamIsCapturing(stream, &capturing); r != 0)
    return driver_error(driver, r, "cuStreamIsCapturing");
  return capturing != 0;
}

}  // namespace ingot::gpu
