// SPDX-License-Identifier: Apache-2.0
//
// A compiler without NVRTC: its code tells which text it was made from, and it counts what it is asked for.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "jit/kernel.h"

namespace ingot::test {

class FakeCompiler : public jit::Compiler {
 public:
  std::string name = "FAKE 1.0 (7 bytes) -O";
  std::chrono::milliseconds takes{0};
  std::atomic<bool> fails{false};
  mutable std::atomic<int> compiled{0};

  std::string identity() const override { return name; }
  Result<jit::Cubin> compile(const jit::KernelText& kernel) const override {
    ++compiled;
    std::this_thread::sleep_for(takes);
    if (fails) return Error{ErrorCode::device, kernel.name + " does not compile: no such thing"};
    return code_of(kernel);
  }
  static jit::Cubin code_of(const jit::KernelText& kernel) {
    const std::string code =
        "\x7f"
        "ELF of " +
        jit::to_string(kernel.target) + " " + kernel.text;
    jit::Cubin cubin;
    cubin.image.assign(code.begin(), code.end());
    cubin.registers = 168;
    cubin.local_bytes = 16;
    cubin.remarks = "warning: made up";
    return cubin;
  }
};

/// A kernel whose text includes "b.cuh", told apart by its number.
inline jit::KernelText fake_kernel(int number) {
  const std::string name = "kernel_" + std::to_string(number);
  return {.name = name, .text = "#include \"b.cuh\"\nint " + name + ";\n", .target = {9, 0, true}};
}

/// A folder of this test alone, gone afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ingot-test-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ingot::test
