// SPDX-License-Identifier: Apache-2.0
//
// The engine: open a device, prepare an MLP's weights for it, run any number of tokens.
//
//   auto engine = ingot::Engine::open({.device = ingot::DeviceKind::cpu});
//   auto mlp = engine->prepare({.dim = 320, .hidden = 1280, ...}, weights);
//   std::vector<std::byte> workspace(mlp->workspace_bytes(tokens));
//   auto done = mlp->run({.tokens = tokens, .x = x, .y = y, ...});
//
// Shapes: x and y are [tokens, dim], weights are [out, in] as PyTorch's linear keeps them; every row may have
// its own stride, the last dimension is contiguous. Strides are in elements of the MLP's dtype. Sizes and
// offsets are 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ingot/mlp.h"
#include "ingot/plan.h"
#include "ingot/status.h"

namespace ingot {

/// Weight [out, in] and bias [out] of one linear, in the device's memory, of the MLP's dtype.
struct Linear {
  const void* weight = nullptr;
  std::int64_t row_stride = 0;  ///< elements from one output's weights to the next; 0: in (rows adjoin)
  const void* bias = nullptr;   ///< null: none
};

/// How a gated MLP keeps gate and up.
enum class GateLayout : std::uint8_t {
  separate,            ///< two weights [hidden, dim]
  packed_value_first,  ///< one weight [2 * hidden, dim] in `up`: up's rows, then gate's (GEGLU in diffusers)
  packed_gate_first,   ///< one weight [2 * hidden, dim] in `up`: gate's rows, then up's
};

struct Weights {
  Linear up;    ///< [hidden, dim], or packed with gate; not gated: the first linear
  Linear gate;  ///< gated and separate only, [hidden, dim]
  Linear down;  ///< [dim, hidden]
  GateLayout layout = GateLayout::separate;
};

/// Opaque handle of the device's queue: a CUstream for CUDA (null: its default stream); the CPU has none and
/// returns when the work is done.
struct Stream {
  void* handle = nullptr;
};

/// Alignment of RunArguments::workspace in bytes. x, y, weights and biases need only that of their element.
inline constexpr std::size_t workspace_alignment = 64;

struct RunArguments {
  std::int64_t tokens = 0;        ///< 0: nothing is read or written
  const void* x = nullptr;        ///< [tokens, dim]
  std::int64_t x_row_stride = 0;  ///< elements; 0: dim
  void* y = nullptr;              ///< [tokens, dim], may share no element with x
  std::int64_t y_row_stride = 0;  ///< elements; 0: dim
  void* workspace = nullptr;      ///< workspace_bytes(tokens) of the device's memory, used by this call alone
  std::size_t workspace_bytes = 0;
  Stream stream;
};

struct PrepareOptions {
  Numerics numerics = Numerics::match;
  std::optional<Rung> rung;  ///< unset: the planner chooses for each number of tokens
};

class Executor;
struct EngineInside;

/// An MLP ready to run. Copies share it. run() may be called from any number of threads at once, each with
/// its own workspace and y.
class PreparedMlp {
 public:
  explicit PreparedMlp(std::shared_ptr<const Executor> executor);

  const Mlp& mlp() const;

  /// What run() needs for this many tokens, whatever the alignment of x and y; 0 for tokens <= 0. Never less
  /// for more tokens.
  std::size_t workspace_bytes(std::int64_t tokens) const;

  /// Runs the MLP; on a GPU, puts it into the stream and returns. Allocates nothing, but for kernels compiled
  /// at first use. Errors invalid_argument: names the argument that is off; nothing was written; unsupported:
  /// kernels are missing and the stream is being captured, or one_kernel was asked for and x or y has an
  /// address or row stride that is no multiple of 16 bytes; device: the driver's or compiler's, also of a
  /// kernel that failed since the last call.
  Result<void> run(const RunArguments& arguments) const;

  /// Compiles and loads what run() needs for this many tokens, x and y at 16-byte addresses and row strides
  /// as allocators give them; nothing on a CPU. run() does it at first use, but cannot while its stream is
  /// being captured. Errors unsupported, device: as run().
  Result<void> warm(std::int64_t tokens) const;

  /// What run() does for this many tokens, and why.
  Result<Plan> plan(std::int64_t tokens) const;

  /// Memory held beside the caller's weights, in bytes (copies made at prepare).
  std::size_t owned_bytes() const;

 private:
  std::shared_ptr<const Executor> executor_;
};

struct EngineOptions {
  DeviceKind device = DeviceKind::cpu;
  int threads = 0;  ///< CPU: worker threads, the caller's included; 0: one per processor
  int ordinal = 0;  ///< GPU: which one, as CUDA counts them
  std::optional<DeviceDescription>
      description{};  ///< unset: the stored measurement of this machine, else an estimate
};

/// A device and what belongs to it once (threads; contexts and compiled kernels on GPUs). Copies share it.
class Engine {
 public:
  /// Errors invalid_argument: options; unsupported: no such device, driver or compiler here, each says what
  /// to do; device: the driver's; out_of_memory: threads cannot be started.
  static Result<Engine> open(const EngineOptions& options = {});

  const DeviceDescription& device() const;

  /// Checks the weights and makes them ready. They must stay in place while the result is in use; the CPU
  /// reads them there, whatever their dtype, and copies only biases. Thread-safe. Errors invalid_argument:
  /// names the field; unsupported; out_of_memory.
  Result<PreparedMlp> prepare(const Mlp& mlp, const Weights& weights,
                              const PrepareOptions& options = {}) const;

 private:
  class State;
  friend struct EngineInside;
  explicit Engine(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

}  // namespace ingot
