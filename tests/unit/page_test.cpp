// SPDX-License-Identifier: Apache-2.0
//
// What keeps a page whole and small; what is in it is tested against traces in tests/page.
#include "ingot/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "page/assets.h"
#include "page/limits.h"
#include "page/timeline_json.h"

namespace ingot::page {
namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

nlohmann::json data_of(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const auto begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(Cut, KeepsWhatFits) {
  EXPECT_EQ(cut("name", 4), "name");
  EXPECT_EQ(cut("", 4), "");
}

TEST(Cut, EndsWithAnEllipsisBetweenCharacters) {
  EXPECT_EQ(cut("abcdefgh", 7), "abcd…");
  EXPECT_EQ(cut("ééééé", 8), "éé…");  // two bytes each: five bytes are left, two and a half characters
  EXPECT_EQ(cut("😀😀😀", 10), "😀…");    // four bytes each: seven are left
  EXPECT_EQ(cut("\x80\x80\x80\x80\x80\x80\x80\x80", 6).size(),
            3U);  // no text at all: at most what fits, still
}

TEST(Limits, ShortTablesAndNamesAreCopied) {
  Explanation e;
  e.kernels.resize(3);
  e.kernels[0].name = "kernel";
  std::vector<std::string> left_out;
  const Explanation small = within_limits(e, left_out);
  EXPECT_EQ(small.kernels.size(), 3U);
  EXPECT_EQ(small.kernels[0].name, "kernel");
  EXPECT_TRUE(left_out.empty());
}

TEST(Limits, LongOnesEndAndSaySo) {
  Explanation e;
  e.file = std::string(100'000, 'f');
  e.kernels.resize(table_rows + 5);
  e.kernels[0].name = std::string(1'000'000, 'k');
  e.findings.resize(1);
  e.findings[0].title = std::string(1'000'000, 't');
  e.mlps.resize(1);
  e.mlps[0].kernels.assign(10'000, std::string(1000, 'm'));
  std::vector<std::string> left_out;
  const Explanation small = within_limits(e, left_out);
  EXPECT_EQ(small.kernels.size(), table_rows);
  EXPECT_EQ(small.kernels[0].name.size(), name_bytes);
  EXPECT_EQ(small.file.size(), name_bytes);
  EXPECT_EQ(small.findings[0].title.size(), text_bytes);
  EXPECT_LE(small.mlps[0].kernels.size(), 64U);
  ASSERT_EQ(left_out.size(), 1U);
  EXPECT_EQ(left_out[0], "5 of 1005 kernels: the table holds the first 1000");
}

TEST(Page, HasEveryAsset) {
  const std::string page = html(Explanation());
  EXPECT_EQ(count(page, "{{"), 0U) << "a name in the template that is no asset";
  for (const base::EmbeddedFile& file : assets()) {
    if (file.name == "page.html") continue;
    EXPECT_NE(page.find(file.text), std::string::npos) << file.name;
  }
}

TEST(Page, IsWholeWhateverTheNames) {
  Explanation e;
  e.file = "a/</title><script>alert(1)</script>&.json";
  e.kernels.resize(1);
  e.kernels[0].name = "</script><!--<script>\xff\xfe{{data}}";
  const std::string page = html(e);
  EXPECT_EQ(count(page, "</script>"), 2U);
  EXPECT_EQ(count(page, "<!--<script"), 0U);
  EXPECT_NE(page.find("<title>script>&amp;.json – Ingot explain</title>"),
            std::string::npos);  // behind its last "/"
  EXPECT_EQ(data_of(page)["traces"][0]["explain"]["kernels"][0]["name"],
            "</script><!--<script>\xef\xbf\xbd\xef\xbf\xbd{{data}}");
}

TEST(Page, OfNothing) {
  for (const std::string& page :
       {html(Explanation()), html(Diff(), Explanation(), Explanation()), html(std::vector<Ladder>())})
    EXPECT_TRUE(data_of(page).contains("page"));
}

TEST(TimelineJson, ColumnsAddUp) {
  Timeline t;
  t.span_ns = 1000;
  t.names = {"a", "\"b\"<"};
  t.typical_step = 0;
  t.steps = {{.name = "step", .start_ns = 10, .end_ns = 900}};
  TimelineLane lane;
  lane.label = "GPU 0";
  lane.device = true;
  lane.rows = 2;
  TimelineEvent e;
  e.kind = TimelineKind::memset;
  for (const std::int64_t start : {100, 250, 240}) {
    e.start_ns = start;
    e.dur_ns = start / 10;
    e.row = start == 250 ? 1 : 0;
    e.call_lane = start == 100 ? timeline_none : 0;
    e.call = start == 100 ? timeline_none : static_cast<std::uint32_t>(start / 50);
    lane.events.push_back(e);
  }
  t.lanes = {lane};
  std::string out;
  std::vector<std::string> left_out;
  append_timeline(out, t, left_out);
  const auto j = nlohmann::json::parse(out);
  const auto& columns = j["lanes"][0];
  EXPECT_EQ(columns["start"], (std::vector<int>{100, 150, -10}));
  EXPECT_EQ(columns["dur"], (std::vector<int>{10, 25, 24}));
  EXPECT_EQ(columns["kind"], (std::vector<int>{6, 22, 6}));   // row * 16 + kind
  EXPECT_EQ(columns["call"], (std::vector<int>{-1, 6, -1}));  // -1, 5, 4
  EXPECT_EQ(columns["lane"], (std::vector<int>{-1, 0, 0}));
  EXPECT_EQ(columns["mlp"], (std::vector<int>{-1, 0, 0}));
  EXPECT_EQ(j["names"][1], "\"b\"<");
  EXPECT_EQ(j["kinds"].size(), timeline_kind_count);
  EXPECT_EQ(j["kinds"][6], "memset");
  EXPECT_TRUE(left_out.empty());
}

}  // namespace
}  // namespace ingot::page
