// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvrtc.h"

#include <gtest/gtest.h>

#include "fake/compiler.h"
#include "gpu/nvrtc_log.h"

namespace ingot::gpu {
namespace {

namespace fs = std::filesystem;

const jit::SourceFile sources[] = {
    {"a.cuh", "int a;"}, {"b.cuh", "#include \"a.cuh\"\n"}, {"c.cuh", "int c;"}};

/// A folder tree with copies of the stand-in library.
class NvrtcTest : public testing::Test {
 protected:
  void put(const std::string& relative, const char* library = INGOT_FAKE_NVRTC) const {
    fs::create_directories((folder.path() / relative).parent_path());
    fs::copy_file(library, folder.path() / relative);
  }
  std::string path(const std::string& relative) const { return (folder.path() / relative).string(); }
  Result<std::shared_ptr<const Nvrtc>> open(const std::string& place) const {
    base::Environment environment;
    environment.ingot_nvrtc = path(place);
    return open_nvrtc(environment, sources);
  }
  void expect_error(const Result<std::shared_ptr<const Nvrtc>>& opened,
                    const std::vector<std::string>& words) const {
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::unsupported);
    EXPECT_EQ(opened.error().message.find('\n'), std::string::npos);
    for (const std::string& word : words)
      EXPECT_NE(opened.error().message.find(word), std::string::npos) << opened.error().message;
  }

  test::TemporaryFolder folder;
};

TEST_F(NvrtcTest, SearchedInOrder) {
  const std::string packages = "venv/lib/python3.12/site-packages/nvidia/";
  put(packages + "cuda_nvrtc/lib/libnvrtc.so.12");
  put(packages + "cu13/lib/libnvrtc.so.13");
  put("home/lib64/libnvrtc.so.13");
  put("usr/local/cuda-12.9/lib64/libnvrtc.so.12");
  put("usr/local/cuda-13.0/lib64/libnvrtc.so.13");
  put("usr/local/other/lib64/libnvrtc.so.13");
  base::Environment environment;
  EXPECT_EQ(nvrtc_candidates(environment, folder.path()),
            (std::vector<std::string>{"libnvrtc.so.13", "libnvrtc.so.12",
                                      path("usr/local/cuda-13.0/lib64/libnvrtc.so.13"),
                                      path("usr/local/cuda-12.9/lib64/libnvrtc.so.12")}));
  environment.virtual_env = path("venv");
  environment.cuda_home = path("home");
  const auto all = nvrtc_candidates(environment, folder.path());
  ASSERT_EQ(all.size(), 7U);
  EXPECT_EQ(all[0], path(packages + "cu13/lib/libnvrtc.so.13"));
  EXPECT_EQ(all[1], path(packages + "cuda_nvrtc/lib/libnvrtc.so.12"));
  EXPECT_EQ(all[2], path("home/lib64/libnvrtc.so.13"));
  EXPECT_EQ(all[3], "libnvrtc.so.13");
  environment.ingot_nvrtc = path("home/lib64");
  EXPECT_EQ(nvrtc_candidates(environment, folder.path()),
            (std::vector<std::string>{path("home/lib64/libnvrtc.so.13")}))
      << "what is named is the only one";
  environment.ingot_nvrtc = path("some/file.so");
  EXPECT_EQ(nvrtc_candidates(environment), (std::vector<std::string>{path("some/file.so")}));
}

TEST_F(NvrtcTest, OpensFromAPythonEnvironment) {
  const std::string lib = "venv/lib/python3.11/site-packages/nvidia/cu13/lib/";
  put(lib + "libnvrtc.so.13");
  put(lib + "libnvrtc-builtins.so.13.9");
  base::Environment environment;
  environment.virtual_env = path("venv");
  const auto opened = open_nvrtc(environment, sources);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->file(), path(lib + "libnvrtc.so.13"));
  EXPECT_EQ((*opened)->version(), (NvrtcVersion{13, 9}));
  // Another build of the same version is another compiler.
  EXPECT_EQ((*opened)->identity(), "NVRTC 13.9 (" + std::to_string(fs::file_size(INGOT_FAKE_NVRTC)) +
                                       " bytes) -std=c++17 -default-device --ptxas-options=-v");
}

TEST_F(NvrtcTest, SaysWhatIsWrongAndWhatToDo) {
  expect_error(open("missing"), {"INGOT_NVRTC", "missing", "12.8 or newer", "pip install nvidia-cuda-nvrtc"});
  fs::create_directories(folder.path() / "empty");
  expect_error(open("empty"), {"INGOT_NVRTC", "empty holds no libnvrtc.so.13 or .12"});
  put("old/libnvrtc.so.12", INGOT_OLD_NVRTC);
  put("old/libnvrtc-builtins.so.12.4");
  expect_error(open("old"), {"libnvrtc.so.12 is version 12.4, which is too old", "pip install"});
  put("alone/libnvrtc.so.13");
  expect_error(open("alone"), {"alone/libnvrtc.so.13 has no libnvrtc-builtins.so.13.9 beside it"});
}

TEST_F(NvrtcTest, Compiles) {
  put("good/libnvrtc.so.13");
  put("good/libnvrtc-builtins.so.13.9");
  const auto compiler = open("good");
  ASSERT_TRUE(compiler) << compiler.error().message;
  jit::KernelText kernel{.name = "some", .text = "#include \"b.cuh\"\nint x;", .target = {9, 0, true}};
  const auto cubin = (*compiler)->compile(kernel);
  ASSERT_TRUE(cubin);
  EXPECT_EQ(std::string(cubin->image.begin(), cubin->image.end()),
            "#include \"b.cuh\"\nint x;|some.cu|a.cuh=int a;|b.cuh=#include \"a.cuh\"\n"
            "|--gpu-architecture=sm_90a|-std=c++17|-default-device|--ptxas-options=-v");
  EXPECT_EQ(cubin->registers, 97);
  EXPECT_EQ(cubin->local_bytes, 8);
  EXPECT_EQ(cubin->remarks, "");

  const auto expect_failure = [&](const char* text, ErrorCode code, const std::string& message) {
    kernel.text = text;
    const auto failed = (*compiler)->compile(kernel);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, code);
    EXPECT_TRUE(failed.error().message.starts_with(message)) << failed.error().message;
  };
  expect_failure("wrong", ErrorCode::device,
                 "some does not compile for sm_90a: a.cuh(7): error: identifier \"wrong\"");
  expect_failure("memory", ErrorCode::out_of_memory, "some: not enough memory to compile");
  expect_failure("builtins", ErrorCode::unsupported,
                 (*compiler)->file() + " cannot open its libnvrtc-builtins.so.13.9");
  expect_failure("strange", ErrorCode::device, "some: nvrtcCompileProgram: NVRTC_ERROR_MADE_UP");
  expect_failure("silent", ErrorCode::device, "some: NVRTC 13.9 does not say what the kernel uses");
  kernel.text = "cached";
  const auto again = (*compiler)->compile(kernel);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->registers, 97);
  kernel.target = {13, 0, false};
  expect_failure("", ErrorCode::unsupported,
                 "NVRTC 13.9 (" + (*compiler)->file() + ") does not compile for sm_130");
}

TEST(NvrtcLog, Resources) {
  const char* log =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized\n"
      "x.cu(3): warning #177-D: variable was declared\n"
      "ptxas info    : Compiling entry function 'other' for 'sm_90a'\n"
      "ptxas info    : Function properties for other\n"
      "    512 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 9 barriers, 512 bytes cumulative stack size\n"
      "ptxas info    : Compiling entry function 'ingot_kernel' for 'sm_90a'\n"
      "ptxas info    : Function properties for ingot_kernel\n"
      "    0 bytes stack frame, 24 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 2 barriers\n";
  const auto resources = parse_resources(log, "ingot_kernel");
  ASSERT_TRUE(resources);
  EXPECT_EQ(resources->registers, 168);
  EXPECT_EQ(resources->local_bytes, 24);
  EXPECT_EQ(resources->remarks,
            "ptxas info : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized; "
            "x.cu(3): warning #177-D: variable was declared");
  EXPECT_FALSE(parse_resources(log, "third"));
  EXPECT_FALSE(parse_resources("", "ingot_kernel"));
}

TEST(NvrtcLog, FirstError) {
  EXPECT_EQ(first_error("a(1): warning: w\nb(2):   error: e\n  more\nc(3): error: f\n"), "b(2): error: e");
  EXPECT_EQ(first_error("\nnvrtc: something\r\n"), "nvrtc: something");
  EXPECT_EQ(first_error(""), "the compiler gives no reason");
}

TEST(NvrtcLog, TargetsACompilerServes) {
  constexpr int supported[] = {80, 86, 89, 90, 100, 120};
  const auto target = [&](int major, int minor, bool chip_specific) {
    const auto found = compiled_target({major, minor, chip_specific}, supported);
    return found ? jit::to_string(*found) : "none";
  };
  EXPECT_EQ(target(8, 6, false), "sm_86");
  EXPECT_EQ(target(8, 7, false), "sm_86") << "code of a lower minor number runs";
  EXPECT_EQ(target(9, 0, true), "sm_90a");
  EXPECT_EQ(target(12, 1, false), "sm_120");
  EXPECT_EQ(target(10, 3, true), "none") << "chip-specific code does not";
  EXPECT_EQ(target(11, 0, false), "none");
  EXPECT_EQ(jit::to_string(*compiled_target({11, 0, false}, {})), "sm_110")
      << "a compiler that does not tell";
}

}  // namespace
}  // namespace ingot::gpu
