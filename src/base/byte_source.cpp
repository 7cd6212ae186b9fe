// SPDX-License-Identifier: Apache-2.0
#include "base/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace ingot {
namespace {

Error unreadable(const std::string& path, const std::string& why) {
  return Error{ErrorCode::unreadable, (path == "-" ? std::string("standard input") : path) + ": " + why};
}

std::string reason(int error_number) {
  return std::generic_category().message(error_number);
}

class FileBytes final : public ByteSource {
 public:
  FileBytes(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~FileBytes() override {
    if (fd_ != STDIN_FILENO) ::close(fd_);
  }

  Result<std::size_t> read(char* out, std::size_t capacity) override {
    for (;;) {
      const ssize_t got = ::read(fd_, out, capacity);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) return unreadable(path_, "cannot be read: " + reason(errno));
    }
  }

 private:
  int fd_;
  std::string path_;
};

class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(std::string_view bytes) : rest_(bytes) {}

  Result<std::size_t> read(char* out, std::size_t capacity) override {
    const std::size_t count = std::min(capacity, rest_.size());
    if (count != 0) std::memcpy(out, rest_.data(), count);
    rest_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view rest_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_bytes(const std::string& path) {
  if (path.empty()) return Error{ErrorCode::unreadable, "the file name is empty"};
  if (path.find('\0') != std::string::npos)
    return Error{ErrorCode::unreadable, "the file name holds a zero byte"};
  const int fd = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return unreadable(path, errno == ENOENT ? "no such file" : "cannot be opened: " + reason(errno));
  auto source = std::make_unique<FileBytes>(fd, path);
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode))
    return unreadable(path, "is a directory, not a trace");
  return Result<std::unique_ptr<ByteSource>>(std::move(source));
}

std::unique_ptr<ByteSource> memory_bytes(std::string_view bytes) {
  return std::make_unique<MemoryBytes>(bytes);
}

}  // namespace ingot
