// SPDX-License-Identifier: Apache-2.0
#include "fake/gpu_driver.h"

#include <algorithm>

namespace ingot::test {

namespace {

using gpu::CuAddress;
using gpu::CuContext;
using gpu::CuDevice;
using gpu::CuEvent;
using gpu::CuFunction;
using gpu::CuLaunchConfig;
using gpu::CuModule;
using gpu::CuResult;
using gpu::CuStream;
using gpu::CuTensorMap;

constexpr CuResult success = 0, invalid_value = 1, invalid_device = 101;
constexpr std::uint64_t first_address = std::uint64_t{1} << 44, device_bytes = std::uint64_t{1} << 43;

std::atomic<FakeGpu*> instance{nullptr};
thread_local CuContext current_context = nullptr;
std::array<int, 8> contexts{};  // their addresses are the handles

/// A module and its one function.
struct FakeModule {
  std::string text;
  int most_shared = 48 << 10;
};

/// Box bytes that a swizzle spans; 0: any.
std::uint32_t span_of(int swizzle) {
  return swizzle == 0 ? 0 : 16U << static_cast<unsigned>(swizzle);
}

/// What the kernel of this text declares as its parameter.
std::size_t argument_bytes(const std::string& text) {
  const auto has = [&](const char* file) { return text.find(file) != std::string::npos; };
  if (has("sm90/gemm.cuh")) return sizeof(gpu::GemmArguments);
  if (has("sm90/few.cuh")) return sizeof(gpu::FewArguments);
  if (has("sm90/narrow.cuh")) return sizeof(gpu::NarrowArguments);
  if (has("sm90/cluster.cuh")) return sizeof(gpu::ClusterArguments);
  return sizeof(LinearArgs);
}

}  // namespace

MapView view(const CuTensorMap& map) {
  MapView out;
  out.address = map.words[0];
  out.type = static_cast<int>(map.words[1] & 0xff);
  out.rank = static_cast<int>(map.words[1] >> 8 & 0xff);
  out.swizzle = static_cast<int>(map.words[1] >> 16 & 0xff);
  for (std::size_t i = 0; i < 5; ++i) {
    out.sizes[i] = map.words[2 + i];
    out.box[i] = static_cast<std::uint32_t>(map.words[11 + i]);
  }
  for (std::size_t i = 0; i < 4; ++i) out.strides[i] = map.words[7 + i];
  return out;
}

/// The driver's functions; members of a struct so that they reach into the fake.
struct FakeCalls {
  static FakeGpu& fake() { return *instance.load(); }
  /// Success, or the failure this call was chosen for.
  static CuResult outcome() {
    FakeGpu& f = fake();
    int left = f.fail_at.load();
    while (left > 0 && !f.fail_at.compare_exchange_weak(left, left - 1)) {
    }
    return left == 1 ? f.fail_with.load() : success;
  }

  static CuResult error_name(CuResult result, const char** name) {
    *name = result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                          : (result == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN");
    return success;
  }
  static CuResult error_string(CuResult result, const char** text) {
    *text = result == 700 ? "an illegal memory access was encountered"
                          : (result == 2 ? "out of memory" : "unknown error");
    return success;
  }
  static CuResult device_count(int* count) {
    *count = fake().options_.devices;
    return outcome();
  }
  static CuResult device_get(CuDevice* device, int ordinal) {
    *device = ordinal;
    if (ordinal < 0 || ordinal >= fake().options_.devices) return invalid_device;
    return outcome();
  }
  static CuResult device_name(char* name, int length, CuDevice) {
    std::strncpy(name, fake().options_.name, static_cast<std::size_t>(length));
    return outcome();
  }
  static CuResult device_attribute(int* value, int attribute, CuDevice) {
    const FakeGpuOptions& o = fake().options_;
    switch (attribute) {
      case 13:
        *value = o.clock_khz;
        break;
      case 16:
        *value = o.multiprocessors;
        break;
      case 36:
        *value = o.memory_clock_khz;
        break;
      case 37:
        *value = o.memory_bus_bits;
        break;
      case 38:
        *value = 50 << 20;
        break;
      case 75:
        *value = o.major;
        break;
      case 76:
        *value = o.minor;
        break;
      case 97:
        *value = 232448;
        break;
      default:
        return invalid_value;
    }
    return outcome();
  }
  static CuResult total_memory(std::size_t* bytes, CuDevice) {
    *bytes = std::size_t{140} << 30;
    return outcome();
  }
  static CuResult retain(CuContext* context, CuDevice device) {
    if (const CuResult r = outcome(); r != success) return r;
    *context = FakeGpu::context_of(device);
    ++fake().contexts_;
    return success;
  }
  static CuResult release(CuDevice) {
    --fake().contexts_;
    return success;
  }
  static CuResult get_current(CuContext* context) {
    *context = current_context;
    return outcome();
  }
  static CuResult set_current(CuContext context) {
    // A way back to no context always succeeds: there is nothing that a caller could do.
    const CuResult r = context == nullptr ? success : outcome();
    if (r != success) return r;
    current_context = context;
    return success;
  }
  static CuResult load(CuModule* module, const void* image) {
    if (current_context == nullptr) return 201;
    if (const CuResult r = outcome(); r != success) return r;
    auto* const made = new FakeModule{static_cast<const char*>(image)};
    *module = reinterpret_cast<CuModule>(made);
    ++fake().modules_;
    ++fake().loads_;
    return success;
  }
  static CuResult unload(CuModule module) {
    delete reinterpret_cast<FakeModule*>(module);
    --fake().modules_;
    return success;
  }
  static CuResult function(CuFunction* function, CuModule module, const char* name) {
    *function = reinterpret_cast<CuFunction>(module);
    if (std::strcmp(name, "ingot_kernel") != 0) return 500;
    return outcome();
  }
  static CuResult set_attribute(CuFunction function, int attribute, int value) {
    if (attribute == 8) {
      if (value > 232448) return invalid_value;
      reinterpret_cast<FakeModule*>(function)->most_shared = value;
    } else if (attribute != 9 || value < -1 || value > 100) {
      return invalid_value;
    }
    return outcome();
  }
  static CuResult most_clusters(int* count, CuFunction, const CuLaunchConfig* config) {
    if (config->attribute_count != 1 || config->attributes[0].id != 4) return invalid_value;
    *count = fake().resident_clusters.load();
    return outcome();
  }
  static CuResult launch(const CuLaunchConfig* config, CuFunction function, void** parameters, void** extra) {
    const auto& module = *reinterpret_cast<const FakeModule*>(function);
    if (current_context == nullptr) return 201;
    if (extra != nullptr || config->grid_x == 0 || config->block_x == 0 || config->block_x > 1024 ||
        config->shared_bytes > static_cast<std::uint32_t>(module.most_shared)) {
      return invalid_value;
    }
    if (const CuResult r = outcome(); r != success) return r;
    FakeGpu& f = fake();
    Launch& to = f.kept_[static_cast<std::size_t>(f.launches_.load()) % f.kept_.size()];
    Launch out;
    out.grid = {config->grid_x, config->grid_y, config->grid_z};
    out.block = {config->block_x, config->block_y, config->block_z};
    out.shared_bytes = config->shared_bytes;
    out.stream = config->stream;
    out.text = &module.text;
    for (std::uint32_t i = 0; i < config->attribute_count; ++i) {
      const gpu::CuLaunchAttribute& attribute = config->attributes[i];
      if (attribute.id == 4) out.cluster = attribute.cluster.x;
      if (attribute.id == 6) out.dependent = attribute.words[0] == 1;
    }
    if (out.cluster != 0 && config->grid_x % out.cluster != 0) return invalid_value;
    std::memcpy(out.arguments.data(), parameters[0], argument_bytes(module.text));
    // Threads that launch at once are counted; what they launch is looked at by tests of one thread only.
    if (f.keeps_launches.load()) to = out;
    ++f.launches_;
    return success;
  }
  static CuResult encode(CuTensorMap* map, int type, std::uint32_t rank, void* address,
                         const std::uint64_t* sizes, const std::uint64_t* strides, const std::uint32_t* box,
                         const std::uint32_t* steps, int interleave, int swizzle, int promotion, int fill) {
    const std::uint32_t span = span_of(swizzle);
    bool good = reinterpret_cast<std::uintptr_t>(map) % 64 == 0 &&
                reinterpret_cast<std::uintptr_t>(address) % 16 == 0 && (type == 6 || type == 9) &&
                rank >= 2 && rank <= 5 && interleave == 0 && promotion == 3 && fill == 0 &&
                (span == 0 || box[0] * 2 <= span) && box[0] * 2 % 16 == 0;
    for (std::uint32_t i = 0; good && i < rank; ++i) {
      good = sizes[i] >= 1 && sizes[i] <= (std::uint64_t{1} << 32) && box[i] >= 1 && box[i] <= 256 &&
             steps[i] == 1;
      if (i > 0)
        good = good && strides[i - 1] % 16 == 0 && strides[i - 1] > 0 &&
               strides[i - 1] < (std::uint64_t{1} << 40);
    }
    if (!good) return invalid_value;
    if (const CuResult r = outcome(); r != success) return r;
    map->words = {};
    map->words[0] = reinterpret_cast<std::uintptr_t>(address);
    map->words[1] = static_cast<std::uint64_t>(type) | std::uint64_t{rank} << 8 |
                    static_cast<std::uint64_t>(swizzle) << 16;
    for (std::uint32_t i = 0; i < rank; ++i) {
      map->words[2 + i] = sizes[i];
      map->words[11 + i] = box[i];
      if (i > 0) map->words[6 + i] = strides[i - 1];
    }
    return success;
  }
  static CuResult pointer(unsigned count, int* attributes, void** values, CuAddress address) {
    const bool known = address >= first_address && address < first_address + device_bytes * contexts.size();
    for (unsigned i = 0; i < count; ++i) {
      if (attributes[i] == 2) *static_cast<unsigned*>(values[i]) = known ? 2 : 0;
      if (attributes[i] == 9)
        *static_cast<int*>(values[i]) =
            known ? static_cast<int>((address - first_address) / device_bytes) : 0;
    }
    return outcome();
  }
  static CuResult allocate(CuAddress* address, std::size_t) {
    if (const CuResult r = outcome(); r != success) return r;
    *address = first_address + device_bytes / 2;
    ++fake().memories_;
    return success;
  }
  static CuResult free_memory(CuAddress) {
    --fake().memories_;
    return success;
  }
  static CuResult fill_memory(CuAddress, unsigned char, std::size_t) { return outcome(); }
  static CuResult fill_async(CuAddress, unsigned char, std::size_t, CuStream) { return outcome(); }
  static CuResult memory_info(std::size_t* free, std::size_t* total) {
    *free = *total = std::size_t{140} << 30;
    return outcome();
  }
  static CuResult synchronize(CuStream) { return outcome(); }
  static CuResult stream_create(CuStream* stream, unsigned) {
    if (const CuResult r = outcome(); r != success) return r;
    *stream = reinterpret_cast<CuStream>(new char);
    ++fake().streams_;
    return success;
  }
  static CuResult stream_destroy(CuStream stream) {
    delete reinterpret_cast<char*>(stream);
    --fake().streams_;
    return success;
  }
  static CuResult event_create(CuEvent* event, unsigned) {
    if (const CuResult r = outcome(); r != success) return r;
    *event = reinterpret_cast<CuEvent>(new double(0));
    ++fake().events_;
    return success;
  }
  static CuResult event_destroy(CuEvent event) {
    delete reinterpret_cast<double*>(event);
    --fake().events_;
    return success;
  }
  static CuResult event_record(CuEvent event, CuStream) {
    *reinterpret_cast<double*>(event) = fake().clock_s.load();
    return outcome();
  }
  static CuResult event_synchronize(CuEvent) { return outcome(); }
  static CuResult elapsed(float* milliseconds, CuEvent start, CuEvent end) {
    *milliseconds =
        static_cast<float>(1e3 * (*reinterpret_cast<double*>(end) - *reinterpret_cast<double*>(start)));
    return outcome();
  }
  static CuResult is_capturing(CuStream, int* status) {
    *status = fake().capturing.load();
    return outcome();
  }
  static CuResult exchange_mode(int* mode) {
    static thread_local int kept = 0;
    std::swap(kept, *mode);
    return success;
  }
};

FakeGpu::FakeGpu(const FakeGpuOptions& options) : options_(options) {
  gpu::Driver driver;
  driver.cuGetErrorName = FakeCalls::error_name;
  driver.cuGetErrorString = FakeCalls::error_string;
  driver.cuDeviceGetCount = FakeCalls::device_count;
  driver.cuDeviceGet = FakeCalls::device_get;
  driver.cuDeviceGetName = FakeCalls::device_name;
  driver.cuDeviceGetAttribute = FakeCalls::device_attribute;
  driver.cuDeviceTotalMem_v2 = FakeCalls::total_memory;
  driver.cuDevicePrimaryCtxRetain = FakeCalls::retain;
  driver.cuDevicePrimaryCtxRelease_v2 = FakeCalls::release;
  driver.cuCtxGetCurrent = FakeCalls::get_current;
  driver.cuCtxSetCurrent = FakeCalls::set_current;
  driver.cuModuleLoadData = FakeCalls::load;
  driver.cuModuleUnload = FakeCalls::unload;
  driver.cuModuleGetFunction = FakeCalls::function;
  driver.cuFuncSetAttribute = FakeCalls::set_attribute;
  driver.cuOccupancyMaxActiveClusters = FakeCalls::most_clusters;
  driver.cuLaunchKernelEx = FakeCalls::launch;
  driver.cuTensorMapEncodeTiled = FakeCalls::encode;
  driver.cuPointerGetAttributes = FakeCalls::pointer;
  driver.cuMemAlloc_v2 = FakeCalls::allocate;
  driver.cuMemFree_v2 = FakeCalls::free_memory;
  driver.cuMemsetD8_v2 = FakeCalls::fill_memory;
  driver.cuMemsetD8Async = FakeCalls::fill_async;
  driver.cuMemGetInfo_v2 = FakeCalls::memory_info;
  driver.cuStreamCreate = FakeCalls::stream_create;
  driver.cuStreamDestroy_v2 = FakeCalls::stream_destroy;
  driver.cuStreamSynchronize = FakeCalls::synchronize;
  driver.cuEventCreate = FakeCalls::event_create;
  driver.cuEventDestroy_v2 = FakeCalls::event_destroy;
  driver.cuEventRecord = FakeCalls::event_record;
  driver.cuEventSynchronize = FakeCalls::event_synchronize;
  driver.cuEventElapsedTime = FakeCalls::elapsed;
  driver.cuStreamIsCapturing = FakeCalls::is_capturing;
  driver.cuThreadExchangeStreamCaptureMode = FakeCalls::exchange_mode;
  driver_ = std::make_shared<const gpu::Driver>(driver);
  current_context = nullptr;
  before_ = instance.exchange(this);
}

FakeGpu::~FakeGpu() {
  instance.store(before_);
}

void* FakeGpu::memory(std::size_t offset, int device) {
  return reinterpret_cast<void*>(first_address + device_bytes * static_cast<std::uint64_t>(device) + offset);
}
const Launch& FakeGpu::launch(int n) const {
  return kept_[static_cast<std::size_t>(n) % kept_.size()];
}
CuContext FakeGpu::current() {
  return current_context;
}
void FakeGpu::set_current(CuContext context) {
  current_context = context;
}
CuContext FakeGpu::context_of(int device) {
  return reinterpret_cast<CuContext>(&contexts[static_cast<std::size_t>(device)]);
}

Result<std::shared_ptr<const jit::Cubin>> FakeStore::get(const jit::KernelText& kernel) {
  ++asked;
  if (fails.load()) return Error{ErrorCode::device, "error: the fake compiler refuses"};
  jit::Cubin cubin;
  cubin.image.assign(kernel.text.begin(), kernel.text.end());
  cubin.image.push_back('\0');
  return std::make_shared<const jit::Cubin>(std::move(cubin));
}

}  // namespace ingot::test
