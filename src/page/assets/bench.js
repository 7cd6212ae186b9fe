// SPDX-License-Identifier: Apache-2.0
// The page of a ladder: a bar a rung, against what no fusion can go below.

const rungWords = {
  matmul_add: 'every step its own pass', unfused: 'linear, activation, linear', epilogue: 'activation in the product',
  two_kernel: 'compiled, two launches', one_pass: 'hidden tile stays in cache',
};

function mlpSentence(mlp) {
  return `${count(mlp.tokens)} tokens of ${mlp.dim} → ${mlp.hidden} ${mlp.activation}${mlp.gated ? ', gated' : ''}${mlp.bias ? ', bias' : ', no bias'}, ${mlp.dtype}`;
}

function errorText(rung) {
  return rung.error.toExponential(2) + ' of ' + rung.error_bound.toExponential(2);
}

function rungBar(rung, scale, floor) {
  const place = (us) => (100 * us / scale).toFixed(2) + '%';
  const state = !rung.ok ? 'failed' : rung.chosen ? 'chosen' : '';
  const time = rung.time_us;
  const says = [time ? element('b', null, duration(time.median)) : element('b', null, 'not timed'),
    rung.speedup && rung.name !== 'unfused' ? ` ${trimmed(rung.speedup, 2)} × unfused` : '',
    floor && time ? `, ${trimmed(time.median / floor, 1)} × the floor` : '', ` · ${plural(rung.launches, 'launch', 'launches')} · ${bytes(rung.bytes)}`,
    rung.ok ? '' : element('span', {class: 'up'}, ` · FAILED: ${visible(rung.reason || '')}`), rung.chosen ? ' · the planner’s choice' : ''];
  return element('div', {class: 'rung ' + state},
    element('div', {class: 'who'}, rung.name, element('small', null, rungWords[rung.name] || '')),
    element('div', {class: 'track', 'aria-hidden': 'true'},
      time && element('div', {class: 'fill', style: {width: place(time.median)}}),
      time && element('div', {class: 'spread', style: {left: place(time.min), width: place(Math.max(0, Math.min(time.max, scale) - time.min))}}),
      floor && element('div', {class: 'floor', style: {left: place(floor)}})),
    element('div', {class: 'says'}, says));
}

function ladderSection(ladder, alone) {
  const {mlp, device, rungs} = ladder;
  const floor = Math.max(ladder.floor.compute_us || 0, ladder.floor.memory_us || 0);
  const bound = (ladder.floor.compute_us || 0) >= (ladder.floor.memory_us || 0) ? 'arithmetic' : 'memory';
  // A single slow sample must not press all bars together.
  const scale = Math.max(floor, ...rungs.map((rung) => rung.time_us ? rung.time_us.median : 0)) * 1.06 || 1;
  return section(alone ? 'Rungs' : mlpSentence(mlp),
    `${visible(device.name)}${ladder.library ? ', ' + visible(ladder.library) : device.library ? ', ' + visible(device.library) : ''}; numerics ${ladder.numerics}. ` +
    `Dashed: the floor of ${duration(floor)}, set by ${bound}: ${flops(ladder.floor.flops)} and ${bytes(ladder.floor.bytes)} at this device’s rates. ` +
    'Thin line: fastest to slowest sample.',
    element('figure', {class: 'picture', style: {margin: '0 0 14px'}, 'aria-label': 'Time of every rung; the same is in the table below'},
      element('div', {class: 'rungs'}, rungs.map((rung) => rungBar(rung, scale, floor)))),
    table('Rungs', [
      {title: 'rung', left: true, value: (row) => row.name, text: (row) => row.name + (row.chosen ? ' ★' : '')},
      {title: 'launches', value: (row) => row.launches},
      {title: 'median µs', value: (row) => row.time_us && row.time_us.median, text: (row) => micros(row.time_us && row.time_us.median)},
      {title: 'min', value: (row) => row.time_us && row.time_us.min, text: (row) => micros(row.time_us && row.time_us.min)},
      {title: 'max', value: (row) => row.time_us && row.time_us.max, text: (row) => micros(row.time_us && row.time_us.max)},
      ...(rungs.some((rung) => rung.sustained_us) ? [{title: 'sustained µs', value: (row) => row.sustained_us, text: (row) => micros(row.sustained_us)}] : []),
      {title: '× unfused', value: (row) => row.speedup, text: (row) => row.speedup ? trimmed(row.speedup, 2) : '–'},
      {title: 'forecast µs', value: (row) => row.forecast_us, text: (row) => micros(row.forecast_us)},
      {title: 'bytes', value: (row) => row.bytes, text: (row) => bytes(row.bytes)},
      {title: 'error, of its bound', value: (row) => row.error, text: errorText},
      {title: 'tile', left: true, kind: 'name', value: (row) => row.tile},
      {title: 'check', left: true, kind: 'name', value: (row) => row.ok ? 'ok' : 'FAILED: ' + (row.reason || '')},
    ], rungs),
    ladder.skipped.length ? element('p', {class: 'note'}, 'Not run: ' + ladder.skipped.map((rung) => `${rung.name} (${visible(rung.reason)})`).join('; ')) : null);
}

function ladderTiles(ladder) {
  const timed = ladder.rungs.filter((rung) => rung.ok && rung.time_us).sort((a, b) => a.time_us.median - b.time_us.median);
  if (timed.length === 0) return null;
  const [fastest] = timed;
  const unfused = ladder.rungs.find((rung) => rung.name === 'unfused') || timed[timed.length - 1];
  return [tile('Fastest', duration(fastest.time_us.median), fastest.name),
    tile('Against unfused', fastest.speedup ? `${trimmed(fastest.speedup, 2)} ×` : '–', 'time'),
    tile('Launches', `${unfused.launches} → ${fastest.launches}`, `${unfused.name} → ${fastest.name}`),
    tile('Memory traffic', bytes(fastest.bytes), `${unfused.name}: ${bytes(unfused.bytes)}`)];
}

function benchPage(data) {
  const {ladders, trace} = data.bench;
  const failed = sum(ladders, (ladder) => ladder.rungs.filter((rung) => !rung.ok).length);
  const best = ladders.map((ladder) => Math.max(...ladder.rungs.filter((rung) => rung.ok).map((rung) => rung.speedup || 0))).filter((value) => value > 0);
  const rungs = sum(ladders, (ladder) => ladder.rungs.length);
  const page = [
    masthead('bench', trace ? 'shapes from ' + visible(trace.split('/').pop()) : ''),
    element('div', {class: 'hero'}, element('span', {class: 'verdict ' + (failed ? 'overhead-bound' : 'compute-bound')}, failed ? plural(failed, 'rung') + ' failed' : 'every rung is right'),
      element('h1', null, ladders.length === 1 ? mlpSentence(ladders[0].mlp) : plural(ladders.length, 'MLP')),
      element('p', {class: 'lead'}, 'Every way to run it on this device, each checked against float64 before it was timed.'),
      element('dl', {class: 'tiles'}, tile('Rungs', count(rungs), failed ? `${failed} failed` : 'all within their bounds'),
        ladders.length === 1 ? ladderTiles(ladders[0]) : tile('Most', best.length ? `${trimmed(Math.max(...best), 2)} ×` : '–', 'over unfused'))),
    ...ladders.map((ladder) => ladderSection(ladder, ladders.length === 1)),
  ];
  return {page, lanes: null};
}
