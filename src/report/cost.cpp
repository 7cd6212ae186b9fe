// SPDX-License-Identifier: Apache-2.0
//
// What a video costs, as text and JSON.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "base/units.h"
#include "ingot/report.h"

namespace ingot::report {

namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

constexpr double thousand = 1000;

std::string amount(const std::optional<double>& money) {
  if (!money) return "-";
  return *money < 10 ? fmt::format("{:.4g}", *money) : fmt::format("{:.2f}", *money);
}

std::string speedup(double before, double after) {
  return after > 0 ? fmt::format("{:.2f}x", before / after) : "-";
}

Json rounded(double value, double digits) {
  return std::isfinite(value) ? Json(std::round(value * digits) / digits) : Json(nullptr);
}

Json or_null(const std::optional<double>& value) {
  return value ? rounded(*value, 1e6) : Json(nullptr);
}

Json side(const Cost& cost, double seconds) {
  return {{"gpu_seconds", rounded(seconds, 1e6)},
          {"money", or_null(cost.money(seconds, 1))},
          {"gpu_hours_per_thousand", rounded(seconds * thousand / 3600, 1e6)},
          {"hours_per_thousand",
           rounded(seconds * thousand / 3600 / static_cast<double>(cost.options.gpus), 1e6)},
          {"money_per_thousand", or_null(cost.money(seconds, thousand))}};
}

Json mlp_or_null(const CostPart& part) {
  if (!part.mlp) return nullptr;
  return {{"activation", to_string(part.mlp->activation)},
          {"gated", part.mlp->gated},
          {"bias", part.mlp->bias},
          {"tokens", part.tokens},
          {"dim", part.mlp->dim},
          {"hidden", part.mlp->hidden},
          {"dtype", to_string(part.mlp->dtype)}};
}

Json cost_object(const Cost& cost) {
  const CostOptions& o = cost.options;
  Json parts = Json::array();
  for (const CostPart& p : cost.parts) {
    parts.push_back({{"name", p.name},
                     {"mlp", mlp_or_null(p)},
                     {"calls_per_video", rounded(p.calls, 1e3)},
                     {"before_us", rounded(p.before_us, 1e3)},
                     {"after_us", rounded(p.after_us, 1e3)},
                     {"before_from", p.before_from},
                     {"after_from", p.after_from}});
  }
  return {{"subject", cost.subject},
          {"device", cost.device},
          {"steps", o.steps},
          {"guidance", o.guidance ? Json(*o.guidance) : Json(nullptr)},
          {"batch", o.batch},
          {"height", o.size ? Json(o.size->height) : Json(nullptr)},
          {"width", o.size ? Json(o.size->width) : Json(nullptr)},
          {"frames", o.size ? Json(o.size->frames) : Json(nullptr)},
          {"price_per_hour", or_null(o.price_per_hour)},
          {"gpus", o.gpus},
          {"before", side(cost, cost.before_s)},
          {"after", side(cost, cost.after_s)},
          {"rest_seconds", or_null(cost.rest_s)},
          {"parts", std::move(parts)},
          {"assumptions", cost.assumptions}};
}

std::string seconds_text(double seconds) {
  return duration_text(seconds * 1e6);
}

}  // namespace

std::string text(const Cost& cost, const TextOptions& options) {
  std::string out = fmt::format("{} on {}\n\n", cost.subject, cost.device);
  TextTable totals({{"", Align::left}, {"before"}, {"after"}, {"before/after"}});
  const double gpus = static_cast<double>(cost.options.gpus);
  const double before_hours = cost.before_s * thousand / 3600;
  const double after_hours = cost.after_s * thousand / 3600;
  totals.add({"GPU time, one video", seconds_text(cost.before_s), seconds_text(cost.after_s),
              speedup(cost.before_s, cost.after_s)});
  totals.add(
      {"money, one video", amount(cost.money(cost.before_s, 1)), amount(cost.money(cost.after_s, 1)), ""});
  totals.add({"GPU hours, 1000 videos", fmt::format("{:.3f}", before_hours),
              fmt::format("{:.3f}", after_hours), ""});
  totals.add(
      {fmt::format("hours, 1000 videos on {} GPU{}", cost.options.gpus, cost.options.gpus == 1 ? "" : "s"),
       fmt::format("{:.3f}", before_hours / gpus), fmt::format("{:.3f}", after_hours / gpus), ""});
  totals.add({"money, 1000 videos", amount(cost.money(cost.before_s, thousand)),
              amount(cost.money(cost.after_s, thousand)), ""});
  out += totals.render(options.width);
  if (!cost.parts.empty()) {
    out += "\nMLPs  us per call\n";
    TextTable parts({{"MLP", Align::left},
                     {"tokens"},
                     {"calls a video"},
                     {"before"},
                     {"after"},
                     {"from", Align::left},
                     {"after from", Align::left}});
    for (const CostPart& p : cost.parts) {
      parts.add({p.name, p.tokens > 0 ? fmt::format("{}", p.tokens) : "-", fmt::format("{:.4g}", p.calls),
                 fmt::format("{:.1f}", p.before_us), fmt::format("{:.1f}", p.after_us), p.before_from,
                 p.after_from});
    }
    out += parts.render(options.width);
  }
  out += "\nAssumed\n";
  if (cost.rest_s)
    out += fmt::format("  everything else takes {} a video, before and after\n", seconds_text(*cost.rest_s));
  for (const std::string& line : cost.assumptions) out += fmt::format("  {}\n", line);
  if (cost.options.size) out += fmt::format("  videos at once: {}\n", cost.options.batch);
  out += cost.options.price_per_hour ? fmt::format("  a GPU costs {:g} an hour, and is busy all of it\n",
                                                   *cost.options.price_per_hour)
                                     : "  no price: give --price, of one GPU an hour\n";
  return out;
}

std::string text(const std::vector<Cost>& sweep, const TextOptions& options) {
  if (sweep.empty()) return "";
  std::string out =
      fmt::format("{} on {}: per video, by videos at once\n\n", sweep.front().subject, sweep.front().device);
  TextTable table({{"batch"}, {"before"}, {"after"}, {"before/after"}, {"money before"}, {"after"}});
  for (const Cost& cost : sweep) {
    table.add({fmt::format("{}", cost.options.batch), seconds_text(cost.before_s), seconds_text(cost.after_s),
               speedup(cost.before_s, cost.after_s), amount(cost.money(cost.before_s, 1)),
               amount(cost.money(cost.after_s, 1))});
  }
  out += table.render(options.width) + "\nAssumed\n";
  for (const std::string& line : sweep.front().assumptions) out += fmt::format("  {}\n", line);
  return out;
}

std::string json(const Cost& cost) {
  Json document{{"schema", "ingot.cost/1"}};
  document.update(cost_object(cost));
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string json(const std::vector<Cost>& sweep) {
  Json list = Json::array();
  for (const Cost& cost : sweep) list.push_back(cost_object(cost));
  const Json document{{"schema", "ingot.cost/1"}, {"sweep", std::move(list)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ingot::report
