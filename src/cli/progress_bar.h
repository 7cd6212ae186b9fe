// SPDX-License-Identifier: Apache-2.0
//
// A line on standard error that shows how far a long command is; nothing when that is no terminal.
#pragma once

#include <string>

namespace ingot::cli {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(double fraction, const std::string& what);

 private:
  bool terminal_;
  std::string last_;
};

}  // namespace ingot::cli
