// SPDX-License-Identifier: Apache-2.0
#include "trace/envelope.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "trace/decimal.h"
#include "trace/json_mender.h"
#include "trace/json_text.h"

namespace ingot::trace {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::string_view events_key = "\"traceEvents\"";
constexpr std::string_view devices_key = "\"deviceProperties\"";
constexpr std::size_t most_header =
    std::size_t{16} * 1024 * 1024;     // longer members around the events are not kept
constexpr std::size_t overlap = 4096;  // kept when they are dropped: room for the key and its colon

std::string_view trim(std::string_view text, std::string_view also = {}) {
  const auto drop = [also](char c) { return is_space(c) || also.find(c) != also.npos; };
  while (!text.empty() && drop(text.front())) text.remove_prefix(1);
  while (!text.empty() && drop(text.back())) text.remove_suffix(1);
  return text;
}

Error unreadable(const std::string& who, const std::string& why) {
  return Error{ErrorCode::unreadable, who + ": " + why};
}

std::string what_it_is(std::string_view text) {
  const auto starts = [text](std::string_view magic) { return text.substr(0, magic.size()) == magic; };
  if (starts("\x28\xb5\x2f\xfd")) return "is zstd-compressed; decompress it first";
  if (starts("PK\x03\x04")) return "is a zip archive; unpack it first";
  if (starts("BZh")) return "is bzip2-compressed; decompress it first";
  if (starts("\xfd"
             "7zXZ"))
    return "is xz-compressed; decompress it first";
  if (starts("\x1f\x8b")) return "is compressed twice; decompress it once first";
  if (starts("\xff\xfe") || starts("\xfe\xff")) return "is UTF-16 text; a trace is UTF-8";
  const char c = text.front();
  if (c > ' ' && c < '\x7f') return fmt::format("is not JSON: it begins with '{}'", c);
  return fmt::format("is not JSON: it begins with byte 0x{:02x}", static_cast<unsigned char>(c));
}

struct Members {
  std::vector<std::pair<std::string, std::string>> scalars;
  std::vector<Device> devices;
};

int small_int(std::string_view token) {
  const auto value = parse_signed(token);
  return value && *value >= 0 && *value <= std::numeric_limits<int>::max() ? static_cast<int>(*value) : 0;
}

bool read_device(ondemand::value& value, Device& device) {
  ondemand::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return false;
  for (auto member : object) {
    ondemand::field field;
    std::string_view key;
    if (std::move(member).get(field) != simdjson::SUCCESS) return false;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS) return false;
    const std::string_view token = field.value().raw_json_token();
    if (key == "id")
      device.id = parse_signed(token).value_or(0);
    else if (key == "name")
      unescape(token, device.name);
    else if (key == "totalGlobalMem")
      device.memory_bytes = parse_unsigned(token).value_or(0);
    else if (key == "computeMajor")
      device.compute_major = small_int(token);
    else if (key == "computeMinor")
      device.compute_minor = small_int(token);
    else if (key == "maxThreadsPerMultiprocessor")
      device.max_threads_per_sm = small_int(token);
    else if (key == "regsPerMultiprocessor")
      device.registers_per_sm = parse_unsigned(token).value_or(0);
    else if (key == "sharedMemPerMultiprocessor" ||
             key == "maxSharedMemoryPerMultiProcessor")  // the latter: ROCm
      device.shared_memory_per_sm = parse_unsigned(token).value_or(0);
    else if (key == "warpSize")
      device.warp_size = small_int(token);
    else if (key == "numSms")
      device.sms = small_int(token);
  }
  return true;
}

bool read_devices(ondemand::value& value, std::vector<Device>& devices) {
  ondemand::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) return false;
  for (auto element : array) {
    ondemand::value item;
    if (element.get(item) != simdjson::SUCCESS) return false;
    Device device;
    if (!read_device(item, device)) return false;
    devices.push_back(std::move(device));
  }
  return true;
}

/// `object` is a whole JSON object with padding behind it. What was read before a fault stays in `out`.
bool read_object(const std::string& object, std::size_t length, Members& out) {
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object members;
  if (parser.iterate(object.data(), length, object.size()).get(document) != simdjson::SUCCESS) return false;
  if (document.get_object().get(members) != simdjson::SUCCESS) return false;
  for (auto member : members) {
    ondemand::field field;
    std::string_view key;
    if (std::move(member).get(field) != simdjson::SUCCESS) return false;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS) return false;
    std::string name(key);
    const std::string_view token = field.value().raw_json_token();
    if (name == "deviceProperties" && token.front() == '[') {
      if (!read_devices(field.value(), out.devices)) return false;
    } else if (token.front() != '[' && token.front() != '{') {
      std::string text;
      if (token.front() == '"')
        unescape(token, text);
      else
        text = bare(token);
      out.scalars.emplace_back(std::move(name), std::move(text));
    }
  }
  return true;
}

bool read_text(std::string object, Members& out) {
  const std::size_t length = object.size();
  object.append(simdjson::SIMDJSON_PADDING, ' ');
  return read_object(object, length, out);
}

/// The device list alone, out of members that cannot be read as a whole.
void salvage_devices(std::string_view members, Members& out) {
  const std::size_t key = members.find(devices_key);
  if (key == members.npos) return;
  const std::size_t open = members.find('[', key);
  const std::size_t close = members.find(']', key);  // devices hold no lists
  if (open == members.npos || close == members.npos || close < open) return;
  Members found;
  read_text(fmt::format("{{{}:{}}}", devices_key, members.substr(open, close + 1 - open)), found);
  out.devices = std::move(found.devices);
}

/// Position of the event array's '[' in `text`, looking from `from`. `undecided` is set when the text ends
/// inside what may be its key.
std::optional<std::size_t> find_events(std::string_view text, std::size_t from, bool& undecided) {
  for (std::size_t key = text.find(events_key, from); key != text.npos;
       key = text.find(events_key, key + 1)) {
    if (key != 0 && text[key - 1] == '\\') continue;  // quoted inside some string
    std::size_t at = key + events_key.size();
    while (at < text.size() && is_space(text[at])) ++at;
    if (at < text.size() && text[at] == ':') ++at;
    while (at < text.size() && is_space(text[at])) ++at;
    undecided = at == text.size();
    if (undecided) return std::nullopt;
    if (text[at] == '[') return at;
  }
  return std::nullopt;
}

}  // namespace

void read_members(std::string_view members, Trace& trace) {
  members = trim(members, ",");
  if (members.empty()) return;
  std::string object = fmt::format("{{{}}}", members);
  Members found;
  if (!read_text(object, found)) {
    Members mended;
    std::string text;
    if (mend_json(object, BackslashQuote::escapes, text) && read_text(text, mended)) {
      found = std::move(mended);
    } else {
      if (found.devices.empty()) salvage_devices(members, found);
      trace.warnings.emplace_back("the metadata around the events is damaged and only partly read");
    }
  }
  for (auto& scalar : found.scalars) trace.metadata.push_back(std::move(scalar));
  for (auto& device : found.devices) trace.devices.push_back(std::move(device));
}

Result<void> seek_events(TextWindow& window, const std::string& who, Trace& trace) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  const auto text = [&window] { return std::string_view(window.begin(), window.size()); };
  bool start_seen = false;
  bool dropped = false;
  std::size_t searched = 0;
  for (;;) {
    if (!start_seen) {
      std::string_view head = text();
      if (head.substr(0, byte_order_mark.size()) == byte_order_mark)
        head.remove_prefix(byte_order_mark.size());
      while (!head.empty() && is_space(head.front())) head.remove_prefix(1);
      if (!head.empty() && (head.size() >= 8 || window.at_end())) {
        window.consume_to(head.data());
        if (head.front() == '[') {
          window.consume_to(head.data() + 1);
          return {};
        }
        if (head.front() != '{') return unreadable(who, what_it_is(head));
        start_seen = true;
      }
    }
    if (start_seen) {
      bool undecided = false;
      if (const auto array = find_events(text(), searched, undecided)) {
        const std::string_view members = text().substr(dropped ? 0 : 1, *array - (dropped ? 0 : 1));
        const std::size_t key = members.rfind(events_key);
        if (dropped)
          trace.warnings.emplace_back("the metadata before the events is too long and not read");
        else
          read_members(members.substr(0, key), trace);
        window.consume_to(window.begin() + *array + 1);
        return {};
      }
      if (window.size() > most_header) {
        window.consume_to(window.end() - overlap);
        dropped = true;
      }
      searched = window.size() > overlap ? window.size() - overlap : 0;
    }
    auto more = window.more();
    if (!more) return more.error();
    if (!*more && (start_seen || text().empty() || trim(text()).empty() || trim(text()) == byte_order_mark))
      break;
  }
  const std::string damage = window.damage();
  if (start_seen)
    return unreadable(who, "has no traceEvents array" + (damage.empty() ? "" : " (" + damage + ")"));
  if (!damage.empty()) return unreadable(who, damage + " and yields no text");
  return unreadable(who, window.bytes_read() == 0 ? "is empty" : "holds nothing but white space");
}

Result<void> read_rest(TextWindow& window, Trace& trace) {
  bool dropped = false;
  for (;;) {
    auto more = window.more();
    if (!more) return more.error();
    if (!*more) break;
    if (window.size() > most_header) {
      window.consume_to(window.end());
      dropped = true;
    }
  }
  std::string_view rest = trim({window.begin(), window.size()});
  if (dropped) {
    trace.warnings.emplace_back("the metadata behind the events is too long and not read");
    return {};
  }
  if (!rest.empty() && rest.back() == '}') rest.remove_suffix(1);
  read_members(rest, trace);
  return {};
}

}  // namespace ingot::trace
