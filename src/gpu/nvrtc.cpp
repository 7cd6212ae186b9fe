// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvrtc.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "gpu/library.h"
#include "gpu/nvrtc_log.h"
#include "gpu/search.h"

namespace ingot::gpu {

namespace {

using Program = struct ProgramRecord*;

// nvrtcResult values of the library's interface.
constexpr int success = 0, out_of_memory = 1, compilation_failed = 6, builtins_failed = 7;

/// The library's functions that Ingot calls.
struct Functions {
  int (*nvrtcVersion)(int*, int*) = nullptr;
  int (*nvrtcGetNumSupportedArchs)(int*) = nullptr;
  int (*nvrtcGetSupportedArchs)(int*) = nullptr;
  const char* (*nvrtcGetErrorString)(int) = nullptr;
  int (*nvrtcCreateProgram)(Program*, const char* text, const char* name, int headers,
                            const char* const* texts, const char* const* names) = nullptr;
  int (*nvrtcDestroyProgram)(Program*) = nullptr;
  int (*nvrtcCompileProgram)(Program, int count, const char* const* options) = nullptr;
  int (*nvrtcGetProgramLogSize)(Program, std::size_t*) = nullptr;
  int (*nvrtcGetProgramLog)(Program, char*) = nullptr;
  int (*nvrtcGetCUBINSize)(Program, std::size_t*) = nullptr;
  int (*nvrtcGetCUBIN)(Program, char*) = nullptr;
};

constexpr std::array file_names{"libnvrtc.so.13", "libnvrtc.so.12"};

bool fill(const Library& library, Functions& functions) {
  Symbols symbols(library);
#define INGOT_TAKE(name) symbols.take(functions.name, #name)
  INGOT_TAKE(nvrtcVersion);
  INGOT_TAKE(nvrtcGetNumSupportedArchs);
  INGOT_TAKE(nvrtcGetSupportedArchs);
  INGOT_TAKE(nvrtcGetErrorString);
  INGOT_TAKE(nvrtcCreateProgram);
  INGOT_TAKE(nvrtcDestroyProgram);
  INGOT_TAKE(nvrtcCompileProgram);
  INGOT_TAKE(nvrtcGetProgramLogSize);
  INGOT_TAKE(nvrtcGetProgramLog);
  INGOT_TAKE(nvrtcGetCUBINSize);
  INGOT_TAKE(nvrtcGetCUBIN);
#undef INGOT_TAKE
  return symbols.missing() == nullptr;
}

// C++17 is what every NVRTC from 12.8 on takes without warnings; -v puts registers and spills into the log.
constexpr std::array common_options{"-std=c++17", "-default-device", "--ptxas-options=-v"};

/// A program of the library, destroyed with this.
class ScopedProgram {
 public:
  explicit ScopedProgram(const Functions& functions) : functions_(functions) {}
  ScopedProgram(const ScopedProgram&) = delete;
  ScopedProgram& operator=(const ScopedProgram&) = delete;
  ~ScopedProgram() {
    if (program_ != nullptr) functions_.nvrtcDestroyProgram(&program_);
  }
  Program* address() { return &program_; }
  Program get() const { return program_; }

  std::string log() const {
    std::size_t size = 0;
    if (functions_.nvrtcGetProgramLogSize(program_, &size) != success || size == 0) return {};
    std::string text(size, '\0');
    if (functions_.nvrtcGetProgramLog(program_, text.data()) != success) return {};
    text.resize(text.find('\0'));
    return text;
  }

 private:
  const Functions& functions_;
  Program program_ = nullptr;
};

class OpenNvrtc final : public Nvrtc {
 public:
  OpenNvrtc(std::string file, const Functions& functions, NvrtcVersion version, std::vector<int> targets,
            std::uintmax_t bytes, std::span<const jit::SourceFile> sources)
      : file_(std::move(file)),
        functions_(functions),
        version_(version),
        targets_(std::move(targets)),
        identity_(fmt::format("NVRTC {}.{} ({} bytes) {}", version.major, version.minor, bytes,
                              fmt::join(common_options, " "))),
        sources_(sources) {}

  const std::string& file() const override { return file_; }
  NvrtcVersion version() const override { return version_; }
  std::string identity() const override { return identity_; }
  Result<jit::Cubin> compile(const jit::KernelText& kernel) const override;

 private:
  Error failure(int result, const char* call, const jit::KernelText& kernel) const;
  Result<jit::Cubin> compile_once(const jit::KernelText& kernel, const jit::Target& target,
                                  bool afresh) const;

  std::string file_;
  Functions functions_;
  NvrtcVersion version_;
  std::vector<int> targets_;  // 80, 90, …
  std::string identity_;
  std::span<const jit::SourceFile> sources_;
};

Error OpenNvrtc::failure(int result, const char* call, const jit::KernelText& kernel) const {
  if (result == out_of_memory)
    return {ErrorCode::out_of_memory, fmt::format("{}: not enough memory to compile", kernel.name)};
  if (result == builtins_failed) {
    return {ErrorCode::unsupported,
            fmt::format("{} cannot open its libnvrtc-builtins.so.{}.{}: install both from one package, "
                        "pip install nvidia-cuda-nvrtc",
                        file_, version_.major, version_.minor)};
  }
  return {ErrorCode::device,
          fmt::format("{}: {}: {}", kernel.name, call, functions_.nvrtcGetErrorString(result))};
}

Result<jit::Cubin> OpenNvrtc::compile(const jit::KernelText& kernel) const {
  const auto target = compiled_target(kernel.target, targets_);
  if (!target) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("NVRTC {}.{} ({}) does not compile for {}: a newer one does, pip install --upgrade "
                    "nvidia-cuda-nvrtc",
                    version_.major, version_.minor, file_, jit::to_string(kernel.target))};
  }
  auto cubin = compile_once(kernel, *target, false);
  // A text that NVRTC finds in a cache of its own (13.0 and newer) comes back without the compiler's log.
  if (cubin && cubin->registers == 0) cubin = compile_once(kernel, *target, true);
  if (cubin && cubin->registers == 0) {
    return Error{ErrorCode::device, fmt::format("{}: NVRTC {}.{} does not say what the kernel uses",
                                                kernel.name, version_.major, version_.minor)};
  }
  return cubin;
}

/// Registers are 0 when the log does not tell them. `afresh`: not from NVRTC's own cache.
Result<jit::Cubin> OpenNvrtc::compile_once(const jit::KernelText& kernel, const jit::Target& target,
                                           bool afresh) const {
  const auto included = jit::included_sources(kernel.text, sources_);
  std::vector<std::string> names, texts;  // with a zero byte at the end
  std::vector<const char*> name_pointers, text_pointers;
  for (const jit::SourceFile& source : included) {
    names.emplace_back(source.name);
    texts.emplace_back(source.text);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    name_pointers.push_back(names[i].c_str());
    text_pointers.push_back(texts[i].c_str());
  }

  ScopedProgram program(functions_);
  int result = functions_.nvrtcCreateProgram(program.address(), kernel.text.c_str(),
                                             (kernel.name + ".cu").c_str(), static_cast<int>(names.size()),
                                             text_pointers.data(), name_pointers.data());
  if (result != success) return failure(result, "nvrtcCreateProgram", kernel);

  const std::string architecture = "--gpu-architecture=" + jit::to_string(target);
  std::vector<const char*> options{architecture.c_str()};
  options.insert(options.end(), common_options.begin(), common_options.end());
  if (afresh) options.push_back("--no-cache");
  result = functions_.nvrtcCompileProgram(program.get(), static_cast<int>(options.size()), options.data());
  const std::string log = program.log();
  if (result == compilation_failed) {
    return Error{ErrorCode::device, fmt::format("{} does not compile for {}: {}", kernel.name,
                                                jit::to_string(target), first_error(log))};
  }
  if (result != success) return failure(result, "nvrtcCompileProgram", kernel);

  std::size_t size = 0;
  result = functions_.nvrtcGetCUBINSize(program.get(), &size);
  if (result != success) return failure(result, "nvrtcGetCUBINSize", kernel);
  jit::Cubin cubin;
  cubin.image.resize(size);
  result = functions_.nvrtcGetCUBIN(program.get(), cubin.image.data());
  if (result != success) return failure(result, "nvrtcGetCUBIN", kernel);
  if (const auto resources = parse_resources(log, jit::entry_point)) {
    cubin.registers = resources->registers;
    cubin.local_bytes = resources->local_bytes;
    cubin.remarks = resources->remarks;
  }
  return cubin;
}

/// What stands in the way of a candidate, or the compiler.
Result<std::shared_ptr<const Nvrtc>> open_candidate(const std::string& candidate,
                                                    std::span<const jit::SourceFile> sources) {
  const auto unfit = [](std::string why) { return Error{ErrorCode::unsupported, std::move(why)}; };
  const Library library(candidate);
  if (!library) return unfit(library.error());
  Functions functions;
  const bool complete = fill(library, functions);
  NvrtcVersion version;
  if (functions.nvrtcVersion == nullptr || functions.nvrtcVersion(&version.major, &version.minor) != success)
    return unfit(fmt::format("{} is no NVRTC", candidate));
  if (version < least_nvrtc)
    return unfit(
        fmt::format("{} is version {}.{}, which is too old", candidate, version.major, version.minor));
  if (!complete) return unfit(fmt::format("{} lacks functions of NVRTC", candidate));

  // NVRTC opens its companion by name when it first compiles, which finds one that is open already. Without
  // the companion it cannot compile anything, so another candidate may do better.
  const std::string file =
      Library::file_of(reinterpret_cast<const void*>(functions.nvrtcVersion)).value_or(candidate);
  const std::string builtins = fmt::format("libnvrtc-builtins.so.{}.{}", version.major, version.minor);
  const std::string beside = (std::filesystem::path(file).parent_path() / builtins).string();
  if (!Library(beside) && !Library(builtins))
    return unfit(fmt::format("{} has no {} beside it", file, builtins));

  int count = 0;
  std::vector<int> targets;
  if (functions.nvrtcGetNumSupportedArchs(&count) == success && count > 0) {
    targets.resize(static_cast<std::size_t>(count));
    if (functions.nvrtcGetSupportedArchs(targets.data()) != success) targets.clear();
  }
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  return std::shared_ptr<const Nvrtc>(std::make_shared<const OpenNvrtc>(
      file, functions, version, std::move(targets), error ? 0 : bytes, sources));
}

}  // namespace

std::vector<std::string> nvrtc_candidates(const base::Environment& environment, const std::string& root) {
  if (!environment.ingot_nvrtc.empty()) return named_candidates(file_names, environment.ingot_nvrtc);
  return library_candidates(file_names, environment, root);
}

Result<std::shared_ptr<const Nvrtc>> open_nvrtc(const base::Environment& environment,
                                                std::span<const jit::SourceFile> sources) {
  std::string found;  // the first thing wrong with a file that is there
  for (const std::string& candidate : nvrtc_candidates(environment)) {
    auto opened = open_candidate(candidate, sources);
    if (opened) return opened;
    const bool is_path = candidate.find('/') != std::string::npos;  // else only the loader was asked
    if (found.empty() && (is_path || opened.error().message.starts_with(candidate + " is")))
      found = opened.error().message;
  }
  const bool named = !environment.ingot_nvrtc.empty();
  if (found.empty()) {
    found = named ? fmt::format("INGOT_NVRTC: {} holds no libnvrtc.so.13 or .12", environment.ingot_nvrtc)
                  : "no NVRTC, the compiler of GPU kernels, was found";
  } else if (named) {
    found = "INGOT_NVRTC: " + found;
  }
  return Error{ErrorCode::unsupported,
               fmt::format("{}: {}.{} or newer is needed, get it with pip install nvidia-cuda-nvrtc{}", found,
                           least_nvrtc.major, least_nvrtc.minor,
                           named ? "" : ", or point INGOT_NVRTC to the library or its folder")};
}

}  // namespace ingot::gpu
