// SPDX-License-Identifier: Apache-2.0
//
// Measuring tiles, with rungs of the CPU in the place of kernels and times by the tiles' names; keeping what
// was found; using it.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fake/compiler.h"
#include "fake/gpu_mlp.h"
#include "fake/host_gpu.h"
#include "gpu/open.h"
#include "numeric/mlp_case.h"
#include "plan/executor.h"
#include "profile/gpu_ladder.h"

namespace ingot {
namespace {

const Mlp mlp{768, 3072, Activation::gelu_tanh, false, true, DType::bf16};

TEST(RankKernels, TheFirstIsThePlannersAndAllAreLegalAndDifferent) {
  const GpuDescription h200 = describe_gpu("sm90").value().gpu;
  for (const std::int64_t tokens : {1, 77, 1024, 32768}) {
    const KernelPair chosen = choose_kernels(mlp, tokens, h200, {});
    const LinearSpec first = first_linear(mlp, true, Numerics::match);
    const auto tiles = rank_kernels(first, tokens, h200, 6);
    ASSERT_EQ(tiles.size(), 6U);
    EXPECT_EQ(label(tiles.front()), label(chosen.first));
    std::set<std::string> labels;
    double before = 0;
    for (const KernelTile& tile : tiles) {
      EXPECT_TRUE(can_run(first, tile, h200)) << label(tile);
      labels.insert(label(tile));
      const double us = forecast_us(first, tile, token_class(tokens).representative, h200);
      EXPECT_GE(us, before);
      before = us;
    }
    EXPECT_EQ(labels.size(), 6U);
  }
  GpuDescription old = h200;
  old.major = 7;
  EXPECT_TRUE(rank_kernels(first_linear(mlp, true, Numerics::match), 64, old, 6).empty());
}

TEST(TuningTable, ReplaceTakesThePlaceEvenOfAFasterOne) {
  TuningTable table("a", "b");
  const LinearSpec linear = second_linear(mlp, Numerics::match);
  table.add({linear, 64, parse_tile("f1x1x64s9").value(), 5});
  table.add({linear, 128, parse_tile("f1x1x64s9").value(), 5});
  table.replace({.tiles = {{linear, 64, parse_tile("f1x1x80s8").value(), 9}}, .mlps = {}});
  ASSERT_EQ(table.tiles().size(), 2U);
  EXPECT_EQ(label(*table.find(linear, 64)), "f1x1x80s8");
  EXPECT_EQ(label(*table.find(linear, 128)), "f1x1x64s9");
}

TEST(TuningFile, IsKeptByDeviceAndAddedTo) {
  const test::TemporaryFolder folder;
  base::Environment environment;
  environment.ingot_cache = folder.path().string();
  EXPECT_TRUE(gpu::load_tuning(environment, "Some GPU").tiles().empty());
  const LinearSpec first = first_linear(mlp, true, Numerics::match),
                   second = second_linear(mlp, Numerics::match);
  const KernelTile tile = parse_tile("g2x1x128s6c21").value();
  ASSERT_TRUE(gpu::store_tuning(environment, "Some GPU", {.tiles = {{first, 64, tile, 5}}, .mlps = {}}));
  const MlpSpec whole = mlp_spec(mlp, true, Numerics::match);
  ASSERT_TRUE(gpu::store_tuning(environment, "Some GPU",
                                {.tiles = {{second, 64, tile, 6}}, .mlps = {{whole, 64, std::nullopt, 11}}}));
  const TuningTable found = gpu::load_tuning(environment, "Some GPU");
  EXPECT_EQ(found.tiles().size(), 2U);
  EXPECT_NE(found.find(first, 64), nullptr);
  EXPECT_NE(found.find(whole, 64), nullptr);
  EXPECT_EQ(found.device(), "Some GPU");
  EXPECT_TRUE(gpu::load_tuning(environment, "Another GPU").tiles().empty());
}

TEST(TuningFile, WithoutAFolderItSaysSo) {
  const auto refused = gpu::store_tuning({}, "Some GPU", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_NE(refused.error().message.find("INGOT_CACHE"), std::string::npos);
}

TEST(TunedGpu, TakesMeasuredTilesAndItsPlansSaySo) {
  test::FakeGpu fake;
  const auto device = gpu::Device::open(fake.driver(), 0).value();
  const test::GpuMlp of(768, 3072);
  const std::int64_t tokens = 8192;
  const auto ranked =
      rank_kernels(first_linear(mlp, true, Numerics::match), tokens, device->description().gpu, 2);
  TuningTable tuned(device->description().name, "");
  tuned.add({first_linear(mlp, true, Numerics::match), token_class(tokens).representative, ranked[1], 1});
  const auto gpu = gpu::open(device, std::make_shared<test::FakeStore>(), {.tuned = tuned}).value();
  const auto executor =
      gpu::prepare(gpu, of.mlp, of.weights, {.numerics = {}, .rung = Rung::two_kernel}).value();
  const auto plan = executor->plan(tokens);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->kernels[0].tile, label(ranked[1]));
  EXPECT_TRUE(plan->kernels[0].tuned);
  EXPECT_FALSE(plan->kernels[1].tuned);
  EXPECT_FALSE(executor->plan(64)->kernels[0].tuned);
  ASSERT_TRUE(executor->run(of.run(tokens, *executor)));
  const jit::KernelText text =
      jit::kernel_text(first_linear(mlp, true, Numerics::match), ranked[1], device->target());
  EXPECT_EQ(*fake.launch(0).text, text.text);
}

/// Runs a rung of the CPU on the device's memory.
class Played final : public Executor {
 public:
  Played(test::HostGpu& host, PreparedMlp real, double takes, bool spoils)
      : host_(host), real_(std::move(real)), takes_(takes), spoils_(spoils) {}
  const Mlp& mlp() const override { return real_.mlp(); }
  std::size_t workspace_bytes(std::int64_t tokens) const override { return real_.workspace_bytes(tokens); }
  Result<void> warm(std::int64_t) const override { return {}; }
  Result<Plan> plan(std::int64_t tokens) const override { return real_.plan(tokens); }
  std::size_t owned_bytes() const override { return 0; }
  Result<void> run(const RunArguments& arguments) const override {
    RunArguments on_host = arguments;
    on_host.stream = {};
    host_.submit(
        [real = real_, on_host, spoils = spoils_] {
          EXPECT_TRUE(real.run(on_host));
          if (spoils) static_cast<std::uint16_t*>(on_host.y)[1] ^= std::uint16_t{0x4000};
        },
        [takes = takes_] { return takes; });
    return {};
  }

 private:
  test::HostGpu& host_;
  PreparedMlp real_;
  double takes_;
  bool spoils_;
};

class TuneTest : public testing::Test {
 protected:
  TuneTest() {
    options.copies = 2;
    options.samples = 3;
    options.most_seconds = 1e-4;
  }
  /// `us`: by the labels of both tiles; of one kernel's tile and "".
  Result<profile::Tuned> run(const std::function<double(const std::string&, const std::string&)>& us,
                             const std::set<std::string>& wrong = {},
                             const std::set<std::string>& refused = {}) {
    const auto prepare = [&](const profile::TrialTiles& tiles,
                             const Weights& weights) -> Result<PreparedMlp> {
      const std::string one = tiles.whole ? label(*tiles.whole) : label(tiles.first);
      const std::string two = tiles.whole ? "" : label(tiles.second);
      if (refused.contains(one) || refused.contains(two)) return Error{ErrorCode::device, "refused"};
      auto real = engine.prepare(problem.mlp(), weights, {.numerics = {}, .rung = Rung::unfused});
      if (!real) return real.error();
      return PreparedMlp(std::make_shared<Played>(host, std::move(real).value(), 1e-6 * us(one, two),
                                                  wrong.contains(one) || wrong.contains(two)));
    };
    const auto device = gpu::Device::open(host.driver(), 0).value();
    return profile::tune_tiles(device, describe_gpu("sm90").value(), problem, prepare, options);
  }
  std::vector<std::string> labels(const LinearSpec& linear) {
    std::vector<std::string> out;
    for (const KernelTile& tile : rank_kernels(linear, problem.tokens(), describe_gpu("sm90").value().gpu, 6))
      out.push_back(label(tile));
    return out;
  }

  std::vector<std::string> whole_labels() {
    std::vector<std::string> out;
    for (const MlpTile& tile : rank_mlp_kernels(spec, problem.tokens(), describe_gpu("sm90").value().gpu, 6))
      out.push_back(label(tile));
    return out;
  }

  test::HostGpu host;
  Engine engine = test::open_engine(1);
  profile::Problem problem = profile::Problem::make({128, 256, Activation::relu, false, true, DType::bf16},
                                                    40, GateLayout::separate, 5)
                                 .value();
  BenchOptions options;
  MlpSpec spec = mlp_spec(problem.mlp(), true, Numerics::match);
  std::vector<std::string> firsts = labels(first_linear(problem.mlp(), true, Numerics::match)),
                           seconds = labels(second_linear(problem.mlp(), Numerics::match)),
                           wholes = whole_labels();
};

TEST_F(TuneTest, FindsThePairThatIsFastestTogether) {
  ASSERT_GE(firsts.size(), 4U);
  ASSERT_GE(seconds.size(), 4U);
  // Beside the favourites, fc1's third and fc2's fourth are fastest; but together the seconds-best are.
  const auto us = [&](const std::string& one, const std::string& two) {
    if (one == firsts[1] && two == seconds[2]) return 5.0;
    double time = 20;
    if (one == firsts[2]) time -= 4;
    if (one == firsts[1]) time -= 3;
    if (two == seconds[3]) time -= 4;
    if (two == seconds[2]) time -= 3;
    return time;
  };
  const auto found = run(us);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->choices.tiles.size(), 2U);
  EXPECT_EQ(label(found->choices.tiles[0].tile), firsts[1]);
  EXPECT_EQ(label(found->choices.tiles[1].tile), seconds[2]);
  EXPECT_EQ(found->choices.tiles[0].tokens, token_class(40).representative);
  EXPECT_EQ(found->choices.tiles[0].linear, first_linear(problem.mlp(), true, Numerics::match));
  EXPECT_NEAR(found->tuning.time_us, 5, 0.01);
  EXPECT_NEAR(found->tuning.forecast_us, 20, 0.01);
  EXPECT_EQ(found->tuning.measured, static_cast<int>(firsts.size() + seconds.size() - 1 + 4 + wholes.size()));
  ASSERT_EQ(found->tuning.kernels.size(), 2U);
  EXPECT_EQ(found->tuning.kernels[1].name, "fc2");
  EXPECT_TRUE(found->tuning.kernels[1].tuned);
  EXPECT_EQ(host.alive(), 0);
  // One kernel was possible, and lost.
  ASSERT_EQ(found->choices.mlps.size(), 1U);
  EXPECT_EQ(found->choices.mlps[0].mlp, spec);
  EXPECT_EQ(found->choices.mlps[0].tokens, token_class(40).representative);
  EXPECT_FALSE(found->choices.mlps[0].tile);
}

TEST_F(TuneTest, OneKernelMayBeFasterThanEveryPair) {
  ASSERT_FALSE(wholes.empty());
  const std::string& fastest = wholes.back();
  const auto us = [&](const std::string& one, const std::string& two) {
    if (one == fastest) return 3.0;
    if (two.empty()) return 15.0;
    return one == firsts[1] && two == seconds[0] ? 8.0 : 10.0;
  };
  const auto found = run(us);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->choices.mlps.size(), 1U);
  ASSERT_TRUE(found->choices.mlps[0].tile);
  EXPECT_EQ(label(*found->choices.mlps[0].tile), fastest);
  EXPECT_NEAR(found->choices.mlps[0].us, 3, 0.01);
  EXPECT_NEAR(found->tuning.time_us, 3, 0.01);
  ASSERT_EQ(found->tuning.kernels.size(), 1U);
  EXPECT_EQ(found->tuning.kernels[0].name, "mlp");
  EXPECT_EQ(found->tuning.kernels[0].tile, fastest);
  // The fastest pair is known, too.
  ASSERT_EQ(found->choices.tiles.size(), 2U);
  EXPECT_EQ(label(found->choices.tiles[0].tile), firsts[1]);
  EXPECT_EQ(label(found->choices.tiles[1].tile), seconds[0]);

  // A wrong one is not taken, however fast.
  const auto without = run(us, {wholes.begin(), wholes.end()});
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_FALSE(without->choices.mlps.at(0).tile);
  EXPECT_NEAR(without->tuning.time_us, 8, 0.01);
}

TEST_F(TuneTest, TheForecastsTimeIsOfWhatThePlannerWouldHaveTaken) {
  const KernelRoute route = choose_route(problem.mlp(), 40, describe_gpu("sm90").value().gpu, {});
  const auto found = run([&](const std::string& one, const std::string& two) {
    if (two.empty()) return one == wholes[0] ? 30.0 : 31.0;
    return one == firsts[0] && two == seconds[0] ? 20.0 : 21.0;
  });
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->tuning.forecast_us, route.takes_one ? 30 : 20, 0.01);
}

TEST_F(TuneTest, WrongAndRefusedTilesAreLeftOut) {
  const auto us = [&](const std::string& one, const std::string&) {
    return one == firsts[1] ? 2.0 : (one == firsts[2] ? 3.0 : (one == firsts[3] ? 4.0 : 10.0));
  };
  const auto found = run(us, {firsts[1]}, {firsts[2]});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(label(found->choices.tiles[0].tile), firsts[3]);
}

TEST_F(TuneTest, NothingRightIsAnError) {
  const auto us = [](const std::string&, const std::string&) { return 10.0; };
  std::set<std::string> all(firsts.begin(), firsts.end());
  all.insert(wholes.begin(), wholes.end());
  const auto found = run(us, all);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::check_failed);
  const auto refused = run(us, {}, {firsts.begin(), firsts.end()});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "refused");
  EXPECT_EQ(host.alive(), 0);
}

}  // namespace
}  // namespace ingot
