// SPDX-License-Identifier: Apache-2.0
//
// Compiles, with no GPU, what the planner would take for every known model, and one of every form of the
// portable, the whole MLP's and the pointwise kernels: ingot_compile_test FOLDER. Fails on an error, a spill,
// or a remark of the compiler. FOLDER keeps the kernels for the next time. Exits 77 (skipped) where there is
// no NVRTC.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "arch/sm80.h"
#include "base/env.h"
#include "engine/warm.h"
#include "gpu/nvrtc.h"
#include "jit/store.h"
#include "plan/linear.h"

namespace {

using namespace ingot;

constexpr std::int64_t token_numbers[] = {1, 16, 77, 256, 1024, 8192, 32768};

/// By target and text, so that each is compiled once.
using Kernels = std::map<std::pair<std::string, std::string>, jit::KernelText>;

void add(Kernels& kernels, jit::KernelText kernel) {
  std::pair key{to_string(kernel.target), kernel.text};
  kernels.emplace(std::move(key), std::move(kernel));
}

void add_sm90_catalogue(Kernels& kernels) {
  WarmOptions options{.gpu = describe_gpu("sm90").value().gpu,
                      .tokens = {std::begin(token_numbers), std::end(token_numbers)}};
  for (const KnownModel& model : known_models()) {
    options.layout =
        model.gate == "packed, value first" ? GateLayout::packed_value_first : GateLayout::packed_gate_first;
    const auto wanted = kernels_to_warm(model.mlp, options);
    for (const jit::KernelText& kernel : wanted.value()) add(kernels, kernel);
  }
}

/// f16 evaluates activations by their definition and `fast` keeps more in registers: both for a plain and two
/// gated models.
void add_sm90_forms(Kernels& kernels) {
  WarmOptions options{.gpu = describe_gpu("sm90").value().gpu,
                      .tokens = {std::begin(token_numbers), std::end(token_numbers)},
                      .layout = GateLayout::packed_gate_first};
  for (const char* name : {"wan2.1-1.3b", "svd-640", "t5-xxl"}) {
    for (const auto& [dtype, numerics] :
         {std::pair(DType::f16, Numerics::match), std::pair(DType::f16, Numerics::fast),
          std::pair(DType::bf16, Numerics::fast)}) {
      Mlp mlp = find_model(name).value().mlp;
      mlp.dtype = dtype;
      options.numerics = numerics;
      const auto wanted = kernels_to_warm(mlp, options);
      for (const jit::KernelText& kernel : wanted.value()) add(kernels, kernel);
    }
  }
}

/// The tiles of the kernels of a whole MLP that are forecast best for few tokens and for many, with what
/// their registers depend on; three sizes, one with tails.
void add_whole_forms(Kernels& kernels) {
  const GpuDescription gpu = describe_gpu("sm90").value().gpu;
  for (const auto& [dim, hidden] : {std::pair(256, 1024), std::pair(320, 1280), std::pair(72, 200)}) {
    for (const bool gated : {false, true}) {
      for (const DType dtype : {DType::bf16, DType::f16}) {
        for (const Numerics numerics : {Numerics::match, Numerics::fast}) {
          const Mlp mlp{dim, hidden, gated ? Activation::gelu_erf : Activation::relu, gated, true, dtype};
          const MlpSpec spec = mlp_spec(mlp, !gated || numerics == Numerics::match, numerics);
          for (const std::int64_t tokens : {64, 131072}) {
            for (const MlpTile& tile : rank_mlp_kernels(spec, tokens, gpu, 2))
              add(kernels, jit::kernel_text(spec, tile, jit::target_of(gpu)));
          }
        }
      }
    }
  }
}

/// What a portable kernel's registers depend on; its widths are numbers in a comparison or two.
std::string form(const LinearSpec& linear, const KernelTile& tile) {
  LinearSpec of_one_width = linear;
  of_one_width.in = of_one_width.out = 1024;
  return jit::kernel_text(of_one_width, tile, {8, 0, false}).text;
}

/// The planner's tiles for the catalogue; one model stands for all of the same form.
void add_portable_catalogue(Kernels& kernels, const char* generation) {
  const GpuDescription gpu = describe_gpu(generation).value().gpu;
  std::map<std::string, bool> seen;
  const auto add_form = [&](const LinearSpec& linear, const KernelTile& tile) {
    if (seen.emplace(form(linear, tile), true).second)
      add(kernels, jit::kernel_text(linear, tile, jit::target_of(gpu)));
  };
  for (const KnownModel& model : known_models()) {
    for (const std::int64_t tokens : token_numbers) {
      const KernelPair pair = choose_kernels(model.mlp, tokens, gpu, {});
      add_form(first_linear(model.mlp, true, Numerics::match), pair.first);
      add_form(second_linear(model.mlp, Numerics::match), pair.second);
    }
  }
}

/// Every tile, with and without a gate, aligned or not, in every type, for the oldest chip.
void add_portable_forms(Kernels& kernels) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    const auto add_tile = [&](const sm80::Tile& tile) {
      for (const bool gated : {false, true}) {
        for (const bool aligned : {false, true}) {
          LinearSpec linear;
          linear.out = aligned ? 3072 : 77;
          linear.in = aligned ? 768 : 201;
          linear.activation = Activation::gelu_erf;
          linear.gated = gated;
          linear.bias = true;
          linear.dtype = dtype;
          linear.aligned = aligned;
          add(kernels, jit::kernel_text(linear, tile, {8, 0, false}));
        }
      }
    };
    if (dtype == DType::f32) {
      std::ranges::for_each(arch::sm80::f32_tiles, add_tile);
    } else {
      std::ranges::for_each(arch::sm80::tiles, add_tile);
    }
  }
}

/// What the rungs of the vendor's library launch between its products.
void add_pointwise(Kernels& kernels) {
  using Step = jit::PointwiseSpec::Step;
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    for (const bool aligned : {false, true}) {
      jit::PointwiseSpec spec{.dtype = dtype, .columns = aligned ? 3072 : 77, .aligned = aligned};
      for (const Step step : {Step::add_bias, Step::multiply}) {
        spec.step = step;
        add(kernels, jit::pointwise_text(spec, {8, 0, false}));
      }
      spec.step = Step::activate;
      for (const ActivationInfo& activation : activations()) {
        spec.activation = activation.id;
        add(kernels, jit::pointwise_text(spec, {8, 0, false}));
      }
    }
  }
}

struct Counts {
  int compiled = 0, unfit = 0;
};

Counts compile_all(jit::CachedKernelStore& store, const std::vector<jit::KernelText>& kernels) {
  Counts counts;
  std::size_t next = 0;
  std::mutex mutex;  // guards both, and the lines printed
  const auto work = [&] {
    for (;;) {
      std::size_t i = 0;
      {
        const std::lock_guard lock(mutex);
        if (next == kernels.size()) return;
        i = next++;
      }
      const jit::KernelText& kernel = kernels[i];
      const auto found = store.find(kernel);
      const std::lock_guard lock(mutex);
      std::string fault;
      if (!found) {
        fault = found.error().message;
      } else if (found->cubin->local_bytes > 0) {
        fault = std::to_string(found->cubin->local_bytes) + " bytes of local memory";
      } else {
        fault = found->cubin->remarks;
      }
      if (found && found->origin == jit::CachedKernelStore::Origin::compiled) ++counts.compiled;
      if (!fault.empty()) {
        ++counts.unfit;
        if (found) fault = to_string(kernel.target) + " " + kernel.name + ": " + fault;
        std::printf("%.600s\n", fault.c_str());
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return counts;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: ingot_compile_test FOLDER\n", stderr);
    return 2;
  }
  const auto compiler = gpu::open_nvrtc(base::read_environment());
  if (!compiler) {
    std::printf("skipped: %s\n", compiler.error().message.c_str());
    return 77;
  }
  Kernels kernels;
  add_sm90_catalogue(kernels);
  add_sm90_forms(kernels);
  add_whole_forms(kernels);
  for (const char* generation : {"sm80", "sm100", "sm120"}) add_portable_catalogue(kernels, generation);
  add_portable_forms(kernels);
  add_pointwise(kernels);
  std::map<std::string, int> by_target;
  std::vector<jit::KernelText> list;
  for (auto& [key, kernel] : kernels) {
    ++by_target[key.first];
    list.push_back(std::move(kernel));
  }
  for (const auto& [target, count] : by_target) std::printf("%s: %d kernels\n", target.c_str(), count);

  const auto start = std::chrono::steady_clock::now();
  jit::CachedKernelStore store(*compiler, jit::DiskCache(argv[1]));
  const Counts counts = compile_all(store, list);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%zu kernels, %d compiled now by %s in %.0f s, %d unfit\n", list.size(), counts.compiled,
              (*compiler)->identity().c_str(), took.count(), counts.unfit);
  return list.empty() || counts.unfit > 0 ? 1 : 0;
}
