// SPDX-License-Identifier: Apache-2.0
const data = JSON.parse(document.getElementById('data').textContent);
const {page, lanes} = {explain: explainPage, diff: diffPage, bench: benchPage}[data.page](data);
document.getElementById('page').append(...page.filter(Boolean), element('footer', null,
  'Written by Ingot. One file, nothing loaded from a network. An unknown value is a dash, never a guess.'));
if (lanes) lanes.draw();
