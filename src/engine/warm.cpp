// SPDX-License-Identifier: Apache-2.0
#include "engine/warm.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "base/env.h"
#include "gpu/nvrtc.h"
#include "gpu/open.h"

namespace ingot {

namespace {

/// The numbers of tokens to ask the planner about: one of every class where none are given.
std::vector<std::int64_t> token_numbers(const WarmOptions& options) {
  if (!options.tokens.empty()) return options.tokens;
  std::vector<std::int64_t> out;
  for (std::int64_t tokens = 1; tokens <= most_warm_tokens; tokens = token_class(tokens).next)
    out.push_back(token_class(tokens).representative);
  return out;
}

std::vector<bool> gate_orders(const Mlp& mlp, GateLayout layout) {
  if (!mlp.gated || layout == GateLayout::packed_gate_first) return {true};
  if (layout == GateLayout::packed_value_first) return {false};
  return {true, false};
}

/// One kernel; the time it took, or what is in the way.
Result<WarmedKernel> warm_one(jit::CachedKernelStore& store, const jit::KernelText& kernel) {
  const auto start = std::chrono::steady_clock::now();
  const auto found = store.find(kernel);
  if (!found) return found.error();
  if (!found->not_kept.empty()) return Error{ErrorCode::unreadable, found->not_kept};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return WarmedKernel{kernel.name, jit::to_string(kernel.target),
                      found->origin == jit::CachedKernelStore::Origin::compiled, took.count()};
}

}  // namespace

Result<std::vector<jit::KernelText>> kernels_to_warm(const Mlp& mlp, const WarmOptions& options,
                                                     const TuningTable* tuned) {
  const jit::Target target = jit::target_of(options.gpu);
  std::map<std::string, jit::KernelText> by_text;
  const auto add = [&](const auto& spec, const auto& tile) {
    jit::KernelText kernel = jit::kernel_text(spec, tile, target);
    by_text.emplace(kernel.text, std::move(kernel));
  };
  for (const std::int64_t tokens : token_numbers(options)) {
    const KernelRoute route =
        choose_route(mlp, tokens, options.gpu, {.numerics = options.numerics, .tuned = tuned});
    if (!route.found()) {
      return Error{ErrorCode::unsupported, fmt::format("there are no kernels for compute capability {}.{}",
                                                       options.gpu.major, options.gpu.minor)};
    }
    for (const bool gate_first : gate_orders(mlp, options.layout)) {
      if (route.takes_one) {
        add(mlp_spec(mlp, gate_first, options.numerics), route.one.tile);
      } else {
        add(first_linear(mlp, gate_first, options.numerics), route.pair.first);
      }
    }
    if (!route.takes_one) add(second_linear(mlp, options.numerics), route.pair.second);
  }
  std::vector<jit::KernelText> kernels;
  kernels.reserve(by_text.size());
  for (auto& [text, kernel] : by_text) kernels.push_back(std::move(kernel));
  std::ranges::sort(kernels, {}, &jit::KernelText::name);
  return kernels;
}

Result<std::vector<WarmedKernel>> warm(jit::CachedKernelStore& store,
                                       const std::vector<jit::KernelText>& kernels,
                                       const WarmOptions& options) {
  std::vector<std::optional<Result<WarmedKernel>>> results(kernels.size());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;  // guards `done` and the calls of progress
  std::size_t done = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < kernels.size(); i = next++) {
      results[i] = warm_one(store, kernels[i]);
      const std::lock_guard lock(mutex);
      ++done;
      if (options.progress) {
        options.progress(static_cast<double>(done) / static_cast<double>(kernels.size()), kernels[i].name);
      }
    }
  };
  const std::size_t wanted =
      options.threads > 0 ? static_cast<std::size_t>(options.threads) : std::thread::hardware_concurrency();
  std::vector<std::thread> threads;
  try {
    while (threads.size() + 1 < std::min(wanted, kernels.size())) threads.emplace_back(work);
  } catch (const std::system_error&) {
    // Fewer threads do the same work.
  }
  work();
  for (std::thread& thread : threads) thread.join();

  std::vector<WarmedKernel> warmed;
  for (const auto& result : results) {
    if (!result->ok()) return result->error();
    warmed.push_back(result->value());
  }
  return warmed;
}

Result<CacheWarmed> warm_cache(const Mlp& mlp, const WarmOptions& options) {
  try {
    for (const std::int64_t tokens : options.tokens) {
      if (tokens < 1)
        return Error{ErrorCode::invalid_argument,
                     fmt::format("tokens: {} is not accepted, give 1 or more", tokens)};
      if (auto sound = validate(mlp, tokens); !sound) return sound.error();
    }
    if (auto sound = validate(mlp); !sound) return sound.error();
    if (options.threads < 0) {
      return Error{ErrorCode::invalid_argument, "threads: a negative number is not accepted, give 0 or more"};
    }
    const base::Environment environment = base::read_environment();
    auto disk = jit::kernel_cache(environment);
    if (!disk)
      return Error{ErrorCode::unsupported, "there is no cache folder: set INGOT_CACHE to a folder, or HOME"};
    TuningTable tuned("", "");
    if (!options.device.empty()) tuned = gpu::load_tuning(environment, options.device);
    const auto kernels = kernels_to_warm(mlp, options, &tuned);
    if (!kernels) return kernels.error();
    auto compiler = gpu::open_nvrtc(environment);
    if (!compiler) return compiler.error();
    CacheWarmed warmed{disk->folder(), {}};
    jit::CachedKernelStore store(std::move(compiler).value(), std::move(disk));
    auto done = warm(store, *kernels, options);
    if (!done) return done.error();
    warmed.kernels = std::move(done).value();
    return warmed;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory to compile kernels"};
  }
}

}  // namespace ingot
