// SPDX-License-Identifier: Apache-2.0
#include "fake/host_gpu.h"

#include <cstdlib>
#include <cstring>

namespace ingot::test {

namespace {

HostGpu* instance = nullptr;
constexpr int out_of_memory = 2, invalid_value = 1, wrong_state = 901;

}  // namespace

struct HostCalls {
  using Address = gpu::CuAddress;
  /// Whether the bytes lie in one allocation.
  static bool inside(Address address, std::size_t bytes) {
    auto after = instance->memory_.upper_bound(address);
    if (after == instance->memory_.begin()) return false;
    --after;
    return address + bytes <= after->first + after->second;
  }
  static int info(std::size_t* free, std::size_t* total) {
    *free = instance->free_bytes;
    *total = std::size_t{1} << 40;
    return 0;
  }
  static int allocate(Address* address, std::size_t bytes) {
    if (bytes > instance->free_bytes) return out_of_memory;
    void* const memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    *address = reinterpret_cast<Address>(memory);
    instance->memory_.emplace(*address, bytes);
    instance->free_bytes -= bytes;
    return 0;
  }
  static int free_memory(Address address) {
    instance->free_bytes += instance->memory_.at(address);
    instance->memory_.erase(address);
    std::free(reinterpret_cast<void*>(address));
    return 0;
  }
  static int upload(Address to, const void* from, std::size_t bytes) {
    if (!inside(to, bytes)) return invalid_value;
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return 0;
  }
  static int download(void* to, Address from, std::size_t bytes) {
    if (!inside(from, bytes)) return invalid_value;
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return 0;
  }
  static int fill(Address to, unsigned char byte, std::size_t bytes) {
    if (!inside(to, bytes)) return invalid_value;
    std::memset(reinterpret_cast<void*>(to), byte, bytes);
    return 0;
  }
  static int fill_async(Address to, unsigned char byte, std::size_t bytes, gpu::CuStream) {
    return fill(to, byte, bytes);
  }
  static int begin(gpu::CuStream, int) {
    if (instance->captured_ != nullptr) return wrong_state;
    instance->captured_ = std::make_unique<HostGpu::Pieces>();
    return 0;
  }
  static int end(gpu::CuStream, gpu::CuGraph* graph) {
    if (instance->captured_ == nullptr) return wrong_state;
    *graph = reinterpret_cast<gpu::CuGraph>(instance->captured_.release());
    ++instance->graphs_;
    return 0;
  }
  static int instantiate(gpu::CuGraphExec* made, gpu::CuGraph graph, unsigned long long) {
    *made =
        reinterpret_cast<gpu::CuGraphExec>(new HostGpu::Pieces(*reinterpret_cast<HostGpu::Pieces*>(graph)));
    ++instance->graphs_;
    return 0;
  }
  static int launch(gpu::CuGraphExec graph, gpu::CuStream) {
    ++instance->graph_launches;
    ++instance->since_event;
    instance->play(*reinterpret_cast<const HostGpu::Pieces*>(graph));
    return 0;
  }
  template <class Handle>
  static int destroy(Handle graph) {
    delete reinterpret_cast<HostGpu::Pieces*>(graph);
    --instance->graphs_;
    return 0;
  }
  static int record(gpu::CuEvent event, gpu::CuStream stream) {
    instance->since_event = 0;
    return instance->fake_.driver()->cuEventRecord(event, stream);
  }
};

HostGpu::HostGpu() {
  gpu::Driver driver = *fake_.driver();
  driver.cuMemGetInfo_v2 = HostCalls::info;
  driver.cuMemAlloc_v2 = HostCalls::allocate;
  driver.cuMemFree_v2 = HostCalls::free_memory;
  driver.cuMemcpyHtoD_v2 = HostCalls::upload;
  driver.cuMemcpyDtoH_v2 = HostCalls::download;
  driver.cuMemsetD8_v2 = HostCalls::fill;
  driver.cuMemsetD8Async = HostCalls::fill_async;
  driver.cuStreamBeginCapture_v2 = HostCalls::begin;
  driver.cuStreamEndCapture = HostCalls::end;
  driver.cuGraphInstantiateWithFlags = HostCalls::instantiate;
  driver.cuGraphLaunch = HostCalls::launch;
  driver.cuGraphDestroy = HostCalls::destroy<gpu::CuGraph>;
  driver.cuGraphExecDestroy = HostCalls::destroy<gpu::CuGraphExec>;
  driver.cuEventRecord = HostCalls::record;
  driver_ = std::make_shared<const gpu::Driver>(driver);
  instance = this;
}

HostGpu::~HostGpu() {
  instance = nullptr;
}

void HostGpu::submit(std::function<void()> work, std::function<double()> takes) {
  const Pieces one{{std::move(work), std::move(takes)}};
  if (captured_ != nullptr) {
    captured_->push_back(one.front());
  } else {
    play(one);
  }
}

void HostGpu::play(const Pieces& pieces) {
  for (const Piece& piece : pieces) {
    piece.work();
    fake_.clock_s = fake_.clock_s.load() + piece.takes();
  }
}

}  // namespace ingot::test
