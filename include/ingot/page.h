// SPDX-License-Identifier: Apache-2.0
//
// Results as one page for a browser: self-contained HTML that asks nothing of a network. The pictures are
// drawn and the tables sorted by the page's own script, from JSON that is part of it. Names from a trace are
// data there, whatever they hold; long ones are cut and long tables end early, and the page says so. At most
// 5 MB.
#pragma once

#include <string>
#include <vector>

#include "ingot/bench.h"
#include "ingot/diff.h"
#include "ingot/explain.h"

namespace ingot::page {

/// With ExplainOptions::timeline the lanes of CPU and GPU, to scale; without, the tables alone.
std::string html(const Explanation& explanation);

/// Both timelines on one axis above what changed. The explanations are those of the two traces.
std::string html(const Diff& diff, const Explanation& before, const Explanation& after);

/// A bar a rung against the floor. `trace` names where the shapes are from, "" none.
std::string html(const std::vector<Ladder>& ladders, const std::string& trace = "");

}  // namespace ingot::page
