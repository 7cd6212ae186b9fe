// SPDX-License-Identifier: Apache-2.0
//
// What the engine costs: processor time of run() beside the driver's own launches, the first use of a shape,
// and its use from the disk cache.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "engine/check.h"

namespace ingot::check {

namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// The real launch, timed: the engine's own time is the rest.
decltype(gpu::Driver::cuLaunchKernelEx) real_launch = nullptr;
double launch_us = 0;
gpu::CuResult timed_launch(const gpu::CuLaunchConfig* config, gpu::CuFunction function, void** parameters,
                           void** extra) {
  const auto start = Clock::now();
  const gpu::CuResult result = real_launch(config, function, parameters, extra);
  launch_us += us_since(start);
  return result;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

constexpr double most_overhead_us = 3, most_first_s = 1.5, most_cached_ms = 5;

struct Shape {
  Mlp mlp;
  std::int64_t tokens;
};

}  // namespace

void launch_overhead(Session& session) {
  auto timed = std::make_shared<gpu::Driver>(session.driver());
  real_launch = timed->cuLaunchKernelEx;
  timed->cuLaunchKernelEx = timed_launch;
  const auto gpu = session.open(base::cache_folder(session.environment()).value_or(""), timed);
  const std::array<Shape, 4> shapes{{{{256, 1024, Activation::relu, false, true, DType::bf16}, 64},
                                     {{768, 3072, Activation::gelu_tanh, true, true, DType::bf16}, 1024},
                                     {{768, 3072, Activation::gelu_tanh, true, false, DType::f32}, 64},
                                     {{77, 33, Activation::silu, false, true, DType::f16}, 64}}};
  for (const Shape& shape : shapes) {
    const Problem problem(session, shape.mlp, Place::gate_then_up, shape.tokens, 7);
    const auto executor = take(gpu::prepare(gpu, shape.mlp, problem.on_device(), {}));
    const Buffer x(session, static_cast<std::size_t>(shape.tokens) * problem.row_bytes()),
        y(session, x.bytes());
    const Buffer workspace(session, executor->workspace_bytes(shape.tokens));
    x.upload(problem.x(), x.bytes());
    const Stream stream(session);
    const RunArguments run{.tokens = shape.tokens,
                           .x = x.at(0),
                           .y = y.at(0),
                           .workspace = workspace.at(0),
                           .workspace_bytes = workspace.bytes(),
                           .stream = stream.handle()};
    take(executor->run(run));
    stream.wait();
    std::vector<double> whole, own;
    for (int round = 0; round < 30; ++round) {
      constexpr int runs = 100;  // few enough that the queue never fills
      launch_us = 0;
      const auto start = Clock::now();
      for (int i = 0; i < runs; ++i) take(executor->run(run));
      const double us = us_since(start);
      stream.wait();
      whole.push_back(us / runs);
      own.push_back((us - launch_us) / runs);
    }
    session.report(
        median(own) <= most_overhead_us,
        fmt::format("launch: {} x {}: run() {:.2f} us, beside the driver's launches {:.2f} us (at most {})",
                    shape.tokens, to_string(shape.mlp), median(whole), median(own), most_overhead_us),
        true);
  }
}

void first_use(Session& session, const std::string& folder) {
  const std::array<Shape, 4> shapes{{{{768, 3072, Activation::gelu_tanh, false, true, DType::bf16}, 8192},
                                     {{320, 1280, Activation::gelu_erf, true, true, DType::f16}, 4096},
                                     {{256, 1024, Activation::relu, false, true, DType::bf16}, 16},
                                     {{1000, 333, Activation::silu, true, true, DType::bf16}, 500}}};
  std::vector<std::unique_ptr<Problem>> problems;
  for (const Shape& shape : shapes)
    problems.push_back(std::make_unique<Problem>(session, shape.mlp, Place::gate_then_up, 1, 8));
  const auto warm_all = [&](const char* what, double most_ms) {
    // Memory knows nothing, the disk what an earlier turn left in the folder.
    const auto gpu = session.open(folder, session.shared_driver());
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const auto executor = take(gpu::prepare(gpu, shapes[i].mlp, problems[i]->on_device(), {}));
      const auto start = Clock::now();
      take(executor->warm(shapes[i].tokens));
      const double ms = us_since(start) * 1e-3;
      session.report(ms <= most_ms,
                     fmt::format("{}: {} x {}: {:.1f} ms (at most {})", what, shapes[i].tokens,
                                 to_string(shapes[i].mlp), ms, most_ms),
                     true);
    }
  };
  warm_all("first use", most_first_s * 1e3);
  warm_all("cached use, all kernels", most_cached_ms * 2);
}

}  // namespace ingot::check
