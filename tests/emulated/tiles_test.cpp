// SPDX-License-Identifier: Apache-2.0
//
// Every tile the planner may take, once gated and once plain, with row and column tiles at the edge.
#include "arch/sm80.h"
#include "emulated/linear_case.h"

namespace ingot::test {
namespace {

template <class T, sm80::Tile t>
void check_tile() {
  constexpr int out = 2 * t.cols / 3 * 2 + 8, in = 3 * t.block_k + 8;
  check<Kind<T, activation::relu, false, true, true, true>, out, in, t>(t.rows + 3);
  check<Kind<T, activation::relu, true, true, true, false>, out / 2 + 1, in + 1, t>(t.rows + 3);
}
template <std::size_t... i>
void check_tiles(std::index_sequence<i...>) {
  (check_tile<types::bf16, arch::sm80::tiles[i]>(), ...);
}
template <std::size_t... i>
void check_f32_tiles(std::index_sequence<i...>) {
  (check_tile<types::f32, arch::sm80::f32_tiles[i]>(), ...);
}

TEST(EmulatedTiles, SixteenBit) {
  check_tiles(std::make_index_sequence<arch::sm80::tiles.size()>{});
}
TEST(EmulatedTiles, F32) {
  check_f32_tiles(std::make_index_sequence<arch::sm80::f32_tiles.size()>{});
}

// More row tiles than a group has, the last group smaller: each tile of the output is some block's, once.
TEST(EmulatedTiles, GroupsOfRowTilesCoverEveryTile) {
  constexpr sm80::Tile small{16, 32, 32, 2, 1, 2};
  check<Kind<types::bf16, activation::identity, false, false, true, true>, 80, 8, small>(16 * 19 + 5);
}

TEST(EmulatedGrid, ThrowsWhereThreadsDoNotMeet) {
  EXPECT_THROW(emulated::run_grid(1, 64, 128,
                                  [] {
                                    if (emulated::thread_index() != 5) emulated::barrier();
                                  }),
               std::logic_error);
  EXPECT_THROW(
      emulated::run_grid(
          1, 32, 128, [] { emulated::check_aligned(emulated::shared_memory() + emulated::thread_index()); }),
      std::logic_error);
}

// What was copied asynchronously is there after the wait, not before.
TEST(EmulatedGrid, CopiesArriveWhenWaitedFor) {
  alignas(16) const unsigned char source[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  emulated::run_grid(1, 32, 512, [&] {
    unsigned char* at = emulated::shared_memory() + emulated::thread_index() * 16;
    emulated::start_copy(at, source, 6);
    emulated::close_copies();
    emulated::wait_for_copies(1);
    EXPECT_EQ(at[0], 0xff);
    emulated::wait_for_copies(0);
    EXPECT_EQ(at[5], 6);
    EXPECT_EQ(at[6], 0);
  });
}

}  // namespace
}  // namespace ingot::test
