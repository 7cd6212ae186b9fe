// SPDX-License-Identifier: Apache-2.0
//
// The folder of compiled kernels: $INGOT_CACHE, else $XDG_CACHE_HOME/ingot, else ~/.cache/ingot; in it
// `kernels`. Deleting any of its files at any time is safe: a kernel is compiled again when it is needed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ingot/engine.h"
#include "ingot/mlp.h"
#include "ingot/plan.h"
#include "ingot/status.h"

namespace ingot {

/// All kernels together; the least recently used are removed beyond it.
inline constexpr std::uint64_t cache_limit_bytes = std::uint64_t{512} << 20U;

struct CachedKernel {
  std::string key;             ///< 32 hexadecimal digits; the files are KEY.cubin and KEY.cu
  std::string name;            ///< "bf16_match_gelu_tanh_768to3072_bias__g2x1x256s3c21e"; "" when damaged
  std::string target;          ///< "sm_90a"
  std::string compiler;        ///< "NVRTC 13.0 (109338064 bytes) -std=c++17 …"
  int registers = 0;           ///< of a thread
  int local_bytes = 0;         ///< of a thread
  std::uint64_t bytes = 0;     ///< of both files
  std::int64_t last_used = 0;  ///< seconds since 1970, UTC
  bool damaged = false;        ///< not readable as a kernel, or a text that did not compile: never used
};

struct CacheListing {
  std::string folder;
  std::uint64_t limit_bytes = 0;
  std::vector<CachedKernel> kernels;  ///< sorted by name, then target
};

struct CacheCleared {
  std::string folder;
  int kernels = 0;
  std::uint64_t bytes = 0;
};

struct WarmOptions {
  GpuDescription gpu;    ///< to compile for; it need not be here
  std::string device{};  ///< the GPU's name: what was measured on such a one comes first; "": forecasts alone
  std::vector<std::int64_t> tokens{};  ///< empty: every number up to most_warm_tokens
  Numerics numerics = Numerics::match;
  GateLayout layout = GateLayout::separate;  ///< separate: for gate's weights before up's, and behind
  int threads = 0;                           ///< that compile; 0: one per processor
  std::function<void(double fraction, const std::string& kernel)>
      progress{};  ///< from any thread, one at a time
};
inline constexpr std::int64_t most_warm_tokens = 65536;

struct WarmedKernel {
  std::string name, target;
  bool compiled = false;  ///< now; else it was there
  double seconds = 0;     ///< to compile or read
};
struct CacheWarmed {
  std::string folder;
  std::vector<WarmedKernel> kernels;  ///< sorted by name
};

/// What the folder of this process's environment holds. Error unsupported: there is no such folder, because
/// none of the variables is set.
Result<CacheListing> list_cache();
/// Removes every kernel, for this and all other processes; those that run on are not disturbed. Errors
/// unsupported; unreadable: a file cannot be removed.
Result<CacheCleared> clear_cache();
/// Compiles what the planner takes for the MLP, one kernel or two, for weights and inputs at 16-byte
/// addresses and strides, so that the first run finds it. Errors unsupported: no folder, no compiler, or no
/// kernels for such a GPU; unreadable: a kernel cannot be kept; device: one does not compile.
Result<CacheWarmed> warm_cache(const Mlp& mlp, const WarmOptions& options);

}  // namespace ingot
