// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "engine/check.h"
#include "gpu/nvrtc.h"
#include "jit/store.h"

namespace ingot::check {

void stop(const std::string& why) {
  std::fprintf(stderr, "stopped: %s\n", why.c_str());
  std::exit(3);
}

void must(const gpu::Driver& driver, gpu::CuResult result, const char* call) {
  if (result != 0) stop(gpu::driver_error(driver, result, call).message);
}

Session::Session(const base::Environment& environment, int ordinal)
    : environment_(environment), ordinal_(ordinal), driver_(take(gpu::open_driver(environment))) {
  gpu_ = open(base::cache_folder(environment).value_or(""), driver_);
  make_current();
}

std::shared_ptr<const gpu::Gpu> Session::open(const std::string& cache,
                                              std::shared_ptr<const gpu::Driver> driver) const {
  base::Environment environment = environment_;
  environment.ingot_cache = cache;
  auto device = take(gpu::Device::open(std::move(driver), ordinal_));
  auto store = std::make_shared<jit::CachedKernelStore>(take(gpu::open_nvrtc(environment)),
                                                        jit::kernel_cache(environment));
  return take(gpu::open(std::move(device), std::move(store)));
}

void Session::make_current() const {
  must(*driver_, driver_->cuCtxSetCurrent(gpu_->device->context()), "cuCtxSetCurrent");
}

void Session::synchronize() const {
  must(*driver_, driver_->cuCtxSynchronize(), "cuCtxSynchronize");
}

void Session::report(bool good, const std::string& what, bool always) {
  const std::lock_guard lock(mutex_);
  ++checked_;
  failed_ += good ? 0 : 1;
  if (good && !always) return;
  std::printf("%s %s\n", good ? "ok  " : "FAIL", what.c_str());
  std::fflush(stdout);
}

Buffer::Buffer(const Session& session, std::size_t bytes) : session_(session), bytes_(bytes) {
  if (bytes > 0) must(session.driver(), session.driver().cuMemAlloc_v2(&address_, bytes), "cuMemAlloc");
}
Buffer::Buffer(Buffer&& other) noexcept
    : session_(other.session_), address_(std::exchange(other.address_, 0)), bytes_(other.bytes_) {}
Buffer::~Buffer() {
  if (address_ != 0) session_.driver().cuMemFree_v2(address_);
}
void Buffer::fill(unsigned char byte) const {
  must(session_.driver(), session_.driver().cuMemsetD8_v2(address_, byte, bytes_), "cuMemsetD8");
  // Other streams do not wait for the default one.
  must(session_.driver(), session_.driver().cuStreamSynchronize(nullptr), "cuStreamSynchronize");
}
void Buffer::upload(const void* from, std::size_t count, std::size_t offset) const {
  if (count == 0) return;
  must(session_.driver(), session_.driver().cuMemcpyHtoD_v2(address_ + offset, from, count), "cuMemcpyHtoD");
}
void Buffer::download(void* to, std::size_t count, std::size_t offset) const {
  if (count == 0) return;
  must(session_.driver(), session_.driver().cuMemcpyDtoH_v2(to, address_ + offset, count), "cuMemcpyDtoH");
}

Stream::Stream(const Session& session) : session_(session) {
  constexpr unsigned non_blocking = 1;
  must(session.driver(), session.driver().cuStreamCreate(&stream_, non_blocking), "cuStreamCreate");
}
Stream::~Stream() {
  session_.driver().cuStreamDestroy_v2(stream_);
}
void Stream::wait() const {
  must(session_.driver(), session_.driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

}  // namespace ingot::check
