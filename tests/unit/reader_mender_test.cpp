// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "trace/json_mender.h"
#include "trace/json_text.h"

namespace ingot::trace {
namespace {

/// The mended text, held to be JSON by another library; "" when it is beyond mending.
std::string mend(const std::string& text, BackslashQuote style = BackslashQuote::escapes) {
  std::string out;
  if (!mend_json(text, style, out)) return "";
  EXPECT_TRUE(nlohmann::json::accept(out)) << out;
  return nlohmann::json::parse(out, nullptr, false).dump();
}

std::string name_of(const std::string& text, BackslashQuote style = BackslashQuote::escapes) {
  std::string out;
  if (!mend_json(text, style, out)) return "(not mended)";
  const auto json = nlohmann::json::parse(out, nullptr, false);
  return json.is_discarded() ? "(no JSON) " + out : json["name"].get<std::string>();
}

TEST(ReaderMender, GoodJsonStaysWhatItIs) {
  const std::string good = R"({"a":[1,-2.5e3,true,false,null],"b":{"c":"x\"\\é\n"},"d":[],"e":{}})";
  EXPECT_EQ(mend(good), nlohmann::json::parse(good).dump());
}

TEST(ReaderMender, QuotesInsideAString) {
  EXPECT_EQ(name_of(R"({"name": "operator"" _s", "pid": 0})"), R"(operator"" _s)");
  EXPECT_EQ(name_of(R"({"name": "a "quoted" word", "pid": 0})"), R"(a "quoted" word)");
  EXPECT_EQ(name_of(R"j({"name": "f("a", "b")", "pid": 0})j"), R"j(f("a", "b"))j");
  EXPECT_EQ(name_of(R"({"name": "odd " one", "pid": 0})"), R"(odd " one)");
  EXPECT_EQ(name_of(R"({"name": "x{"y"}z", "pid": 0})"), R"(x{"y"}z)");
  EXPECT_EQ(name_of(R"({"args": {"k": ["a"b", "c"]}, "name": "last""})"), R"(last")");
}

TEST(ReaderMender, ControlCharactersAndBytesThatAreNoUtf8) {
  EXPECT_EQ(name_of("{\"name\": \"a\tb\nc\x01"
                    "d\"}"),
            "a b c d");
  EXPECT_EQ(name_of("{\"name\": \"a\xff"
                    "b\xc3\"}"),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd");
  EXPECT_EQ(name_of("{\"name\": \"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"}"),
            "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(name_of("{\"name\": \"\xed\xa0\x80|\xc0\xaf\"}").find("\xef\xbf\xbd"),
            0U);  // a surrogate, an overlong form
}

TEST(ReaderMender, PathsOfWindows) {
  EXPECT_EQ(name_of(R"({"name": "C:\Users\me\x.py", "pid": 0})"), R"(C:\Users\me\x.py)");
  EXPECT_EQ(name_of(R"({"name": "C:\python\u12"})"), R"(C:\python\u12)");
  const std::string closed_by_escape = R"({"name": "C:\work\", "pid": 0})";
  EXPECT_EQ(name_of(closed_by_escape, BackslashQuote::may_close), R"(C:\work\)");
}

TEST(ReaderMender, NumbersThatAreNone) {
  EXPECT_EQ(mend(R"({"a": nan, "b": -inf, "c": Infinity, "d": -nan(ind), "e": None, "f": True, "g": +5})"),
            R"({"a":null,"b":null,"c":null,"d":null,"e":null,"f":true,"g":5})");
  EXPECT_EQ(mend(R"({"a": 0x10, "b": 1.#INF})"), R"({"a":null,"b":null})");
}

TEST(ReaderMender, CommasBracesAndMissingValues) {
  EXPECT_EQ(mend(R"({"a": 1,, "b": [1,2,],})"), R"({"a":1,"b":[1,2]})");
  EXPECT_EQ(mend(R"({"a": , "b": })"), R"({"a":null,"b":null})");
  EXPECT_EQ(mend(R"({"a": 1}, "b": 2})"), R"({"a":1,"b":2})");
}

TEST(ReaderMender, BeyondMending) {
  for (const char* text : {"", "7", "[]", "{", "{\"a\":1", "{\"a\":[1}", "{\"a\":\"b", "{1:2}",
                           "{\"a\":\x80}", "{\"a\":what}", "{\"a\":1}{"}) {
    EXPECT_EQ(mend(text), "") << text;
  }
}

TEST(ReaderText, EscapesAreResolved) {
  const auto plain = [](std::string_view token) {
    std::string out;
    unescape(token, out);
    return out;
  };
  EXPECT_EQ(plain(R"("a\"b\\c\/d\n\t\r\b\f")"), "a\"b\\c/d\n\t\r\b\f");
  EXPECT_EQ(plain(R"("\u0041\u00e9\u20ac")"), "A\xc3\xa9\xe2\x82\xac");
  EXPECT_EQ(plain(R"("\ud83d\ude00")"), "\xf0\x9f\x98\x80");
  EXPECT_EQ(plain(R"("\ud83d|\ude00|\ud83dx")"), "\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbdx");
  EXPECT_EQ(plain(R"("\p\u12")"), R"(\p\u12)");
  EXPECT_EQ(plain("\"tail\\\""), "tail\\");
  EXPECT_EQ(plain("482"), "482");
}

}  // namespace
}  // namespace ingot::trace
