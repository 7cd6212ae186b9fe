// SPDX-License-Identifier: Apache-2.0
//
// A kernel before and after compilation, and the interfaces between who wants one, who keeps them and who
// compiles.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/status.h"
#include "plan/linear.h"
#include "plan/mlp_kernel.h"

namespace ingot::jit {

/// What to compile for: "sm_90a" is {9, 0, true}. Chip-specific code runs on that chip only.
struct Target {
  int major = 0, minor = 0;
  bool chip_specific = false;
  bool operator==(const Target&) const = default;
};
/// "sm_90a"
std::string to_string(const Target& target);
/// "sm_90a", "sm90a" or "sm_120". Error invalid_argument: names what is accepted.
Result<Target> parse_target(std::string_view text);
/// What the kernels of a device are compiled for: chip-specific where Ingot has kernels for that chip.
Target target_of(const GpuDescription& gpu);

// Percent of a multiprocessor's memory that a kernel wants shared, the rest being cache: all that there is,
// or as the driver sees fit.
inline constexpr int all_shared = 100, shared_by_driver = -1;

/// A few lines that include one of the kernels' files and instantiate it with named constants, and how it is
/// launched.
struct KernelText {
  std::string name;  ///< for people and files: "bf16_match_gelu_tanh_768to3072_bias__g2x1x256s3c21e"
  std::string text;
  Target target;
  int threads = 0;       ///< of a block
  int shared_bytes = 0;  ///< dynamic, of a block
  int cluster = 1;       ///< blocks
  int shared_percent = all_shared;
};
/// Every kernel's function has this name in its module.
inline constexpr const char* entry_point = "ingot_kernel";

/// Pure; `linear` and `tile` fit each other. `target` is of the device: sm90 tiles need {9, 0, true}.
KernelText kernel_text(const LinearSpec& linear, const KernelTile& tile, const Target& target);
/// The same of a whole MLP.
KernelText kernel_text(const MlpSpec& mlp, const MlpTile& tile, const Target& target);

/// One step over a whole matrix, which the rungs of the vendor's library need between its products.
struct PointwiseSpec {
  enum class Step : std::uint8_t {
    add_bias,  ///< y = x + bias
    activate,  ///< y = activation(x)
    multiply,  ///< y = x * second
  };
  Step step = Step::activate;
  Activation activation = Activation::identity;  ///< activate only
  DType dtype = DType::bf16;
  std::int64_t columns = 0;
  bool aligned = true;  ///< every address and row stride is a multiple of 16 bytes
};
/// Pure. Arguments as LinearArgs; each thread of the 1-D grid takes 16 bytes of a row.
KernelText pointwise_text(const PointwiseSpec& spec, const Target& target);
/// Blocks that cover so many rows.
std::int64_t pointwise_blocks(const PointwiseSpec& spec, std::int64_t rows);

/// Compiled code for one target.
struct Cubin {
  std::vector<char> image;
  int registers = 0;    ///< of a thread
  int local_bytes = 0;  ///< of a thread; spills show here
  std::string remarks;  ///< warnings of the compiler, one line; "" when it had none
};

/// Turns text into code. Thread-safe.
class Compiler {
 public:
  Compiler() = default;
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;
  virtual ~Compiler() = default;

  /// Everything of the compiler that shapes its code, options included: "NVRTC 13.0 (109338064 bytes)
  /// -std=c++17 …". Part of the cache's key.
  virtual std::string identity() const = 0;
  /// Errors unsupported: the target is too new for this compiler; out_of_memory; device: one line, the first
  /// error of the log.
  virtual Result<Cubin> compile(const KernelText& kernel) const = 0;
};

/// Where compiled kernels come from: memory, then the disk cache, then the compiler. Thread-safe; two threads
/// that want the same kernel compile it once.
class KernelStore {
 public:
  KernelStore() = default;
  KernelStore(const KernelStore&) = delete;
  KernelStore& operator=(const KernelStore&) = delete;
  virtual ~KernelStore() = default;

  virtual Result<std::shared_ptr<const Cubin>> get(const KernelText& kernel) = 0;
};

}  // namespace ingot::jit
