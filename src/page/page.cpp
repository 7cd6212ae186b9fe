// SPDX-License-Identifier: Apache-2.0
#include "ingot/page.h"

#include <string_view>

#include "ingot/report.h"
#include "page/assets.h"
#include "page/limits.h"
#include "page/timeline_json.h"

namespace ingot::page {

namespace {

std::string_view asset(std::string_view name) {
  for (const base::EmbeddedFile& file : assets()) {
    if (file.name == name) return file.text;
  }
  return {};
}

/// For text between tags.
std::string escaped_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        // A byte of its own that is no text (a control character) has no place in a title.
        out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    }
  }
  return out;
}

/// `{{name}}` in the template stands for a file of assets/, for the title or for the data.
std::string assemble(std::string_view title, std::string_view data) {
  std::string out;
  std::string_view rest = asset("page.html");
  for (auto open = rest.find("{{"); open != std::string_view::npos; open = rest.find("{{")) {
    const auto close = rest.find("}}", open);
    if (close == std::string_view::npos) break;
    const std::string_view name = rest.substr(open + 2, close - open - 2);
    out += rest.substr(0, open);
    if (name == "title") {
      out += escaped_html(title);
    } else if (name == "data") {
      // Inside of a script element a "<" could end it, or open a comment; in JSON it stands in strings alone.
      for (const char c : data) {
        if (c == '<') {
          out += "\\u003c";
        } else {
          out += c;
        }
      }
    } else {
      out += asset(name);
    }
    rest.remove_prefix(close + 2);
  }
  return out.append(rest);
}

void append_list(std::string& out, std::string_view key, const std::vector<std::string>& lines) {
  out += ",\"";
  out += key;
  out += "\":[";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) out += ',';
    append_string(out, lines[i]);
  }
  out += ']';
}

/// {"explain":…,"timeline":…,"left_out":[…]}
void append_trace(std::string& out, const Explanation& e) {
  std::vector<std::string> left_out;
  out += "{\"explain\":" + report::json(within_limits(e, left_out));
  if (e.timeline) {
    out += ",\"timeline\":";
    append_timeline(out, *e.timeline, left_out);
  }
  append_list(out, "left_out", left_out);
  out += '}';
}

/// The last part of a path, short enough for the title of a window.
std::string short_name(const std::string& file) {
  constexpr std::size_t most = 80;
  return cut(std::string_view(file).substr(file.find_last_of('/') + 1), most);
}

}  // namespace

std::string html(const Explanation& e) {
  std::string data = "{\"page\":\"explain\",\"traces\":[";
  append_trace(data, e);
  data += "]}";
  return assemble(short_name(e.file) + " – Ingot explain", data);
}

std::string html(const Diff& d, const Explanation& before, const Explanation& after) {
  std::vector<std::string> left_out;
  std::string data =
      "{\"page\":\"diff\",\"diff\":" + report::json(within_limits(d, left_out)) + ",\"traces\":[";
  append_trace(data, before);
  data += ',';
  append_trace(data, after);
  data += ']';
  append_list(data, "left_out", left_out);
  data += '}';
  return assemble(short_name(d.before_file) + " → " + short_name(d.after_file) + " – Ingot diff", data);
}

std::string html(const std::vector<Ladder>& ladders, const std::string& trace) {
  const std::string title = ladders.empty() ? "nothing" : to_string(ladders.front().mlp);
  const std::string data = "{\"page\":\"bench\",\"bench\":" + report::json(cut(trace), ladders) + "}";
  return assemble(title + " – Ingot bench", data);
}

}  // namespace ingot::page
