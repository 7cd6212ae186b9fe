// SPDX-License-Identifier: Apache-2.0
// Tables that sort. A column is {title, value, text, left, kind}: `value(row)` sorts, `text(row)` shows (text or nodes;
// the value where there is none); `kind` is a class of its cells; `share(row)` of 0 to 1 draws a bar under the cell.

const shortTable = 25;

function compare(a, b) {
  const missing = (value) => value === null || value === undefined || Number.isNaN(value);
  if (missing(a) || missing(b)) return missing(a) - missing(b);  // unknown values stand last, whichever way is sorted
  return typeof a === 'string' || typeof b === 'string' ? String(a).localeCompare(String(b), 'en', {numeric: true}) : a - b;
}

function cell(column, row) {
  const content = column.text ? column.text(row) : column.value(row);
  const share = column.share ? column.share(row) : null;
  const classes = [column.left ? 'left' : '', column.kind || '', share !== null ? 'share' : ''].filter(Boolean).join(' ');
  const style = share === null ? null : {'--share': (100 * Math.min(1, Math.max(0, share))).toFixed(1) + '%'};
  const plain = (part) => typeof part === 'string' ? visible(part) : part;
  return element('td', {class: classes || null, style, title: column.hint ? visible(column.hint(row) || '') || null : null},
                 ...[content === null || content === undefined ? '–' : content].flat().map((part) =>
                   typeof part === 'number' ? count(part) : plain(part)));
}

/** A table of `rows`; `label` is its name for those who cannot see it. Rows stay in their order until a head is pressed. */
function table(label, columns, rows, kind) {
  let shown = rows.length > shortTable ? shortTable : rows.length;
  let sorted = rows;
  const body = element('tbody');
  const more = element('div', {class: 'more'});
  const fill = () => {
    body.replaceChildren(...sorted.slice(0, shown).map((row) => element('tr', null, columns.map((column) => cell(column, row)))));
    more.replaceChildren();
    if (shown < rows.length) {
      more.append(element('button', {type: 'button', onclick: () => { shown = rows.length; fill(); }},
                          `Show all ${count(rows.length)} rows`));
    }
    more.hidden = shown >= rows.length;
  };
  const heads = columns.map((column) => element('th', {scope: 'col', class: column.left ? 'left' : null},
    element('button', {type: 'button', onclick: () => sort(column)}, column.title)));
  const sort = (column) => {
    const head = heads[columns.indexOf(column)];
    const was = head.getAttribute('aria-sort');
    // Numbers are first wanted largest first, names from A on.
    const descending = was ? was === 'ascending' : !column.left;
    for (const other of heads) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
    const missing = (value) => value === null || value === undefined || Number.isNaN(value);
    sorted = rows.map((row, index) => ({row, index, value: column.value(row)}))
      .sort((a, b) => {
        const order = compare(a.value, b.value);
        return (missing(a.value) || missing(b.value) || !descending ? order : -order) || a.index - b.index;
      }).map((entry) => entry.row);
    fill();
  };
  fill();
  return element('div', {class: 'scroll ' + (kind || ''), tabindex: 0, role: 'region', 'aria-label': label},
                 element('table', {'aria-label': label}, element('thead', null, element('tr', null, heads)), body), more);
}
