// SPDX-License-Identifier: Apache-2.0
#include "profile/gpu_probe.h"

#include <fmt/format.h>

#include <array>

#include "gpu/library.h"
#include "gpu/nvrtc.h"

namespace ingot::profile {

namespace {

using gpu::Library;

std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

// CUdevice_attribute values of the driver's interface.
constexpr int compute_major = 75, compute_minor = 76;

void list_devices(const Library& driver, Machine& machine) {
  auto* const count = driver.symbol<int(int*)>("cuDeviceGetCount");
  auto* const get = driver.symbol<int(int*, int)>("cuDeviceGet");
  auto* const name = driver.symbol<int(char*, int, int)>("cuDeviceGetName");
  auto* const attribute = driver.symbol<int(int*, int, int)>("cuDeviceGetAttribute");
  auto* const memory = driver.symbol<int(std::size_t*, int)>("cuDeviceTotalMem_v2");
  int devices = 0;
  if (count == nullptr || get == nullptr || name == nullptr || attribute == nullptr || memory == nullptr)
    return;
  if (count(&devices) != 0) return;
  for (int ordinal = 0; ordinal < devices; ++ordinal) {
    int device = 0;
    std::array<char, 128> text{};
    std::size_t bytes = 0;
    GpuDevice gpu;
    if (get(&device, ordinal) != 0 || name(text.data(), static_cast<int>(text.size()) - 1, device) != 0 ||
        attribute(&gpu.compute_major, compute_major, device) != 0 ||
        attribute(&gpu.compute_minor, compute_minor, device) != 0 || memory(&bytes, device) != 0) {
      continue;
    }
    gpu.name = text.data();
    gpu.memory_bytes = bytes;
    machine.gpus.push_back(gpu);
  }
}

void probe_driver(const base::Environment& environment, Machine& machine) {
  const std::string file = environment.ingot_driver.empty() ? "libcuda.so.1" : environment.ingot_driver;
  const Library driver(file);
  auto* const init = driver ? driver.symbol<int(unsigned)>("cuInit") : nullptr;
  auto* const version = driver ? driver.symbol<int(int*)>("cuDriverGetVersion") : nullptr;
  if (init == nullptr || version == nullptr) {
    machine.missing.push_back({"NVIDIA driver", "MLPs run on the CPU only", "apt-get install nvidia-driver"});
    return;
  }
  int number = 0;
  const int status = init(0);
  machine.driver = version(&number) == 0 ? fmt::format("{}, CUDA {}", file, cuda_version(number)) : file;
  if (status == 0) list_devices(driver, machine);
  if (machine.gpus.empty()) {
    machine.missing.push_back(
        {"GPU", fmt::format("the driver lists none (cuInit: {}); MLPs run on the CPU only", status),
         "nvidia-smi"});
  }
}

void probe_compiler(const base::Environment& environment, Machine& machine) {
  const auto compiler = gpu::open_nvrtc(environment);
  if (compiler) {
    const gpu::NvrtcVersion version = (*compiler)->version();
    machine.device_compiler = fmt::format("{}, {}.{}", (*compiler)->file(), version.major, version.minor);
    return;
  }
  machine.missing.push_back(
      {fmt::format("NVRTC {}.{} or newer", gpu::least_nvrtc.major, gpu::least_nvrtc.minor),
       "kernels cannot be compiled for a GPU: " + compiler.error().message, "pip install nvidia-cuda-nvrtc"});
}

}  // namespace

void probe_gpu(const base::Environment& environment, Machine& machine) {
  probe_driver(environment, machine);
  probe_compiler(environment, machine);
}

}  // namespace ingot::profile
