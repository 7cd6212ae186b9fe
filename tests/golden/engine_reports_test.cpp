// SPDX-License-Identifier: Apache-2.0
//
// What bench, plan, models and doctor print, from values that are the same on every machine.
#include <gtest/gtest.h>

#include "golden_file.h"
#include "ingot/report.h"

namespace ingot {
namespace {

using test::golden_matches;

DeviceDescription device() {
  DeviceDescription device{
      .kind = DeviceKind::cpu, .name = "Some CPU 9000", .source = "measured 2026-01-31", .cpu = {}};
  CpuDescription& cpu = device.cpu;
  cpu.threads = 8;
  cpu.isa = "avx2";
  cpu.library = "oneDNN 2.6.3";
  cpu.l1_bytes = 32U << 10U;
  cpu.l2_bytes = 512U << 10U;
  cpu.l3_bytes = 32U << 20U;
  cpu.gemm_flops_per_s = 700e9;
  cpu.gemm_row_overhead = 3;
  cpu.cache_bytes_per_s = 200e9;
  cpu.memory_bytes_per_s = 40e9;
  cpu.stream_bytes_per_s = 35e9;
  cpu.task_s = 3e-6;
  for (std::size_t d = 0; d < dtype_count; ++d) {
    cpu.activation_s[d].fill(0.1e-9);
    cpu.gate_s[d] = 0.02e-9;
    cpu.convert_s[d] = d == 0 ? 0 : 0.02e-9;
  }
  return device;
}

const Mlp geglu{320, 1280, Activation::gelu_erf, true, true, DType::bf16};

Ladder ladder() {
  Ladder ladder{.device = device(),
                .mlp = geglu,
                .tokens = 8192,
                .numerics = Numerics::match,
                .layout = GateLayout::packed_value_first,
                .seed = 7,
                .floor = {.flops = 2.013e10, .bytes = 12953600, .compute_us = 28757.143, .memory_us = 323.84},
                .rungs = {}};
  const auto rung = [&](Rung which, int launches, double us, double forecast, double speedup) {
    RungResult result;
    result.candidate = {.rung = which,
                        .tile = {192, 256, 1},
                        .launches = launches,
                        .bytes = 1e8 * launches,
                        .forecast_us = forecast,
                        .rejected = Rejection::none};
    result.time = {us, us * 0.96, us * 1.5, 30};
    result.speedup = speedup;
    result.error = 0.0031234567;
    result.framework_error = 0.0031;
    result.bound = 0.00345;
    result.ok = true;
    return result;
  };
  ladder.rungs = {rung(Rung::matmul_add, 6, 43210.5, 44000, 0.875),
                  rung(Rung::unfused, 4, 37809.25, 38000, 1), rung(Rung::epilogue, 2, 33000, 32000, 1.145735),
                  rung(Rung::one_pass, 1, 30250.125, 30000, 1.24989)};
  ladder.rungs.back().chosen = true;
  return ladder;
}

TEST(GoldenEngineReports, Bench) {
  EXPECT_TRUE(golden_matches(report::text(ladder()), "bench.txt"));
  EXPECT_TRUE(golden_matches(report::json(ladder()), "bench.json"));
  EXPECT_TRUE(golden_matches(report::json("trace.json", {ladder()}), "bench_trace.json"));
}

TEST(GoldenEngineReports, BenchThatFailed) {
  Ladder failed = ladder();
  RungResult& wrong = failed.rungs[2];
  wrong.ok = false;
  wrong.reason = "error 0.02 is above 0.00345";
  wrong.error = 0.02;
  wrong.time = {};
  wrong.speedup.reset();
  EXPECT_FALSE(failed.ok());
  EXPECT_TRUE(
      golden_matches(report::text(failed, {.color = true, .width = 110, .all = false}), "bench_failed.txt"));
  EXPECT_TRUE(golden_matches(report::json(failed), "bench_failed.json"));
}

TEST(GoldenEngineReports, BenchOnAGpu) {
  Ladder gpu = ladder();
  gpu.device = describe_gpu("sm90").value();
  gpu.library = "cuBLASLt 13.1.0";
  gpu.copies = 20;
  gpu.rungs.resize(3);
  gpu.rungs[0].time = {952.25, 940, 981, 30};
  gpu.rungs[0].sustained_us = 1010.5;
  gpu.rungs[0].candidate.tile = gpu.rungs[1].candidate.tile = {};
  gpu.rungs[1].candidate.rung = Rung::two_kernel;
  gpu.rungs[1].candidate.launches = 2;
  gpu.rungs[1].time = {467.125, 460, 480.5, 30};
  gpu.rungs[1].sustained_us = 501.25;
  gpu.rungs[1].kernels = {{"fc1", "g2x1x256s3c21e", 320.5, true}, {"fc2", "g2x1x160s5c21", 150.25, false}};
  gpu.rungs[2] = gpu.rungs[1];
  gpu.rungs[2].candidate.rung = Rung::one_kernel;
  gpu.rungs[2].candidate.launches = 1;
  gpu.rungs[2].candidate.forecast_us = 350.5;
  gpu.rungs[2].time = {360.25, 355, 371, 30};
  gpu.rungs[2].sustained_us = 395.5;
  gpu.rungs[2].kernels = {{"mlp", "n2x64x1x3", 350.5, true}};
  gpu.rungs[2].chosen = true;
  gpu.skipped = {{Rung::epilogue, "the library fuses relu and gelu_tanh only, and no gate"}};
  EXPECT_TRUE(
      golden_matches(report::text(gpu, {.color = false, .width = 160, .all = false}), "bench_gpu.txt"));
  EXPECT_TRUE(golden_matches(report::json(gpu), "bench_gpu.json"));
}

TEST(GoldenEngineReports, Plan) {
  const auto many = plan(geglu, 8192, device(), {.numerics = Numerics::fast, .rung = {}, .packed = true});
  ASSERT_TRUE(many);
  EXPECT_TRUE(golden_matches(report::text(*many), "plan.txt"));
  EXPECT_TRUE(golden_matches(report::json(*many), "plan.json"));
  const auto one = plan({4096, 14336, Activation::silu, true, false, DType::f32}, 1, device());
  ASSERT_TRUE(one);
  EXPECT_TRUE(golden_matches(report::text(*one), "plan_one_token.txt"));
  EXPECT_TRUE(golden_matches(report::json(*one), "plan_one_token.json"));
}

TEST(GoldenEngineReports, PlanForAGpu) {
  const auto a100 = describe_gpu("sm80");
  ASSERT_TRUE(a100);
  const auto kernels = plan(geglu, 8192, *a100, {.numerics = Numerics::match, .rung = {}, .packed = true});
  ASSERT_TRUE(kernels);
  EXPECT_TRUE(golden_matches(report::text(*kernels), "plan_gpu.txt"));
  EXPECT_TRUE(golden_matches(report::json(*kernels), "plan_gpu.json"));
  const auto library = plan(geglu, 8192, *a100, {.numerics = {}, .rung = Rung::unfused, .packed = true});
  ASSERT_TRUE(library);
  EXPECT_TRUE(golden_matches(report::text(*library), "plan_gpu_library.txt"));
  EXPECT_TRUE(golden_matches(report::json(*library), "plan_gpu_library.json"));
}

TEST(GoldenEngineReports, PlanOfOneKernel) {
  Plan made{.mlp = geglu,
            .tokens = 8192,
            .numerics = Numerics::match,
            .device = describe_gpu("sm90").value(),
            .chosen = {},
            .candidates = {}};
  const auto add = [&](Rung rung, int launches, double us, Rejection rejected) {
    made.candidates.push_back({.rung = rung,
                               .tile = {},
                               .launches = launches,
                               .bytes = 1e7 * launches,
                               .forecast_us = us,
                               .rejected = rejected});
  };
  add(Rung::matmul_add, 6, 150.5, Rejection::no_library);
  add(Rung::unfused, 4, 100.25, Rejection::no_library);
  add(Rung::epilogue, 2, 0, Rejection::no_library_epilogue);
  add(Rung::two_kernel, 2, 38.5, Rejection::measured_slower);
  add(Rung::one_pass, 1, 0, Rejection::not_on_device);
  add(Rung::one_kernel, 1, 27.125, Rejection::none);
  made.chosen = made.candidates.back();
  made.kernels = {{"mlp", "n2x64x1x3", 27.125, true}};
  EXPECT_TRUE(golden_matches(report::text(made), "plan_one_kernel.txt"));
  EXPECT_TRUE(golden_matches(report::json(made), "plan_one_kernel.json"));

  made.candidates.back().rejected = Rejection::no_mlp_kernel;
  made.candidates.back().forecast_us = 0;
  made.candidates.back().detail = "narrow: dim is at most 320; cluster: shared memory";
  made.candidates[3].rejected = Rejection::none;
  made.chosen = made.candidates[3];
  made.kernels = {{"fc1", "g2x1x256s3c21e", 26.5, false}, {"fc2", "g2x1x160s5c21", 12.5, false}};
  EXPECT_TRUE(golden_matches(report::text(made), "plan_no_one_kernel.txt"));
  EXPECT_TRUE(golden_matches(report::json(made), "plan_no_one_kernel.json"));
}

TEST(GoldenEngineReports, Models) {
  EXPECT_TRUE(golden_matches(report::text(known_models(), {.color = false, .width = 160, .all = false}),
                             "models.txt"));
  EXPECT_TRUE(golden_matches(report::json(known_models()), "models.json"));
}

TEST(GoldenEngineReports, Doctor) {
  Machine machine{.cpu = "Some CPU 9000",
                  .processors = 8,
                  .instruction_sets = "sse2 avx avx2 fma",
                  .loops_isa = "avx2",
                  .l1_bytes = 32U << 10U,
                  .l2_bytes = 512U << 10U,
                  .l3_bytes = 32U << 20U,
                  .memory_bytes = std::uint64_t{64} << 30U,
                  .available_bytes = std::uint64_t{50} << 30U,
                  .gemm_library = "oneDNN 2.6.3",
                  .gemm_dtypes = "f32",
                  .measured = device(),
                  .driver = "libcuda.so.1, CUDA 12.8",
                  .gpus = {{"NVIDIA H200", 9, 0, std::uint64_t{141} << 30U}},
                  .device_compiler = "libnvrtc.so.12, 12.8",
                  .cache_folder = "/var/cache/ingot",
                  .cache_writable = true,
                  .cache_files = 12,
                  .cache_bytes = 345678,
                  .missing = {}};
  EXPECT_TRUE(golden_matches(report::text(machine), "doctor_full.txt"));
  EXPECT_TRUE(golden_matches(report::json(machine), "doctor_full.json"));
  machine.measured.reset();
  machine.driver.reset();
  machine.gpus.clear();
  machine.device_compiler.reset();
  machine.cache_folder.reset();
  machine.cache_writable = false;
  machine.missing = {{"NVIDIA driver", "MLPs run on the CPU only", "apt-get install nvidia-driver"},
                     {"cache folder", "kernels are made anew", "export INGOT_CACHE=folder"}};
  EXPECT_TRUE(golden_matches(report::text(machine), "doctor_bare.txt"));
  EXPECT_TRUE(golden_matches(report::json(machine), "doctor_bare.json"));
}

}  // namespace
}  // namespace ingot
