// SPDX-License-Identifier: Apache-2.0
//
// kernels/device/intrinsics.cuh for a host that plays the threads (emulated/grid.h): the same names with the
// same meaning, written from the PTX ISA's description of each instruction.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "cpu/numbers.h"
#include "emulated/grid.h"

#define INGOT_DEVICE inline
#define INGOT_UNROLL
#define INGOT_ROLLED

namespace ingot {
namespace device {

using u16 = unsigned short;
using u32 = unsigned int;
using i64 = long long;

INGOT_DEVICE u32 thread_index() {
  return emulated::thread_index();
}
INGOT_DEVICE u32 block_index() {
  return emulated::block_index();
}
INGOT_DEVICE void block_barrier() {
  emulated::barrier();
}
INGOT_DEVICE unsigned char* shared_memory() {
  return emulated::shared_memory();
}
INGOT_DEVICE void wait_for_previous_kernel() {}
INGOT_DEVICE void let_next_kernel_start() {}

INGOT_DEVICE u16 bf16_bits(float x) {
  using Element = cpu::Element<DType::bf16>;
  return Element::pack(Element::round(x));
}
INGOT_DEVICE u16 f16_bits(float x) {
  using Element = cpu::Element<DType::f16>;
  return Element::pack(Element::round(x));
}
INGOT_DEVICE u32 bf16_pair_bits(float low, float high) {
  return bf16_bits(low) | static_cast<u32>(bf16_bits(high)) << 16;
}
INGOT_DEVICE u32 f16_pair_bits(float low, float high) {
  return f16_bits(low) | static_cast<u32>(f16_bits(high)) << 16;
}
INGOT_DEVICE float float_of_bf16(u16 bits) {
  return cpu::Element<DType::bf16>::load(bits);
}
INGOT_DEVICE float float_of_f16(u16 bits) {
  return cpu::Element<DType::f16>::load(bits);
}
INGOT_DEVICE float fused_multiply_add(float a, float b, float c) {
  return std::fma(a, b, c);
}
INGOT_DEVICE u32 float_bits(float x) {
  return std::bit_cast<u32>(x);
}

INGOT_DEVICE u16 load_constant(const u16* at) {
  return *at;
}
INGOT_DEVICE float load_constant(const float* at) {
  return *at;
}
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

struct alignas(16) Bytes16 {
  u32 word[4];
};
INGOT_DEVICE Bytes16 load_16_bytes(const void* at) {
  emulated::check_aligned(at);
  Bytes16 bytes;
  std::memcpy(&bytes, at, 16);
  return bytes;
}
INGOT_DEVICE void store_16_bytes(void* at, const Bytes16& bytes) {
  emulated::check_aligned(at);
  std::memcpy(at, &bytes, 16);
}
struct alignas(16) Floats4 {
  float value[4];
};
INGOT_DEVICE Floats4 load_4_floats(const void* at) {
  return std::bit_cast<Floats4>(load_16_bytes(at));
}

INGOT_DEVICE void copy_16_bytes_async(void* shared, const void* global, u32 valid_bytes) {
  emulated::start_copy(shared, global, valid_bytes);
}
INGOT_DEVICE void close_copy_group() {
  emulated::close_copies();
}
template <int Pending>
INGOT_DEVICE void wait_for_copy_groups() {
  emulated::wait_for_copies(Pending);
}

/// Lane l names row l % 8 of matrix l / 8 and gets elements 2(l % 4), 2(l % 4) + 1 of row l / 4 of each.
/// Throws where the hardware would take longer: the eight rows of a matrix are to lie in different banks.
INGOT_DEVICE void load_matrices(u32 (&fragment)[4], const void* shared_row) {
  struct Lane {
    u32* fragment;
    const void* row;
  };
  emulated::check_aligned(shared_row);
  Lane mine{fragment, shared_row};
  emulated::together(&mine, [](void* const* lanes) {
    const auto lane = [&](int i) { return static_cast<Lane*>(lanes[i]); };
    for (int matrix = 0; matrix < 4; ++matrix) {
      u32 bank_groups = 0;
      for (int row = 0; row < 8; ++row) {
        u32 pairs[4];
        bank_groups |= 1U << reinterpret_cast<std::uintptr_t>(lane(matrix * 8 + row)->row) / 16 % 8;
        std::memcpy(pairs, lane(matrix * 8 + row)->row, 16);
        for (int i = 0; i < 4; ++i) lane(row * 4 + i)->fragment[matrix] = pairs[i];
      }
      if (bank_groups != 0xff) throw std::logic_error("rows of a matrix lie in the same banks");
    }
  });
}

/// mma.m16n8k16: lane l has, of a, rows l/4 and l/4 + 8 and columns 2(l%4), 2(l%4) + 1 and those plus 8; of b
/// the same rows of K in column l/4; of d rows l/4 and l/4 + 8, columns 2(l%4), 2(l%4) + 1. Sums are taken in
/// double and rounded once.
template <float (*value)(u16)>
void multiply_add(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  struct Lane {
    float* d;
    const u32* a;
    u32 b[2];
  };
  Lane mine{d, a, {b0, b1}};
  emulated::together(&mine, [](void* const* lanes) {
    const auto half = [](u32 pair, int i) { return double{value(static_cast<u16>(pair >> (16 * i)))}; };
    std::array<std::array<double, 16>, 16> x{};
    std::array<std::array<double, 8>, 16> w{};
    for (int l = 0; l < 32; ++l) {
      const Lane& lane = *static_cast<Lane*>(lanes[l]);
      for (int i = 0; i < 2; ++i) {
        const auto row = static_cast<std::size_t>(l / 4), k = static_cast<std::size_t>(l % 4 * 2 + i);
        x[row][k] = half(lane.a[0], i);
        x[row + 8][k] = half(lane.a[1], i);
        x[row][k + 8] = half(lane.a[2], i);
        x[row + 8][k + 8] = half(lane.a[3], i);
        w[k][row] = half(lane.b[0], i);
        w[k + 8][row] = half(lane.b[1], i);
      }
    }
    for (int l = 0; l < 32; ++l) {
      const Lane& lane = *static_cast<Lane*>(lanes[l]);
      for (int i = 0; i < 4; ++i) {
        const auto row = static_cast<std::size_t>(l / 4 + i / 2 * 8);
        const auto column = static_cast<std::size_t>(l % 4 * 2 + i % 2);
        double sum = double{lane.d[i]};
        for (std::size_t k = 0; k < 16; ++k) sum += x[row][k] * w[k][column];
        lane.d[i] = static_cast<float>(sum);
      }
    }
  });
}
INGOT_DEVICE void multiply_add_bf16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  multiply_add<float_of_bf16>(d, a, b0, b1);
}
INGOT_DEVICE void multiply_add_f16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  multiply_add<float_of_f16>(d, a, b0, b1);
}

}  // namespace device
}  // namespace ingot
