// SPDX-License-Identifier: Apache-2.0
//
// The ladder of a GPU on one whose memory is the host's: rungs of the CPU stand for kernels, and take as long
// as the test says.
#include "profile/gpu_ladder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "fake/host_gpu.h"
#include "numeric/mlp_case.h"
#include "plan/executor.h"
#include "profile/sampling.h"

namespace ingot::profile {
namespace {

/// Runs a rung of the CPU on the device's memory.
class HostExecutor final : public Executor {
 public:
  using Spoil = std::function<void(void* y)>;
  HostExecutor(test::HostGpu& host, PreparedMlp real, Rung rung, std::function<double()> takes, Spoil spoil)
      : host_(host),
        real_(std::move(real)),
        rung_(rung),
        takes_(std::move(takes)),
        spoil_(std::move(spoil)) {}

  const Mlp& mlp() const override { return real_.mlp(); }
  std::size_t workspace_bytes(std::int64_t tokens) const override { return real_.workspace_bytes(tokens); }
  Result<void> warm(std::int64_t) const override { return {}; }
  Result<Plan> plan(std::int64_t tokens) const override {
    Plan plan;
    plan.mlp = mlp();
    plan.tokens = tokens;
    plan.chosen.rung = rung_;
    plan.chosen.launches = 2;
    if (rung_ == Rung::two_kernel) plan.kernels = {{"fc1", "g1", 1, true}, {"fc2", "g2", 2, false}};
    return plan;
  }
  std::size_t owned_bytes() const override { return 0; }
  Result<void> run(const RunArguments& arguments) const override {
    EXPECT_NE(arguments.stream.handle, nullptr);
    host_.submit(
        [real = real_, on_host = on_host(arguments), spoil = spoil_] {
          EXPECT_TRUE(real.run(on_host));
          if (spoil) spoil(on_host.y);
        },
        takes_);
    return {};
  }

 private:
  static RunArguments on_host(RunArguments arguments) {
    arguments.stream = {};
    return arguments;
  }

  test::HostGpu& host_;
  PreparedMlp real_;
  Rung rung_;
  std::function<double()> takes_;
  Spoil spoil_;
};

class GpuLadderTest : public testing::Test {
 protected:
  GpuLadderTest() {
    options.samples = 5;
    options.least_seconds = 0;
    options.sustained_seconds = 1e-3;
    options.copies = 4;
  }
  std::shared_ptr<const gpu::Device> device() { return gpu::Device::open(host.driver(), 0).value(); }
  Entrant entrant(Rung rung, std::function<double()> takes, HostExecutor::Spoil spoil = {}) {
    return {rung, [this, rung, takes, spoil](const Weights& weights) -> Result<PreparedMlp> {
              auto real = engine.prepare(problem.mlp(), weights, {.numerics = {}, .rung = Rung::unfused});
              if (!real) return real.error();
              return PreparedMlp(
                  std::make_shared<HostExecutor>(host, std::move(real).value(), rung, takes, spoil));
            }};
  }
  Entrant entrant(Rung rung, double seconds, HostExecutor::Spoil spoil = {}) {
    return entrant(
        rung, [seconds] { return seconds; }, std::move(spoil));
  }
  static Entrant missing(Rung rung, ErrorCode code) {
    return {rung, [code](const Weights&) -> Result<PreparedMlp> { return Error{code, "it is not here"}; }};
  }
  Ladder run(const std::vector<Entrant>& entrants) {
    auto ladder = run_gpu_ladder(device(), problem, entrants, options);
    EXPECT_TRUE(ladder) << ladder.error().message;
    return std::move(ladder).value();
  }

  test::HostGpu host;
  Engine engine = test::open_engine(2);
  Problem problem =
      Problem::make({32, 64, Activation::silu, true, true, DType::bf16}, 50, GateLayout::packed_gate_first, 3)
          .value();
  BenchOptions options;
};

TEST_F(GpuLadderTest, TimesAreOfOneCall) {
  const Ladder ladder = run({entrant(Rung::unfused, 20e-6), entrant(Rung::two_kernel, 8e-6)});
  ASSERT_EQ(ladder.rungs.size(), 2U);
  EXPECT_TRUE(ladder.ok()) << ladder.rungs[0].reason;
  EXPECT_EQ(ladder.copies, 4);
  EXPECT_NEAR(ladder.rungs[0].time.median_us, 20, 0.01);
  EXPECT_NEAR(ladder.rungs[1].time.median_us, 8, 0.01);
  EXPECT_EQ(ladder.rungs[1].time.samples, 5);
  EXPECT_NEAR(ladder.rungs[0].sustained_us.value(), 20, 0.01);
  EXPECT_NEAR(ladder.rungs[1].sustained_us.value(), 8, 0.01);
  EXPECT_NEAR(ladder.rungs[1].speedup.value(), 2.5, 0.01);
  EXPECT_GT(ladder.rungs[1].error, 0);
  EXPECT_GT(ladder.rungs[1].bound, ladder.rungs[1].error);
  EXPECT_EQ(ladder.rungs[1].kernels.size(), 2U);
  EXPECT_EQ(ladder.device.kind, DeviceKind::cuda);
}

TEST_F(GpuLadderTest, SustainedIsBackToBackForItsTime) {
  // Hot from the tenth graph in a row on; alone, a graph is never.
  const auto takes = [this] { return host.since_event > 10 ? 30e-6 : 10e-6; };
  options.sustained_seconds = 4e-3;
  const Ladder ladder = run({entrant(Rung::two_kernel, takes)});
  EXPECT_NEAR(ladder.rungs[0].time.median_us, 10, 0.01);
  // 4 copies of 10 us: 100 graphs, of which 90 are hot.
  EXPECT_NEAR(ladder.rungs[0].sustained_us.value(), 28, 0.05);
}

TEST_F(GpuLadderTest, NoSustainedTimeWhereNoneIsAskedFor) {
  options.sustained_seconds = 0;
  EXPECT_FALSE(run({entrant(Rung::two_kernel, 1e-6)}).rungs[0].sustained_us);
}

TEST_F(GpuLadderTest, CopiesExceedTheCacheUnlessTheMemoryIsSmall) {
  options.copies = 0;
  EXPECT_EQ(run({entrant(Rung::two_kernel, 1e-6)}).copies, 512);  // the most; the MLP is tiny
  host.free_bytes = 3 << 20;
  const int few = run({entrant(Rung::two_kernel, 1e-6)}).copies;
  EXPECT_GE(few, 2);
  EXPECT_LT(few, 200);  // of 19 KB each
  EXPECT_EQ(bytes_to_exceed(std::uint64_t{200} << 20), 3.0 * (200 << 20));
  EXPECT_EQ(bytes_to_exceed(50 << 20), 256e6);
}

TEST_F(GpuLadderTest, TooLittleMemoryIsSaidBeforeAnythingIsDone) {
  host.free_bytes = 1 << 10;
  const auto ladder = run_gpu_ladder(device(), problem, {entrant(Rung::two_kernel, 1e-6)}, options);
  ASSERT_FALSE(ladder);
  EXPECT_EQ(ladder.error().code, ErrorCode::out_of_memory);
  EXPECT_NE(ladder.error().message.find("GiB are free"), std::string::npos) << ladder.error().message;
  EXPECT_EQ(host.alive(), 0);
}

TEST_F(GpuLadderTest, ARungOfAMissingLibraryIsSkipped) {
  const Ladder ladder =
      run({missing(Rung::unfused, ErrorCode::unsupported), entrant(Rung::two_kernel, 8e-6)});
  EXPECT_TRUE(ladder.ok());
  ASSERT_EQ(ladder.rungs.size(), 1U);
  EXPECT_EQ(ladder.rungs[0].candidate.rung, Rung::two_kernel);
  EXPECT_FALSE(ladder.rungs[0].speedup);
  ASSERT_EQ(ladder.skipped.size(), 1U);
  EXPECT_EQ(ladder.skipped[0].rung, Rung::unfused);
  EXPECT_EQ(ladder.skipped[0].reason, "it is not here");
}

TEST_F(GpuLadderTest, OtherErrorsEndIt) {
  EXPECT_EQ(
      run_gpu_ladder(device(), problem, {missing(Rung::unfused, ErrorCode::device)}, options).error().code,
      ErrorCode::device);
  EXPECT_EQ(run_gpu_ladder(device(), problem, {missing(Rung::two_kernel, ErrorCode::unsupported)}, options)
                .error()
                .code,
            ErrorCode::unsupported);
  EXPECT_EQ(host.alive(), 0);
}

TEST_F(GpuLadderTest, AWrongResultIsNotTimed) {
  const auto spoil = [](void* y) { static_cast<std::uint16_t*>(y)[3] ^= std::uint16_t{0x4000}; };
  const Ladder ladder = run({entrant(Rung::unfused, 20e-6), entrant(Rung::two_kernel, 8e-6, spoil)});
  EXPECT_FALSE(ladder.ok());
  EXPECT_TRUE(ladder.rungs[0].ok);
  EXPECT_FALSE(ladder.rungs[1].ok);
  EXPECT_EQ(ladder.rungs[1].time.samples, 0);
  EXPECT_FALSE(ladder.rungs[1].sustained_us);
  EXPECT_FALSE(ladder.rungs[1].speedup);
}

TEST_F(GpuLadderTest, OtherBitsOnTheSameInputAreSeenBeforeTheTimingAndAfter) {
  auto runs = std::make_shared<int>(0);
  const auto from = [runs](int first) {
    return [runs, first](void* y) {
      static_cast<std::uint16_t*>(y)[7] ^= static_cast<std::uint16_t>(++*runs > first);
    };
  };
  // Four runs to warm up, two of the check.
  const Ladder before = run({entrant(Rung::two_kernel, 8e-6, from(5))});
  EXPECT_EQ(before.rungs[0].reason, "two runs on the same input gave different bits");
  EXPECT_EQ(before.rungs[0].time.samples, 0);
  *runs = 0;
  const Ladder after = run({entrant(Rung::two_kernel, 8e-6, from(6))});
  EXPECT_EQ(after.rungs[0].reason, "two runs on the same input gave different bits");
  EXPECT_GT(after.rungs[0].time.samples, 0);
}

TEST_F(GpuLadderTest, AValueThatIsNeverWrittenIsSeenInRowsThatAreNotJudged) {
  // Puts back what was there before the run: as if row 2 of 50 had not been written, which is
  // not among the 32 that are judged.
  Entrant real = entrant(Rung::two_kernel, 8e-6);
  Entrant forgets{Rung::two_kernel, [&](const Weights& weights) -> Result<PreparedMlp> {
                    class Forgets final : public Executor {
                     public:
                      Forgets(test::HostGpu& to, PreparedMlp real_one)
                          : host_(to), real_(std::move(real_one)) {}
                      const Mlp& mlp() const override { return real_.mlp(); }
                      std::size_t workspace_bytes(std::int64_t tokens) const override {
                        return real_.workspace_bytes(tokens);
                      }
                      Result<void> warm(std::int64_t) const override { return {}; }
                      Result<Plan> plan(std::int64_t tokens) const override { return real_.plan(tokens); }
                      std::size_t owned_bytes() const override { return 0; }
                      Result<void> run(const RunArguments& arguments) const override {
                        auto* const value = static_cast<std::uint16_t*>(arguments.y) + 2 * 32;
                        auto kept = std::make_shared<std::uint16_t>();
                        host_.submit([value, kept] { *kept = *value; }, [] { return 0.0; });
                        if (auto ran = real_.run(arguments); !ran) return ran;
                        host_.submit([value, kept] { *value = *kept; }, [] { return 0.0; });
                        return {};
                      }

                     private:
                      test::HostGpu& host_;
                      PreparedMlp real_;
                    };
                    auto made = real.prepare(weights);
                    if (!made) return made.error();
                    return PreparedMlp(std::make_shared<Forgets>(host, std::move(made).value()));
                  }};
  const Ladder ladder = run({forgets});
  EXPECT_FALSE(ladder.rungs[0].ok);
  EXPECT_FALSE(ladder.rungs[0].reason.empty());
}

TEST_F(GpuLadderTest, TellsHowFarItIsAndGivesEverythingBack) {
  double last = 0;
  std::vector<std::string> told;
  options.progress = [&](double fraction, const std::string& what) {
    EXPECT_GE(fraction, last);
    last = fraction;
    if (told.empty() || told.back() != what) told.push_back(what);
  };
  { const Ladder ladder = run({entrant(Rung::unfused, 20e-6), entrant(Rung::two_kernel, 8e-6)}); }
  EXPECT_EQ(last, 1);
  EXPECT_EQ(told, (std::vector<std::string>{"copying weights and inputs", "preparing unfused",
                                            "preparing two_kernel", "float64 reference", "checking unfused",
                                            "checking two_kernel", "timing", "timing, sustained"}));
  EXPECT_EQ(host.alive(), 0);
}

TEST(Sampling, ShuffledRoundsTimeEachOnceInChangingOrders) {
  std::string order;
  const auto work = [&](char name) {
    return Work([&order, name]() -> Result<void> { return order += name, Result<void>(); });
  };
  class Constant final : public Timer {
   public:
    Result<double> seconds(const Work& timed) override {
      if (auto done = timed(); !done) return done.error();
      return 1e-3;
    }
  } timer;
  const std::vector<Work> works{work('a'), work('b'), work('c')};
  ASSERT_TRUE(sample(
      works, timer, {.samples = 20, .least_seconds = 0, .most_seconds = 2, .warm_up_runs = 0, .shuffle = 7}));
  ASSERT_EQ(order.size(), 60U);
  std::set<std::string> rounds;
  for (std::size_t i = 0; i < order.size(); i += 3) {
    std::string round = order.substr(i, 3);
    rounds.insert(round);
    std::sort(round.begin(), round.end());
    EXPECT_EQ(round, "abc");
  }
  EXPECT_GE(rounds.size(), 4U) << "of six orders, in twenty rounds";
}

}  // namespace
}  // namespace ingot::profile
