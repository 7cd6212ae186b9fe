// SPDX-License-Identifier: Apache-2.0
// The timeline as the page holds it: columns become typed arrays, one list of events a row. Times are nanoseconds since
// the first event of the trace.

/** Index of the first entry of a rising array that is at least `value`. */
function lowerBound(array, value) {
  let low = 0, high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

function summedUp(differences, Type) {
  const out = new Type(differences.length);
  for (let i = 0, at = 0; i < out.length; i++) out[i] = at += differences[i];
  return out;
}

/** The events of one row: starts, the furthest end so far, and summed lengths, so that a stretch is found and weighed
    without walking it. */
function makeRow(lane, members) {
  const row = {lane, members: Int32Array.from(members), start: new Float64Array(members.length),
               reach: new Float64Array(members.length), length: new Float64Array(members.length + 1)};
  for (let i = 0; i < members.length; i++) {
    const event = members[i];
    row.start[i] = lane.start[event];
    row.reach[i] = Math.max(lane.start[event] + lane.dur[event], i ? row.reach[i - 1] : -Infinity);
    row.length[i + 1] = row.length[i] + lane.dur[event];
  }
  return row;
}

function makeLane(data, index, kinds) {
  const lane = {index, label: data.label, device: data.device, name: Int32Array.from(data.name),
                start: summedUp(data.start, Float64Array), dur: Float64Array.from(data.dur),
                kind: data.kind.map((packed) => kinds[packed % 16]), calls: null};
  if (data.device) {
    lane.callLane = Int32Array.from(data.lane);
    lane.call = summedUp(data.call, Int32Array);
    lane.mlp = summedUp(data.mlp, Int32Array);
  }
  const members = Array.from({length: data.rows}, () => []);
  data.kind.forEach((packed, event) => members[packed >> 4].push(event));
  lane.rows = members.map((list) => makeRow(lane, list));
  lane.idle = data.device && lane.kind.length > 0 && lane.kind[0].startsWith('wait_');
  return lane;
}

/** `trace` is {explain, timeline} of the page's data; null where it has no timeline or that is empty. */
function makeTimeline(trace) {
  const data = trace.timeline;
  if (!data || data.lanes.length === 0) return null;
  const steps = data.steps.map(([name, start, end, kept]) => ({name, start, end, kept: kept === 1}));
  return {
    explain: trace.explain, span: data.span, names: data.names, steps, overview: data.overview,
    typical: steps[Math.min(data.typical < 0 ? 0 : data.typical, steps.length - 1)],
    lanes: data.lanes.map((lane, index) => makeLane(lane, index, data.kinds)),
    mlps: data.mlps.map(([row, lane, cpuStart, cpuEnd, deviceLane, start, end]) =>
      ({row, lane, cpuStart, cpuEnd, deviceLane, start, end})),
  };
}

/** Which colour a kernel's kind of work has. */
const colourOfKind = {memcpy: 'copy', memset: 'copy', unknown: 'other'};
const workKinds = {
  gemm: 'matrix products', gemm_helper: 'helpers of products', attention: 'attention', convolution: 'convolutions',
  pointwise: 'pointwise', norm: 'norms', reduction: 'reductions', copy: 'copies and memsets',
  communication: 'communication', other: 'other kernels',
};

function workOf(kind) {
  const name = colourOfKind[kind] || kind;
  return name in workKinds ? name : 'other';
}

function kernelOf(timeline, lane, event) {
  return timeline.explain.kernels[lane.name[event]];
}

/** The name of the CSS variable that holds an event's colour. */
function colourOf(timeline, lane, event) {
  if (!lane.device || lane.idle) return lane.kind[event];
  const kernel = kernelOf(timeline, lane, event);
  return kernel ? workOf(kernel.kind) : 'other';
}

function titleOf(timeline, lane, event) {
  if (lane.idle) return lane.kind[event] === 'wait_launch' ? 'GPU waits for a launch' : 'GPU idle for another cause';
  if (!lane.device) return visible(timeline.names[lane.name[event]] ?? '(name left out)');
  const kernel = kernelOf(timeline, lane, event);
  return kernel ? visible(kernel.short_name || kernel.name) : '(kernel left out)';
}

function mlpTitle(row) {
  if (!row) return 'MLP';
  const shape = row.dim && row.hidden ? `${row.tokens ?? '?'} × ${row.dim} → ${row.hidden} ` : '';
  return `MLP ${shape}${visible(row.activation)}${row.gated ? ' gated' : ''}`;
}

/** What is known of a kernel, as lines. */
function kernelFacts(timeline, lane, event) {
  const kernel = kernelOf(timeline, lane, event);
  const lines = [];
  if (kernel) {
    if (kernel.op) lines.push('operator ' + visible(kernel.op));
    if (kernel.gemm) {
      const {m, n, k, batch} = kernel.gemm;
      lines.push(`${batch > 1 ? batch + ' × ' : ''}m ${m} · n ${n} · k ${k}` +
                 (kernel.tflops ? `, ${trimmed(kernel.tflops, 0)} TFLOP/s` : '') +
                 (kernel.peak_share ? ` (${percent(kernel.peak_share)} of peak)` : '') + ' at the median');
    } else if (kernel.bytes && kernel.gb_s) {
      lines.push(`${bytes(kernel.bytes)}, ${trimmed(kernel.gb_s, 0)} GB/s at the median`);
    }
    lines.push(`one of ${count(kernel.calls)}, median ${duration(kernel.median_us)}`);
  }
  const caller = timeline.lanes[lane.callLane[event]];
  if (caller) {
    const call = lane.call[event];
    const delay = (lane.start[event] - caller.start[call]) / 1000;
    lines.push(`started ${duration(delay)} after ${titleOf(timeline, caller, call)}`);
  }
  const mlp = timeline.mlps[lane.mlp[event]];
  if (mlp) lines.push('part of ' + mlpTitle(timeline.explain.mlps[mlp.row]));
  if (kernel && kernel.name !== kernel.short_name) lines.push(visible(kernel.name).slice(0, 160));
  return lines;
}

function factsOf(timeline, lane, event) {
  const length = duration(lane.dur[event] / 1000);
  if (lane.idle) {
    return {title: titleOf(timeline, lane, event), lines: [length, lane.kind[event] === 'wait_launch' ?
      'its next work was not submitted yet: the CPU was late' : 'another stream, work the trace does not hold, or the hand-over']};
  }
  const lines = [length + (lane.device ? ' on ' + visible(lane.label) : ' on ' + visible(lane.label))];
  if (lane.device) lines.push(...kernelFacts(timeline, lane, event));
  if (lane.kind[event] === 'op') lines.push('operator, launches device work');
  if (lane.kind[event] === 'quiet_op') lines.push('operator that launches nothing');
  if (lane.kind[event] === 'call') lines.push('API call');
  return {title: titleOf(timeline, lane, event), lines};
}

/** What happens between two times, in microseconds. */
function windowFacts(timeline, from, to) {
  const facts = {kernels: 0, busy: 0, wait_launch: 0, wait_other: 0, calls: 0};
  for (const lane of timeline.lanes) {
    for (let i = 0; i < lane.start.length; i++) {
      const end = lane.start[i] + lane.dur[i];
      if (end <= from || lane.start[i] >= to) continue;
      const inside = (Math.min(end, to) - Math.max(lane.start[i], from)) / 1000;
      if (lane.idle) facts[lane.kind[i]] += inside;
      else if (lane.device) { facts.busy += inside; facts.kernels += lane.kind[i] === 'kernel' ? 1 : 0; }
      else if (lane.kind[i] === 'call') facts.calls++;
    }
  }
  return facts;
}
