// SPDX-License-Identifier: Apache-2.0
// The page of one trace.

function tile(title, value, remark) {
  return element('div', null, element('dt', null, title), element('dd', null, value, remark && element('small', null, remark)));
}

function chip(colour, text, kind) {
  return element('li', null, element('span', {class: 'chip ' + (kind || ''), style: {'--c': `var(--${colour})`}}), text);
}

/** Where the device's time went: one bar, the largest kinds of work first, then idle time. */
function timeBar(explain) {
  const times = new Map();
  for (const kernel of explain.kernels) times.set(workOf(kernel.kind), (times.get(workOf(kernel.kind)) || 0) + kernel.total_us);
  const parts = [...times].sort((a, b) => b[1] - a[1]).map(([kind, us]) => ({colour: kind, title: workKinds[kind], us}));
  if (explain.summary.gpu_idle_us > 0) parts.push({colour: 'wait_other', title: 'idle', us: explain.summary.gpu_idle_us, hatch: 'hatch'});
  const all = sum(parts, (part) => part.us);
  if (all <= 0) return null;
  return [
    element('div', {class: 'stack', 'aria-hidden': 'true'}, parts.map((part) => element('i', {
      class: part.hatch, style: {width: (100 * part.us / all).toFixed(2) + '%', '--c': `var(--${part.colour})`, ...(part.hatch ? {} : {background: `var(--${part.colour})`})}}))),
    element('ul', {class: 'legend', 'aria-label': 'Where the time of the device went'}, parts.map((part) =>
      chip(part.colour, [element('b', null, percent(part.us / all)), ' ' + part.title], part.hatch))),
  ];
}

function hero(explain) {
  const {trace, summary, mlps, findings} = explain;
  const best = findings.find((finding) => finding.saving_us);
  const idle = summary.gpu_busy_us + summary.gpu_idle_us;
  return element('div', {class: 'hero'},
    element('span', {class: 'verdict ' + summary.verdict}, summary.verdict),
    element('h1', null, visible(trace.file.split('/').pop())),
    element('p', {class: 'lead'}, visible(summary.verdict_reason)),
    element('dl', {class: 'tiles'},
      tile('GPU busy', duration(summary.gpu_busy_us), idle > 0 ? percent(summary.gpu_busy_us / idle) + ' of its span' : null),
      tile('GPU idle', duration(summary.gpu_idle_us), idle > 0 ? percent(summary.gpu_idle_us / idle) + ' of its span' : null),
      tile('Kernels', count(summary.kernels), plural(summary.launches, 'launch', 'launches')),
      tile('Calls of MLPs', count(sum(mlps, (mlp) => mlp.calls)), mlps.length ? plural(mlps.length, 'shape') : 'none found'),
      tile('Largest saving', best ? duration(best.saving_us) : '–', best ? 'estimate, first such finding below' : 'no estimate')),
    timeBar(explain));
}

function timelineLegend(timelines) {
  const present = new Set();
  for (const timeline of timelines) {
    for (const lane of timeline.lanes) for (let i = 0; i < lane.start.length; i++) present.add(colourOf(timeline, lane, i));
  }
  const items = [];
  for (const [kind, text] of Object.entries(workKinds)) if (present.has(kind)) items.push(chip(kind, text));
  for (const [kind, text] of [['op', 'operator'], ['quiet_op', 'operator that launches nothing'], ['call', 'API call'], ['region', 'region']]) {
    if (present.has(kind)) items.push(chip(kind, text));
  }
  if (present.has('wait_launch')) items.push(chip('wait_launch', 'idle: waits for a launch', 'hatch'));
  if (present.has('wait_other')) items.push(chip('wait_other', 'idle: other', 'hatch'));
  if (timelines.some((timeline) => timeline.mlps.length)) items.push(chip('mlp', 'one MLP', 'box'));
  return element('ul', {class: 'legend', 'aria-label': 'Colours'}, items);
}

function sentence(timeline, from, to) {
  const facts = windowFacts(timeline, from, to);
  const mlps = timeline.mlps.filter((mlp) => mlp.start < to && mlp.end > from).length;
  return `${duration((to - from) / 1000)}: ${plural(facts.calls, 'API call')}, ${plural(facts.kernels, 'kernel')} of ${duration(facts.busy)} in all, ` +
    `${duration(facts.wait_launch)} idle waiting for a launch, ${duration(facts.wait_other)} idle otherwise` +
    (timeline.mlps.length ? `, ${plural(mlps, 'MLP')}` : '');
}

/** The strip above the lanes: how the device spent the whole trace, and which part of it is below. */
class Overview {
  constructor(timeline, lanes) {
    this.timeline = timeline;
    this.lanes = lanes;
    this.canvas = element('canvas', {class: 'overview', 'aria-hidden': 'true'});
    this.canvas.style.height = '46px';
    const go = (event) => {
      if (event.type === 'pointermove' && event.buttons === 0) return;
      const {view} = lanes;
      const half = (view.to - view.from) / 2;
      const at = event.offsetX / this.canvas.clientWidth * timeline.span;
      lanes.show(at - half, at + half);
    };
    this.canvas.addEventListener('pointerdown', (event) => { this.canvas.setPointerCapture(event.pointerId); go(event); });
    this.canvas.addEventListener('pointermove', go);
  }

  draw() {
    const width = this.canvas.clientWidth || 800;
    const brush = new Brush(this.canvas, width, 46);
    const {busy, wait_launch: launch, wait_other: other} = this.timeline.overview;
    const size = width / busy.length;
    for (const [from, colour] of [[busy, 'gemm'], [launch, 'wait_launch'], [other, 'wait_other']]) {
      for (let i = 0; i < busy.length; i++) {
        const below = from === busy ? 0 : from === launch ? busy[i] : busy[i] + launch[i];
        if (from[i]) brush.fill(brush.colour(colour), i * size, 40 - (below + from[i]) * 0.34, size + 0.4, from[i] * 0.34);
      }
    }
    const {view} = this.lanes;
    const x0 = Math.max(0, view.from / this.timeline.span * width);
    const x1 = Math.min(width, view.to / this.timeline.span * width);
    const context = brush.context;
    context.globalAlpha = 0.72;
    brush.fill(brush.colour('card'), 0, 0, x0, 46);
    brush.fill(brush.colour('card'), x1, 0, width - x1, 46);
    context.globalAlpha = 1;
    brush.box(x0 + 1, 3, Math.max(x1 - x0 - 2, 2), 40, brush.colour('accent'), true);
  }
}

function eventTable(timeline, step) {
  const rows = [];
  for (const lane of timeline.lanes) {
    if (!lane.device || lane.idle) continue;
    for (let i = 0; i < lane.start.length; i++) {
      if (lane.start[i] >= step.start && lane.start[i] <= step.end) {
        const caller = timeline.lanes[lane.callLane[i]];
        rows.push({lane, event: i, start: (lane.start[i] - step.start) / 1000, us: lane.dur[i] / 1000, title: titleOf(timeline, lane, i),
                   op: (kernelOf(timeline, lane, i) || {}).op, delay: caller ? (lane.start[i] - caller.start[lane.call[i]]) / 1000 : null,
                   mlp: timeline.mlps[lane.mlp[i]]});
      }
    }
  }
  rows.sort((a, b) => a.start - b.start);
  return table('Device work of ' + visible(step.name), [
    {title: 'start µs', value: (row) => row.start, text: (row) => micros(row.start)},
    {title: 'µs', value: (row) => row.us, text: (row) => micros(row.us)},
    {title: 'kernel', left: true, kind: 'name', value: (row) => row.title},
    {title: 'operator', left: true, kind: 'name', value: (row) => row.op},
    {title: 'after its launch, µs', value: (row) => row.delay, text: (row) => micros(row.delay)},
    {title: 'MLP', left: true, value: (row) => row.mlp ? mlpTitle(timeline.explain.mlps[row.mlp.row]) : null},
    {title: 'stream', left: true, value: (row) => row.lane.label},
  ], rows);
}

/** Buttons and keys of a picture of lanes. */
function controls(lanes, steps) {
  const button = (text, label, action) => element('button', {type: 'button', 'aria-label': label, title: label, onclick: action}, text);
  const hidden = lanes.hiddenLanes;
  return element('div', {class: 'bar'}, steps,
    button('+', 'Zoom in (W)', () => lanes.zoom(0.6)), button('−', 'Zoom out (S)', () => lanes.zoom(1 / 0.6)),
    button('◂', 'Move left (A)', () => lanes.pan(-0.3)), button('▸', 'Move right (D)', () => lanes.pan(0.3)),
    button('Fit', 'Show the whole step (F)', () => lanes.hooks.fit()),
    hidden ? element('button', {type: 'button', onclick: (event) => {
      lanes.all = true;
      lanes.place();
      lanes.redraw();
      event.target.remove();
    }}, `Show ${plural(hidden, 'more lane')}`) : null,
    element('span', {class: 'keys'}, ...['W', 'S'].map((key) => element('kbd', null, key)), ' zoom  ',
            ...['A', 'D'].map((key) => element('kbd', null, key)), ' move  ', element('kbd', null, '←'), element('kbd', null, '→'),
            ' next event  ', element('kbd', null, 'F'), ' fit · drag, pinch, Ctrl+wheel'));
}

function timelineFigure(timeline) {
  let step = timeline.typical;
  const caption = element('p', {class: 'sub', style: {margin: '0 0 8px'}});
  const alternative = element('details', null, element('summary', null, 'The device work of this step as a table'));
  const select = element('select', {'aria-label': 'Step', onchange: (event) => go(event.target.value)},
    timeline.steps.map((one, index) => element('option', {value: index, disabled: !one.kept},
      `${visible(one.name)} · ${duration((one.end - one.start) / 1000)}${one === timeline.typical ? ' · typical' : ''}${one.kept ? '' : ' · left out'}`)),
    element('option', {value: 'all'}, 'The whole trace'));
  select.value = String(timeline.steps.indexOf(step));
  const lanes = new Lanes([{title: '', timeline, origin: 0}], {
    zero: () => step.start, fit: () => fit(),
    drawn: () => overview && overview.draw(),
  });
  const overview = timeline.overview.busy.length && timeline.steps.length > 1 ? new Overview(timeline, lanes) : null;
  const fit = () => {
    const slack = (step.end - step.start) * 0.015;
    lanes.show(step.start - slack, step.end + slack);
  };
  const go = (choice) => {
    step = choice === 'all' ? {name: 'the whole trace', start: 0, end: timeline.span} : timeline.steps[choice];
    caption.textContent = `${visible(step.name)}, ${sentence(timeline, step.start, step.end)}.`;
    lanes.canvas.setAttribute('aria-label', `Timeline of CPU and GPU. ${caption.textContent} The same is in the table below.`);
    if (alternative.open) fillTable();
    fit();
  };
  const fillTable = () => alternative.replaceChildren(alternative.firstChild, eventTable(timeline, step));
  alternative.addEventListener('toggle', () => { if (alternative.open) fillTable(); });
  const figure = element('figure', {class: 'picture', 'aria-label': 'Timeline'}, controls(lanes, select), overview && overview.canvas, lanes.scene,
    lanes.facts, element('figcaption', null, caption, timelineLegend([timeline]), alternative));
  go(select.value);
  return {figure, lanes};
}

function findingTable(findings) {
  return table('Findings', [
    {title: '#', value: (row) => row.number},
    {title: 'finding', left: true, kind: 'wide', value: (row) => row.title,
     text: (row) => [element('strong', null, visible(row.title)), element('small', null, visible(row.detail)), element('code', null, '→ ' + visible(row.action))]},
    {title: 'up to', value: (row) => row.saving_us, text: (row) => duration(row.saving_us)},
  ], findings.map((finding, index) => ({...finding, number: index + 1})));
}

function mlpTable(mlps) {
  return table('MLPs', [
    {title: 'tokens', value: (row) => row.tokens, text: (row) => count(row.tokens)},
    {title: 'dim → hidden', value: (row) => row.hidden, text: (row) => row.dim && row.hidden ? `${row.dim} → ${row.hidden}` : '–'},
    {title: 'activation', left: true, value: (row) => row.activation, text: (row) => row.activation + (row.gated ? row.packed ? ', gated (packed)' : ', gated' : '')},
    {title: 'bias', left: true, value: (row) => row.bias, text: (row) => row.bias === null ? '–' : row.bias ? 'yes' : 'no'},
    {title: 'type', left: true, value: (row) => row.dtype},
    {title: 'calls', value: (row) => row.calls},
    {title: 'kernels', value: (row) => row.kernels_per_call, text: (row) => count(row.kernels_per_call),
     hint: (row) => row.kernels.join('\n')},
    {title: 'µs now', value: (row) => row.gpu_us_per_call, text: (row) => micros(row.gpu_us_per_call)},
    {title: 'fused (est.)', value: (row) => row.fused_us_estimate, text: (row) => micros(row.fused_us_estimate)},
    {title: 'moved now', value: (row) => row.bytes_per_call, text: (row) => bytes(row.bytes_per_call)},
    {title: 'fused', value: (row) => row.fused_bytes_per_call, text: (row) => bytes(row.fused_bytes_per_call)},
    {title: 'known by', left: true, value: (row) => row.evidence},
    {title: 'region', left: true, kind: 'name', value: (row) => row.region},
  ], mlps);
}

function regionTable(regions) {
  const number = (title, key, format) => ({title, value: (row) => row[key], text: (row) => (format || micros)(row[key])});
  return table('Regions', [
    {title: 'region', left: true, kind: 'name', value: (row) => row.name},
    number('calls', 'calls', count), number('kernels', 'kernels_per_call', count), number('launches', 'launches_per_call', count),
    number('CPU', 'cpu_us'), number('GPU busy', 'gpu_busy_us'), number('GPU span', 'gpu_span_us'),
    number('waits for launch', 'wait_launch_us'), number('other idle', 'wait_other_us'),
    {title: 'verdict', left: true, kind: 'wide', value: (row) => row.verdict,
     text: (row) => [element('strong', null, row.verdict), element('small', null, visible(row.verdict_reason))]},
  ], regions);
}

function kernelTable(kernels) {
  const most = Math.max(0, ...kernels.map((row) => row.total_us));
  return table('Kernels', [
    {title: 'kernel', left: true, kind: 'name', value: (row) => row.short_name, hint: (row) => row.name,
     text: (row) => [element('span', {class: 'dot', style: {'--c': `var(--${workOf(row.kind)})`}}), visible(row.short_name || row.name)]},
    {title: 'operator', left: true, kind: 'name', value: (row) => row.op},
    {title: 'calls', value: (row) => row.calls},
    {title: 'total µs', value: (row) => row.total_us, text: (row) => micros(row.total_us), share: (row) => most > 0 ? row.total_us / most : 0},
    {title: 'min', value: (row) => row.min_us, text: (row) => micros(row.min_us)},
    {title: 'median', value: (row) => row.median_us, text: (row) => micros(row.median_us)},
    {title: 'max', value: (row) => row.max_us, text: (row) => micros(row.max_us)},
    {title: 'm·n·k', value: (row) => row.gemm ? row.gemm.m * row.gemm.n * row.gemm.k : null,
     text: (row) => row.gemm ? `${row.gemm.batch > 1 ? row.gemm.batch + '× ' : ''}${row.gemm.m}·${row.gemm.n}·${row.gemm.k}` : '–'},
    {title: 'TFLOP/s', value: (row) => row.tflops, text: (row) => row.tflops === null ? '–' : trimmed(row.tflops, 1)},
    {title: 'of peak', value: (row) => row.peak_share, text: (row) => percent(row.peak_share)},
    {title: 'GB/s', value: (row) => row.gb_s, text: (row) => row.gb_s === null ? '–' : trimmed(row.gb_s, 0)},
    {title: 'occupancy', value: (row) => row.occupancy, text: (row) => percent(row.occupancy)},
  ], kernels);
}

function quietTable(ops) {
  const most = Math.max(0, ...ops.map((row) => row.cpu_share));
  return table('Operators that launch nothing', [
    {title: 'operator', left: true, kind: 'name', value: (row) => row.name},
    {title: 'calls', value: (row) => row.calls},
    {title: 'own CPU time, µs', value: (row) => row.cpu_us, text: (row) => micros(row.cpu_us)},
    {title: 'of CPU time', value: (row) => row.cpu_share, text: (row) => percent(row.cpu_share), share: (row) => most > 0 ? row.cpu_share / most : 0},
  ], ops, 'narrow');
}

function expectationTable(expectation) {
  return section('Expectation', `Kernels per call of ${visible(expectation.region)}: ${expectation.met ? 'met' : 'not met'}`,
    table('Expectation', [
      {title: 'kernel', left: true, kind: 'name', value: (row) => row.what},
      {title: 'expected', value: (row) => row.expected}, {title: 'found', value: (row) => row.found},
      {title: '', left: true, value: (row) => row.found - row.expected,
       text: (row) => row.found === row.expected ? 'as expected' : (row.found > row.expected ? '+' : '') + count(row.found - row.expected)},
    ], expectation.items, 'narrow'));
}

function traceFacts(trace) {
  return [trace.device && visible(trace.device), plural(trace.events, 'event'), bytes(trace.bytes), duration(trace.span_us)].filter(Boolean).join(' · ');
}

function warnings(trace) {
  return trace.warnings.map((warning) => element('p', {class: 'note warn'}, 'Warning: ' + visible(warning)));
}

function noTimeline(explain) {
  return element('p', {class: 'note'}, explain.trace.events === 0 ? 'The trace holds no events.' : 'The trace holds nothing that can be drawn on a time axis.');
}

function explainPage(data) {
  const [trace] = data.traces;
  const {explain} = trace;
  const timeline = makeTimeline(trace);
  const drawn = timeline ? timelineFigure(timeline) : null;
  const rowsOf = (rows, title, remark, make) => rows.length ? section(title, remark, make(rows)) : null;
  const page = [
    masthead('explain', traceFacts(explain.trace)), hero(explain), ...warnings(explain.trace),
    section('Timeline', 'Launches above, kernels below, to scale. Hatched: the GPU does nothing. A box around both lanes is one MLP. Arrows from launch to kernel appear where there is room.',
            drawn ? drawn.figure : noTimeline(explain)),
    rowsOf(explain.findings, 'Findings', 'Worst first. Savings are estimates over the whole trace, and overlap.', findingTable),
    rowsOf(explain.mlps, 'MLPs', 'Per call: GPU time now and a roofline estimate when fused, memory traffic now and when fused.', mlpTable),
    rowsOf(explain.regions, 'Regions', 'Microseconds per call, median.', regionTable),
    explain.expectation ? expectationTable(explain.expectation) : null,
    rowsOf(explain.kernels, 'Kernels', explain.trace.card ? `Times in microseconds. Peak: ${explain.trace.card.name}, dense 16-bit ${explain.trace.card.bf16_tflops} TFLOP/s, ` +
      `${explain.trace.card.bandwidth_tb_s} TB/s (${explain.trace.card.source}).` : 'Times in microseconds.', kernelTable),
    rowsOf(explain.zero_launch_ops, 'Operators that launch nothing', 'Their own CPU time.', quietTable),
    leftOut(trace.left_out),
  ];
  return {page, lanes: drawn && drawn.lanes};
}
