// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvrtc_log.h"

#include <algorithm>
#include <charconv>

namespace ingot::gpu {

namespace {

/// Calls `take(line)` for every line.
template <class Take>
void for_each_line(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// The number before `what` ("168" in "Used 168 registers"); nothing when it is not there.
std::optional<int> number_before(std::string_view line, std::string_view what) {
  const std::size_t at = line.find(what);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t start = at;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9') --start;
  int value = 0;
  const auto [end, error] = std::from_chars(line.data() + start, line.data() + at, value);
  if (error != std::errc() || end != line.data() + at) return std::nullopt;
  return value;
}

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!space) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

bool is_remark(std::string_view line) {
  // The assembler's notes on performance (wgmma serialised, setmaxnreg ignored) are numbered C75xx and not
  // called warnings.
  return line.find("warning") != std::string_view::npos || line.find("(C75") != std::string_view::npos;
}

}  // namespace

std::optional<Resources> parse_resources(std::string_view log, std::string_view kernel) {
  Resources resources;
  bool of_kernel = false;
  std::optional<int> registers, stack;
  for_each_line(log, [&](std::string_view line) {
    if (is_remark(line)) {
      if (!resources.remarks.empty()) resources.remarks += "; ";
      resources.remarks += one_line(line);
    }
    if (line.find("Compiling entry function") != std::string_view::npos ||
        line.find("Function properties for") != std::string_view::npos) {
      of_kernel = line.find(kernel) != std::string_view::npos;
    }
    if (!of_kernel) return;
    if (const auto bytes = number_before(line, " bytes stack frame")) {
      // Spills lie in the stack frame, but a frame of 0 bytes beside spills would hide them.
      stack = std::max({*bytes, number_before(line, " bytes spill stores").value_or(0),
                        number_before(line, " bytes spill loads").value_or(0)});
    }
    if (const auto used = number_before(line, " registers")) registers = used;
  });
  if (!registers || !stack) return std::nullopt;
  resources.registers = *registers;
  resources.local_bytes = *stack;
  return resources;
}

std::string first_error(std::string_view log) {
  std::string first, any;
  for_each_line(log, [&](std::string_view line) {
    if (first.empty() && line.find("error") != std::string_view::npos) first = one_line(line);
    if (any.empty()) any = one_line(line);
  });
  if (!first.empty()) return first;
  return any.empty() ? "the compiler gives no reason" : any;
}

std::optional<jit::Target> compiled_target(const jit::Target& wanted, std::span<const int> supported) {
  if (supported.empty()) return wanted;  // a compiler that does not tell: it may still do
  const int number = 10 * wanted.major + wanted.minor;
  int best = 0;
  for (const int target : supported) {
    const bool runs =
        target / 10 == wanted.major && target <= number && (!wanted.chip_specific || target == number);
    if (runs) best = std::max(best, target);
  }
  if (best == 0) return std::nullopt;
  return jit::Target{best / 10, best % 10, wanted.chip_specific};
}

}  // namespace ingot::gpu
