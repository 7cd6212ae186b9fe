// SPDX-License-Identifier: Apache-2.0
// Elements and numbers. Text from a trace becomes text nodes and attributes, never markup.

/** An element; `attributes` with `on…` functions are listeners, null and false attributes are left out. */
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (key === 'style') for (const [name, text] of Object.entries(value)) made.style.setProperty(name, text);
    else made.setAttribute(key, value === true ? '' : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Control characters as the symbols that stand for them, so that they are seen and do nothing. */
function visible(text) {
  return text.replace(/[\u0000-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0))).replace(/\u007f/g, '\u2421');
}

function trimmed(number, digits) {
  return number.toLocaleString('en', {minimumFractionDigits: digits, maximumFractionDigits: digits});
}

/** Microseconds as text of about three digits; `decimals` more for differences. */
function duration(us) {
  if (us === null || us === undefined) return '–';
  const size = Math.abs(us);
  if (size >= 1e6) return trimmed(us / 1e6, 2) + ' s';
  if (size >= 1e3) return trimmed(us / 1e3, size >= 1e5 ? 0 : size >= 1e4 ? 1 : 2) + ' ms';
  return trimmed(us, size >= 100 ? 0 : size >= 10 ? 1 : 2) + ' µs';
}

/** Microseconds for a column that says so in its head. */
function micros(us) {
  return us === null || us === undefined ? '–' : trimmed(us, Math.abs(us) >= 1000 ? 0 : 1);
}

function count(value) {
  if (value === null || value === undefined) return '–';
  return Number.isInteger(value) ? trimmed(value, 0) : trimmed(value, 1);
}

function percent(share) {
  return share === null || share === undefined ? '–' : trimmed(100 * share, share < 0.1 ? 1 : 0) + ' %';
}

function bytes(value) {
  if (value === null || value === undefined) return '–';
  for (const [unit, size] of [['TB', 1e12], ['GB', 1e9], ['MB', 1e6], ['kB', 1e3]]) {
    if (value >= size) return trimmed(value / size, value >= 100 * size ? 0 : 1) + ' ' + unit;
  }
  return trimmed(value, 0) + ' B';
}

function flops(value) {
  return value >= 1e9 ? trimmed(value / 1e9, value >= 1e11 ? 0 : 1) + ' GFLOP' : trimmed(value / 1e6, 1) + ' MFLOP';
}

function plural(value, word, many) {
  return count(value) + ' ' + (value === 1 ? word : many || word + 's');
}

function sum(rows, value) {
  return rows.reduce((total, row) => total + (value(row) || 0), 0);
}

function section(title, remark, ...children) {
  return element('section', null, element('h2', null, title), remark && element('p', {class: 'sub'}, remark), ...children);
}

/** The head of every page: what it is, of which file, and facts about it. */
function masthead(what, facts) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  for (const [key, value] of Object.entries({viewBox: '0 0 32 20', width: 32, height: 20, 'aria-hidden': 'true'})) {
    svg.setAttribute(key, value);
  }
  for (const [points, fill] of [['8,2 24,2 28,9 4,9', '#f6b73c'], ['4,9 28,9 31,19 1,19', '#d9600a']]) {
    const shape = document.createElementNS('http://www.w3.org/2000/svg', 'polygon');
    shape.setAttribute('points', points);
    shape.setAttribute('fill', fill);
    svg.append(shape);
  }
  return element('header', {class: 'top'}, element('span', {class: 'mark'}, svg, 'Ingot'),
                 element('span', {class: 'what'}, what), element('span', {class: 'facts'}, facts));
}

function leftOut(lines) {
  return lines.length === 0 ? null : element('p', {class: 'note'}, 'Not on this page: ' + lines.map(visible).join('; ') + '.');
}
