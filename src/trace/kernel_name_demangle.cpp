// SPDX-License-Identifier: Apache-2.0
#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <memory>

#include "ingot/kernel_name.h"

namespace ingot::trace {
namespace {

// A back reference repeats any part of the text before it, so a short hostile name could demangle to
// gigabytes. This bounds the growth: a part is at most all the text before its first use ("S4_" is the same
// part every time), and the text only grows by such parts. Template parameters ("T_") may mean something else
// each time.
bool demangles_small(std::string_view mangled) {
  constexpr std::size_t kMaxGrown = 2'000'000;
  std::map<std::string_view, std::size_t> parts;
  std::size_t grown = mangled.size();
  for (std::size_t i = 0; i < mangled.size(); ++i) {
    if (mangled[i] != 'S' && mangled[i] != 'T') continue;
    std::size_t end = i + 1;
    while (end < mangled.size() &&
           ((mangled[end] >= '0' && mangled[end] <= '9') || (mangled[end] >= 'A' && mangled[end] <= 'Z'))) {
      ++end;
    }
    if (end == mangled.size() || mangled[end] != '_') continue;
    const std::string_view reference = mangled.substr(i, end - i);
    grown += reference[0] == 'T' ? grown : parts.emplace(reference, grown).first->second;
    if (grown > kMaxGrown) return false;
  }
  return true;
}

// The demangler of GCC 12 reads the newer codes for 16-bit floats as something else, so they are swapped for
// codes that it knows: _Float16 for half, and decimal64, which no kernel has, for __bf16.
std::string with_old_type_codes(std::string_view mangled) {
  std::string out;
  out.reserve(mangled.size());
  for (std::size_t i = 0; i < mangled.size();) {
    if (mangled.substr(i).starts_with("DF16b")) {
      out += "Dd";
      i += 5;
    } else if (mangled.substr(i).starts_with("DF16_")) {
      out += "Dh";
      i += 5;
    } else {
      out += mangled[i++];
    }
  }
  return out;
}

}  // namespace

std::string demangle(std::string_view name) {
  constexpr std::size_t kMaxMangled = 4096;
  // ROCm appends ".kd" to a kernel's descriptor and "[clone .kd]" once demangled.
  if (name.ends_with(".kd")) name.remove_suffix(3);
  if (name.ends_with(" [clone .kd]")) name.remove_suffix(12);
  if (!name.starts_with("_Z") || name.size() > kMaxMangled || !demangles_small(name))
    return std::string(name);
  if (name.find('\0') != std::string_view::npos) return std::string(name);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(with_old_type_codes(name).c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || text == nullptr) return std::string(name);
  std::string out(text.get());
  for (std::size_t at = 0; (at = out.find("decimal64", at)) != std::string::npos;)
    out.replace(at, 9, "__bf16");
  return out;
}

}  // namespace ingot::trace
