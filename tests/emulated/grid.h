// SPDX-License-Identifier: Apache-2.0
//
// Plays a kernel's blocks one after the other and the threads of a block in turns, on one thread of the host:
// each is a coroutine that runs until it waits for others. What a kernel must not do, the run throws as
// std::logic_error: a barrier that not all threads reach, an operation of a warp that not all its lanes make,
// an address off its alignment. Accesses outside a buffer are AddressSanitizer's to find.
#pragma once

#include <cstddef>
#include <functional>

namespace ingot::emulated {

/// `body` in every thread of every block. Dynamic shared memory holds 0xff at the start of each block.
void run_grid(long long blocks, int threads, std::size_t shared_bytes, const std::function<void()>& body);

// For a running thread.
unsigned thread_index();
unsigned block_index();
unsigned char* shared_memory();
void barrier();

/// What all lanes of a warp do together: `run` is called once, with what each of the 32 gave.
using WarpOperation = void (*)(void* const* lanes);
void together(void* mine, WarpOperation run);

/// Asynchronous copies of 16 bytes: done when waited for, not before, and read their source then.
void start_copy(void* to, const void* from, unsigned valid_bytes);
void close_copies();
void wait_for_copies(std::size_t pending_groups);

/// Throws unless the address is a multiple of 16 bytes.
void check_aligned(const void* at);

}  // namespace ingot::emulated
