// SPDX-License-Identifier: Apache-2.0
#include "profile/calibrate.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <new>
#include <string>
#include <vector>

#include "cpu/buffer.h"
#include "cpu/describe.h"
#include "cpu/gemm.h"
#include "cpu/passes.h"
#include "cpu/pool.h"
#include "cpu/rates.h"
#include "cpu/stored_description.h"
#include "ingot/bench.h"

namespace ingot {

namespace profile {

namespace {

using Floats = cpu::Buffer<float>;

constexpr std::int64_t gemm_rows = 192, gemm_columns = 1024, gemm_depth = 512;
constexpr std::int64_t few_rows = 16;
constexpr std::int64_t tile_rows = 64, tile_columns = 256;

constexpr std::size_t rounds = 3;

/// What an element costs in the loops, `factor` times as long: they are bound by the clock, as products are.
void scale_loops(CpuDescription& cpu, double factor) {
  for (auto& activation : cpu.activation_s) {
    for (double& seconds : activation) seconds *= factor;
  }
  for (double& seconds : cpu.gate_s) seconds *= factor;
  for (double& seconds : cpu.convert_s) seconds *= factor;
}

/// Every rate the middle one of the rounds: neither what the machine can do for a moment nor what it does
/// when it is disturbed.
CpuDescription middle(const std::array<CpuDescription, rounds>& measured) {
  std::vector<std::array<double, rounds>> values;  // by rate, in their order
  for (std::size_t round = 0; round < rounds; ++round) {
    std::size_t rate = 0;
    cpu::for_each_rate(measured[round], [&](const std::string&, double value) {
      if (round == 0) values.emplace_back();
      values[rate++][round] = value;
    });
  }
  CpuDescription out = measured[0];
  std::size_t rate = 0;
  cpu::for_each_rate(out, [&](const std::string&, double& value) {
    auto& all = values[rate++];
    std::sort(all.begin(), all.end());
    value = all[rounds / 2];
  });
  return out;
}

}  // namespace

class CpuCalibration::State {
 public:
  State(DeviceDescription description, Timer& timer, std::unique_ptr<cpu::ThreadPool> pool)
      : description_(std::move(description)),
        timer_(timer),
        pool_(std::move(pool)),
        loops_(*cpu::passes(cpu::widest_isa())) {}

  bool allocate() {
    const auto threads = static_cast<std::size_t>(pool_->threads());
    const auto sums =
        static_cast<std::size_t>(std::max(gemm_rows * gemm_columns, 2 * tile_rows * tile_columns));
    // Four times the last cache, so that three quarters of every pass miss it. Of a cache that many share a
    // few hundred megabytes are more than this program gets.
    big_floats_ = std::clamp<std::size_t>(4 * description_.cpu.l3_bytes, std::size_t{64} << 20U,
                                          std::size_t{512} << 20U) /
                  sizeof(float);
    a_ = Floats::allocate(threads * gemm_rows * gemm_depth);
    b_ = Floats::allocate(gemm_columns * gemm_depth);
    c_ = Floats::allocate(threads * sums);
    big_ = Floats::allocate(big_floats_);
    big_out_ = Floats::allocate(big_floats_);
    sums_ = static_cast<std::int64_t>(sums);
    for (const Floats* buffer : {&a_, &b_, &c_, &big_, &big_out_}) {
      if (buffer->data() == nullptr) return false;
      std::fill_n(buffer->data(), buffer->size(), 0.5F);
    }
    return true;
  }

  Result<DeviceDescription> measure() {
    // Rounds apart from each other: what slows one measurement down on a shared machine lasts seconds.
    std::array<CpuDescription, rounds> measured;
    for (CpuDescription& rates : measured) {
      rates = description_.cpu;
      measure_machine(rates);
      measure_loops(rates);
    }
    return dated(middle(measured));
  }

  Result<DeviceDescription> refresh(const CpuDescription& measured) {
    CpuDescription now = measured;
    measure_machine(now);
    scale_loops(now, measured.gemm_flops_per_s / now.gemm_flops_per_s);
    return dated(now);
  }

 private:
  Result<DeviceDescription> dated(const CpuDescription& rates) const {
    if (failed_) return Error{ErrorCode::out_of_memory, "the GEMM library ran out of memory"};
    DeviceDescription description = description_;
    description.cpu = rates;
    description.source = fmt::format("measured {:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
    return description;
  }

  void measure_machine(CpuDescription& rates) {
    measure_task(rates);
    measure_gemm(rates);
    measure_memory(rates);
  }

  /// The least seconds of several runs: what the machine can do when nothing disturbs it.
  template <class Body>
  double best(int runs, const Body& body) {
    double least = 0;
    for (int run = 0; run < runs; ++run) {
      const auto took = timer_.seconds([&]() -> Result<void> {
        body();
        return {};
      });
      if (run == 0 || *took < least) least = *took;
    }
    return std::max(least, 1e-9);
  }

  /// Seconds for every thread to do its part of the same work.
  template <class Body>
  double each_thread(int runs, const Body& body) {
    return best(runs, [&] {
      const cpu::SingleThreaded single;
      pool_->run(pool_->threads(), [&](std::int64_t part, int) { body(part); });
    });
  }

  void multiply_bf16(std::int64_t part, std::int64_t rows) {
    // 0.5F is two bf16 numbers, 0.5 and 0.
    const auto* const a = reinterpret_cast<const std::uint16_t*>(a_.data() + part * gemm_rows * gemm_depth);
    const auto* const b = reinterpret_cast<const std::uint16_t*>(b_.data());
    const bool done = cpu::gemm_bf16(rows, gemm_columns, gemm_depth, a, gemm_depth, b, gemm_depth, false,
                                     c_.data() + part * sums_, gemm_columns);
    if (!done) failed_ = true;
  }

  void multiply(std::int64_t part, std::int64_t rows, const float* b, std::int64_t columns) {
    const bool done = cpu::gemm(rows, columns, gemm_depth, a_.data() + part * gemm_rows * gemm_depth,
                                gemm_depth, b, gemm_depth, false, c_.data() + part * sums_, columns);
    if (!done) failed_ = true;
  }

  void measure_task(CpuDescription& rates) {
    constexpr int phases = 200;
    const double all = best(5, [&] {
      for (int i = 0; i < phases; ++i) pool_->run(pool_->threads(), [](std::int64_t, int) {});
    });
    rates.task_s = all / phases;
  }

  void measure_gemm(CpuDescription& rates) {
    const auto rows = [&](std::int64_t m) {
      return [this, m](std::int64_t part) { multiply(part, m, b_.data(), gemm_columns); };
    };
    rate_of(rows, rates.gemm_flops_per_s, rates.gemm_row_overhead);
    if (!rates.native_bf16) return;
    const auto rows_bf16 = [&](std::int64_t m) {
      return [this, m](std::int64_t part) { multiply_bf16(part, m); };
    };
    rate_of(rows_bf16, rates.bf16_flops_per_s, rates.bf16_row_overhead);
  }

  /// Time is c (m + overhead): two row counts give both.
  template <class Rows>
  void rate_of(const Rows& rows, double& flops_per_s, double& row_overhead) {
    const double many = each_thread(10, rows(gemm_rows)), few = each_thread(10, rows(few_rows));
    const double per_row =
        std::max((many - few) / static_cast<double>(gemm_rows - few_rows), many / (2 * gemm_rows));
    row_overhead = std::max(0.0, few / per_row - static_cast<double>(few_rows));
    flops_per_s = 2.0 * gemm_columns * gemm_depth * static_cast<double>(pool_->threads()) / per_row;
  }

  /// A single row reads every weight once: bytes per second of that, from cache and from memory.
  void measure_memory(CpuDescription& rates) {
    const auto threads = static_cast<double>(pool_->threads());
    constexpr std::uint64_t few_bytes = std::uint64_t{32} << 20U;
    // Together half the last cache.
    const auto cached =
        static_cast<std::int64_t>(std::min(few_bytes, description_.cpu.l3_bytes / 2) / sizeof(float));
    rates.cache_bytes_per_s = one_row(cached, 10) * threads;
    rates.memory_bytes_per_s = one_row(static_cast<std::int64_t>(big_floats_), 2) * threads;
    // How much of the last cache is ours: the size at which the rate is half way down to that of memory.
    const double half_way = std::sqrt(rates.cache_bytes_per_s * rates.memory_bytes_per_s);
    std::int64_t floats = cached;
    while (2 * floats <= static_cast<std::int64_t>(description_.cpu.l3_bytes / sizeof(float)) &&
           one_row(floats * 5 / 4, 6) * threads > half_way) {
      floats = floats * 5 / 4;
    }
    rates.cached_bytes = static_cast<double>(floats) * sizeof(float);
    rates.stream_bytes_per_s = pass(static_cast<std::int64_t>(big_floats_), 2) * threads;
    rates.cache_stream_bytes_per_s = pass(cached / 2, 10) * threads;
  }

  /// Bytes read and written per second and thread by a pass over `floats`.
  double pass(std::int64_t floats, int runs) {
    const std::int64_t per_thread = floats / pool_->threads();
    const double took = each_thread(runs, [&](std::int64_t part) {
      loops_.activate(DType::f32, Activation::relu, {1, per_thread},
                      {big_.data() + part * per_thread, per_thread},
                      {big_out_.data() + part * per_thread, per_thread});
    });
    return 2 * static_cast<double>(per_thread) * sizeof(float) / took;
  }

  /// Bytes per second and thread when the threads read `floats` together.
  double one_row(std::int64_t floats, int runs) {
    const std::int64_t columns = std::min(sums_, floats / pool_->threads() / gemm_depth);
    const std::int64_t blocks = std::max<std::int64_t>(1, floats / pool_->threads() / gemm_depth / columns);
    const double took = each_thread(runs, [&](std::int64_t part) {
      for (std::int64_t block = 0; block < blocks; ++block) {
        multiply(part, 1, big_.data() + (part * blocks + block) * columns * gemm_depth, columns);
      }
    });
    return static_cast<double>(blocks * columns * gemm_depth) * sizeof(float) / took;
  }

  void measure_loops(CpuDescription& rates) {
    constexpr double elements = tile_rows * tile_columns;
    const double per_element = 1.0 / (elements * pool_->threads());
    const cpu::Area area{tile_rows, tile_columns};
    for (std::size_t d = 0; d < dtype_count; ++d) {
      const auto dtype = static_cast<DType>(d);
      const auto tile = [&](Activation activation, bool gated) {
        return per_element * each_thread(5, [&](std::int64_t part) {
                 float* const gate = a_.data() + part * gemm_rows * gemm_depth;
                 float* const up = c_.data() + part * sums_;
                 cpu::HiddenTile hidden{.area = area,
                                        .gate = {gate, tile_columns},
                                        .up = {},
                                        .gate_bias = b_.data(),
                                        .up_bias = b_.data(),
                                        .out = {up + tile_rows * tile_columns, tile_columns},
                                        .out_f32 = true};
                 if (gated) hidden.up = {up, tile_columns};
                 loops_.hidden(dtype, Numerics::match, activation, hidden);
               });
      };
      for (const ActivationInfo& activation : activations()) {
        rates.activation_s[d][static_cast<std::size_t>(activation.id)] = tile(activation.id, false);
      }
      rates.gate_s[d] = std::max(0.0, tile(Activation::relu, true) - tile(Activation::relu, false));
      rates.convert_s[d] = 0;
      if (dtype == DType::f32) continue;
      const double both = each_thread(5, [&](std::int64_t part) {
        float* const wide = a_.data() + part * gemm_rows * gemm_depth;
        float* const narrow = c_.data() + part * sums_;
        loops_.store(dtype, area, {wide, tile_columns}, b_.data(), {narrow, tile_columns});
        loops_.widen(dtype, area, {narrow, tile_columns}, {wide, tile_columns});
      });
      rates.convert_s[d] = per_element * both / 2;
    }
  }

  DeviceDescription description_;
  Timer& timer_;
  std::unique_ptr<cpu::ThreadPool> pool_;
  const cpu::Passes& loops_;
  Floats a_, b_, c_, big_, big_out_;
  std::size_t big_floats_ = 0;
  std::int64_t sums_ = 0;  // floats of c_ per thread
  std::atomic<bool> failed_{false};
};

CpuCalibration::CpuCalibration(std::unique_ptr<State> state) : state_(std::move(state)) {}
CpuCalibration::CpuCalibration(CpuCalibration&&) noexcept = default;
CpuCalibration& CpuCalibration::operator=(CpuCalibration&&) noexcept = default;
CpuCalibration::~CpuCalibration() = default;

Result<CpuCalibration> CpuCalibration::create(const DeviceDescription& start, Timer& timer) {
  auto pool = cpu::ThreadPool::create(start.cpu.threads);
  if (!pool) return pool.error();
  auto state = std::make_unique<State>(start, timer, std::move(pool).value());
  if (!state->allocate()) return Error{ErrorCode::out_of_memory, "not enough memory to measure this CPU"};
  return CpuCalibration(std::move(state));
}

Result<DeviceDescription> CpuCalibration::measure() {
  return state_->measure();
}
Result<DeviceDescription> CpuCalibration::refresh(const DeviceDescription& measured) {
  return state_->refresh(measured.cpu);
}

}  // namespace profile

Result<DeviceDescription> describe_cpu(const DescribeOptions& options) {
  try {
    if (options.threads < 0 || options.threads > 1024) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("threads: {} is not accepted, give 0 to 1024", options.threads)};
    }
    const DeviceDescription start = cpu::estimate_cpu(cpu::cpu_facts(), options.threads);
    if (!options.remeasure) {
      if (auto stored = cpu::load_description(start)) return *stored;
    }
    profile::SteadyTimer timer;
    auto calibration = profile::CpuCalibration::create(start, timer);
    if (!calibration) return calibration.error();
    auto measured = calibration->measure();
    if (!measured) return measured;
    if (auto kept = cpu::store_description(*measured); !kept && options.warn)
      options.warn(kept.error().message);
    return measured;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory to measure this CPU"};
  }
}

}  // namespace ingot
