// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "ingot/explain.h"
#include "ingot/timeline.h"
#include "trace/context.h"

namespace ingot::trace {

/// `most_events`: ExplainOptions::timeline_events. After kernel_rows and mlp_rows, whose order the timeline's
/// indices follow.
Timeline make_timeline(const Context& context, std::size_t most_events);

}  // namespace ingot::trace
