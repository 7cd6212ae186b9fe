// SPDX-License-Identifier: Apache-2.0
//
// What the engine says, for people: ladders, plans, the catalogue, the machine.
#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.h"
#include "base/units.h"
#include "ingot/report.h"

namespace ingot::report {

namespace {

using Align = TextTable::Align;

std::string paint(const TextOptions& options, std::string_view text, std::string_view code) {
  return options.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string bytes_text(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.2f} GB", bytes * 1e-9);
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes * 1e-6);
  return fmt::format("{:.1f} kB", bytes * 1e-3);
}

std::string title(const Mlp& mlp, std::int64_t tokens) {
  return fmt::format("{} token{} of {}", tokens, tokens == 1 ? "" : "s", to_string(mlp));
}

std::string device_text(const DeviceDescription& device) {
  if (device.kind != DeviceKind::cpu) {
    return fmt::format("{}, compute capability {}.{}, {} multiprocessors ({})", device.name, device.gpu.major,
                       device.gpu.minor, device.gpu.multiprocessors, device.source);
  }
  return fmt::format("{}, {} thread{}, {}, {} ({})", device.name, device.cpu.threads,
                     device.cpu.threads == 1 ? "" : "s", device.cpu.isa, device.cpu.library, device.source);
}

std::string tile_or_dash(const Candidate& candidate) {
  return candidate.tile.tokens > 0 && candidate.forecast_us > 0 ? to_string(candidate.tile) : "-";
}

std::string kernel_tiles(const std::vector<KernelPlan>& kernels) {
  std::string out;
  for (const KernelPlan& kernel : kernels)
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", kernel.tile, kernel.tuned ? " (tuned)" : "");
  return out;
}

/// As read from many launches to few: in the order of Rung, but one_kernel, which came last, behind
/// two_kernel.
template <class Row, class RungOf>
std::vector<const Row*> in_reading_order(const std::vector<Row>& rows, RungOf rung_of) {
  const auto place = [&](const Row* row) {
    const Rung rung = rung_of(*row);
    return 2 * static_cast<int>(rung == Rung::one_kernel ? Rung::two_kernel : rung) +
           (rung == Rung::one_kernel ? 1 : 0);
  };
  std::vector<const Row*> ordered;
  for (const Row& row : rows) ordered.push_back(&row);
  std::ranges::stable_sort(ordered, {}, place);
  return ordered;
}

std::string_view layout_text(const Mlp& mlp, GateLayout layout) {
  if (!mlp.gated) return "";
  switch (layout) {
    case GateLayout::separate:
      break;
    case GateLayout::packed_value_first:
      return ", gate and up packed, value first";
    case GateLayout::packed_gate_first:
      return ", gate and up packed, gate first";
  }
  return ", gate and up separate";
}

}  // namespace

std::string text(const Ladder& ladder, const TextOptions& options) {
  std::string out = paint(options, title(ladder.mlp, ladder.tokens), "1");
  out += fmt::format("{}\non {}\nnumerics {}, seed {}\n\n", layout_text(ladder.mlp, ladder.layout),
                     device_text(ladder.device), to_string(ladder.numerics), ladder.seed);

  const bool gpu = ladder.device.kind == DeviceKind::cuda;
  // How long the card keeps it up; a CPU's samples are that already.
  std::vector<TextTable::Column> columns{
      {"rung", Align::left}, {"launches"}, {"bytes"}, {"median"}, {"min"}, {"max"}};
  if (gpu) columns.push_back({"sustained"});
  for (const char* title : {"samples", "speed-up", "forecast", "error"}) columns.push_back({title});
  columns.push_back({"tile", Align::left});
  columns.push_back({"", Align::left});
  TextTable table(std::move(columns));
  const auto rows =
      in_reading_order(ladder.rungs, [](const RungResult& rung) { return rung.candidate.rung; });
  for (const RungResult* const row : rows) {
    const RungResult& rung = *row;
    const Candidate& candidate = rung.candidate;
    const bool timed = rung.time.samples > 0;
    const auto time = [&](double us) { return timed ? duration_text(us) : std::string("-"); };
    std::vector<std::string> cells{std::string(to_string(candidate.rung)),
                                   fmt::format("{}", candidate.launches),
                                   bytes_text(candidate.bytes),
                                   time(rung.time.median_us),
                                   time(rung.time.min_us),
                                   time(rung.time.max_us)};
    if (gpu) cells.push_back(rung.sustained_us ? duration_text(*rung.sustained_us) : "-");
    cells.push_back(fmt::format("{}", rung.time.samples));
    cells.push_back(rung.speedup ? fmt::format("{:.2f}x", *rung.speedup) : "-");
    cells.push_back(duration_text(candidate.forecast_us));
    cells.push_back(fmt::format("{:.2e}", rung.error));
    cells.push_back(rung.kernels.empty() ? tile_or_dash(candidate) : kernel_tiles(rung.kernels));
    cells.emplace_back(rung.ok ? (rung.chosen ? "chosen" : "") : "FAILED");
    table.add(std::move(cells));
  }
  out += table.render(options.width);
  if (!ladder.skipped.empty()) out += "\n";
  for (const SkippedRung& rung : ladder.skipped)
    out += fmt::format("skipped {}: {}\n", to_string(rung.rung), rung.reason);

  const Floor& floor = ladder.floor;
  out += fmt::format("\nfloor  {:.4g} GFLOP take {}, {} of inputs, weights and output take {}\n",
                     floor.flops * 1e-9, duration_text(floor.compute_us), bytes_text(floor.bytes),
                     duration_text(floor.memory_us));
  if (gpu) {
    out += fmt::format(
        "times  a graph of {} call{} with as many sets of weights and inputs, by the device's clock; library "
        "{}\n",
        ladder.copies, ladder.copies == 1 ? "" : "s", ladder.library.empty() ? "none" : ladder.library);
  }
  if (!ladder.rungs.empty()) {
    out += fmt::format(
        "error  ||y - float64|| / ||float64|| on a slice of rows; an unfused framework's roundings give "
        "{:.2e}\n",
        ladder.rungs.back().framework_error);
  }
  for (const RungResult& rung : ladder.rungs) {
    if (rung.ok) continue;
    out += paint(options, fmt::format("FAILED {}: {}", to_string(rung.candidate.rung), rung.reason), "31") +
           "\n";
  }
  return out;
}

std::string text(const Plan& plan, const TextOptions& options) {
  std::string out = paint(options, title(plan.mlp, plan.tokens), "1");
  out += fmt::format("\non {}\nnumerics {}\n\n", device_text(plan.device), to_string(plan.numerics));
  TextTable table({{"rung", Align::left},
                   {"tile", Align::left},
                   {"launches"},
                   {"bytes"},
                   {"forecast"},
                   {"", Align::left}});
  const auto rows =
      in_reading_order(plan.candidates, [](const Candidate& candidate) { return candidate.rung; });
  for (const Candidate* const row : rows) {
    const Candidate& candidate = *row;
    const bool priced = candidate.forecast_us > 0;
    const bool chosen = candidate.rejected == Rejection::none;
    table.add({std::string(to_string(candidate.rung)), tile_or_dash(candidate),
               fmt::format("{}", candidate.launches), bytes_text(candidate.bytes),
               priced ? duration_text(candidate.forecast_us) : "-",
               chosen ? "chosen" : fmt::format("out: {}", to_string(candidate.rejected))});
  }
  out += table.render(options.width);
  for (const Candidate& candidate : plan.candidates) {
    if (!candidate.detail.empty())
      out += fmt::format("\n{}: {}\n", to_string(candidate.rung), candidate.detail);
  }
  if (plan.kernels.empty()) return out;
  TextTable kernels({{"kernel", Align::left}, {"tile", Align::left}, {"forecast"}, {"", Align::left}});
  for (const KernelPlan& kernel : plan.kernels) {
    kernels.add({kernel.name, kernel.tile, duration_text(kernel.forecast_us), kernel.tuned ? "tuned" : ""});
  }
  return out + "\n" + kernels.render(options.width);
}

std::string text(const std::vector<KnownModel>& models, const TextOptions& options) {
  TextTable table({{"name", Align::left},
                   {"dim"},
                   {"hidden"},
                   {"activation", Align::left},
                   {"bias", Align::left},
                   {"blocks"},
                   {"tokens"},
                   {"at", Align::left},
                   {"what", Align::left}});
  for (const KnownModel& model : models) {
    const Mlp& mlp = model.mlp;
    table.add({std::string(model.name), fmt::format("{}", mlp.dim), fmt::format("{}", mlp.hidden),
               mlp.gated ? fmt::format("{}, gated ({})", to_string(mlp.activation), model.gate)
                         : std::string(to_string(mlp.activation)),
               mlp.bias ? "yes" : "no", fmt::format("{}", model.blocks),
               model.tokens > 0 ? fmt::format("{}", model.tokens) : "-", std::string(model.at),
               std::string(model.title)});
  }
  return table.render(options.width) + fmt::format(
                                           "\n{} feed-forward blocks; use one with `ingot bench --model "
                                           "NAME` or `ingot plan --model NAME`\n",
                                           models.size());
}

std::string text(const Machine& machine, const TextOptions& options) {
  std::string out;
  const auto line = [&](std::string_view what, const std::string& value) {
    out += fmt::format("  {:<12}{}\n", what, value);
  };
  line("CPU", fmt::format("{}, {} processor{}", machine.cpu, machine.processors,
                          machine.processors == 1 ? "" : "s"));
  line("sets", fmt::format("{} (Ingot's loops: {})", machine.instruction_sets, machine.loops_isa));
  line("caches", fmt::format("L1 {}, L2 {} per core, L3 {}", memory_text(machine.l1_bytes),
                             memory_text(machine.l2_bytes), memory_text(machine.l3_bytes)));
  line("memory", fmt::format("{}, {} available", memory_text(machine.memory_bytes),
                             memory_text(machine.available_bytes)));
  line("GEMM", fmt::format("{}: {}", machine.gemm_library, machine.gemm_dtypes));
  if (machine.measured) {
    const CpuDescription& cpu = machine.measured->cpu;
    line("rates", fmt::format("{:.0f} GFLOP/s f32, memory {:.1f} GB/s, caches {:.0f} GB/s ({})",
                              cpu.gemm_flops_per_s * 1e-9, cpu.memory_bytes_per_s * 1e-9,
                              cpu.cache_bytes_per_s * 1e-9, machine.measured->source));
  } else {
    line("rates", "not measured yet: `ingot plan` and `ingot bench` do it at first use");
  }
  line("GPU driver", machine.driver.value_or("none"));
  for (const GpuDevice& gpu : machine.gpus) {
    line("GPU", fmt::format("{}, sm_{}{}, {}", gpu.name, gpu.compute_major, gpu.compute_minor,
                            memory_text(gpu.memory_bytes)));
  }
  line("compiler", machine.device_compiler.value_or("none"));
  line("cache", machine.cache_folder
                    ? fmt::format("{}: {} file{}, {}{}", *machine.cache_folder, machine.cache_files,
                                  machine.cache_files == 1 ? "" : "s", memory_text(machine.cache_bytes),
                                  machine.cache_writable ? "" : ", not writable")
                    : std::string("none"));
  if (machine.missing.empty()) return out + "\nnothing is missing\n";
  out += paint(options, "\nmissing\n", "1");
  for (const MissingPart& part : machine.missing) {
    out += fmt::format("  {}: {}\n    {}\n", part.what, part.effect, part.command);
  }
  return out;
}

}  // namespace ingot::report
