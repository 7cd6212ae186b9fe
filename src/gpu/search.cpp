// SPDX-License-Identifier: Apache-2.0
#include "gpu/search.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace ingot::gpu {

namespace {

namespace fs = std::filesystem;

/// Folders of `parent` whose names start with `prefix`, by name, the last first: newer versions sort later.
std::vector<fs::path> folders(const fs::path& parent, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::directory_iterator entry(parent, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().filename().string().starts_with(prefix) && entry->is_directory(ignored))
      found.push_back(entry->path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

void add_existing(std::span<const char* const> names, const std::vector<fs::path>& folders_to_search,
                  std::vector<std::string>& out) {
  for (const char* name : names) {
    for (const fs::path& folder : folders_to_search) {
      std::error_code error;
      if (fs::exists(folder / name, error)) out.push_back((folder / name).string());
    }
  }
}

/// site-packages/nvidia/cu13/lib of the packages for CUDA 13, a folder for each library before.
std::vector<fs::path> package_folders(const fs::path& environment) {
  std::vector<fs::path> out;
  for (const fs::path& python : folders(environment / "lib", "python3")) {
    for (const fs::path& package : folders(python / "site-packages" / "nvidia", ""))
      out.push_back(package / "lib");
  }
  return out;
}

}  // namespace

std::vector<std::string> library_candidates(std::span<const char* const> names,
                                            const base::Environment& environment, const std::string& root) {
  std::vector<std::string> out;
  if (!environment.virtual_env.empty()) add_existing(names, package_folders(environment.virtual_env), out);
  if (!environment.cuda_home.empty()) add_existing(names, {fs::path(environment.cuda_home) / "lib64"}, out);
  out.insert(out.end(), names.begin(), names.end());
  std::vector<fs::path> toolkits = folders(root + "/usr/local", "cuda");
  for (fs::path& toolkit : toolkits) toolkit /= "lib64";
  add_existing(names, toolkits, out);
  return out;
}

std::vector<std::string> named_candidates(std::span<const char* const> names,
                                          const std::string& file_or_folder) {
  std::error_code error;
  if (!fs::is_directory(file_or_folder, error)) return {file_or_folder};
  std::vector<std::string> out;
  add_existing(names, {file_or_folder}, out);
  return out;
}

}  // namespace ingot::gpu
