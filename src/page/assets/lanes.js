// SPDX-License-Identifier: Apache-2.0
// The picture of lanes: CPU above, GPU below, all panels on one axis. A panel is {title, timeline, origin}: its times are
// shown from its origin on, so that two traces line up.

const rowHeight = {region: 18, op: 17, call: 17, device: 30, idle: 14};
const arrowRoom = 40;
const mlpTitleHeight = 18;  // above a device's lane, so that boxes have a name
const axisHeight = 26;
const mostArrows = 260;
const mostLanes = {cpu: 3, device: 6};

class Lanes {
  constructor(panels, hooks) {
    this.panels = panels;
    this.hooks = hooks;
    this.all = false;
    this.selected = null;
    this.hovered = null;
    this.canvas = element('canvas', {tabindex: 0, role: 'img'});
    this.tip = element('div', {class: 'tip', hidden: true});
    this.facts = element('div', {class: 'facts-box', 'aria-live': 'polite'});
    this.scene = element('div', {class: 'scene'}, this.canvas, this.tip);
    this.limits = panels.reduce((limits, panel) => ({from: Math.min(limits.from, -panel.origin),
                                                     to: Math.max(limits.to, panel.timeline.span - panel.origin)}),
                                {from: Infinity, to: -Infinity});
    this.view = {...this.limits, scale: 1};
    this.place();
    listen(this);
    this.tell();
  }

  // ---- Where things stand ----

  /** Lanes of a panel that are drawn: the busiest threads and streams unless all are wanted. */
  lanesOf(panel, device) {
    const lanes = panel.timeline.lanes.filter((lane) => lane.device === device && !lane.idle);
    const most = device ? mostLanes.device : mostLanes.cpu;
    if (this.all || lanes.length <= most) return lanes;
    const launches = (lane) => lane.kind.includes('call') ? 1e9 : 0;
    const kept = new Set([...lanes].sort((a, b) => launches(b) + b.start.length - launches(a) - a.start.length).slice(0, most));
    return lanes.filter((lane) => kept.has(lane));
  }

  get hiddenLanes() {
    return sum(this.panels, (panel) => sum([true, false], (device) =>
      panel.timeline.lanes.filter((lane) => lane.device === device && !lane.idle).length - this.lanesOf(panel, device).length));
  }

  place() {
    this.bands = [];
    this.titles = [];
    let y = axisHeight;
    for (const panel of this.panels) {
      if (panel.title) {
        this.titles.push({text: panel.title, y: y + 20, strong: true});
        y += 28;
      }
      for (const lane of this.lanesOf(panel, false)) y = this.placeLane(panel, lane, y);
      if (panel.timeline.lanes.some((lane) => lane.device)) y += arrowRoom - 12;
      const titles = panel.timeline.mlps.length ? mlpTitleHeight : 0;
      for (const lane of this.lanesOf(panel, true)) y = this.placeLane(panel, lane, y, titles);
      for (const lane of panel.timeline.lanes.filter((one) => one.idle)) y = this.placeLane(panel, lane, y);
      y += 10;
    }
    this.height = y + 4;
    this.scene.style.height = this.canvas.style.height = this.height + 'px';
  }

  placeLane(panel, lane, y, room) {
    this.titles.push({text: visible(lane.label), y: y + 12, strong: false});
    y += 17 + (room || 0);
    for (const row of lane.rows) {
      const kind = lane.idle ? 'idle' : lane.device ? 'device' : row.members.length ? lane.kind[row.members[0]] : 'op';
      const height = rowHeight[kind] || rowHeight.op;
      this.bands.push({panel, lane, row, y, height, calls: kind === 'call'});
      y += height + (kind === 'region' ? 2 : 1);
    }
    return y + 5;
  }

  band(panel, lane, last) {
    const bands = this.bands.filter((band) => band.panel === panel && band.lane === lane);
    return bands.length === 0 ? null : bands[last ? bands.length - 1 : 0];
  }

  get width() { return this.canvas.clientWidth || 800; }
  toX(panel, time) { return (time - panel.origin - this.view.from) * this.view.scale; }
  toTime(x) { return this.view.from + x / this.view.scale; }

  // ---- Drawing ----

  draw() {
    this.asked = false;
    const {view} = this;
    view.scale = this.width / (view.to - view.from);
    const brush = new Brush(this.canvas, this.width, this.height);
    this.drawAxis(brush);
    brush.font(11.5);
    for (const band of this.bands) this.drawBand(brush, band);
    for (const panel of this.panels) {
      this.drawMlps(brush, panel);
      this.drawArrows(brush, panel);
    }
    for (const at of [this.selected, this.hovered]) if (at) this.drawChosen(brush, at, at === this.selected);
    for (const {text, y, strong} of this.titles) {
      brush.font(strong ? 14 : 11.5, strong ? 640 : 560);
      brush.text(text, 8, y, this.width - 16, brush.colour(strong ? 'ink' : 'soft'));
    }
    // What is shown, for scripts and tests.
    this.canvas.dataset.from = Math.round(view.from);
    this.canvas.dataset.to = Math.round(view.to);
    if (this.hooks.drawn) this.hooks.drawn(this);
  }

  redraw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => this.draw());
  }

  drawAxis(brush) {
    const {view} = this;
    const step = roundStep(86 / view.scale);
    const zero = this.hooks.zero ? this.hooks.zero() : 0;
    const unit = step >= 1e9 ? [1e9, ' s'] : step >= 1e6 ? [1e6, ' ms'] : step >= 1e3 || view.to - view.from >= 4e3 ? [1e3, ' µs'] : [1, ' ns'];
    const digits = Math.max(0, -Math.floor(Math.log10(step / unit[0])));
    brush.font(11.5);
    for (let time = Math.ceil((view.from - zero) / step) * step + zero; time <= view.to; time += step) {
      const x = (time - view.from) * view.scale;
      brush.fill(brush.colour('line'), x, 18, 1, this.height);
      const text = trimmed((time - zero) / unit[0], digits) + unit[1];
      if (x > 4 && x < this.width - 40) brush.text(text, x + 4, 15, 90, brush.colour('soft'));
    }
  }

  drawBand(brush, band) {
    const {panel, lane, row} = band;
    const {timeline} = panel;
    brush.row(row, {from: this.view.from + panel.origin, to: this.view.to + panel.origin, scale: this.view.scale},
              (time) => this.toX(panel, time), band.y, band.height, {
                hatched: lane.idle,
                colour: (event) => brush.colour(colourOf(timeline, lane, event)),
                label: lane.idle ? null : (event) => titleOf(timeline, lane, event),
              });
  }

  /** Where an MLP stands: its part of the CPU lane, of the device lane, and what is between. */
  mlpPlace(panel, mlp) {
    const device = this.band(panel, panel.timeline.lanes[mlp.deviceLane], false);
    const lane = panel.timeline.lanes[mlp.lane];
    const first = lane && this.bands.find((band) => band.panel === panel && band.lane === lane &&
                                          band.row.members.length && lane.kind[band.row.members[0]] !== 'region');
    const last = lane && this.band(panel, lane, true);
    const span = (from, to) => ({x: this.toX(panel, from), width: (to - from) * this.view.scale});
    return {cpu: first && last ? {...span(mlp.cpuStart, mlp.cpuEnd), y: first.y - 2, height: last.y + last.height - first.y + 4} : null,
            device: device ? {...span(mlp.start, mlp.end), y: device.y - 3, height: device.height + 6} : null};
  }

  drawMlps(brush, panel) {
    const colour = brush.colour('mlp');
    const context = brush.context;
    for (const mlp of panel.timeline.mlps) {
      const from = Math.min(mlp.lane < 0 ? mlp.start : mlp.cpuStart, mlp.start) - panel.origin;
      const to = Math.max(mlp.lane < 0 ? mlp.end : mlp.cpuEnd, mlp.end) - panel.origin;
      if (to < this.view.from || from > this.view.to) continue;
      const {cpu, device} = this.mlpPlace(panel, mlp);
      if (!device || Math.max(device.width, cpu ? cpu.width : 0) < 3) continue;
      if (cpu) {
        context.globalAlpha = 0.13;
        context.fillStyle = colour;
        context.beginPath();
        context.moveTo(cpu.x, cpu.y + cpu.height);
        context.lineTo(cpu.x + cpu.width, cpu.y + cpu.height);
        context.lineTo(device.x + device.width, device.y);
        context.lineTo(device.x, device.y);
        context.fill();
        context.globalAlpha = 1;
        brush.box(cpu.x, cpu.y, cpu.width, cpu.height, colour, false);
      }
      brush.box(device.x, device.y, device.width, device.height, colour, true);
      const title = mlpTitle(panel.timeline.explain.mlps[mlp.row]);
      brush.font(11.5, 640);
      const left = Math.max(device.x, 4);
      const room = Math.min(device.x + device.width, this.width) - left;
      const whole = brush.context.measureText(title).width <= room - 6;
      if (room > 34) brush.text(whole ? title : 'MLP', left + 3, device.y - 5, room - 6, colour);
    }
    brush.font(11.5);
  }

  /** The launch of device work: its x in the lane of calls and its own; null where either is not drawn. */
  arrowOf(panel, lane, event) {
    const caller = panel.timeline.lanes[lane.callLane[event]];
    const from = caller && this.bands.find((band) => band.panel === panel && band.lane === caller && band.calls);
    const to = this.band(panel, lane, false);
    if (!from || !to) return null;
    const call = lane.call[event];
    return {x0: this.toX(panel, caller.start[call] + caller.dur[call] / 2), y0: from.y + from.height,
            x1: this.toX(panel, lane.start[event]), y1: to.y - 1};
  }

  drawArrows(brush, panel) {
    const arrows = [];
    for (const band of this.bands) {
      if (band.panel !== panel || !band.lane.device || band.lane.idle) continue;
      const {row} = band;
      for (let i = lowerBound(row.reach, this.view.from + panel.origin);
           i < row.members.length && row.start[i] <= this.view.to + panel.origin; i++) {
        const arrow = this.arrowOf(panel, band.lane, row.members[i]);
        if (arrow) arrows.push(arrow);
        if (arrows.length > mostArrows) return;  // too many to tell apart; the one pointed at is still drawn
      }
    }
    for (const {x0, y0, x1, y1} of arrows) brush.arrow(x0, y0, x1, y1, brush.colour('soft'), false);
  }

  drawChosen(brush, {panel, lane, event, band}, strong) {
    const x = this.toX(panel, lane.start[event]);
    brush.box(x - 1, band.y - 1, Math.max(lane.dur[event] * this.view.scale, 2) + 2, band.height + 2, brush.colour('ink'), strong);
    const linked = lane.device && !lane.idle ? [event] : [];
    for (const one of linked) {
      const arrow = this.arrowOf(panel, lane, one);
      if (arrow) brush.arrow(arrow.x0, arrow.y0, arrow.x1, arrow.y1, brush.colour('ink'), true);
    }
    if (lane.device || lane.kind[event] !== 'call') return;
    for (const other of panel.timeline.lanes) {
      if (!other.device || other.idle) continue;
      for (let i = 0; i < other.call.length; i++) {
        if (other.call[i] !== event || other.callLane[i] !== lane.index) continue;
        const arrow = this.arrowOf(panel, other, i);
        if (arrow) brush.arrow(arrow.x0, arrow.y0, arrow.x1, arrow.y1, brush.colour('ink'), true);
      }
    }
  }

  // ---- Moving ----

  show(from, to) {
    const most = this.limits.to - this.limits.from;
    const least = Math.min(100, most);
    const size = Math.min(Math.max(to - from, least), most * 1.05);
    const middle = (from + to) / 2;
    const slack = most * 0.025 + size * 0.02;
    const start = Math.min(Math.max(middle - size / 2, this.limits.from - slack), Math.max(this.limits.to + slack - size, this.limits.from - slack));
    this.view.from = start;
    this.view.to = start + size;
    this.redraw();
  }

  zoom(factor, x) {
    const at = this.toTime(x === undefined ? this.width / 2 : x);
    this.show(at - (at - this.view.from) * factor, at + (this.view.to - at) * factor);
  }

  pan(share) {
    const by = share * (this.view.to - this.view.from);
    this.show(this.view.from + by, this.view.to + by);
  }

  /** The event at a place of the canvas, or the nearest within two pixels. */
  hit(x, y) {
    const band = this.bands.find((one) => y >= one.y && y < one.y + one.height + 1);
    if (!band) return null;
    const {panel, lane, row} = band;
    const time = this.toTime(x) + panel.origin;
    const near = 2.5 / this.view.scale;
    let best = null;
    for (let i = lowerBound(row.reach, time - near); i < row.members.length && row.start[i] <= time + near; i++) {
      const event = row.members[i];
      const away = Math.max(row.start[i] - time, time - row.start[i] - lane.dur[event], 0);
      if (!best || away < best.away) best = {away, event, index: i};
      if (away === 0) break;
    }
    return best && {panel, lane, event: best.event, index: best.index, band};
  }

  select(at, reveal) {
    this.selected = at;
    if (at && reveal) {
      const start = at.lane.start[at.event] - at.panel.origin;
      const end = start + at.lane.dur[at.event];
      if (start < this.view.from || end > this.view.to) {
        const half = (this.view.to - this.view.from) / 2;
        this.show((start + end) / 2 - half, (start + end) / 2 + half);
      }
    }
    this.tell();
    this.redraw();
  }

  /** The next event of the chosen row, or the first kernel in view. */
  step(direction) {
    if (!this.selected) {
      const band = this.bands.find((one) => one.lane.device && !one.lane.idle) || this.bands[0];
      if (!band) return;
      const index = Math.min(lowerBound(band.row.reach, this.view.from + band.panel.origin), band.row.members.length - 1);
      if (index >= 0) this.select({panel: band.panel, lane: band.lane, event: band.row.members[index], index, band}, true);
      return;
    }
    const {band} = this.selected;
    const index = this.selected.index + direction;
    if (index >= 0 && index < band.row.members.length) {
      this.select({...this.selected, event: band.row.members[index], index}, true);
    }
  }

  tell() {
    if (!this.selected) {
      this.facts.replaceChildren('Point at a box for its facts, click to keep them here; arrow keys go from one to the next.');
      return;
    }
    const {panel, lane, event} = this.selected;
    const {title, lines} = factsOf(panel.timeline, lane, event);
    this.facts.replaceChildren(element('strong', null, title), ' · ' + lines.join(' · '));
  }

  hover(at, x, y) {
    const changed = (at && at.event) !== (this.hovered && this.hovered.event) || (at && at.band) !== (this.hovered && this.hovered.band);
    this.hovered = at;
    this.tip.hidden = !at;
    if (at) {
      if (changed) {
        const {title, lines} = factsOf(at.panel.timeline, at.lane, at.event);
        this.tip.replaceChildren(element('strong', null, title), ...lines.map((line) => element('div', null, element('span', null, line))));
      }
      const size = {width: this.tip.offsetWidth, height: this.tip.offsetHeight};
      this.tip.style.left = Math.max(4, Math.min(x + 14, this.width - size.width - 4)) + 'px';
      this.tip.style.top = (y + 18 + size.height > this.height ? Math.max(0, y - size.height - 12) : y + 18) + 'px';
    }
    if (changed) this.redraw();
  }

  key(event) {
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const actions = {w: () => this.zoom(0.7), s: () => this.zoom(1 / 0.7), a: () => this.pan(-0.15), d: () => this.pan(0.15),
                     f: () => this.hooks.fit(), '0': () => this.hooks.fit()};
    const focused = {ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), Escape: () => this.select(null, false),
                     Enter: () => this.selected && this.closer(this.selected)};
    const action = actions[name] || (document.activeElement === this.canvas ? focused[name] : null);
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  closer({panel, lane, event}) {
    const size = Math.max(lane.dur[event], 200);
    const start = lane.start[event] - panel.origin;
    this.show(start - size * 0.4, start + size * 1.4);
  }
}
