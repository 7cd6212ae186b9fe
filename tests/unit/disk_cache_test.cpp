// SPDX-License-Identifier: Apache-2.0
#include "jit/disk_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>

#include "fake/compiler.h"
#include "golden_file.h"
#include "jit/store.h"

namespace ingot::jit {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using test::fake_kernel;
using test::FakeCompiler;
using Origin = CachedKernelStore::Origin;

const SourceFile sources[] = {
    {"a.cuh", "int a;"}, {"b.cuh", "#include \"a.cuh\"\n"}, {"other.cuh", "int o;"}};

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}
void expect_same(const Cubin& cubin, const KernelText& kernel) {
  const Cubin expected = FakeCompiler::code_of(kernel);
  EXPECT_EQ(cubin.image, expected.image);
  EXPECT_EQ(cubin.registers, expected.registers);
  EXPECT_EQ(cubin.local_bytes, expected.local_bytes);
  EXPECT_EQ(cubin.remarks, expected.remarks);
}

class DiskCacheTest : public testing::Test {
 protected:
  CacheKey key(int number) const { return cache_key(compiler->name, fake_kernel(number), sources); }
  fs::path file(int number, const char* suffix) const {
    return fs::path(cache.folder()) / (to_string(key(number)) + suffix);
  }
  void store(const DiskCache& where, int number) const {
    const KernelText kernel = fake_kernel(number);
    const auto done = where.store(key(number), kernel, compiler->name, FakeCompiler::code_of(kernel));
    ASSERT_TRUE(done) << done.error().message;
  }
  /// As a new process would: nothing in memory.
  CachedKernelStore::Found find(int number, std::optional<DiskCache> where) const {
    auto found = CachedKernelStore(compiler, std::move(where), sources).find(fake_kernel(number));
    EXPECT_TRUE(found);
    return found ? *found : CachedKernelStore::Found{};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(cache.folder()), fs::directory_iterator()));
  }

  test::TemporaryFolder folder;
  DiskCache cache{(folder.path() / "deep" / "kernels").string()};
  std::shared_ptr<FakeCompiler> compiler = std::make_shared<FakeCompiler>();
};

TEST_F(DiskCacheTest, KeepsKernelsForTheNextProcess) {
  EXPECT_FALSE(cache.load(key(1)));
  EXPECT_EQ(find(1, cache).origin, Origin::compiled);
  const auto again = find(1, cache);
  EXPECT_EQ(again.origin, Origin::disk);
  expect_same(*again.cubin, fake_kernel(1));
  EXPECT_EQ(compiler->compiled, 1);
  EXPECT_EQ(test::read_all(file(1, ".cu")), fake_kernel(1).text) << "the source lies beside it";
  EXPECT_EQ(files(), 2U) << "nothing unfinished stays";
  // The vendor's tools read the file: the code comes first.
  EXPECT_TRUE(test::read_all(file(1, ".cubin"))
                  ->starts_with("\x7f"
                                "ELF of sm_90a"));
}

TEST_F(DiskCacheTest, KeyHoldsAllThatShapesTheCode) {
  const KernelText kernel = fake_kernel(1);
  const CacheKey plain = cache_key("X 1", kernel, sources);
  EXPECT_EQ(cache_key("X 1", kernel, sources), plain);
  EXPECT_NE(cache_key("X 2", kernel, sources), plain) << "compiler and options";
  KernelText other = kernel;
  other.target = {9, 0, false};
  EXPECT_NE(cache_key("X 1", other, sources), plain) << "target";
  other = kernel;
  other.text += "\n";
  EXPECT_NE(cache_key("X 1", other, sources), plain) << "text";
  other = kernel;
  other.name = "another name";
  EXPECT_EQ(cache_key("X 1", other, sources), plain) << "a name is for people";
  const SourceFile changed[] = {{"a.cuh", "int A;"}, sources[1], sources[2]};
  EXPECT_NE(cache_key("X 1", kernel, changed), plain) << "a file that is included by an included one";
  const SourceFile unrelated[] = {sources[0], sources[1], {"other.cuh", "int p;"}};
  EXPECT_EQ(cache_key("X 1", kernel, unrelated), plain) << "a file that is not included";
  // Fields do not run into each other.
  other = kernel;
  other.text = "b";
  const CacheKey ab = cache_key("a", other, {});
  other.text = "";
  EXPECT_NE(cache_key("ab", other, {}), ab);
}

TEST_F(DiskCacheTest, DamagedFilesAreMadeAnew) {
  store(cache, 1);
  store(cache, 2);
  const std::string whole = *test::read_all(file(1, ".cubin"));
  std::vector<std::string> damaged{"",
                                   "x",
                                   whole + "x",
                                   std::string(whole.size(), '\0'),
                                   whole.substr(1),
                                   *test::read_all(file(2, ".cubin"))};
  for (std::size_t length = 1; length < whole.size(); length += 13)
    damaged.push_back(whole.substr(0, length));
  for (std::size_t at = 0; at < whole.size(); at += 3) {
    damaged.push_back(whole);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 0x20);
  }
  for (const std::string& bytes : damaged) {
    write(file(1, ".cubin"), bytes);
    ASSERT_FALSE(cache.load(key(1))) << bytes.size();
  }
  const auto rebuilt = find(1, cache);
  EXPECT_EQ(rebuilt.origin, Origin::compiled);
  expect_same(*rebuilt.cubin, fake_kernel(1));
  EXPECT_EQ(test::read_all(file(1, ".cubin")), whole);
  EXPECT_EQ(find(1, cache).origin, Origin::disk);
}

TEST_F(DiskCacheTest, AFolderThatCannotBeMadeCostsOnlyTime) {
  write(folder.path() / "deep", "a file in the place of the folder");
  for (const std::string& where : {cache.folder(), std::string("/proc/no/folder/here")}) {
    const auto found = find(1, DiskCache(where));
    EXPECT_EQ(found.origin, Origin::compiled);
    EXPECT_NE(found.not_kept.find("cannot write"), std::string::npos) << found.not_kept;
    expect_same(*found.cubin, fake_kernel(1));
    EXPECT_TRUE(DiskCache(where).list().empty());
    EXPECT_TRUE(DiskCache(where).clear());
  }
  EXPECT_FALSE(find(1, std::nullopt).not_kept.empty());
}

TEST_F(DiskCacheTest, AFolderOfAnotherUserIsReadAllTheSame) {
  store(cache, 1);
  chmod(folder.path().c_str(), 0755);
  chmod(cache.folder().c_str(), 0555);
  // A child gives up the rights that root has; what it finds comes back as its exit status.
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0)) _exit(9);
    const auto kept = CachedKernelStore(compiler, cache, sources).find(fake_kernel(1));
    const auto made = CachedKernelStore(compiler, cache, sources).find(fake_kernel(2));
    const bool right = kept && kept->origin == Origin::disk && made && made->origin == Origin::compiled &&
                       !made->not_kept.empty() && !cache.clear();
    _exit(right ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  chmod(cache.folder().c_str(), 0755);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  EXPECT_TRUE(cache.load(key(1)));
}

TEST_F(DiskCacheTest, LeastRecentlyUsedGoFirst) {
  store(cache, 1);
  const std::uint64_t each = cache.list().at(0).bytes;  // the names are of one length
  const DiskCache small(cache.folder(), 3 * each + each / 2);
  for (const int number : {2, 3}) store(small, number);
  EXPECT_EQ(cache.list().size(), 3U);
  const auto now = fs::file_time_type::clock::now();
  for (const int number : {1, 2, 3}) {
    for (const char* suffix : {".cubin", ".cu"})
      fs::last_write_time(file(number, suffix), now - hours(10 - number));
  }
  EXPECT_TRUE(small.load(key(1)));  // used again: now the youngest
  store(small, 4);
  EXPECT_FALSE(small.load(key(2)));
  EXPECT_FALSE(fs::exists(file(2, ".cu"))) << "its text goes with it";
  for (const int number : {1, 3, 4}) EXPECT_TRUE(small.load(key(number))) << number;
}

TEST_F(DiskCacheTest, UnfinishedWritesAreSweptUpWhenOld) {
  store(cache, 1);
  const fs::path old = file(2, ".cubin.77.0.part"), fresh = file(3, ".cubin.78.0.part");
  write(old, "half");
  write(fresh, "half");
  fs::last_write_time(old, fs::file_time_type::clock::now() - hours(2));
  store(cache, 4);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh)) << "another process may be at it";
  EXPECT_EQ(cache.list().size(), 2U) << "neither is a kernel";
}

TEST_F(DiskCacheTest, ListsAndClearsKernelsAndNothingElse) {
  store(cache, 2);
  store(cache, 1);
  const fs::path foreign = fs::path(cache.folder()) / "notes.txt";
  write(foreign, "mine");
  ASSERT_TRUE(cache.store_text(key(3), fake_kernel(3)));
  write(file(2, ".cubin"), "damage");
  const auto list = cache.list();
  ASSERT_EQ(list.size(), 3U);
  EXPECT_TRUE(list[0].damaged);  // no name sorts first
  EXPECT_TRUE(list[1].damaged);
  EXPECT_EQ(list[2].name, "kernel_1");
  EXPECT_EQ(list[2].target, "sm_90a");
  EXPECT_EQ(list[2].compiler, compiler->name);
  EXPECT_EQ(list[2].registers, 168);
  EXPECT_EQ(list[2].key, to_string(key(1)));
  EXPECT_EQ(list[2].bytes, fs::file_size(file(1, ".cubin")) + fs::file_size(file(1, ".cu")));
  EXPECT_LT(std::abs(list[2].last_used - std::time(nullptr)), 60);
  const auto cleared = cache.clear();
  ASSERT_TRUE(cleared);
  EXPECT_EQ(cleared->kernels, 2);
  EXPECT_TRUE(cache.list().empty());
  EXPECT_TRUE(fs::exists(foreign));
}

TEST_F(DiskCacheTest, ProcessesWriteOneFolderAtOnce) {
  constexpr int processes = 4, kernels = 20;
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    bool right = true;
    for (int number = 0; number < kernels; ++number) {
      const auto found = CachedKernelStore(compiler, cache, sources).find(fake_kernel(number));
      right = right && found && found->not_kept.empty() &&
              found->cubin->image == FakeCompiler::code_of(fake_kernel(number)).image;
    }
    _exit(right ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  }
  EXPECT_EQ(files(), 2U * kernels) << "whole files and no others";
  for (int number = 0; number < kernels; ++number) EXPECT_TRUE(cache.load(key(number))) << number;
}

TEST_F(DiskCacheTest, StoreRemembersKernelsNotErrors) {
  CachedKernelStore store(compiler, cache, sources);
  compiler->fails = true;
  for (int attempt = 1; attempt <= 2; ++attempt) {
    const auto failed = store.get(fake_kernel(1));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message,
              "kernel_1 does not compile: no such thing; its text is " + file(1, ".cu").string());
    EXPECT_EQ(compiler->compiled, attempt) << "tried anew each time";
  }
  EXPECT_EQ(test::read_all(file(1, ".cu")), fake_kernel(1).text);
  compiler->fails = false;
  const auto first = store.get(fake_kernel(1)), second = store.get(fake_kernel(1));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second) << "one object";
  EXPECT_EQ(compiler->compiled, 3);
  KernelText other_target = fake_kernel(1);
  other_target.target = {12, 0, false};
  ASSERT_TRUE(store.get(other_target));
  EXPECT_EQ(compiler->compiled, 4);
}

TEST(KernelCache, LiesInTheCacheFolder) {
  base::Environment environment;
  EXPECT_FALSE(kernel_cache(environment));
  environment.ingot_cache = "/somewhere";
  EXPECT_EQ(kernel_cache(environment)->folder(), "/somewhere/kernels");
  EXPECT_EQ(kernel_cache(environment)->limit_bytes(), 512U << 20U);
}

}  // namespace
}  // namespace ingot::jit
