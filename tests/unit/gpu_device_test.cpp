// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fake/gpu_driver.h"
#include "gpu/device.h"

namespace ingot {
namespace {

using test::FakeGpu;

base::Environment driver_at(const char* file) {
  base::Environment environment;
  environment.ingot_driver = file;
  return environment;
}

TEST(GpuDriver, NoLibrary) {
  const auto driver = gpu::open_driver(driver_at("/no/such/libcuda.so.1"));
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::unsupported);
  EXPECT_NE(driver.error().message.find("/no/such/libcuda.so.1"), std::string::npos);
  EXPECT_NE(driver.error().message.find("install"), std::string::npos);
}

TEST(GpuDriver, LibraryWithoutTheDriversFunctions) {
  const auto driver = gpu::open_driver(driver_at("libm.so.6"));
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::unsupported);
  EXPECT_NE(driver.error().message.find("without cuInit"), std::string::npos) << driver.error().message;
}

TEST(GpuDriver, Errors) {
  const FakeGpu fake;
  const Error fault = gpu::driver_error(*fake.driver(), 700, "cuLaunchKernelEx");
  EXPECT_EQ(fault.code, ErrorCode::device);
  EXPECT_TRUE(fault.message.starts_with(
      "cuLaunchKernelEx: CUDA_ERROR_ILLEGAL_ADDRESS (700), an illegal memory access was encountered"));
  EXPECT_NE(fault.message.find("earlier has failed"), std::string::npos);
  EXPECT_EQ(gpu::driver_error(*fake.driver(), 2, "cuMemAlloc").code, ErrorCode::out_of_memory);
  EXPECT_EQ(gpu::driver_error(*fake.driver(), 1, "cuMemAlloc").message.find("earlier"), std::string::npos);
}

TEST(GpuDevice, Description) {
  const FakeGpu fake;
  const auto device = gpu::Device::open(fake.driver(), 1).value();
  const DeviceDescription& description = device->description();
  EXPECT_EQ(description.kind, DeviceKind::cuda);
  EXPECT_EQ(description.name, "Fake GPU");
  EXPECT_EQ(description.gpu.major, 9);
  EXPECT_EQ(description.gpu.multiprocessors, 132);
  EXPECT_EQ(description.gpu.shared_bytes, 232448);
  EXPECT_EQ(description.gpu.memory_bytes, std::uint64_t{140} << 30U);
  // An H200: 989 TFLOP/s by its data sheet at 1830 MHz, 793 measured in a large product; 4.8 TB/s, of which a
  // copy reaches nine tenths.
  EXPECT_GT(description.gpu.tensor_flops_per_s, 793e12);
  EXPECT_LT(description.gpu.tensor_flops_per_s, 989e12);
  EXPECT_NEAR(description.gpu.memory_bytes_per_s, 4.3e12, 0.2e12);
  EXPECT_EQ(device->target(), (jit::Target{9, 0, true}));
  EXPECT_TRUE(validate(description));
}

TEST(GpuDevice, KnownCardsHaveTheirDataSheets) {
  // Half of an H200's multiprocessors: half of 989.4 TFLOP/s, of which good kernels sustain 0.8.
  const FakeGpu fake({.name = "NVIDIA H200", .multiprocessors = 66});
  const auto device = gpu::Device::open(fake.driver(), 0).value();
  EXPECT_EQ(device->description().source, "data sheet");
  EXPECT_NEAR(device->description().gpu.tensor_flops_per_s, 0.5 * 0.8 * 989.4e12, 1e9);
  EXPECT_NEAR(device->description().gpu.memory_bytes_per_s, 0.5 * 0.9 * 4.8e12, 1e9);
  EXPECT_EQ(device->description().gpu.multiprocessors, 66);
}

TEST(GpuDevice, RatesWithoutClocks) {
  for (const int major : {8, 9, 10, 12}) {
    const GpuDescription gpu = gpu::estimate_gpu({.major = major, .multiprocessors = 100});
    EXPECT_GT(gpu.tensor_flops_per_s, 1e13) << major;
    EXPECT_GT(gpu.f32_flops_per_s, 1e12) << major;
    EXPECT_GT(gpu.memory_bytes_per_s, 1e11) << major;
  }
}

TEST(GpuDevice, RefusesWhatIsNotThere) {
  const FakeGpu fake({.devices = 1});
  for (const int ordinal : {-1, 1}) {
    const auto device = gpu::Device::open(fake.driver(), ordinal);
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(device.error().message.find("1 GPU"), std::string::npos);
  }
  EXPECT_EQ(fake.alive(), 0);
}

TEST(GpuDevice, RefusesOldOnes) {
  const FakeGpu fake({.major = 7, .minor = 5});
  const auto device = gpu::Device::open(fake.driver(), 0);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::unsupported);
  EXPECT_NE(device.error().message.find("7.5"), std::string::npos);
  EXPECT_EQ(fake.alive(), 0);
}

TEST(GpuDevice, KeepsItsContext) {
  const FakeGpu fake;
  {
    const auto device = gpu::Device::open(fake.driver(), 0).value();
    EXPECT_EQ(fake.alive(), 1);
    EXPECT_EQ(FakeGpu::current(), nullptr);
  }
  EXPECT_EQ(fake.alive(), 0);
}

TEST(GpuDevice, CurrentContextIsGivenBack) {
  const FakeGpu fake;
  const auto device = gpu::Device::open(fake.driver(), 0).value();
  const gpu::CuContext other = FakeGpu::context_of(1);
  FakeGpu::set_current(other);
  {
    const gpu::CurrentContext outer(*device);
    EXPECT_TRUE(outer.ready());
    EXPECT_EQ(FakeGpu::current(), device->context());
    const gpu::CurrentContext inner(*device);
    EXPECT_TRUE(inner.ready());
  }
  EXPECT_EQ(FakeGpu::current(), other);
  FakeGpu::set_current(nullptr);
}

TEST(GpuDevice, Pointers) {
  const FakeGpu fake;
  const auto device = gpu::Device::open(fake.driver(), 0).value();
  int host = 0;
  EXPECT_TRUE(device->check_pointer("x", FakeGpu::memory(0)));
  const auto on_host = device->check_pointer("x", &host);
  ASSERT_FALSE(on_host);
  EXPECT_EQ(on_host.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(on_host.error().message, "x: host memory, give memory of device 0");
  const auto elsewhere = device->check_pointer("x", FakeGpu::memory(0, 1));
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().message, "x: memory of device 1, give memory of device 0");
}

TEST(GpuDevice, IsDescribedWithoutAContext) {
  const FakeGpu fake;
  EXPECT_EQ(gpu::describe(*fake.driver(), 1).value().name, "Fake GPU");
  EXPECT_FALSE(gpu::describe(*fake.driver(), 2));
  EXPECT_EQ(fake.alive(), 0);
}

TEST(GpuMemory, IsFreed) {
  const FakeGpu fake;
  {
    const auto device = gpu::Device::open(fake.driver(), 0).value();
    auto memory = gpu::DeviceMemory::zeros(device, 100).value();
    EXPECT_EQ(memory.bytes(), 100U);
    gpu::DeviceMemory other = std::move(memory);
    memory = std::move(other);
    EXPECT_EQ(fake.alive(), 2);
  }
  EXPECT_EQ(fake.alive(), 0);
}

}  // namespace
}  // namespace ingot
