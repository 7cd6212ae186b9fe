// SPDX-License-Identifier: Apache-2.0
#include "plan/tuning.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "plan/choose.h"

namespace ingot {
namespace {

const Mlp mlp{1536, 8960, Activation::gelu_tanh, false, true, DType::bf16};

TunedTile tuned(const LinearSpec& linear, std::int64_t tokens, const char* tile, double us) {
  return {linear, tokens, parse_tile(tile).value(), us};
}
TuningTable table() {
  TuningTable made("NVIDIA H200", "0123abcd");
  made.add(tuned(first_linear(mlp, true, Numerics::match), 256, "g2x1x128s6c21", 15.5));
  made.add(tuned(second_linear(mlp, Numerics::match), 256, "g2x1x128s6c11k4", 20.0));
  made.add(tuned(second_linear(mlp, Numerics::match), 512, "g2x1x128s6c11", 30.0));
  return made;
}

TEST(Tuning, FindsWhatWasMeasured) {
  const TuningTable made = table();
  const LinearSpec second = second_linear(mlp, Numerics::match);
  ASSERT_NE(made.find(second, 256), nullptr);
  EXPECT_EQ(label(*made.find(second, 256)), "g2x1x128s6c11k4");
  EXPECT_EQ(label(*made.find(second, 512)), "g2x1x128s6c11");
  EXPECT_EQ(made.find(second, 257), nullptr);
  EXPECT_EQ(made.find(second_linear(mlp, Numerics::fast), 256), nullptr);
  EXPECT_EQ(made.find(second_linear(mlp, Numerics::match, false), 256), nullptr);
  LinearSpec other = second;
  other.bias = false;
  EXPECT_EQ(made.find(other, 256), nullptr);
}

TEST(Tuning, TheFasterStaysAndThePlaceOfTheGateIsOne) {
  const Mlp gated{640, 2560, Activation::silu, true, false, DType::bf16};
  TuningTable made("a", "b");
  made.add(tuned(first_linear(gated, false, Numerics::match), 64, "f1x1x40s12", 9));
  made.add(tuned(first_linear(gated, true, Numerics::match), 64, "f1x1x64s9", 8));
  made.add(tuned(first_linear(gated, true, Numerics::match), 64, "f1x1x80s8", 8.5));
  ASSERT_EQ(made.tiles().size(), 1U);
  EXPECT_EQ(label(made.tiles()[0].tile), "f1x1x64s9");
  const KernelTile* found = made.find(first_linear(gated, false, Numerics::match), 64);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(label(*found), "f1x1x64s9");
}

TEST(Tuning, SurvivesItsDocument) {
  const std::string document = to_json(table());
  const auto parsed = parse_tuning(document);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->device(), "NVIDIA H200");
  EXPECT_EQ(parsed->kernels(), "0123abcd");
  ASSERT_EQ(parsed->tiles().size(), 3U);
  EXPECT_EQ(to_json(*parsed), document);
  const TuningTable original = table();
  for (const TunedTile& t : original.tiles()) {
    ASSERT_NE(parsed->find(t.linear, t.tokens), nullptr);
    EXPECT_EQ(label(*parsed->find(t.linear, t.tokens)), label(t.tile));
  }
}

TEST(Tuning, WholeMlpsAreKeptBesideTheirLinears) {
  const Mlp gated{320, 1280, Activation::gelu_erf, true, true, DType::bf16};
  const MlpSpec spec = mlp_spec(gated, true, Numerics::match);
  const MlpTile tile(sm90::NarrowTile{}), other(sm90::ClusterTile{});
  TuningTable made = table();
  made.add(TunedMlp{mlp_spec(gated, false, Numerics::match), 4096, tile, 20});
  made.add(TunedMlp{spec, 4096, std::nullopt, 25});  // slower: not kept
  made.add(TunedMlp{spec, 64, std::nullopt, 5});
  made.add(TunedMlp{spec, 128, tile, 6});
  made.add(TunedMlp{spec, 128, other, 5.5});
  ASSERT_EQ(made.mlps().size(), 3U);
  ASSERT_NE(made.find(spec, 4096), nullptr);
  EXPECT_EQ(label(*made.find(mlp_spec(gated, false, Numerics::match), 4096)->tile), label(tile));
  EXPECT_EQ(label(*made.find(spec, 128)->tile), label(other));
  ASSERT_NE(made.find(spec, 64), nullptr);
  EXPECT_FALSE(made.find(spec, 64)->tile);
  EXPECT_EQ(made.find(spec, 65), nullptr);
  for (const auto change :
       {+[](MlpSpec& m) { m.up_bias = false; }, +[](MlpSpec& m) { m.down_bias = false; },
        +[](MlpSpec& m) { m.numerics = Numerics::fast; }, +[](MlpSpec& m) { m.hidden = 1288; },
        +[](MlpSpec& m) { m.dtype = DType::f16; }, +[](MlpSpec& m) { m.activation = Activation::silu; },
        +[](MlpSpec& m) { m.gated = false; }, +[](MlpSpec& m) { m.aligned = false; },
        +[](MlpSpec& m) { m.dim = 64; }}) {
    MlpSpec changed = spec;
    change(changed);
    EXPECT_EQ(made.find(changed, 4096), nullptr);
  }
  const std::string document = to_json(made);
  EXPECT_NE(document.find("\"tile\": \"pair\""), std::string::npos) << document;
  const auto parsed = parse_tuning(document);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(to_json(*parsed), document);
  EXPECT_EQ(parsed->mlps().size(), 3U);
  EXPECT_FALSE(parsed->find(spec, 64)->tile);
  EXPECT_EQ(parsed->tiles().size(), 3U);

  made.replace({.tiles = {}, .mlps = {{spec, 4096, std::nullopt, 99}}});
  EXPECT_FALSE(made.find(spec, 4096)->tile);
  EXPECT_EQ(made.mlps().size(), 3U);

  // A document from before there were any, and lines that are damaged.
  std::string damaged = document;
  damaged.replace(damaged.find("\"pair\""), 6, "\"pear\"");
  EXPECT_EQ(parse_tuning(damaged)->mlps().size(), 2U);
  damaged = document;
  damaged.replace(damaged.find("\"mlps\""), 6, "\"more\"");
  EXPECT_TRUE(parse_tuning(damaged)->mlps().empty());
  EXPECT_EQ(parse_tuning(damaged)->tiles().size(), 3U);
}

TEST(Tuning, ADocumentOfAnotherDeviceOrOtherKernelsIsIgnored) {
  const std::string document = to_json(table());
  EXPECT_EQ(tuning_for(document, "NVIDIA H200", "0123abcd").tiles().size(), 3U);
  EXPECT_EQ(tuning_for(document, "NVIDIA H100", "0123abcd").tiles().size(), 0U);
  EXPECT_EQ(tuning_for(document, "NVIDIA H200", "other").tiles().size(), 0U);
  EXPECT_EQ(tuning_for("", "NVIDIA H200", "other").kernels(), "other");
}

TEST(Tuning, DamagedDocumentsAreRefusedAndDamagedLinesLeftOut) {
  for (const char* text :
       {"", "{", "[]", "null", "{}", R"({"schema":"ingot.tuning/2","device":"a","kernels":"b","tiles":[]})",
        R"({"schema":"ingot.tuning/1","device":1,"kernels":"b","tiles":[]})",
        R"({"schema":"ingot.tuning/1","device":"a","kernels":"b","tiles":{}})"}) {
    const auto parsed = parse_tuning(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::unreadable);
  }
  std::string document = to_json(table());
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"\"g2x1x128s6c11k4\"", "\"g2x1\""}, {"\"us\": 30.0", "\"us\": -1"}, {"\"gelu_tanh\"", "7"}}) {
    const std::size_t at = document.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    document.replace(at, what.size(), with);
  }
  const auto parsed = parse_tuning(document);
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->tiles().empty());
}

TEST(Tuning, MeasuredTilesComeBeforeForecasts) {
  const DeviceDescription h200 = describe_gpu("sm90").value();
  const TuningTable made = table();
  const KernelPair pair = choose_kernels(mlp, 256, h200.gpu, {Numerics::match, true, &made});
  EXPECT_EQ(label(pair.first), "g2x1x128s6c21");
  EXPECT_EQ(label(pair.second), "g2x1x128s6c11k4");
  EXPECT_GT(pair.first_us, 0);
  EXPECT_NE(label(choose_kernels(mlp, 256, h200.gpu, {}).first), "g2x1x128s6c21");
  // Other classes, contracts and alignments do without.
  EXPECT_EQ(label(choose_kernels(mlp, 300, h200.gpu, {Numerics::match, true, &made}).first),
            label(choose_kernels(mlp, 300, h200.gpu, {}).first));
  EXPECT_TRUE(std::holds_alternative<sm80::Tile>(
      choose_kernels(mlp, 256, h200.gpu, {Numerics::match, false, &made}).first));
  const auto planned = plan(mlp, 256, h200, {.numerics = Numerics::match, .rung = Rung::two_kernel}, &made);
  ASSERT_TRUE(planned);
  ASSERT_EQ(planned->kernels.size(), 2U);
  EXPECT_EQ(planned->kernels[0].tile, "g2x1x128s6c21");
}

TEST(Tuning, ATileThatCannotRunIsNotTaken) {
  const GpuDescription h200 = describe_gpu("sm90").value().gpu;
  TuningTable wrong("NVIDIA H200", "x");
  wrong.add(
      tuned(first_linear(mlp, true, Numerics::match), 256, "g2x1x256s9c11", 1));  // too much shared memory
  const KernelPair pair = choose_kernels(mlp, 256, h200, {Numerics::match, true, &wrong});
  EXPECT_EQ(label(pair.first), label(choose_kernels(mlp, 256, h200, {}).first));
  // A Hopper tile in the table of another card.
  const GpuDescription a100 = describe_gpu("sm80").value().gpu;
  const TuningTable made = table();
  EXPECT_TRUE(std::holds_alternative<sm80::Tile>(
      choose_kernels(mlp, 256, a100, {Numerics::match, true, &made}).first));
}

}  // namespace
}  // namespace ingot
