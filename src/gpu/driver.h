// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver, opened at run time: no header and no library of CUDA is needed to build or to start Ingot.
// Names, numbers and layouts are those of the driver's binary interface (CUDA 12.8 and newer).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/env.h"
#include "ingot/status.h"

namespace ingot::gpu {

using CuResult = int;
using CuDevice = int;
using CuContext = struct CuContextRecord*;
using CuModule = struct CuModuleRecord*;
using CuFunction = struct CuFunctionRecord*;
using CuStream = struct CuStreamRecord*;
using CuEvent = struct CuEventRecord*;
using CuGraph = struct CuGraphRecord*;
using CuGraphExec = struct CuGraphExecRecord*;
using CuAddress = std::uint64_t;  // CUdeviceptr

struct alignas(64) CuTensorMap {
  std::array<std::uint64_t, 16> words{};
};
struct CuLaunchAttribute {
  int id = 0;
  char pad[4] = {};
  union {
    std::uint32_t words[16] = {};
    struct {
      std::uint32_t x, y, z;
    } cluster;
  };
};
struct CuLaunchConfig {
  std::uint32_t grid_x = 1, grid_y = 1, grid_z = 1, block_x = 1, block_y = 1, block_z = 1, shared_bytes = 0;
  CuStream stream = nullptr;
  CuLaunchAttribute* attributes = nullptr;
  std::uint32_t attribute_count = 0;
};

/// The driver's functions that Ingot calls; a test fills in its own.
struct Driver {
  CuResult (*cuInit)(unsigned) = nullptr;
  CuResult (*cuDriverGetVersion)(int*) = nullptr;
  CuResult (*cuGetErrorName)(CuResult, const char**) = nullptr;
  CuResult (*cuGetErrorString)(CuResult, const char**) = nullptr;
  CuResult (*cuDeviceGetCount)(int*) = nullptr;
  CuResult (*cuDeviceGet)(CuDevice*, int) = nullptr;
  CuResult (*cuDeviceGetName)(char*, int, CuDevice) = nullptr;
  CuResult (*cuDeviceGetAttribute)(int*, int, CuDevice) = nullptr;
  CuResult (*cuDeviceTotalMem_v2)(std::size_t*, CuDevice) = nullptr;
  CuResult (*cuDevicePrimaryCtxRetain)(CuContext*, CuDevice) = nullptr;
  CuResult (*cuDevicePrimaryCtxRelease_v2)(CuDevice) = nullptr;
  CuResult (*cuCtxGetCurrent)(CuContext*) = nullptr;
  CuResult (*cuCtxSetCurrent)(CuContext) = nullptr;
  CuResult (*cuCtxSynchronize)() = nullptr;
  CuResult (*cuModuleLoadData)(CuModule*, const void*) = nullptr;
  CuResult (*cuModuleUnload)(CuModule) = nullptr;
  CuResult (*cuModuleGetFunction)(CuFunction*, CuModule, const char*) = nullptr;
  CuResult (*cuFuncSetAttribute)(CuFunction, int, int) = nullptr;
  CuResult (*cuFuncGetAttribute)(int*, int, CuFunction) = nullptr;
  CuResult (*cuOccupancyMaxActiveClusters)(int*, CuFunction, const CuLaunchConfig*) = nullptr;
  CuResult (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int*, CuFunction, int, std::size_t) = nullptr;
  CuResult (*cuLaunchKernelEx)(const CuLaunchConfig*, CuFunction, void**, void**) = nullptr;
  CuResult (*cuTensorMapEncodeTiled)(CuTensorMap*, int type, std::uint32_t rank, void* address,
                                     const std::uint64_t* sizes, const std::uint64_t* strides,
                                     const std::uint32_t* box, const std::uint32_t* element_strides,
                                     int interleave, int swizzle, int l2_promotion, int fill) = nullptr;
  CuResult (*cuPointerGetAttributes)(unsigned count, int* attributes, void** values, CuAddress) = nullptr;
  CuResult (*cuMemGetInfo_v2)(std::size_t* free, std::size_t* total) = nullptr;
  CuResult (*cuMemAlloc_v2)(CuAddress*, std::size_t) = nullptr;
  CuResult (*cuMemFree_v2)(CuAddress) = nullptr;
  CuResult (*cuMemcpyHtoD_v2)(CuAddress, const void*, std::size_t) = nullptr;
  CuResult (*cuMemcpyDtoH_v2)(void*, CuAddress, std::size_t) = nullptr;
  CuResult (*cuMemsetD8_v2)(CuAddress, unsigned char, std::size_t) = nullptr;
  CuResult (*cuMemsetD8Async)(CuAddress, unsigned char, std::size_t, CuStream) = nullptr;
  CuResult (*cuStreamCreate)(CuStream*, unsigned) = nullptr;
  CuResult (*cuStreamDestroy_v2)(CuStream) = nullptr;
  CuResult (*cuStreamSynchronize)(CuStream) = nullptr;
  CuResult (*cuStreamIsCapturing)(CuStream, int*) = nullptr;
  CuResult (*cuStreamBeginCapture_v2)(CuStream, int mode) = nullptr;
  CuResult (*cuStreamEndCapture)(CuStream, CuGraph*) = nullptr;
  CuResult (*cuThreadExchangeStreamCaptureMode)(int* mode) = nullptr;
  CuResult (*cuGraphInstantiateWithFlags)(CuGraphExec*, CuGraph, unsigned long long) = nullptr;
  CuResult (*cuGraphLaunch)(CuGraphExec, CuStream) = nullptr;
  CuResult (*cuGraphExecDestroy)(CuGraphExec) = nullptr;
  CuResult (*cuGraphDestroy)(CuGraph) = nullptr;
  CuResult (*cuEventCreate)(CuEvent*, unsigned) = nullptr;
  CuResult (*cuEventDestroy_v2)(CuEvent) = nullptr;
  CuResult (*cuEventRecord)(CuEvent, CuStream) = nullptr;
  CuResult (*cuEventSynchronize)(CuEvent) = nullptr;
  CuResult (*cuEventElapsedTime)(float*, CuEvent, CuEvent) = nullptr;
};

/// Opens libcuda.so.1 (or INGOT_DRIVER) and initialises it. It stays open: drivers keep threads that outlive
/// their users. Errors unsupported: no driver, too old for what is called, or no GPU; each says what to do.
Result<std::shared_ptr<const Driver>> open_driver(const base::Environment& environment);

/// Error device: "cuLaunchKernelEx: CUDA_ERROR_ILLEGAL_ADDRESS (700), an illegal memory access was
/// encountered; …"; error out_of_memory for the driver's own code of that.
Error driver_error(const Driver& driver, CuResult result, const char* call);

/// Whether what is launched on the stream now is recorded instead of run.
Result<bool> is_capturing(const Driver& driver, CuStream stream);

}  // namespace ingot::gpu
