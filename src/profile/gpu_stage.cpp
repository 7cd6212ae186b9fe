// SPDX-License-Identifier: Apache-2.0
#include "profile/gpu_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "gpu/alignment.h"
#include "profile/ladder_parts.h"

namespace ingot::profile {

namespace {

constexpr int most_copies = 512;
constexpr auto idle = std::chrono::milliseconds(1);
constexpr double usable_memory = 0.9;

/// Sizes of an MLP's tensors in bytes; 0: there is none.
struct Sizes {
  std::size_t up = 0, gate = 0, down = 0, up_bias = 0, gate_bias = 0, down_bias = 0, x = 0, y = 0;
};

Sizes sizes_of(const Problem& problem) {
  const Mlp& mlp = problem.mlp();
  const std::size_t element = size_of(mlp.dtype);
  const auto hidden = static_cast<std::size_t>(mlp.hidden) * element;
  const auto dim = static_cast<std::size_t>(mlp.dim);
  const bool packed = problem.layout() != GateLayout::separate;
  Sizes sizes;
  sizes.up = hidden * dim * (packed ? 2 : 1);
  sizes.gate = mlp.gated && !packed ? hidden * dim : 0;
  sizes.down = hidden * dim;
  if (mlp.bias) {
    sizes.up_bias = hidden * (packed ? 2 : 1);
    sizes.gate_bias = mlp.gated && !packed ? hidden : 0;
    sizes.down_bias = dim * element;
  }
  sizes.x = sizes.y = static_cast<std::size_t>(problem.tokens()) * dim * element;
  return sizes;
}

const void* pointer(gpu::CuAddress address) {
  return reinterpret_cast<const void*>(address);
}

}  // namespace

double bytes_to_exceed(std::uint64_t cache_bytes) {
  return std::max(3 * static_cast<double>(cache_bytes), 256e6);
}

Result<std::unique_ptr<GpuStage>> GpuStage::make(std::shared_ptr<const gpu::Device> device,
                                                 const Problem& problem, int copies) {
  std::unique_ptr<GpuStage> stage(new GpuStage(std::move(device), problem));
  if (auto ok = stage->set_up(copies); !ok) return ok.error();
  return stage;
}

std::size_t GpuStage::y_bytes() const {
  return sizes_of(problem_).y;
}

std::size_t GpuStage::copy_bytes() const {
  const Sizes s = sizes_of(problem_);
  std::size_t total = 0;
  for (const std::size_t bytes : {s.up, s.gate, s.down, s.up_bias, s.gate_bias, s.down_bias, s.x, s.y})
    total += gpu::round_up(bytes);
  return total;
}

Result<int> GpuStage::copies_that_fit(int wanted) const {
  const gpu::Driver& driver = device_->driver();
  std::size_t free = 0, total = 0;
  if (const gpu::CuResult r = driver.cuMemGetInfo_v2(&free, &total); r != 0)
    return driver_error(driver, r, "cuMemGetInfo");
  const Mlp& mlp = problem_.mlp();
  const double traffic = least_bytes(mlp, problem_.tokens());
  if (wanted == 0) {
    wanted = static_cast<int>(std::min<double>(
        std::ceil(bytes_to_exceed(device_->description().gpu.l2_bytes) / traffic), most_copies));
    wanted = std::max(2, wanted);
  }
  // Hidden tensors as the rungs of the library keep them: gate, up and one of them again.
  const double hidden = static_cast<double>(problem_.tokens()) * static_cast<double>(mlp.hidden) *
                        static_cast<double>(size_of(mlp.dtype)) * (mlp.gated ? 3 : 1);
  const double each = static_cast<double>(copy_bytes());
  const double room = usable_memory * static_cast<double>(free) - hidden;
  if (room < each) {
    return Error{ErrorCode::out_of_memory,
                 fmt::format("{} tokens of {} need {:.1f} GiB of the GPU's memory, {:.1f} GiB are free",
                             problem_.tokens(), to_string(mlp), (each + hidden) / 0x1p30,
                             static_cast<double>(free) / 0x1p30)};
  }
  return static_cast<int>(std::min<double>(wanted, std::floor(room / each)));
}

Result<void> GpuStage::set_up(int wanted) {
  auto stream = gpu::OwnedStream::make(device_);
  if (!stream) return stream.error();
  stream_ = std::move(stream).value();
  const auto count = copies_that_fit(wanted);
  if (!count) return count.error();
  auto memory = gpu::DeviceMemory::zeros(device_, copy_bytes() * static_cast<std::size_t>(*count));
  if (!memory) return memory.error();
  memory_ = std::move(memory).value();
  for (int i = 0; i < *count; ++i) {
    Copy copy;
    if (auto ok = fill(copy, memory_.address() + copy_bytes() * static_cast<std::size_t>(i)); !ok) return ok;
    copies_.push_back(copy);
  }
  return {};
}

/// Lays the tensors one behind the other from `at` on.
Result<void> GpuStage::fill(Copy& copy, gpu::CuAddress at) const {
  const gpu::Driver& driver = device_->driver();
  const Sizes sizes = sizes_of(problem_);
  const Weights host = problem_.weights();
  gpu::CuResult result = 0;
  const auto put = [&](const void* from, std::size_t bytes) -> const void* {
    if (bytes == 0) return nullptr;
    const gpu::CuAddress to = at;
    at += gpu::round_up(bytes);
    if (result == 0) result = driver.cuMemcpyHtoD_v2(to, from, bytes);
    return pointer(to);
  };
  Weights& w = copy.weights;
  w.layout = host.layout;
  w.up.weight = put(host.up.weight, sizes.up);
  w.gate.weight = put(host.gate.weight, sizes.gate);
  w.down.weight = put(host.down.weight, sizes.down);
  w.up.bias = put(host.up.bias, sizes.up_bias);
  w.gate.bias = put(host.gate.bias, sizes.gate_bias);
  w.down.bias = put(host.down.bias, sizes.down_bias);
  copy.x = at;
  put(problem_.x(), sizes.x);
  copy.y = at;
  if (result != 0) return driver_error(driver, result, "cuMemcpyHtoD");
  return {};
}

Result<Contender> GpuStage::prepare(const Prepare& prepare) const {
  Contender contender;
  for (const Copy& copy : copies_) {
    auto prepared = prepare(copy.weights);
    if (!prepared) return prepared.error();
    contender.prepared.push_back(std::move(prepared).value());
  }
  return contender;
}

Result<void> GpuStage::reserve(const std::vector<Contender>& contenders) {
  std::size_t most = 1;
  for (const Contender& contender : contenders)
    most = std::max(most, contender.prepared.front().workspace_bytes(problem_.tokens()));
  if (most <= workspace_.bytes()) return {};
  workspace_ = {};  // before the new one is made
  auto memory = gpu::DeviceMemory::zeros(device_, most);
  if (!memory) return memory.error();
  workspace_ = std::move(memory).value();
  return {};
}

Result<void> GpuStage::run(const Contender& contender, int copy) const {
  const Copy& c = copies_[static_cast<std::size_t>(copy)];
  return contender.prepared[static_cast<std::size_t>(copy)].run(
      {.tokens = problem_.tokens(),
       .x = pointer(c.x),
       .y = const_cast<void*>(pointer(c.y)),
       .workspace = const_cast<void*>(workspace_.data()),
       .workspace_bytes = workspace_.bytes(),
       .stream = {stream_->get()}});
}

Result<void> GpuStage::poison(int copy, unsigned char byte) const {
  const gpu::Driver& driver = device_->driver();
  const gpu::CuAddress y = copies_[static_cast<std::size_t>(copy)].y;
  if (const gpu::CuResult r = driver.cuMemsetD8Async(y, byte, y_bytes(), stream_->get()); r != 0)
    return driver_error(driver, r, "cuMemsetD8Async");
  return {};
}

Result<std::vector<char>> GpuStage::output(int copy) const {
  if (auto ok = stream_->wait(); !ok) return ok.error();
  const gpu::Driver& driver = device_->driver();
  std::vector<char> y(y_bytes());
  if (const gpu::CuResult r =
          driver.cuMemcpyDtoH_v2(y.data(), copies_[static_cast<std::size_t>(copy)].y, y.size());
      r != 0) {
    return driver_error(driver, r, "cuMemcpyDtoH");
  }
  return y;
}

Result<void> GpuStage::check(Contender& contender, const cpu::Reference& reference, Rung rung,
                             RungResult& result) const {
  // The first run may compile and try algorithms, which write y too.
  for (int copy = 0; copy < copies(); ++copy) {
    if (auto ok = run(contender, copy); !ok) return ok;
  }
  // Not-a-number, then something else, everywhere: a value that is never written shows as two outputs.
  if (auto ok = poison(0, 0xff); !ok) return ok;
  if (auto ok = run(contender, 0); !ok) return ok;
  const auto y = output(0);
  if (!y) return y.error();
  judge(problem_, reference, rung, y->data(), result);
  contender.bits = hash_of({y->data(), y->size()});
  const int last = copies() - 1;
  if (auto ok = poison(last, 0x3c); !ok) return ok;
  if (auto ok = run(contender, last); !ok) return ok;
  const auto again = output(last);
  if (!again) return again.error();
  if (result.ok && hash_of({again->data(), again->size()}) != contender.bits) {
    result.ok = false;
    result.reason = "two runs on the same input gave different bits";
  }
  return {};
}

Result<void> GpuStage::capture(Contender& contender) const {
  auto graph = gpu::Graph::capture(device_, stream_->get(), [&]() -> Result<void> {
    for (int copy = 0; copy < copies(); ++copy) {
      if (auto ok = run(contender, copy); !ok) return ok;
    }
    return {};
  });
  if (!graph) return graph.error();
  contender.graph = std::move(graph).value();
  return {};
}

Work GpuStage::replays(const Contender& contender, int times) const {
  return [this, &contender, times]() -> Result<void> {
    for (int i = 0; i < times; ++i) {
      if (auto ok = contender.graph->launch(stream_->get()); !ok) return ok;
    }
    return {};
  };
}

Result<bool> GpuStage::same_bits(const Contender& contender) const {
  const int last = copies() - 1;
  if (auto ok = poison(last, 0x5a); !ok) return ok.error();
  if (auto ok = contender.graph->launch(stream_->get()); !ok) return ok.error();
  const auto y = output(last);
  if (!y) return y.error();
  return hash_of({y->data(), y->size()}) == contender.bits;
}

Result<std::unique_ptr<StageTimer>> StageTimer::make(const GpuStage& stage) {
  auto timer = gpu::EventTimer::make(stage.device());
  if (!timer) return timer.error();
  return std::unique_ptr<StageTimer>(new StageTimer(stage, std::move(timer).value()));
}

Result<double> StageTimer::seconds(const Work& work) {
  std::this_thread::sleep_for(idle);
  return timer_.seconds(stage_.stream().get(), work);
}

}  // namespace ingot::profile
