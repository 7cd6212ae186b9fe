// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace ingot::cli {

namespace {
constexpr int cells = 30;
constexpr const char* erase_line = "\r\x1b[K";
}  // namespace

ProgressBar::ProgressBar() : terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (terminal_ && !last_.empty()) std::fputs(erase_line, stderr);
}

void ProgressBar::show(double fraction, const std::string& what) {
  if (!terminal_) return;
  const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * cells);
  std::string line = fmt::format("[{:<{}}] {:3.0f} %  {}", std::string(static_cast<std::size_t>(full), '#'),
                                 cells, std::clamp(fraction, 0.0, 1.0) * 100, what);
  if (line == last_) return;
  std::fprintf(stderr, "%s%s", erase_line, line.c_str());
  std::fflush(stderr);
  last_ = std::move(line);
}

}  // namespace ingot::cli
