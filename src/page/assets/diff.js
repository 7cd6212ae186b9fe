// SPDX-License-Identifier: Apache-2.0
// The page of two traces: both on one axis, each from the start of its typical step, and what changed.

function change(before, after, format) {
  const share = before > 0 ? after / before - 1 : null;
  const tone = share === null || Math.abs(share) < 0.005 ? null : share > 0 ? 'up' : 'down';
  return [format(before), ' → ', element('strong', null, format(after)),
          share !== null && tone ? element('span', {class: tone}, ` ${share > 0 ? '+' : '−'}${trimmed(Math.abs(100 * share), 0)} %`) : ''];
}

function pairColumn(title, key, format) {
  return {title, value: (row) => row[key].after - row[key].before, text: (row) => change(row[key].before, row[key].after, format)};
}

function diffRegionTable(regions) {
  return table('Regions', [
    {title: 'region', left: true, kind: 'name', value: (row) => row.name},
    pairColumn('calls', 'calls', count), pairColumn('launches', 'launches_per_call', count), pairColumn('kernels', 'kernels_per_call', count),
    pairColumn('CPU µs', 'cpu_us', micros), pairColumn('GPU busy µs', 'gpu_busy_us', micros),
  ], regions);
}

function countTable(label, rows, sides) {
  const columns = [{title: 'name', left: true, kind: 'name', value: (row) => row.short_name, hint: (row) => row.name,
                    text: (row) => visible(row.short_name || row.name)}];
  for (const side of sides) {
    const before = sides.length > 1 ? side + ' ' : '';
    columns.push({title: before + 'count', value: (row) => row[side], text: (row) => count(row[side])});
    columns.push({title: before + 'µs', value: (row) => row[side + '_us'], text: (row) => micros(row[side + '_us'])});
  }
  return table(label, columns, rows, 'narrow');
}

function diffFigure(panels) {
  const caption = element('p', {class: 'sub', style: {margin: '0 0 8px'}},
    panels.map((panel) => `${panel.word}: ${visible(panel.step.name)}, ${sentence(panel.timeline, panel.step.start, panel.step.end)}.`).join(' '));
  const lanes = new Lanes(panels, {fit: () => fit()});
  const longest = Math.max(...panels.map((panel) => panel.step.end - panel.step.start));
  const fit = () => lanes.show(-longest * 0.015, longest * 1.015);
  lanes.canvas.setAttribute('aria-label', 'Timelines before and after on one axis. ' + caption.textContent);
  const tables = element('details', null, element('summary', null, 'The device work of both steps as tables'));
  tables.addEventListener('toggle', () => {
    if (tables.open && tables.children.length === 1) {
      for (const panel of panels) tables.append(element('h3', null, panel.title), eventTable(panel.timeline, panel.step));
    }
  });
  const figure = element('figure', {class: 'picture', 'aria-label': 'Timelines before and after'}, controls(lanes, null), lanes.scene, lanes.facts,
    element('figcaption', null, caption, timelineLegend(panels.map((panel) => panel.timeline)), tables));
  fit();
  return {figure, lanes};
}

function diffTiles(diff) {
  const main = diff.regions.find((region) => region.name === diff.basis) || diff.regions[0];
  if (!main) return null;
  const one = (title, key, format) => {
    const [from, , to, share] = change(main[key].before, main[key].after, format);
    return tile(title, to, ['was ' + from, share]);
  };
  return element('dl', {class: 'tiles'}, one('GPU busy', 'gpu_busy_us', duration), one('CPU', 'cpu_us', duration),
                 one('Kernels', 'kernels_per_call', count), one('Launches', 'launches_per_call', count));
}

function diffPage(data) {
  const {diff, traces} = data;
  const panels = traces.map((trace, index) => ({trace, timeline: makeTimeline(trace), word: index ? 'After' : 'Before'}))
    .filter((panel) => panel.timeline)
    .map((panel) => {
      const step = panel.timeline.typical;
      return {...panel, step, origin: step.start, title: `${panel.word}: ${visible(panel.trace.explain.trace.file.split('/').pop())}, ${visible(step.name)}`};
    });
  const drawn = panels.length ? diffFigure(panels) : null;
  const basis = diff.basis === 'trace' ? 'over the whole trace' : `per call of ${visible(diff.basis)}`;
  const rowsOf = (rows, title, remark, sides) => rows.length ? section(title, remark, countTable(title, rows, sides)) : null;
  const base = (file) => visible(file.split('/').pop());
  const page = [
    masthead('diff', traces.map((trace) => trace.explain.trace.device).filter((name, index, all) => name && all.indexOf(name) === index).map(visible).join(' → ')),
    element('div', {class: 'hero'}, element('span', {class: 'verdict'}, 'before → after'), element('h1', null, `${base(diff.before)} → ${base(diff.after)}`),
      element('p', {class: 'lead'}, diff.regions.length ? `Counts and times ${basis}; times are medians.` : 'The two traces share no region; counts are over the whole traces.'),
      diffTiles(diff)),
    section('Timelines', 'Both on one axis, each from the start of its typical step. Launches above, kernels below.',
            drawn ? drawn.figure : element('p', {class: 'note'}, 'Neither trace holds anything that can be drawn on a time axis.')),
    diff.replacements.length ? section('Fused and replaced', null, element('ul', {class: 'chips'}, diff.replacements.map((one) =>
      element('li', null, element('b', null, one.what), visible(one.before.join(' + ')), ' → ', element('strong', null, visible(one.after.join(' + '))))))) : null,
    diff.regions.length ? section('Regions', 'Per call; microseconds are medians.', diffRegionTable(diff.regions)) : null,
    element('div', {class: 'pair'}, rowsOf(diff.kernels_gone, 'Kernels gone', basis, ['before']), rowsOf(diff.kernels_new, 'New kernels', basis, ['after'])),
    rowsOf(diff.kernels_identical, 'Kernels byte-for-byte the same', basis, ['before', 'after']),
    element('div', {class: 'pair'}, rowsOf(diff.ops_gone, 'Operators gone', basis, ['before']), rowsOf(diff.ops_new, 'New operators', basis, ['after'])),
    leftOut([...data.left_out, ...traces.flatMap((trace) => trace.left_out)]),
  ];
  return {page, lanes: drawn && drawn.lanes};
}
