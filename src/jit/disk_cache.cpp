// SPDX-License-Identifier: Apache-2.0
#include "jit/disk_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/publish.h"
#include "jit/cubin_file.h"

namespace ingot::jit {

namespace {

namespace fs = std::filesystem;
using std::chrono::duration_cast;
using std::chrono::hours;
using std::chrono::seconds;
using std::chrono::system_clock;

constexpr std::string_view code_suffix = ".cubin", text_suffix = ".cu";
constexpr std::size_t key_digits = 32;
// No write takes longer; one that was cut off by the end of its process does.
constexpr hours abandoned{1};

std::optional<std::string> read_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  struct stat status {};
  std::string bytes;
  bool good = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (good) bytes.resize(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (good && done < bytes.size()) {
    const ssize_t got = read(file, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    good = got > 0;  // it became shorter while we read
    if (good) done += static_cast<std::size_t>(got);
  }
  close(file);
  return good ? std::optional(std::move(bytes)) : std::nullopt;
}

/// Both files of a kernel.
struct Entry {
  std::uint64_t bytes = 0;
  system_clock::time_point used;
  bool has_code = false;
  std::vector<fs::path> files;
};

bool is_key(std::string_view text) {
  return text.size() == key_digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Calls `take(path, key, suffix, status)` for every file of the cache: names that are a key and a suffix.
template <class Take>
void for_each_file(const std::string& folder, const Take& take) {
  std::error_code error;
  fs::directory_iterator file(folder, error);
  for (; !error && file != fs::directory_iterator(); file.increment(error)) {
    const std::string name = file->path().filename().string();
    const std::string key = name.substr(0, key_digits), suffix = name.substr(key.size());
    struct stat status {};
    if (!is_key(key) || stat(file->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    take(file->path(), key, suffix, status);
  }
}

system_clock::time_point modified(const struct stat& status) {
  return system_clock::time_point(duration_cast<system_clock::duration>(
      seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec)));
}

std::map<std::string, Entry> entries(const std::string& folder) {
  std::map<std::string, Entry> found;
  for_each_file(folder, [&](const fs::path& path, const std::string& key, const std::string& suffix,
                            const struct stat& status) {
    if (suffix != code_suffix && suffix != text_suffix) return;
    Entry& entry = found[key];
    entry.bytes += static_cast<std::uint64_t>(status.st_size);
    entry.has_code = entry.has_code || suffix == code_suffix;
    entry.used = std::max(entry.used, modified(status));
    entry.files.push_back(path);
  });
  return found;
}

bool is_part(const std::string& suffix) {
  return suffix.ends_with(base::part_suffix);
}

void append(std::string& out, std::string_view field) {
  out += fmt::format("{}:", field.size());  // so that no two lists of fields join to the same bytes
  out += field;
}

}  // namespace

CacheKey cache_key(std::string_view compiler, const KernelText& kernel, std::span<const SourceFile> sources) {
  std::string all;
  append(all, compiler);
  append(all, to_string(kernel.target));
  append(all, kernel.text);
  for (const SourceFile& source : included_sources(kernel.text, sources)) {
    append(all, source.name);
    append(all, source.text);
  }
  return hash_of(all);
}

DiskCache::DiskCache(std::string folder, std::uint64_t limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

std::string DiskCache::path(const CacheKey& key, const char* suffix) const {
  return fmt::format("{}/{}{}", folder_, to_string(key), suffix);
}

std::optional<Cubin> DiskCache::load(const CacheKey& key) const {
  const std::string code = path(key, ".cubin");
  auto bytes = read_file(code);
  if (!bytes) return std::nullopt;
  auto file = from_bytes(*bytes, to_string(key));
  if (!file) return std::nullopt;
  utimensat(AT_FDCWD, code.c_str(), nullptr, 0);  // used now; a folder of another user stays as it is
  return std::move(file->cubin);
}

Result<std::string> DiskCache::store_text(const CacheKey& key, const KernelText& kernel) const {
  std::string text = path(key, ".cu");
  if (auto done = base::publish(text, kernel.text); !done) return done.error();
  return text;
}

Result<void> DiskCache::store(const CacheKey& key, const KernelText& kernel, std::string_view compiler,
                              const Cubin& cubin) const {
  if (auto text = store_text(key, kernel); !text) return text.error();
  const CubinFile file{to_string(key), kernel.name, to_string(kernel.target), std::string(compiler), cubin};
  if (auto done = base::publish(path(key, ".cubin"), to_bytes(file)); !done) return done;
  remove_least_used();
  return {};
}

void DiskCache::remove_least_used() const {
  for_each_file(folder_, [&](const fs::path& path, const std::string&, const std::string& suffix,
                             const struct stat& status) {
    if (is_part(suffix) && system_clock::now() - modified(status) > abandoned) unlink(path.c_str());
  });
  const auto all = entries(folder_);
  std::uint64_t bytes = 0;
  std::vector<const Entry*> by_use;
  for (const auto& [key, entry] : all) {
    bytes += entry.bytes;
    by_use.push_back(&entry);
  }
  std::stable_sort(by_use.begin(), by_use.end(),
                   [](const Entry* a, const Entry* b) { return a->used < b->used; });
  for (const Entry* entry : by_use) {
    if (bytes <= limit_bytes_) return;
    for (const fs::path& file : entry->files) unlink(file.c_str());
    bytes -= entry->bytes;
  }
}

std::vector<CachedKernel> DiskCache::list() const {
  std::vector<CachedKernel> out;
  for (const auto& [key, entry] : entries(folder_)) {
    CachedKernel kernel;
    kernel.key = key;
    kernel.bytes = entry.bytes;
    kernel.last_used = duration_cast<seconds>(entry.used.time_since_epoch()).count();
    kernel.damaged = true;
    const auto bytes =
        entry.has_code ? read_file(fmt::format("{}/{}{}", folder_, key, code_suffix)) : std::nullopt;
    if (auto file = bytes ? from_bytes(*bytes, key) : std::nullopt) {
      kernel.damaged = false;
      kernel.name = file->name;
      kernel.target = file->target;
      kernel.compiler = file->compiler;
      kernel.registers = file->cubin.registers;
      kernel.local_bytes = file->cubin.local_bytes;
    }
    out.push_back(std::move(kernel));
  }
  std::stable_sort(out.begin(), out.end(), [](const CachedKernel& a, const CachedKernel& b) {
    return std::tie(a.name, a.target) < std::tie(b.name, b.target);
  });
  return out;
}

Result<CacheCleared> DiskCache::clear() const {
  CacheCleared cleared{folder_, 0, 0};
  std::optional<Error> failed;
  for_each_file(folder_, [&](const fs::path& path, const std::string&, const std::string& suffix,
                             const struct stat& status) {
    if (suffix != code_suffix && suffix != text_suffix && !is_part(suffix)) return;
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      if (!failed) {
        failed = Error{ErrorCode::unreadable, fmt::format("cannot remove {}: {}", path.string(),
                                                          std::generic_category().message(errno))};
      }
      return;
    }
    cleared.kernels += suffix == code_suffix ? 1 : 0;
    cleared.bytes += static_cast<std::uint64_t>(status.st_size);
  });
  if (failed) return *failed;
  return cleared;
}

std::optional<DiskCache> kernel_cache(const base::Environment& environment) {
  const auto folder = base::cache_folder(environment);
  if (!folder) return std::nullopt;
  return DiskCache(*folder + "/kernels");
}

}  // namespace ingot::jit
