// SPDX-License-Identifier: Apache-2.0
//
// A library with NVRTC's interface that compiles nothing: the code it returns is the text. Built as versions
// 13.9 and 12.4.
#include <cstring>
#include <string>

namespace {

struct Program {
  std::string text, log;
};
constexpr int out_of_memory = 1, compilation_failed = 6, builtins_failed = 7;

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = INGOT_FAKE_MAJOR;
  *minor = INGOT_FAKE_MINOR;
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 3;
  return 0;
}
int nvrtcGetSupportedArchs(int* archs) {
  archs[0] = 80;
  archs[1] = 90;
  archs[2] = 120;
  return 0;
}
const char* nvrtcGetErrorString(int) {
  return "NVRTC_ERROR_MADE_UP";
}
int nvrtcCreateProgram(Program** program, const char* text, const char* name, int headers,
                       const char* const* texts, const char* const* names) {
  *program = new Program{text, {}};
  (*program)->text += std::string("|") + name;
  for (int i = 0; i < headers; ++i) (*program)->text += std::string("|") + names[i] + "=" + texts[i];
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  const auto has = [&](const char* word) { return program->text.find(word) != std::string::npos; };
  if (has("memory")) return out_of_memory;
  if (has("builtins")) return builtins_failed;
  if (has("strange")) return 99;
  if (has("wrong")) {
    program->log =
        "a.cuh(3): warning #1: odd\na.cuh(7): error: identifier \"wrong\"\n   is undefined\n\n1 error\n";
    return compilation_failed;
  }
  for (int i = 0; i < count; ++i) program->text += std::string("|") + options[i];
  // "cached": as NVRTC from 13.0 on, which has no log of what it finds in a cache of its own.
  if (!has("silent") && (!has("cached") || has("|--no-cache"))) {
    program->log =
        "ptxas info    : Compiling entry function 'ingot_kernel' for 'sm_90a'\n"
        "ptxas info    : Function properties for ingot_kernel\n"
        "    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 97 registers, used 1 barriers\n";
  }
  return 0;
}
int nvrtcGetProgramLogSize(Program* program, std::size_t* size) {
  *size = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
int nvrtcGetCUBINSize(Program* program, std::size_t* size) {
  *size = program->text.size();
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* code) {
  std::memcpy(code, program->text.data(), program->text.size());
  return 0;
}

}  // extern "C"
