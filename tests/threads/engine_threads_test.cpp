// SPDX-License-Identifier: Apache-2.0
//
// One engine, several threads that prepare and run on it at once. The GEMM library is called single-threaded
// from threads of Ingot's own, so that ThreadSanitizer sees every synchronisation between them; it does not
// see into the library, whose calls share nothing but read-only weights.
#include <thread>

#include "numeric/mlp_case.h"
#include "plan/choose.h"

namespace ingot {
namespace {

const std::vector<Mlp> mlps{
    {64, 160, Activation::gelu_tanh, true, true, DType::f32},
    {48, 96, Activation::relu, false, true, DType::bf16},
    {33, 70, Activation::silu, true, false, DType::f16},
};

TEST(EngineThreads, PrepareAndRunAtOnce) {
  const Engine engine = test::open_engine(2);
  constexpr int callers = 4, rounds = 6;
  constexpr std::int64_t tokens = 37;
  std::vector<std::string> results(callers);
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller) {
    threads.emplace_back([&, caller] {
      for (int round = 0; round < rounds; ++round) {
        const Mlp& mlp = mlps[static_cast<std::size_t>(round) % mlps.size()];
        test::MlpCase c(mlp, tokens);
        for (std::size_t r = 0; r < rung_count; ++r) {
          if (is_compiled_rung(static_cast<Rung>(r))) continue;  // no CPU has it
          const auto prepared = engine.prepare(mlp, c.weights(GateLayout::separate),
                                               {.numerics = {}, .rung = static_cast<Rung>(r)});
          ASSERT_TRUE(prepared);
          const test::Output y = test::run_guarded(*prepared, c, tokens, 3);
          results[static_cast<std::size_t>(caller)].append(y.bytes.begin(), y.bytes.end());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& result : results) EXPECT_EQ(result, results[0]) << "bits depend on who runs beside";
}

TEST(EngineThreads, RunOnePreparedMlpAtOnce) {
  const Engine engine = test::open_engine(3);
  const Mlp mlp{96, 200, Activation::gelu_erf, true, true, DType::f32};
  constexpr std::int64_t most = 450;  // several tiles
  test::MlpCase c(mlp, most);
  for (std::size_t r = 0; r < rung_count; ++r) {
    if (is_compiled_rung(static_cast<Rung>(r))) continue;
    const PreparedMlp prepared = engine
                                     .prepare(mlp, c.weights(GateLayout::packed_value_first),
                                              {.numerics = {}, .rung = static_cast<Rung>(r)})
                                     .value();
    const std::vector<std::int64_t> counts{1, 5, 64, most};
    std::vector<test::Output> alone;
    for (const std::int64_t tokens : counts) alone.push_back(test::run_guarded(prepared, c, tokens, 0));
    std::vector<test::Output> together(counts.size() * 2);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < together.size(); ++i) {
      threads.emplace_back(
          [&, i] { together[i] = test::run_guarded(prepared, c, counts[i % counts.size()], 0); });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < together.size(); ++i) {
      EXPECT_EQ(together[i].bytes, alone[i % counts.size()].bytes) << to_string(static_cast<Rung>(r));
    }
  }
}

TEST(EngineThreads, AnEngineMayGoBeforeWhatItPrepared) {
  test::MlpCase c({64, 128, Activation::relu, false, true, DType::f32}, 400);
  auto engine = std::make_unique<Engine>(test::open_engine(2));
  const PreparedMlp prepared = engine->prepare(c.mlp, c.weights(GateLayout::separate)).value();
  const test::Output before = test::run_guarded(prepared, c, 400, 0);
  engine.reset();
  EXPECT_EQ(test::run_guarded(prepared, c, 400, 0).bytes, before.bytes);
}

}  // namespace
}  // namespace ingot
