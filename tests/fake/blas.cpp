// SPDX-License-Identifier: Apache-2.0
#include "fake/blas.h"

#include <algorithm>
#include <cstring>

namespace ingot::test {

namespace {

FakeBlas* instance = nullptr;

struct Description {
  int compute = 0, transpose_a = 0, epilogue = 1;
  const void* bias = nullptr;
};
struct Layout {
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t stride = 0;
};

}  // namespace

struct BlasCalls {
  static int outcome() {
    if (instance->fail_at > 0 && --instance->fail_at == 0) return instance->fail_with;
    return 0;
  }
  template <class Handle, class T>
  static int make(Handle* handle, T value) {
    if (const int status = outcome(); status != 0) return status;
    *handle = reinterpret_cast<Handle>(new T(value));
    ++instance->alive;
    return 0;
  }
  template <class T, class Handle>
  static int destroy(Handle handle) {
    delete reinterpret_cast<T*>(handle);
    --instance->alive;
    return 0;
  }
  static std::size_t version() { return instance->version; }
  static int create(gpu::BlasHandle* handle) { return make(handle, 0); }
  static int destroy_handle(gpu::BlasHandle handle) { return destroy<int>(handle); }
  static int describe(gpu::BlasDescription* description, int compute, int) {
    return make(description, Description{.compute = compute});
  }
  static int set_attribute(gpu::BlasDescription description, int attribute, const void* value,
                           std::size_t bytes) {
    auto& d = *reinterpret_cast<Description*>(description);
    void* const to = attribute == 3   ? static_cast<void*>(&d.transpose_a)
                     : attribute == 7 ? static_cast<void*>(&d.epilogue)
                     : attribute == 8 ? static_cast<void*>(&d.bias)
                                      : nullptr;
    if (to == nullptr || bytes != (attribute == 8 ? 8 : 4)) return 7;
    std::memcpy(to, value, bytes);
    return outcome();
  }
  static int lay_out(gpu::BlasLayout* layout, int type, std::uint64_t rows, std::uint64_t columns,
                     std::int64_t stride) {
    return make(layout, Layout{type, rows, columns, stride});
  }
  static int prefer(gpu::BlasPreference* preference) { return make(preference, 0); }
  static int set_preference(gpu::BlasPreference, int attribute, const void* value, std::size_t bytes) {
    std::uint64_t number = 0;
    std::memcpy(&number, value, bytes);
    if (attribute == 1 && number != std::uint64_t{32} << 20) return 7;
    if (attribute == 3) instance->reduction = static_cast<std::uint32_t>(number);
    if (attribute == 5) instance->alignments.clear();
    if (attribute >= 5 && attribute <= 8) instance->alignments.push_back(static_cast<std::uint32_t>(number));
    return outcome();
  }
  static int propose(gpu::BlasHandle, gpu::BlasDescription, gpu::BlasLayout, gpu::BlasLayout, gpu::BlasLayout,
                     gpu::BlasLayout, gpu::BlasPreference, int wanted, gpu::BlasHeuristic* results,
                     int* found) {
    *found = std::min<int>(wanted, static_cast<int>(instance->algorithms.size()));
    for (int i = 0; i < *found; ++i)
      results[i].algorithm.words[0] = instance->algorithms[static_cast<std::size_t>(i)];
    return outcome();
  }
  static int multiply(gpu::BlasHandle, gpu::BlasDescription description, const void* alpha, const void* a,
                      gpu::BlasLayout of_a, const void* b, gpu::BlasLayout of_b, const void* beta,
                      const void* c, gpu::BlasLayout, void* d, gpu::BlasLayout of_d,
                      const gpu::BlasAlgorithm* algorithm, void* workspace, std::size_t bytes,
                      gpu::CuStream stream) {
    const auto& op = *reinterpret_cast<const Description*>(description);
    const auto &la = *reinterpret_cast<const Layout*>(of_a), &lb = *reinterpret_cast<const Layout*>(of_b),
               &ld = *reinterpret_cast<const Layout*>(of_d);
    float one = 0, zero = 1;
    std::memcpy(&one, alpha, sizeof one);
    std::memcpy(&zero, beta, sizeof zero);
    // y^T = W x^T: W is stored transposed, x is not.
    if (one != 1 || zero != 0 || c != d || bytes != std::size_t{32} << 20 || la.rows != lb.rows ||
        la.columns != ld.rows || lb.columns != ld.columns || la.type != ld.type || lb.type != ld.type) {
      return 7;
    }
    if (instance->refused.contains(algorithm->words[0])) return 15;
    if (const int status = outcome(); status != 0) return status;
    instance->products.push_back({.rows = ld.rows,
                                  .columns = ld.columns,
                                  .depth = la.rows,
                                  .stride_a = la.stride,
                                  .stride_b = lb.stride,
                                  .stride_d = ld.stride,
                                  .type = ld.type,
                                  .compute = op.compute,
                                  .transpose_a = op.transpose_a,
                                  .epilogue = op.epilogue,
                                  .a = a,
                                  .b = b,
                                  .d = d,
                                  .bias = op.bias,
                                  .workspace = workspace,
                                  .algorithm = algorithm->words[0],
                                  .stream = stream,
                                  .launches_before = instance->gpu_.launches()});
    const auto takes = instance->seconds.find(algorithm->words[0]);
    instance->gpu_.clock_s =
        instance->gpu_.clock_s.load() + (takes == instance->seconds.end() ? 1e-5 : takes->second);
    return 0;
  }
};

FakeBlas::FakeBlas(FakeGpu& gpu) : gpu_(gpu) {
  instance = this;
}
FakeBlas::~FakeBlas() {
  instance = nullptr;
}

gpu::BlasFunctions FakeBlas::functions() const {
  gpu::BlasFunctions f;
  f.cublasLtGetVersion = BlasCalls::version;
  f.cublasLtCreate = BlasCalls::create;
  f.cublasLtDestroy = BlasCalls::destroy_handle;
  f.cublasLtMatmulDescCreate = BlasCalls::describe;
  f.cublasLtMatmulDescDestroy = BlasCalls::destroy<Description, gpu::BlasDescription>;
  f.cublasLtMatmulDescSetAttribute = BlasCalls::set_attribute;
  f.cublasLtMatrixLayoutCreate = BlasCalls::lay_out;
  f.cublasLtMatrixLayoutDestroy = BlasCalls::destroy<Layout, gpu::BlasLayout>;
  f.cublasLtMatmulPreferenceCreate = BlasCalls::prefer;
  f.cublasLtMatmulPreferenceDestroy = BlasCalls::destroy<int, gpu::BlasPreference>;
  f.cublasLtMatmulPreferenceSetAttribute = BlasCalls::set_preference;
  f.cublasLtMatmulAlgoGetHeuristic = BlasCalls::propose;
  f.cublasLtMatmul = BlasCalls::multiply;
  return f;
}

}  // namespace ingot::test
