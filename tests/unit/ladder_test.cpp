// SPDX-License-Identifier: Apache-2.0
//
// The ladder with a timer and rungs that are not what they seem.
#include "profile/ladder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>

#include "numeric/mlp_case.h"
#include "plan/executor.h"
#include "profile/sampling.h"

namespace ingot::profile {
namespace {

/// Does the work, tells the seconds it was given in turn, and keeps who was timed.
class FakeTimer final : public Timer {
 public:
  explicit FakeTimer(double each) : each_(each) {}
  explicit FakeTimer(std::deque<double> script) : script_(std::move(script)) {}
  Result<double> seconds(const Work& work) override {
    if (auto done = work(); !done) return done.error();
    if (script_.empty()) return each_;
    const double next = script_.front();
    script_.pop_front();
    return next;
  }

 private:
  double each_ = 0;
  std::deque<double> script_;
};

TEST(Sampling, InterleavesAndStartsEachRoundWithAnother) {
  std::string order;
  const auto work = [&](char name) {
    return Work([&order, name]() -> Result<void> { return order += name, Result<void>(); });
  };
  const std::vector<Work> works{work('a'), work('b'), work('c')};
  FakeTimer timer(0.001);
  const auto samples =
      sample(works, timer,
             {.samples = 4, .least_seconds = 0, .most_seconds = 2, .warm_up_seconds = 1, .warm_up_runs = 2});
  ASSERT_TRUE(samples);
  EXPECT_EQ(order,
            "aabbcc"
            "abc"
            "bca"
            "cab"
            "abc");
  for (const auto& each : *samples) EXPECT_EQ(each.size(), 4U);
}

TEST(Sampling, SlowWorkStopsAfterItsTimeAndIsWarmAfterOneRun) {
  int runs = 0;
  const std::vector<Work> works{[&]() -> Result<void> { return ++runs, Result<void>(); }};
  FakeTimer timer(0.9);
  const auto samples = sample(works, timer, {.samples = 30, .most_seconds = 2});
  ASSERT_TRUE(samples);
  EXPECT_EQ(samples->front().size(), 3U);  // 2.7 s: the third passes 2 s
  EXPECT_EQ(runs, 4);
}

TEST(Sampling, FastWorkIsTimedUntilItsLeastTime) {
  const std::vector<Work> works{[]() -> Result<void> { return {}; }};
  FakeTimer timer(0.001);
  double last = 0;
  const auto samples =
      sample(works, timer, {.samples = 30, .least_seconds = 0.1, .most_seconds = 2}, [&](double fraction) {
        EXPECT_GE(fraction, last);
        last = fraction;
      });
  ASSERT_TRUE(samples);
  EXPECT_GE(samples->front().size(), 100U);
  EXPECT_LE(samples->front().size(), 101U);
  EXPECT_EQ(last, 1);
}

TEST(Sampling, AnErrorEndsIt) {
  const std::vector<Work> works{[]() -> Result<void> { return Error{ErrorCode::device, "lost"}; }};
  FakeTimer timer(0.001);
  EXPECT_EQ(sample(works, timer, {}).error().message, "lost");
}

TEST(Statistics, MedianLeastGreatest) {
  EXPECT_EQ(summarize({}).samples, 0);
  const TimeStats odd = summarize({3e-6, 1e-6, 2e-6});
  EXPECT_DOUBLE_EQ(odd.median_us, 2);
  EXPECT_DOUBLE_EQ(odd.min_us, 1);
  EXPECT_DOUBLE_EQ(odd.max_us, 3);
  EXPECT_EQ(odd.samples, 3);
  EXPECT_DOUBLE_EQ(summarize({4e-6, 1e-6, 2e-6, 100e-6}).median_us, 3);
}

/// Runs the real rung, then spoils its output.
class Spoiled final : public Executor {
 public:
  enum class How { one_value, each_run_another };
  Spoiled(PreparedMlp real, How how) : real_(std::move(real)), how_(how) {}
  const Mlp& mlp() const override { return real_.mlp(); }
  std::size_t workspace_bytes(std::int64_t tokens) const override { return real_.workspace_bytes(tokens); }
  Result<void> warm(std::int64_t tokens) const override { return real_.warm(tokens); }
  Result<Plan> plan(std::int64_t tokens) const override { return real_.plan(tokens); }
  std::size_t owned_bytes() const override { return 0; }
  Result<void> run(const RunArguments& arguments) const override {
    auto ran = real_.run(arguments);
    auto* const y = static_cast<float*>(arguments.y);
    const int run = runs_.fetch_add(1);
    if (how_ == How::one_value) y[3] += 0.01F;
    if (how_ == How::each_run_another && run > 0) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, y + 7, sizeof bits);
      bits ^= 1U;  // the last bit: no check of errors would see it
      std::memcpy(y + 7, &bits, sizeof bits);
    }
    return ran;
  }

 private:
  PreparedMlp real_;
  How how_;
  mutable std::atomic<int> runs_{0};
};

class LadderTest : public testing::Test {
 protected:
  LadderTest()
      : engine(test::open_engine(2)),
        problem(Problem::make({32, 64, Activation::silu, true, true, DType::f32}, 50,
                              GateLayout::packed_gate_first, 3)
                    .value()) {
    for (const Rung rung : {Rung::unfused, Rung::one_pass}) subjects.push_back({rung, prepare(rung)});
    options.samples = 2;
    options.least_seconds = 0;
  }
  PreparedMlp prepare(Rung rung) {
    return engine.prepare(problem.mlp(), problem.weights(), {.numerics = {}, .rung = rung}).value();
  }
  Ladder run(Timer& timer) { return run_ladder(problem, subjects, engine.device(), options, timer).value(); }

  Engine engine;
  Problem problem;
  std::vector<Subject> subjects;
  BenchOptions options;
};

TEST_F(LadderTest, SpeedupIsAgainstUnfused) {
  // Warm-up of each (0.1 s ends it), then rounds: unfused, one_pass, one_pass, unfused.
  FakeTimer timer(std::deque<double>{0.2, 0.2, 0.004, 0.001, 0.003, 0.006});
  const Ladder ladder = run(timer);
  ASSERT_EQ(ladder.rungs.size(), 2U);
  EXPECT_TRUE(ladder.ok());
  EXPECT_DOUBLE_EQ(ladder.rungs[0].time.median_us, 5000);
  EXPECT_DOUBLE_EQ(ladder.rungs[1].time.median_us, 2000);
  EXPECT_DOUBLE_EQ(ladder.rungs[0].speedup.value(), 1);
  EXPECT_DOUBLE_EQ(ladder.rungs[1].speedup.value(), 2.5);
  EXPECT_GT(ladder.rungs[0].error, 0);
  EXPECT_EQ(ladder.rungs[1].candidate.launches, 1);
  EXPECT_EQ(ladder.floor.flops, flops(problem.mlp(), 50));
}

TEST_F(LadderTest, AWrongResultIsNotTimedAndFailsTheLadder) {
  subjects[1].prepared =
      PreparedMlp(std::make_shared<Spoiled>(prepare(Rung::one_pass), Spoiled::How::one_value));
  FakeTimer timer(0.01);
  const Ladder ladder = run(timer);
  EXPECT_FALSE(ladder.ok());
  EXPECT_TRUE(ladder.rungs[0].ok);
  EXPECT_FALSE(ladder.rungs[1].ok);
  EXPECT_EQ(ladder.rungs[1].time.samples, 0);
  EXPECT_FALSE(ladder.rungs[1].speedup);
  EXPECT_FALSE(ladder.rungs[1].reason.empty());
}

TEST_F(LadderTest, OtherBitsOnTheSameInputFailTheLadder) {
  subjects[0].prepared =
      PreparedMlp(std::make_shared<Spoiled>(prepare(Rung::unfused), Spoiled::How::each_run_another));
  FakeTimer timer(0.01);
  const Ladder ladder = run(timer);
  EXPECT_FALSE(ladder.rungs[0].ok);
  EXPECT_EQ(ladder.rungs[0].reason, "two runs on the same input gave different bits");
  EXPECT_FALSE(ladder.rungs[1].speedup) << "speed-up against a rung that failed";
}

TEST(Problem, IsTheSameForASeedAndAnotherForAnother) {
  const Mlp mlp{8, 16, Activation::relu, false, true, DType::bf16};
  const auto a = Problem::make(mlp, 4, GateLayout::separate, 1).value();
  const auto b = Problem::make(mlp, 4, GateLayout::separate, 1).value();
  const auto c = Problem::make(mlp, 4, GateLayout::separate, 2).value();
  EXPECT_EQ(std::memcmp(a.x(), b.x(), 4 * 8 * 2), 0);
  EXPECT_NE(std::memcmp(a.x(), c.x(), 4 * 8 * 2), 0);
  EXPECT_NE(std::memcmp(a.weights().up.weight, a.weights().down.weight, 8 * 16 * 2), 0);
}

TEST(Bench, RefusesWhatCannotBeTimed) {
  const Engine engine = test::open_engine(1);
  const Mlp mlp{8, 16, Activation::relu, false, true, DType::f32};
  EXPECT_EQ(bench(engine, mlp, 0).error().message, "tokens: 0 leaves nothing to time, give 1 or more");
  EXPECT_EQ(bench(engine, mlp, -1).error().code, ErrorCode::invalid_argument);
  const auto huge = bench(engine, mlp, std::int64_t{1} << 50);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, ErrorCode::out_of_memory);
  EXPECT_NE(huge.error().message.find("GiB are free"), std::string::npos) << huge.error().message;
}

}  // namespace
}  // namespace ingot::profile
