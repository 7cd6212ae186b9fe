// SPDX-License-Identifier: Apache-2.0
//
// The sm_90a instructions the kernels use, one named function each (PTX ISA 8.x, sections named in the
// comments). Shared-memory addresses are 32-bit, of the window `shared`; "remote" ones carry a block's rank
// in the cluster.
#pragma once
#include "device/intrinsics.cuh"

namespace ingot {
namespace sm90 {

using device::i64;
using device::u16;
using device::u32;
using u64 = unsigned long long;

/// A tensor map (CUtensorMap, 128 opaque bytes made by cuTensorMapEncodeTiled), passed as a
/// __grid_constant__.
struct alignas(64) TensorMap {
  u64 words[16];
};

/// True in one lane of a full warp, the same lane each time. (The compiler knows elect.sync: a TMA
/// instruction below it is issued once, below `lane == 0` it becomes a loop over lanes.)
INGOT_DEVICE bool elect_one() {
  u32 chosen;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(chosen));
  return chosen != 0;
}

/// threadIdx.x read anew each time: where accumulators leave no register to keep it.
INGOT_DEVICE u32 thread_anew() {
  u32 thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

// --- mbarrier
// -------------------------------------------------------------------------------------------------
INGOT_DEVICE void barrier_init(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Makes the initialised barriers visible to the cluster and to the copy engine.
INGOT_DEVICE void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
INGOT_DEVICE void barrier_arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives at a barrier of any block of the cluster. Unqualified on purpose: `.release.cluster` costs a
/// MEMBAR, and what is handed back here is shared memory that was only read.
INGOT_DEVICE void barrier_arrive_remote(u32 remote_barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(remote_barrier) : "memory");
}
INGOT_DEVICE void barrier_expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
INGOT_DEVICE bool barrier_test(u32 barrier, u32 parity) {
  u32 done;
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}
/// The same without waiting: try_wait may suspend the thread for a while before it says no.
INGOT_DEVICE bool barrier_done(u32 barrier, u32 parity) {
  u32 done;
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}
INGOT_DEVICE void barrier_wait(u32 barrier, u32 parity) {
  while (!barrier_test(barrier, parity)) {
  }
}
INGOT_DEVICE void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
INGOT_DEVICE void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// --- cluster
// --------------------------------------------------------------------------------------------------
INGOT_DEVICE u32 cluster_rank() {
  u32 r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
INGOT_DEVICE u32 remote_address(u32 address, u32 rank) {
  u32 r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(rank));
  return r;
}
INGOT_DEVICE void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
/// Orders nothing itself: for barriers that barrier_init_fence has published. (A release here would wait for
/// loads that the copy engine has under way.)
INGOT_DEVICE void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
INGOT_DEVICE void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// Writes two floats into a block's shared memory and counts 8 bytes on that block's barrier.
INGOT_DEVICE void store_remote(u32 remote, float a, float b, u32 remote_barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(remote),
      "f"(a), "f"(b), "r"(remote_barrier)
      : "memory");
}

INGOT_DEVICE void store_remote(u32 remote, float a, float b, float c, float d, u32 remote_barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
          remote),
      "f"(a), "f"(b), "f"(c), "f"(d), "r"(remote_barrier)
      : "memory");
}

// --- registers of a warpgroup
// ---------------------------------------------------------------------------------
template <int kRegisters>
INGOT_DEVICE void registers_increase() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
INGOT_DEVICE void registers_decrease() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// --- copy engine (TMA)
// ----------------------------------------------------------------------------------------
INGOT_DEVICE void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
/// Box of a 2-D tensor at element (column, row) into `shared`; every block of `mask` gets it at the same
/// address when kMulticast. Bytes outside the tensor arrive as zeros and are counted.
template <bool kMulticast>
INGOT_DEVICE void load_box(u32 shared, const TensorMap& map, u32 barrier, int column, int row, u16 mask) {
  if constexpr (kMulticast) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(column), "r"(row), "h"(mask)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
        "[%2];" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(column), "r"(row)
        : "memory");
  }
}
/// The same for two interleaved matrices, a 4-D tensor {column, 8 rows, 2 matrices, row group}.
template <bool kMulticast>
INGOT_DEVICE void load_interleaved_box(u32 shared, const TensorMap& map, u32 barrier, int column, int group,
                                       u16 mask) {
  if constexpr (kMulticast) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%3, %6, %6, %4}], [%2], %5;" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(column), "r"(group), "h"(mask), "r"(0)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %5, %5, %4}], [%2];" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(column), "r"(group), "r"(0)
        : "memory");
  }
}
/// Boxes of tensors of more dimensions, to this block alone. Coordinates innermost first.
INGOT_DEVICE void load_box(u32 shared, const TensorMap& map, u32 barrier, int c0, int c1, int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
INGOT_DEVICE void load_box(u32 shared, const TensorMap& map, u32 barrier, int c0, int c1, int c2, int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
      "%6}], [%2];" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
INGOT_DEVICE void load_box(u32 shared, const TensorMap& map, u32 barrier, int c0, int c1, int c2, int c3,
                           int c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
      "%6, %7}], [%2];" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}
/// Into L2 only.
INGOT_DEVICE void prefetch_box(const TensorMap& map, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(&map), "r"(c0), "r"(c1),
               "r"(c2)
               : "memory");
}
/// Box from shared memory to the tensor; what lies outside the tensor is not written. Belongs to the open
/// bulk group.
INGOT_DEVICE void store_box(const TensorMap& map, u32 shared, int column, int row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
               "r"(shared), "r"(column), "r"(row)
               : "memory");
}
INGOT_DEVICE void stores_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Until at most kGroups bulk groups of this thread still read shared memory.
template <int kGroups>
INGOT_DEVICE void stores_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kGroups) : "memory");
}
/// Ordinary writes to shared memory become visible to the copy engine and to wgmma.
INGOT_DEVICE void fence_shared_to_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// --- arithmetic
/// Two products of 16-bit numbers, each rounded to nearest even.
template <bool kBf16>
INGOT_DEVICE u32 product_of_pairs(u32 a, u32 b) {
  u32 product;
  if constexpr (kBf16)
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  else
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}

// --- wgmma
// ----------------------------------------------------------------------------------------------------
INGOT_DEVICE void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
INGOT_DEVICE void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kGroups>
INGOT_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
}
/// Keeps the compiler from moving uses of the accumulators across a wait.
template <int kCount>
INGOT_DEVICE void wgmma_pin(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
/// Matrix descriptor of rows of 128 bytes (64 elements of K) in the 128-byte swizzle: groups of eight rows
/// lie 1024 bytes apart (stride field 64, in units of 16 bytes). The next k16 step is +2, the next 64 rows
/// +512.
INGOT_DEVICE u64 matrix_descriptor(u32 shared) {
  return u64((shared & 0x3ffff) >> 4) | (u64(1) << 16) | (u64(64) << 32) | (u64(1) << 62);
}

// --- shared memory
// --------------------------------------------------------------------------------------------
INGOT_DEVICE void store_matrices(u32 shared, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}
/// Transposed: a row of what is stored is a column of the fragment.
INGOT_DEVICE void store_matrix_transposed(u32 shared, u32 a) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(shared), "r"(a) : "memory");
}
INGOT_DEVICE void store_matrices_transposed(u32 shared, u32 a, u32 b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(shared), "r"(a), "r"(b)
               : "memory");
}
INGOT_DEVICE void load_shared(u32 shared, u32 (&v)[4]) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(shared));
}
INGOT_DEVICE void store_shared(u32 shared, const u32 (&v)[4]) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(v[0]), "r"(v[1]), "r"(v[2]),
               "r"(v[3])
               : "memory");
}
INGOT_DEVICE void load_shared(u32 shared, float (&v)[4]) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
               : "r"(shared));
}
INGOT_DEVICE float load_shared(u32 shared) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(shared));
  return v;
}
INGOT_DEVICE void store_shared(u32 shared, float v) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(shared), "f"(v) : "memory");
}
INGOT_DEVICE void store_shared(u32 shared, float a, float b) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(shared), "f"(a), "f"(b) : "memory");
}
INGOT_DEVICE void store_shared(u32 shared, const float (&v)[4]) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "f"(v[0]), "f"(v[1]), "f"(v[2]),
               "f"(v[3])
               : "memory");
}
INGOT_DEVICE void store_shared(u32 shared, u32 a, u32 b) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(shared), "r"(a), "r"(b) : "memory");
}
INGOT_DEVICE void load_shared(u32 shared, float& a, float& b) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b) : "r"(shared));
}

// --- registers of a warp
// ---------------------------------------------------------------------------------------------
/// An 8 x 8 matrix of 16-bit numbers, two neighbours of a row to a lane, transposed.
INGOT_DEVICE u32 transpose_matrix(u32 pair) {
  u32 r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(pair));
  return r;
}
/// 16 bytes that a block reads once; zeros when they do not exist. Not `.nc`, though nothing writes them:
/// such loads the compiler moves down to their use, across barriers and the wait for the kernel before.
INGOT_DEVICE void load_streamed(u32 (&v)[4], const void* at, bool exists) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.u32 p, %5, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\nmov.u32 %2, 0;\nmov.u32 %3, "
      "0;\n"
      "@p ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
      : "=&r"(v[0]), "=&r"(v[1]), "=&r"(v[2]), "=&r"(v[3])
      : "l"(at), "r"(u32(exists))
      : "memory");
}

}  // namespace sm90
}  // namespace ingot
