// SPDX-License-Identifier: Apache-2.0
#include "jit/cubin_file.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/hash.h"

namespace ingot::jit {

namespace {

using Json = nlohmann::ordered_json;

struct Trailer {
  std::uint64_t code_bytes = 0, json_bytes = 0;
  Hash128 checksum;  // of everything before it
  std::array<char, 16> mark{};
};
constexpr std::array<char, 16> mark{'I', 'n', 'g', 'o', 't', ' ', 'k',  'e',
                                    'r', 'n', 'e', 'l', ' ', '1', '\n', '\0'};
constexpr std::size_t checked_of_trailer = 2 * sizeof(std::uint64_t);
static_assert(sizeof(Trailer) == 48);

}  // namespace

std::string to_bytes(const CubinFile& file) {
  const Json known{{"key", file.key},
                   {"name", file.name},
                   {"target", file.target},
                   {"compiler", file.compiler},
                   {"registers", file.cubin.registers},
                   {"local_bytes", file.cubin.local_bytes},
                   {"remarks", file.cubin.remarks}};
  const std::string json = known.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  Trailer trailer{
      .code_bytes = file.cubin.image.size(), .json_bytes = json.size(), .checksum = {}, .mark = mark};
  std::string bytes(file.cubin.image.data(), file.cubin.image.size());
  bytes += json;
  bytes.append(reinterpret_cast<const char*>(&trailer), checked_of_trailer);
  trailer.checksum = hash_of(bytes);
  bytes.append(reinterpret_cast<const char*>(&trailer) + checked_of_trailer,
               sizeof(Trailer) - checked_of_trailer);
  return bytes;
}

std::optional<CubinFile> from_bytes(std::string_view bytes, std::string_view key) {
  Trailer trailer;
  if (bytes.size() < sizeof trailer) return std::nullopt;
  const std::size_t before = bytes.size() - sizeof trailer;
  std::memcpy(&trailer, bytes.data() + before, sizeof trailer);
  if (trailer.mark != mark || trailer.code_bytes > before ||
      trailer.json_bytes != before - trailer.code_bytes ||
      trailer.checksum != hash_of(bytes.substr(0, before + checked_of_trailer))) {
    return std::nullopt;
  }
  const Json known = Json::parse(bytes.substr(trailer.code_bytes, trailer.json_bytes), nullptr, false);
  if (!known.is_object()) return std::nullopt;
  try {
    CubinFile file{known.at("key").get<std::string>(),
                   known.at("name").get<std::string>(),
                   known.at("target").get<std::string>(),
                   known.at("compiler").get<std::string>(),
                   {.image = {},
                    .registers = known.at("registers").get<int>(),
                    .local_bytes = known.at("local_bytes").get<int>(),
                    .remarks = known.at("remarks").get<std::string>()}};
    if (file.key != key) return std::nullopt;
    file.cubin.image.assign(bytes.data(), bytes.data() + trailer.code_bytes);
    return file;
  } catch (const Json::exception&) {
    return std::nullopt;  // a member is missing or of another type
  }
}

}  // namespace ingot::jit
