// SPDX-License-Identifier: Apache-2.0
//
// Every activation, gating, dtype and contract, with sizes, layouts, biases and alignments in turns, against
// float64; the kernels of a whole MLP the same way, each with each of its tiles. Outputs and workspace are
// poisoned, what lies around the output is guarded, every case runs twice for the same bits.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <thread>

#include "engine/check.h"

namespace ingot::check {

namespace {

constexpr unsigned char poison = 0xff;  // not-a-number in every dtype
constexpr std::int64_t aligned_sizes[][2] = {{72, 200}, {64, 320},  {320, 64}, {8, 72},
                                             {200, 8},  {200, 320}, {64, 64}};
constexpr std::int64_t odd_sizes[][2] = {{17, 77}, {77, 3}, {1, 17}, {3, 1}, {64, 77}, {77, 64}, {1, 1}};

/// How x and y of one run lie: bytes off an aligned address, elements between rows.
struct Lie {
  std::size_t offset;
  std::int64_t gap;
};

struct Case {
  Mlp mlp;
  Numerics numerics;
  Place place;
  bool odd_addresses;
  std::size_t weight_offset;  ///< bytes

  std::string text() const {
    return fmt::format("{} {} place {} {}{}", to_string(mlp), to_string(numerics), static_cast<int>(place),
                       odd_addresses ? "odd addresses" : "aligned",
                       weight_offset == 0 ? "" : fmt::format(", weights off by {}", weight_offset));
  }
};

std::vector<Case> cases(const SweepOptions& options) {
  std::vector<Case> all;
  std::size_t turn = 0;
  for (int rotation = 0; rotation < options.rotations; ++rotation) {
    for (std::size_t a = 0; a < activation_count; ++a) {
      for (const bool gated : {false, true}) {
        for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
          for (const Numerics numerics : {Numerics::match, Numerics::fast}) {
            ++turn;
            if (options.small && (turn % 7 != 1 || a % 2 == 1)) continue;
            // Two of three cases on tensors the fast kernels take. 7 sizes against 3, 4 and 5 of the others:
            // rotations meet new combinations.
            const bool odd = turn % 3 == 2;
            const auto& size = (odd ? odd_sizes : aligned_sizes)[turn % 7];
            Case c;
            c.mlp = {size[0], size[1], static_cast<Activation>(a), gated, turn % 5 != 0, dtype};
            c.numerics = numerics;
            c.place = static_cast<Place>((turn / 2) % 4);
            c.odd_addresses = turn % 4 == 3;
            c.weight_offset = turn % 11 == 10 ? size_of(dtype) : 0;
            all.push_back(c);
          }
        }
      }
    }
  }
  return all;
}

/// Where `tokens` rows are judged: the ends and some between.
std::vector<std::int64_t> judged(std::int64_t tokens) {
  return cpu::spread_rows(tokens, 12);
}

/// One run into poisoned memory; y's rows, or why not.
struct Outcome {
  std::string wrong;
  std::vector<char> y;  ///< [tokens, dim]
};
Outcome run_once(const Session& session, const Executor& executor, const Problem& problem,
                 std::int64_t tokens, Lie lie, const Stream& stream) {
  const std::int64_t dim = problem.mlp().dim, stride = dim + lie.gap;
  const std::size_t element = size_of(problem.mlp().dtype),
                    pitch = static_cast<std::size_t>(stride) * element;
  constexpr std::size_t guard = 512;
  const std::vector<char> x = problem.strided_x(tokens, stride);
  const Buffer x_device(session, x.size() + lie.offset);
  x_device.upload(x.data(), x.size(), lie.offset);
  const Buffer y_device(session, static_cast<std::size_t>(tokens) * pitch + 2 * guard + lie.offset);
  y_device.fill(poison);
  const Buffer workspace(session, executor.workspace_bytes(tokens));
  workspace.fill(poison);
  const auto ran = executor.run({.tokens = tokens,
                                 .x = x_device.at(lie.offset),
                                 .x_row_stride = stride,
                                 .y = y_device.at(guard + lie.offset),
                                 .y_row_stride = stride,
                                 .workspace = workspace.at(0),
                                 .workspace_bytes = workspace.bytes(),
                                 .stream = stream.handle()});
  if (!ran) return {ran.error().message, {}};
  stream.wait();
  std::vector<char> all(y_device.bytes());
  y_device.download(all.data(), all.size());
  Outcome out;
  out.y.resize(static_cast<std::size_t>(tokens) * problem.row_bytes());
  for (std::size_t r = 0; r < static_cast<std::size_t>(tokens); ++r) {
    char* const row = all.data() + guard + lie.offset + r * pitch;
    std::memcpy(out.y.data() + r * problem.row_bytes(), row, problem.row_bytes());
    std::memset(row, poison, problem.row_bytes());
  }
  if (!std::all_of(all.begin(), all.end(), [](char c) { return static_cast<unsigned char>(c) == poison; }))
    out.wrong = "wrote outside the output";
  return out;
}

std::string check_tokens(const Session& session, const Executor& executor, const Problem& problem,
                         std::int64_t tokens, Lie lie, const Stream& stream) {
  const Outcome one = run_once(session, executor, problem, tokens, lie, stream);
  if (!one.wrong.empty()) return one.wrong;
  const Outcome two = run_once(session, executor, problem, tokens, lie, stream);
  if (!two.wrong.empty()) return two.wrong;
  if (one.y != two.y) return "two runs differ";
  const std::vector<std::int64_t> rows = judged(tokens);
  std::vector<char> gathered;
  for (const std::int64_t row : rows) {
    const char* const from = one.y.data() + static_cast<std::size_t>(row) * problem.row_bytes();
    gathered.insert(gathered.end(), from, from + problem.row_bytes());
  }
  return problem.judge(rows, gathered.data());
}

/// On this GPU, in this rung (unset: the planner's choice).
void check_case(Session& session, const std::shared_ptr<const gpu::Gpu>& gpu, std::optional<Rung> rung,
                const Case& c, const std::vector<std::int64_t>& token_counts, const std::string& name) {
  session.make_current();
  const std::int64_t most = *std::max_element(token_counts.begin(), token_counts.end());
  const Problem problem(session, c.mlp, c.place, most,
                        static_cast<std::uint64_t>(c.mlp.dim * 1000 + c.mlp.hidden), c.weight_offset);
  const auto prepared = gpu::prepare(gpu, c.mlp, problem.on_device(), {.numerics = c.numerics, .rung = rung});
  if (!prepared) return session.report(false, name + ": " + prepared.error().message);
  const Stream stream(session);
  const std::size_t element = size_of(c.mlp.dtype);
  for (const std::int64_t tokens : token_counts) {
    const std::int64_t vector = 16 / static_cast<std::int64_t>(element);
    // Aligned rows need not adjoin; odd ones start one element off, three elements apart.
    const Lie lie = c.odd_addresses ? Lie{element, 3} : Lie{0, tokens % 2 == 0 ? vector * 3 : 0};
    const std::string wrong = check_tokens(session, **prepared, problem, tokens, lie, stream);
    session.report(wrong.empty(), fmt::format("{}, {} tokens: {}", name, tokens, wrong));
  }
}

/// Does `count` pieces of work side by side, since compiling takes most of the time; this is also how a
/// program of many threads runs.
void side_by_side(std::size_t count, bool alone, const std::function<void(std::size_t)>& work) {
  const unsigned workers = alone ? 1 : std::max(1U, std::thread::hardware_concurrency());
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> pool;
  for (unsigned w = 0; w < workers; ++w) {
    pool.emplace_back([&] {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    });
  }
  for (std::thread& thread : pool) thread.join();
}

constexpr std::int64_t whole_sizes[][2] = {{320, 1280}, {64, 256},   {256, 1024}, {72, 200},
                                           {128, 512},  {192, 768},  {200, 320},  {8, 72},
                                           {264, 8},    {304, 1288}, {64, 64}};

/// An MLP with the tile of one kernel.
struct WholeCase {
  Case of;
  MlpTile tile;
  std::vector<std::int64_t> token_counts;
};

std::vector<MlpTile> whole_tiles(const Session& session, const Case& c) {
  return rank_mlp_kernels(mlp_spec(c.mlp, true, c.numerics), 64, session.gpu()->description.gpu, 100);
}

/// Each kind of MLP with one of its tiles, in turns; and two models with every tile and up to 130 tokens.
std::vector<WholeCase> whole_cases(const Session& session, const SweepOptions& options) {
  std::vector<WholeCase> all;
  std::size_t turn = 0;
  const std::vector<std::int64_t> some = options.small
                                             ? std::vector<std::int64_t>{1, 77, 300}
                                             : std::vector<std::int64_t>{1, 8, 9, 64, 77, 129, 300, 4000};
  for (int rotation = 0; rotation < options.rotations; ++rotation) {
    for (std::size_t a = 0; a < activation_count; ++a) {
      for (const bool gated : {false, true}) {
        for (const DType dtype : {DType::bf16, DType::f16}) {
          for (const Numerics numerics : {Numerics::match, Numerics::fast}) {
            ++turn;
            if (options.small && turn % 5 != 1) continue;
            const auto& size = whole_sizes[turn % std::size(whole_sizes)];
            Case c{.mlp = {size[0], size[1], static_cast<Activation>(a), gated, turn % 5 != 0, dtype},
                   .numerics = numerics,
                   .place = static_cast<Place>((turn / 2) % 4),
                   .odd_addresses = false,
                   .weight_offset = 0};
            const auto tiles = whole_tiles(session, c);
            for (const std::size_t which : {turn, turn + 1}) {
              if (which - turn < tiles.size()) all.push_back({c, tiles[which % tiles.size()], some});
            }
          }
        }
      }
    }
  }
  if (options.small) return all;
  std::vector<std::int64_t> each(130);
  std::iota(each.begin(), each.end(), 1);
  for (const Mlp& mlp : {Mlp{256, 1024, Activation::relu, false, true, DType::bf16},
                         Mlp{320, 1280, Activation::gelu_erf, true, true, DType::bf16}}) {
    const Case c{mlp, Numerics::match, Place::packed_value_first, false, 0};
    for (const MlpTile& tile : whole_tiles(session, c)) all.push_back({c, tile, each});
  }
  return all;
}

}  // namespace

void sweep(Session& session, const SweepOptions& options) {
  const std::vector<Case> all = cases(options);
  const std::vector<std::int64_t> token_counts =
      options.small ? std::vector<std::int64_t>{1, 77, 300}
                    : std::vector<std::int64_t>{1, 5, 64, 77, 128, 300, 1000};
  side_by_side(all.size(), options.small, [&](std::size_t i) {
    check_case(session, session.gpu(), {}, all[i], token_counts, all[i].text());
  });
  session.report(true, fmt::format("sweep: {} MLPs x {} numbers of tokens", all.size(), token_counts.size()),
                 true);
}

void whole(Session& session, const SweepOptions& options) {
  const std::vector<WholeCase> all = whole_cases(session, options);
  side_by_side(all.size(), options.small, [&](std::size_t i) {
    const WholeCase& c = all[i];
    // A GPU on which the tile is the measured one, whatever the number of tokens, takes it.
    const auto gpu = std::make_shared<gpu::Gpu>(*session.gpu());
    gpu->tuned = TuningTable("", "");
    for (const std::int64_t tokens : c.token_counts) {
      gpu->tuned.add(
          TunedMlp{mlp_spec(c.of.mlp, true, c.of.numerics), token_class(tokens).representative, c.tile, 1});
    }
    check_case(session, gpu, Rung::one_kernel, c.of, c.token_counts,
               fmt::format("one kernel {}: {}", label(c.tile), c.of.text()));
  });
  session.report(session.gpu()->description.gpu.major != 9 || !all.empty(),
                 fmt::format("one kernel: {} MLPs and tiles", all.size()), true);
}

}  // namespace ingot::check
