// SPDX-License-Identifier: Apache-2.0
#include "base/publish.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace ingot::base {

Result<void> publish(const std::string& path, std::string_view bytes) {
  const auto failed = [&](const std::error_code& error) {
    return Error{ErrorCode::unreadable, fmt::format("cannot write {}: {}", path, error.message())};
  };
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return failed(error);
  const std::string part = fmt::format("{}.{}", path, getpid());
  std::error_code ignored;
  {
    std::ofstream out(part, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) {
      std::filesystem::remove(part, ignored);
      return Error{ErrorCode::unreadable, fmt::format("cannot write {}", path)};
    }
  }
  std::filesystem::rename(part, path, error);
  if (!error) return {};
  std::filesystem::remove(part, ignored);
  return failed(error);
}

std::string read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace ingot::base
