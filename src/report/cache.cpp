// SPDX-License-Identifier: Apache-2.0
//
// The folder of compiled kernels, for people and as JSON.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "base/units.h"
#include "ingot/report.h"

namespace ingot::report {

namespace {

using Align = TextTable::Align;
using Json = nlohmann::ordered_json;
constexpr const char* schema = "ingot.cache/1";

std::string dump(const Json& document) {
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::tm utc(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  return parts;
}

std::string counted(std::size_t count) {
  return fmt::format("{} kernel{}", count, count == 1 ? "" : "s");
}

std::uint64_t total_bytes(const CacheListing& listing) {
  std::uint64_t bytes = 0;
  for (const CachedKernel& kernel : listing.kernels) bytes += kernel.bytes;
  return bytes;
}

}  // namespace

std::string text(const CacheListing& listing, const TextOptions& options) {
  TextTable table({{"kernel", Align::left},
                   {"target", Align::left},
                   {"registers"},
                   {"spilled"},
                   {"size"},
                   {"last used, UTC", Align::left}});
  for (const CachedKernel& kernel : listing.kernels) {
    const auto known = [&](int value) { return kernel.damaged ? "-" : fmt::format("{}", value); };
    table.add({kernel.damaged ? fmt::format("{}: not usable", kernel.key) : kernel.name,
               kernel.damaged ? "-" : kernel.target, known(kernel.registers), known(kernel.local_bytes),
               memory_text(kernel.bytes), fmt::format("{:%Y-%m-%d %H:%M}", utc(kernel.last_used))});
  }
  const std::string rows = table.empty() ? std::string() : table.render(options.width) + "\n";
  return rows + fmt::format("{}, {} of at most {}, in {}\n", counted(listing.kernels.size()),
                            memory_text(total_bytes(listing)), memory_text(listing.limit_bytes),
                            listing.folder);
}

std::string text(const CacheCleared& cleared, const TextOptions&) {
  return fmt::format("removed {}, {}, from {}\n", counted(static_cast<std::size_t>(cleared.kernels)),
                     memory_text(cleared.bytes), cleared.folder);
}

std::string text(const CacheWarmed& warmed, const TextOptions& options) {
  TextTable table({{"kernel", Align::left}, {"target", Align::left}, {"took"}, {"", Align::left}});
  std::size_t compiled = 0;
  for (const WarmedKernel& kernel : warmed.kernels) {
    compiled += kernel.compiled ? 1 : 0;
    table.add({kernel.name, kernel.target, duration_text(kernel.seconds * 1e6),
               kernel.compiled ? "compiled" : "was there"});
  }
  return table.render(options.width) + fmt::format("\n{} compiled, {} there before, in {}\n",
                                                   counted(compiled), warmed.kernels.size() - compiled,
                                                   warmed.folder);
}

std::string json(const CacheListing& listing) {
  Json kernels = Json::array();
  for (const CachedKernel& kernel : listing.kernels) {
    const auto known = [&](const Json& value) { return kernel.damaged ? Json(nullptr) : value; };
    kernels.push_back({{"key", kernel.key},
                       {"name", known(kernel.name)},
                       {"target", known(kernel.target)},
                       {"compiler", known(kernel.compiler)},
                       {"registers", known(kernel.registers)},
                       {"local_bytes", known(kernel.local_bytes)},
                       {"bytes", kernel.bytes},
                       {"last_used", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc(kernel.last_used))},
                       {"damaged", kernel.damaged}});
  }
  return dump({{"schema", schema},
               {"folder", listing.folder},
               {"bytes", total_bytes(listing)},
               {"limit_bytes", listing.limit_bytes},
               {"kernels", std::move(kernels)}});
}

std::string json(const CacheCleared& cleared) {
  return dump({{"schema", schema},
               {"folder", cleared.folder},
               {"removed", {{"kernels", cleared.kernels}, {"bytes", cleared.bytes}}}});
}

std::string json(const CacheWarmed& warmed) {
  Json kernels = Json::array();
  for (const WarmedKernel& kernel : warmed.kernels) {
    kernels.push_back({{"name", kernel.name},
                       {"target", kernel.target},
                       {"compiled", kernel.compiled},
                       {"seconds", std::round(kernel.seconds * 1e6) / 1e6}});
  }
  return dump({{"schema", schema}, {"folder", warmed.folder}, {"kernels", std::move(kernels)}});
}

}  // namespace ingot::report
