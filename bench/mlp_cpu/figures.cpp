// SPDX-License-Identifier: Apache-2.0
//
// The figures the CPU ladder is held against, measured in one run: what fusing gives over passes through
// memory, what it costs over the matrix products alone, the rate of those products beside oneDNN's own, and
// the cost of a call.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "contenders.h"
#include "cpu/gemm.h"
#include "onednn.h"

namespace {

using namespace ingot;
using bench_mlp::at_least;
using bench_mlp::at_most;
using bench_mlp::Contenders;
using bench_mlp::middle;
using bench_mlp::over;
using bench_mlp::Samples;

const std::vector<Rung> every_rung{Rung::matmul_add, Rung::unfused, Rung::epilogue, Rung::one_pass};
constexpr std::size_t matmul_add = 0, unfused = 1, gemms_alone = 4;  // places beside each other when timed

std::size_t place_of(Rung rung) {
  return static_cast<std::size_t>(std::find(every_rung.begin(), every_rung.end(), rung) - every_rung.begin());
}

/// The MLP's products as single oneDNN calls into buffers of their own. T: float or, for bf16, uint16_t.
template <class T>
struct GemmsAlone {
  GemmsAlone(const Mlp& mlp, std::int64_t tokens, int with_threads)
      : m(tokens),
        dim(mlp.dim),
        width(mlp.hidden * (mlp.gated ? 2 : 1)),
        hidden(mlp.hidden),
        threads(with_threads) {
    for (auto [buffer, elements] : {std::pair{&x, m * dim}, std::pair{&w1, width * dim},
                                    std::pair{&w2, hidden * dim}, std::pair{&activated, m * hidden}}) {
      *buffer = cpu::Buffer<T>::allocate(static_cast<std::size_t>(elements));
      std::fill_n(buffer->data(), elements, sizeof(T) == 2 ? T{0x3e80} : T{1} / 4);  // 0.25
    }
    h = cpu::Buffer<float>::allocate(static_cast<std::size_t>(m * width));
    y = cpu::Buffer<float>::allocate(static_cast<std::size_t>(m * dim));
  }
  Result<void> run() const {
    const bool ok = bench_mlp::onednn_matmul(m, width, dim, x.data(), w1.data(), h.data(), threads) &&
                    bench_mlp::onednn_matmul(m, dim, hidden, activated.data(), w2.data(), y.data(), threads);
    if (!ok) return Error{ErrorCode::out_of_memory, "oneDNN failed"};
    return {};
  }

  std::int64_t m, dim, width, hidden;
  int threads;
  cpu::Buffer<T> x, w1, w2, activated;
  cpu::Buffer<float> h, y;
};

void ladder(const Engine& engine, DType dtype) {
  const Mlp mlp{320, 1280, Activation::gelu_erf, true, true, dtype};
  constexpr std::int64_t tokens = 8192;
  const auto contenders = Contenders::make(engine, mlp, tokens, GateLayout::packed_value_first, every_rung);
  if (!contenders) return;
  const CpuDescription& cpu = engine.device().cpu;
  const bool native = dtype == DType::bf16 && cpu.native_bf16;
  std::optional<GemmsAlone<float>> gemms;
  std::optional<GemmsAlone<std::uint16_t>> gemms_bf16;
  if (native) {
    gemms_bf16.emplace(mlp, tokens, cpu.threads);
  } else {
    gemms.emplace(mlp, tokens, cpu.threads);
  }
  contenders->all().push_back({"gemms", [&] { return native ? gemms_bf16->run() : gemms->run(); }, 0, true});
  const Samples samples = contenders->samples({.samples = 15, .least_seconds = 1, .most_seconds = 6});
  fmt::print("\n{} tokens of {}\n", tokens, to_string(mlp));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto& contender = contenders->all()[i];
    const TimeStats us = profile::summarize(samples[i]);
    fmt::print("  {:<12} {:9.2f} ms ({:.2f} to {:.2f})  forecast {:9.2f} ms  {:6.1f} GFLOP/s{}\n",
               contender.name, us.median_us * 1e-3, us.min_us * 1e-3, us.max_us * 1e-3,
               contender.forecast_us * 1e-3, flops(mlp, tokens) / us.median_us * 1e-3,
               contender.right ? "" : "  WRONG");
  }
  const auto choice = plan(mlp, tokens, engine.device(), {.numerics = {}, .rung = {}, .packed = true});
  std::vector<Rung> judged{Rung::one_pass};
  if (choice && choice->chosen.rung != Rung::one_pass) judged.push_back(choice->chosen.rung);
  // In f32 nothing but the products can be hidden: what a rung would reach that did the rest in no time.
  const double bound = over(samples[matmul_add], samples[gemms_alone]);
  for (const Rung rung : judged) {
    const auto& mine = samples[place_of(rung)];
    fmt::print("  {}{}\n", to_string(rung),
               choice && choice->chosen.rung == rung ? ", the planner's choice" : "");
    fmt::print("    over matmul_add     {}{}\n", at_least(over(samples[matmul_add], mine), 1.35),
               native ? "" : fmt::format(", of {:.2f} that the products alone would reach", bound));
    fmt::print("    over unfused        {}\n", at_least(over(samples[unfused], mine), 1.15));
    fmt::print("    beside its products {}\n", at_most(over(mine, samples[gemms_alone]), 1.10));
  }
}

/// Without bias, activation and gate, `unfused` is two products cut into Ingot's tiles and nothing else.
void gemm_rate(const Engine& engine) {
  fmt::print("\nGEMM part at 2048 tokens, f32: Ingot's tiles beside oneDNN's single call\n");
  for (const auto& [dim, hidden] : {std::pair{320, 1280}, std::pair{768, 3072}, std::pair{1536, 8960}}) {
    const Mlp mlp{dim, hidden, Activation::identity, false, false, DType::f32};
    const auto contenders = Contenders::make(engine, mlp, 2048, GateLayout::separate, {Rung::unfused});
    if (!contenders) return;
    const GemmsAlone<float> gemms(mlp, 2048, engine.device().cpu.threads);
    contenders->all().push_back({"gemms", [&] { return gemms.run(); }, 0, true});
    const Samples samples = contenders->samples({.samples = 15, .least_seconds = 0.5, .most_seconds = 6});
    fmt::print("  {:>5} -> {:<5} {:6.1f} and {:6.1f} GFLOP/s, ratio {}\n", dim, hidden,
               flops(mlp, 2048) / middle(samples[0]) * 1e-9, flops(mlp, 2048) / middle(samples[1]) * 1e-9,
               at_least(over(samples[1], samples[0]), 0.80));
  }
}

/// One token of an MLP so small that the call is what costs: run() against the same oneDNN calls made
/// directly.
void call_cost(const Engine& engine) {
  constexpr int calls = 1000;
  const Mlp mlp{16, 32, Activation::relu, false, true, DType::f32};
  const auto contenders = Contenders::make(engine, mlp, 1, GateLayout::separate, {Rung::epilogue});
  if (!contenders) return;
  const profile::Work once = contenders->all()[0].work;
  contenders->all()[0].work = [once]() -> Result<void> {
    for (int i = 0; i < calls; ++i) {
      if (auto ok = once(); !ok) return ok;
    }
    return {};
  };
  const GemmsAlone<float> gemms(mlp, 1, 1);
  contenders->all().push_back(
      {"gemms",
       [&]() -> Result<void> {
         const cpu::SingleThreaded single;
         for (int i = 0; i < calls; ++i) {
           cpu::gemm(1, 32, 16, gemms.x.data(), 16, gemms.w1.data(), 16, false, gemms.h.data(), 32);
           cpu::gemm(1, 16, 32, gemms.activated.data(), 32, gemms.w2.data(), 32, false, gemms.y.data(), 16);
         }
         return {};
       },
       0, true});
  const Samples samples = contenders->samples({.samples = 200, .least_seconds = 0.2, .most_seconds = 4});
  const double run_us = 1e6 * middle(samples[0]) / calls, gemms_us = 1e6 * middle(samples[1]) / calls;
  fmt::print("\ncall of run() at 1 token: {:.2f} us, its oneDNN calls alone {:.2f} us, beyond them {} us\n",
             run_us, gemms_us, at_most(run_us - gemms_us, 5));
}

}  // namespace

int main() {
  const auto device = describe_cpu({.threads = 0, .remeasure = true, .warn = {}});
  if (!device) {
    fmt::print("{}\n", device.error().message);
    return 1;
  }
  const Engine engine = Engine::open({.description = *device}).value();
  const CpuDescription& cpu = device->cpu;
  fmt::print("{}, {} threads, {}, {} ({})\n", device->name, cpu.threads, cpu.isa, cpu.library,
             device->source);
  fmt::print(
      "GEMM {:.1f} GFLOP/s, cache {:.1f} GB/s, memory {:.1f} GB/s, passes {:.1f} GB/s, phase {:.2f} us\n",
      cpu.gemm_flops_per_s * 1e-9, cpu.cache_bytes_per_s * 1e-9, cpu.memory_bytes_per_s * 1e-9,
      cpu.stream_bytes_per_s * 1e-9, cpu.task_s * 1e6);
  ladder(engine, DType::f32);
  ladder(engine, DType::bf16);
  gemm_rate(engine);
  call_cost(engine);
  return 0;
}
