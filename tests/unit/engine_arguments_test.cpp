// SPDX-License-Identifier: Apache-2.0
//
// What prepare and run refuse, and that a refusal writes nothing.
#include <limits>

#include "numeric/mlp_case.h"

namespace ingot {
namespace {

const Mlp plain{16, 32, Activation::relu, false, true, DType::f32};
const Mlp gated{16, 32, Activation::silu, true, true, DType::f32};

const Engine& engine() {
  static const Engine opened = test::open_engine(2);
  return opened;
}

std::string refusal(const Mlp& mlp, const Weights& weights) {
  const auto prepared = engine().prepare(mlp, weights);
  if (prepared) return "";
  EXPECT_EQ(prepared.error().code, ErrorCode::invalid_argument);
  return prepared.error().message;
}

const void* shifted(const void* pointer, std::size_t bytes) {
  return static_cast<const char*>(pointer) + bytes;
}

TEST(Prepare, NamesTheWeightThatIsOff) {
  test::MlpCase c(plain, 1);
  const Weights good = c.weights(GateLayout::separate);
  EXPECT_EQ(refusal(plain, good), "");
  Weights w = good;
  w.up.weight = nullptr;
  EXPECT_EQ(refusal(plain, w), "up weight: null pointer");
  w = good;
  w.down.weight = nullptr;
  EXPECT_EQ(refusal(plain, w), "down weight: null pointer");
  w = good;
  w.up.weight = shifted(w.up.weight, 1);
  EXPECT_EQ(refusal(plain, w), "up weight: address is not a multiple of 4 bytes");
  w = good;
  w.down.bias = shifted(w.down.bias, 2);
  EXPECT_EQ(refusal(plain, w), "down bias: address is not a multiple of 4 bytes");
  w = good;
  w.up.row_stride = 15;
  EXPECT_EQ(refusal(plain, w), "up weight row stride: 15 overlaps rows of 16");
  w = good;
  w.down.row_stride = -32;
  EXPECT_EQ(refusal(plain, w), "down weight row stride: -32 overlaps rows of 32");
  w = good;
  w.down.row_stride = std::numeric_limits<std::int64_t>::max() / 8;
  EXPECT_EQ(refusal(plain, w), "down weight row stride: 16 rows of 1152921504606846975 pass 2^63 bytes");
  Mlp no_bias = plain;
  no_bias.bias = false;
  EXPECT_EQ(refusal(no_bias, good), "up bias: given, but the MLP has bias = false");
  Mlp bad = plain;
  bad.dim = 0;
  EXPECT_EQ(refusal(bad, good), "dim: 0 is not accepted, give 1 to 2147483647");
}

TEST(Prepare, GateFitsTheLayout) {
  test::MlpCase c(gated, 1);
  const Weights separate = c.weights(GateLayout::separate);
  EXPECT_EQ(refusal(gated, separate), "");
  Weights w = separate;
  w.gate = {};
  EXPECT_EQ(refusal(gated, w), "gate weight: null pointer");
  w = separate;
  w.layout = GateLayout::packed_value_first;
  EXPECT_EQ(refusal(gated, w), "gate: given, but packed weights hold it in up");
  EXPECT_EQ(refusal(plain, separate), "gate: given, but the MLP is not gated");
  w.gate = {};
  EXPECT_EQ(refusal(plain, w), "layout: packed needs a gated MLP");
}

/// A run whose arguments a test bends.
struct Call {
  test::MlpCase c{plain, 8};
  PreparedMlp prepared = engine().prepare(plain, c.weights(GateLayout::separate)).value();
  std::vector<float> x = std::vector<float>(8 * 40, 1.0F), y = std::vector<float>(8 * 40, 7.0F);
  cpu::Buffer<char> workspace = cpu::Buffer<char>::allocate(prepared.workspace_bytes(8) + 64);
  RunArguments a{.tokens = 8,
                 .x = x.data(),
                 .x_row_stride = 0,
                 .y = y.data(),
                 .y_row_stride = 0,
                 .workspace = workspace.data(),
                 .workspace_bytes = prepared.workspace_bytes(8),
                 .stream = {}};

  std::string refusal() {
    const auto ran = prepared.run(a);
    if (ran) return "";
    EXPECT_EQ(ran.error().code, ErrorCode::invalid_argument);
    for (const float value : y) EXPECT_EQ(value, 7.0F) << "a refused run wrote";
    return ran.error().message;
  }
};

TEST(Run, NamesTheArgumentThatIsOff) {
  EXPECT_EQ(Call().refusal(), "");
  Call call;
  const RunArguments good = call.a;
  const auto with = [&](auto change) {
    call.a = good;
    change(call.a);
    return call.refusal();
  };
  EXPECT_EQ(with([](RunArguments& a) { a.tokens = -1; }), "tokens: -1 is not accepted, give 0 or more");
  EXPECT_EQ(with([](RunArguments& a) { a.x = nullptr; }), "x: null pointer");
  EXPECT_EQ(with([](RunArguments& a) { a.y = nullptr; }), "y: null pointer");
  EXPECT_EQ(with([](RunArguments& a) { a.x = shifted(a.x, 2); }), "x: address is not a multiple of 4 bytes");
  EXPECT_EQ(with([](RunArguments& a) { a.x_row_stride = 15; }), "x row stride: 15 overlaps rows of 16");
  EXPECT_EQ(with([](RunArguments& a) { a.y_row_stride = 1; }), "y row stride: 1 overlaps rows of 16");
  EXPECT_EQ(with([](RunArguments& a) { a.y_row_stride = -16; }), "y row stride: -16 overlaps rows of 16");
  EXPECT_EQ(with([](RunArguments& a) { a.y_row_stride = std::int64_t{1} << 61; }),
            "y row stride: 8 rows of 2305843009213693952 pass 2^63 bytes");
  EXPECT_EQ(with([](RunArguments& a) { a.workspace = nullptr; }), "workspace: null pointer");
  EXPECT_EQ(with([](RunArguments& a) { a.workspace = static_cast<char*>(a.workspace) + 4; }),
            "workspace: address is not a multiple of 64 bytes");
  EXPECT_NE(with([](RunArguments& a) { a.workspace_bytes -= 1; }).find(" tokens need "), std::string::npos);
  EXPECT_EQ(with([&](RunArguments& a) { a.y = call.workspace.data(); }),
            "workspace: shares memory with x or y");
  EXPECT_NE(with([](RunArguments& a) { a.tokens = std::int64_t{1} << 60; }).find("pass 2^63 bytes"),
            std::string::npos);
  EXPECT_EQ(with([](RunArguments& a) { a.tokens = 9; }).substr(0, 10), "workspace:");
}

TEST(Run, OutputMayShareNoElementWithInput) {
  Call call;
  call.a.y = call.x.data();
  EXPECT_EQ(call.refusal(), "y: shares memory with x");
  call.a.y = call.x.data() + 3;
  EXPECT_EQ(call.refusal(), "y: shares memory with x");
  // Side by side in one buffer, rows interleaved: nothing is shared.
  call.a.y = call.x.data() + 16;
  call.a.x_row_stride = call.a.y_row_stride = 40;
  EXPECT_EQ(call.refusal(), "");
  call.a.y = call.x.data() + 15;
  EXPECT_EQ(call.refusal(), "y: shares memory with x");
  call.a.y = call.x.data() + 16;
  call.a.y_row_stride = 24;
  EXPECT_EQ(call.refusal(), "y: shares memory with x");
}

TEST(Run, NoTokensNeedsNothing) {
  Call call;
  EXPECT_TRUE(call.prepared.run({}));
  EXPECT_EQ(call.prepared.workspace_bytes(0), 0U);
  EXPECT_EQ(call.prepared.workspace_bytes(-3), 0U);
}

TEST(Run, ASingleRowMayHaveAnyStride) {
  Call call;
  call.a.tokens = 1;
  call.a.x_row_stride = -5;
  call.a.y_row_stride = 1;
  EXPECT_EQ(call.refusal(), "");
}

TEST(Engine, RefusesWhatIsNotThere) {
  EXPECT_EQ(Engine::open({.device = DeviceKind::cuda, .description = {}}).error().code,
            ErrorCode::unsupported);
  EXPECT_EQ(Engine::open({.threads = -1, .description = {}}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(Engine::open({.threads = 100000, .description = {}}).error().message,
            "threads: 100000 is not accepted, give 1 to 1024");
}

TEST(Engine, WeightsAreReadInPlaceWhateverTheirDtype) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    Mlp mlp = plain;
    mlp.dtype = dtype;
    test::MlpCase c(mlp, 2);
    const auto prepared = engine().prepare(mlp, c.weights(GateLayout::separate)).value();
    EXPECT_EQ(prepared.owned_bytes(), (32U + 32 + 16) * 4);  // zeros and the two biases, in f32
    const test::Output before = test::run_guarded(prepared, c, 2, 0);
    c.up.set(0, 100);
    EXPECT_NE(test::run_guarded(prepared, c, 2, 0).bytes, before.bytes) << "a copy was read";
  }
}

// 2^31 rows of the smallest MLP's workspace and beyond: sizes saturate, run() says so, nothing is touched.
TEST(Engine, WorkspaceSizesDoNotWrap) {
  test::MlpCase c(plain, 1);
  const auto prepared =
      engine()
          .prepare(plain, c.weights(GateLayout::separate), {.numerics = {}, .rung = Rung::unfused})
          .value();
  std::size_t last = 0;
  for (std::int64_t tokens = 1; tokens < (std::int64_t{1} << 53); tokens *= 8) {
    const std::size_t bytes = prepared.workspace_bytes(tokens);
    EXPECT_GE(bytes, last);
    EXPECT_GE(bytes, static_cast<std::size_t>(tokens) * 2 * 32 * 4);
    last = bytes;
  }
}

}  // namespace
}  // namespace ingot
