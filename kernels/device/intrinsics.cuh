// SPDX-License-Identifier: Apache-2.0
//
// Everything of the machine that portable kernel code needs, under names: conversions, cached loads,
// asynchronous copies, matrix fragments, barriers. sm_80 and newer. Tests compile the kernels for the host,
// with the same names from tests/emulated, which plays a thread block's threads one after the other.
#pragma once

#if defined(INGOT_EMULATED)
#include <emulated/intrinsics.h>
#else

#define INGOT_DEVICE __device__ __forceinline__
#define INGOT_UNROLL _Pragma("unroll")
#define INGOT_ROLLED _Pragma("unroll 1")

// A kernel of C linkage, so that its name is known and says in a profiler what it does. `Kernel` has
// `threads`, `blocks_per_sm`, `Args` and `run`.
#define INGOT_KERNEL(name, Kernel)                                                     \
  extern "C" __global__ void __launch_bounds__(Kernel::threads, Kernel::blocks_per_sm) \
      name(const __grid_constant__ Kernel::Args args) {                                \
    Kernel::run(args);                                                                 \
  }

namespace ingot {
namespace device {

using u16 = unsigned short;
using u32 = unsigned int;
using i64 = long long;

// Who am I.
INGOT_DEVICE u32 thread_index() {
  return threadIdx.x;
}
INGOT_DEVICE u32 block_index() {
  return blockIdx.x;
}
INGOT_DEVICE void block_barrier() {
  __syncthreads();
}

/// The block's dynamic shared memory, 128-byte aligned.
INGOT_DEVICE unsigned char* shared_memory() {
  extern __shared__ __align__(128) unsigned char ingot_shared_memory[];
  return ingot_shared_memory;
}

// Programmatic dependent launch (sm_90): without that launch attribute both do nothing.
/// Until the kernels before this one have written what they write.
INGOT_DEVICE void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// Lets the next kernel's blocks start as soon as there is room.
INGOT_DEVICE void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Rounding to nearest even.
INGOT_DEVICE u16 bf16_bits(float x) {
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
INGOT_DEVICE u16 f16_bits(float x) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
/// Two at once, the first in the low half.
INGOT_DEVICE u32 bf16_pair_bits(float low, float high) {
  u32 bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
INGOT_DEVICE u32 f16_pair_bits(float low, float high) {
  u32 bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
INGOT_DEVICE float float_of_bf16(u16 bits) {
  return __uint_as_float(static_cast<u32>(bits) << 16);
}
INGOT_DEVICE float float_of_f16(u16 bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}

INGOT_DEVICE float fused_multiply_add(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
INGOT_DEVICE u32 float_bits(float x) {
  return __float_as_uint(x);
}

/// Loads of memory that nothing writes while the kernel runs.
INGOT_DEVICE u16 load_constant(const u16* at) {
  return __ldg(at);
}
INGOT_DEVICE float load_constant(const float* at) {
  return __ldg(at);
}
/// Loads that see what a kernel before this one wrote under programmatic dependent launch.
INGOT_DEVICE u16 load(const u16* at) {
  return *at;
}
INGOT_DEVICE float load(const float* at) {
  return *at;
}
INGOT_DEVICE void store(u16* at, u16 value) {
  *at = value;
}
INGOT_DEVICE void store(float* at, float value) {
  *at = value;
}

struct __align__(16) Bytes16 {
  u32 word[4];
};
INGOT_DEVICE Bytes16 load_16_bytes(const void* at) {
  const uint4 v = *static_cast<const uint4*>(at);
  return {{v.x, v.y, v.z, v.w}};
}
INGOT_DEVICE void store_16_bytes(void* at, const Bytes16& bytes) {
  *static_cast<uint4*>(at) = make_uint4(bytes.word[0], bytes.word[1], bytes.word[2], bytes.word[3]);
}

struct __align__(16) Floats4 {
  float value[4];
};
INGOT_DEVICE Floats4 load_4_floats(const void* at) {
  const float4 v = *static_cast<const float4*>(at);
  return {{v.x, v.y, v.z, v.w}};
}

INGOT_DEVICE u32 shared_address(const void* at) {
  return static_cast<u32>(__cvta_generic_to_shared(at));
}

/// Starts a copy of 16 bytes to shared memory; the bytes from `valid_bytes` on become zero. Both 16-byte
/// aligned.
INGOT_DEVICE void copy_16_bytes_async(void* shared, const void* global, u32 valid_bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(valid_bytes)
               : "memory");
}
/// Closes the group of copies this thread started since the last one.
INGOT_DEVICE void close_copy_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Until at most `Pending` of this thread's latest groups are unfinished.
template <int Pending>
INGOT_DEVICE void wait_for_copy_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

/// Four 8×8 matrices of 16-bit numbers: lane l gives the address of row l%8 of matrix l/8 (16 bytes, aligned)
/// and receives elements 2(l%4), 2(l%4)+1 of row l/4 of each.
INGOT_DEVICE void load_matrices(u32 (&fragment)[4], const void* shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address(shared_row))
               : "memory");
}

/// A warp's d[16×8] += a[16×16] · b[16×8], fragments as in the PTX ISA's mma.m16n8k16 for 16-bit types.
INGOT_DEVICE void multiply_add_bf16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
INGOT_DEVICE void multiply_add_f16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
      "%1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace device
}  // namespace ingot

#endif  // INGOT_EMULATED
