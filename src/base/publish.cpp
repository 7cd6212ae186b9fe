// SPDX-License-Identifier: Apache-2.0
#include "base/publish.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace ingot::base {

namespace {

Error unreadable(const std::string& path, int error) {
  return {ErrorCode::unreadable,
          fmt::format("cannot write {}: {}", path, std::generic_category().message(error))};
}

/// 0, or the system's reason.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = write(file, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return 0;
}

/// Whether a path is a device or a pipe: such a one is written to, never replaced.
bool is_stream(const std::string& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  return kind == std::filesystem::file_type::character || kind == std::filesystem::file_type::fifo ||
         kind == std::filesystem::file_type::socket || kind == std::filesystem::file_type::block;
}

Result<void> write_to_stream(const std::string& path, std::string_view bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return unreadable(path, errno);
  int error = write_all(file, bytes);
  if (close(file) != 0 && error == 0) error = errno;
  if (error != 0) return unreadable(path, error);
  return {};
}

}  // namespace

Result<void> publish(const std::string& path, std::string_view bytes) {
  if (is_stream(path)) return write_to_stream(path, bytes);
  std::error_code folder_error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, folder_error);
  if (folder_error) return unreadable(path, folder_error.value());
  std::string part;
  int file = -1;
  // The name is free unless a process of the same number, of another machine or container, left it behind.
  for (int attempt = 0; file < 0 && attempt < 100; ++attempt) {
    part = fmt::format("{}.{}.{}{}", path, gettid(), attempt, part_suffix);
    file = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST) return unreadable(path, errno);
  }
  if (file < 0) return unreadable(path, EEXIST);
  int error = write_all(file, bytes);
  if (close(file) != 0 && error == 0) error = errno;
  if (error == 0 && rename(part.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  unlink(part.c_str());
  return unreadable(path, error);
}

std::string read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace ingot::base
