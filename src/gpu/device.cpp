// SPDX-License-Identifier: Apache-2.0
#include "gpu/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "arch/gpus.h"

namespace ingot::gpu {

namespace {

// CUdevice_attribute values of the driver's interface.
constexpr int clock_rate = 13, multiprocessor_count = 16, memory_clock_rate = 36, memory_bus_width = 37,
              l2_cache_size = 38, compute_major = 75, compute_minor = 76, shared_opted_in = 97;
// CUpointer_attribute and CUmemorytype.
constexpr int memory_type = 2, device_ordinal = 9;
constexpr unsigned no_type = 0, host_type = 1;
// CUresult: what a pointer of no context gives.
constexpr CuResult invalid_value = 1, invalid_context = 201;

struct Rates {
  int multiply_adds;          ///< dense 16-bit products of a multiprocessor in a cycle, f32 sums
  int f32_multiply_adds;      ///< of a multiprocessor in a cycle
  double memory_bytes_per_s;  ///< where the driver tells no memory clock: of the generation's slower cards
};
Rates rates(int major, int minor) {
  if (major == 8 && minor == 0) return {1024, 64, 1.5e12};
  if (major == 8) return {512, 128, 3e11};
  if (major == 9) return {2048, 128, 2e12};
  if (major == 10 || major == 11) return {4096, 128, 4e12};
  return {512, 128, 6e11};
}

constexpr int usual_clock_khz = 1500000;

Result<DeviceDescription> describe_handle(const Driver& driver, CuDevice device) {
  GpuFacts facts;
  std::array<char, 256> name{};
  std::size_t bytes = 0;
  int l2 = 0;
  if (const CuResult r = driver.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device);
      r != 0)
    return driver_error(driver, r, "cuDeviceGetName");
  if (const CuResult r = driver.cuDeviceTotalMem_v2(&bytes, device); r != 0)
    return driver_error(driver, r, "cuDeviceTotalMem");
  const std::array<std::pair<int, int*>, 8> needed{{{compute_major, &facts.major},
                                                    {compute_minor, &facts.minor},
                                                    {multiprocessor_count, &facts.multiprocessors},
                                                    {l2_cache_size, &l2},
                                                    {shared_opted_in, &facts.shared_bytes},
                                                    {clock_rate, &facts.clock_khz},
                                                    {memory_clock_rate, &facts.memory_clock_khz},
                                                    {memory_bus_width, &facts.memory_bus_bits}}};
  for (const auto& [attribute, value] : needed) {
    if (const CuResult r = driver.cuDeviceGetAttribute(value, attribute, device); r != 0)
      return driver_error(driver, r, "cuDeviceGetAttribute");
  }
  facts.memory_bytes = bytes;
  facts.l2_bytes = static_cast<std::uint64_t>(l2);
  DeviceDescription description;
  description.kind = DeviceKind::cuda;
  description.name = name.data();
  description.source = "estimate";
  description.gpu = estimate_gpu(facts);
  const arch::Gpu* const card = arch::find_gpu(description.name);
  if (card == nullptr || card->major != facts.major || card->minor != facts.minor) return description;
  // The data sheet's rates, of as much of the card as is there (MIG hands out parts).
  const arch::Chip chip = arch::chip_of(*card);
  const double share = static_cast<double>(facts.multiprocessors) / card->multiprocessors;
  description.source = "data sheet";
  description.gpu.tensor_flops_per_s = share * chip.tensor_flops_per_s;
  description.gpu.f32_flops_per_s = share * chip.f32_flops_per_s;
  description.gpu.memory_bytes_per_s = std::min(1.0, share) * chip.memory_bytes_per_s;
  return description;
}

Result<CuDevice> find(const Driver& driver, int ordinal) {
  int count = 0;
  if (const CuResult r = driver.cuDeviceGetCount(&count); r != 0)
    return driver_error(driver, r, "cuDeviceGetCount");
  if (ordinal < 0 || ordinal >= count) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("ordinal: {} is not accepted, this machine has {} GPU{}", ordinal, count,
                             count == 1 ? "" : "s")};
  }
  CuDevice handle = 0;
  if (const CuResult r = driver.cuDeviceGet(&handle, ordinal); r != 0)
    return driver_error(driver, r, "cuDeviceGet");
  return handle;
}

}  // namespace

GpuDescription estimate_gpu(const GpuFacts& facts) {
  const Rates rate = rates(facts.major, facts.minor);
  const double clock = 1e3 * (facts.clock_khz > 0 ? facts.clock_khz : usual_clock_khz);
  const double cycles = clock * facts.multiprocessors;
  // Two transfers a cycle of the memory's clock.
  const double pins = 2e3 * facts.memory_clock_khz * (facts.memory_bus_bits / 8.0);
  GpuDescription gpu;
  gpu.major = facts.major;
  gpu.minor = facts.minor;
  gpu.multiprocessors = facts.multiprocessors;
  gpu.memory_bytes = facts.memory_bytes;
  gpu.l2_bytes = facts.l2_bytes;
  gpu.shared_bytes = facts.shared_bytes;
  gpu.tensor_flops_per_s = 2 * rate.multiply_adds * cycles * arch::sustained_tensor;
  gpu.f32_flops_per_s = 2 * rate.f32_multiply_adds * cycles * arch::sustained_f32;
  gpu.memory_bytes_per_s = (pins > 0 ? pins : rate.memory_bytes_per_s) * arch::sustained_memory;
  gpu.launch_s = arch::launch_seconds;
  return gpu;
}

Result<DeviceDescription> describe(const Driver& driver, int ordinal) {
  const auto handle = find(driver, ordinal);
  if (!handle) return handle.error();
  return describe_handle(driver, *handle);
}

Result<std::shared_ptr<const Device>> Device::open(std::shared_ptr<const Driver> driver, int ordinal) {
  const auto handle = find(*driver, ordinal);
  if (!handle) return handle.error();
  auto description = describe_handle(*driver, *handle);
  if (!description) return description.error();
  if (description->gpu.major < 8) {
    return Error{ErrorCode::unsupported,
                 fmt::format("device cuda: {} has compute capability {}.{}, 8.0 or newer is needed",
                             description->name, description->gpu.major, description->gpu.minor)};
  }
  const std::shared_ptr<Device> device(new Device(std::move(driver), ordinal, *handle));
  device->description_ = std::move(description).value();
  CuContext context = nullptr;
  if (const CuResult r = device->driver().cuDevicePrimaryCtxRetain(&context, *handle); r != 0)
    return driver_error(device->driver(), r, "cuDevicePrimaryCtxRetain");
  device->context_ = context;
  return std::shared_ptr<const Device>(device);
}

Device::~Device() {
  if (context_ != nullptr) driver_->cuDevicePrimaryCtxRelease_v2(handle_);
}

jit::Target Device::target() const {
  return jit::target_of(description_.gpu);
}

Result<void> Device::check_pointer(std::string_view name, const void* pointer) const {
  unsigned type = no_type;
  int ordinal = -1;
  std::array<int, 2> attributes{memory_type, device_ordinal};
  std::array<void*, 2> values{&type, &ordinal};
  const CuResult result = driver_->cuPointerGetAttributes(2, attributes.data(), values.data(),
                                                          reinterpret_cast<CuAddress>(pointer));
  if (result != 0 && result != invalid_value && result != invalid_context)
    return driver_error(*driver_, result, "cuPointerGetAttributes");
  if (result != 0 || type == no_type || type == host_type) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: host memory, give memory of device {}", name, ordinal_)};
  }
  if (ordinal != ordinal_) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: memory of device {}, give memory of device {}", name, ordinal, ordinal_)};
  }
  return {};
}

Result<void> Device::check_pointers(const RunArguments& run) const {
  if (auto ok = check_pointer("x", run.x); !ok) return ok;
  if (auto ok = check_pointer("y", run.y); !ok) return ok;
  return run.workspace == nullptr ? Result<void>{} : check_pointer("workspace", run.workspace);
}

CurrentContext::CurrentContext(const Device& device) : driver_(device.driver()) {
  result_ = driver_.cuCtxGetCurrent(&before_);
  if (result_ != 0 || before_ == device.context()) return;
  result_ = driver_.cuCtxSetCurrent(device.context());
  changed_ = result_ == 0;
}

CurrentContext::~CurrentContext() {
  if (changed_) driver_.cuCtxSetCurrent(before_);
}

Result<void> CurrentContext::ready() const {
  if (result_ == 0) return {};
  return driver_error(driver_, result_, "cuCtxSetCurrent");
}

Result<DeviceMemory> DeviceMemory::zeros(std::shared_ptr<const Device> device, std::size_t bytes) {
  DeviceMemory memory;
  const Driver& driver = device->driver();
  if (const CuResult r = driver.cuMemAlloc_v2(&memory.address_, bytes); r != 0)
    return driver_error(driver, r, "cuMemAlloc");
  memory.device_ = std::move(device);
  memory.bytes_ = bytes;
  if (const CuResult r = driver.cuMemsetD8_v2(memory.address_, 0, bytes); r != 0)
    return driver_error(driver, r, "cuMemsetD8");
  // The fill may still be under way on the default stream, which other streams need not wait for.
  if (const CuResult r = driver.cuStreamSynchronize(nullptr); r != 0)
    return driver_error(driver, r, "cuStreamSynchronize");
  return memory;
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : device_(std::move(other.device_)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (address_ == 0) return;
  const CurrentContext current(*device_);
  device_->driver().cuMemFree_v2(address_);
}

}  // namespace ingot::gpu
