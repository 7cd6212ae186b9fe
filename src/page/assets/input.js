// SPDX-License-Identifier: Apache-2.0
// What pointer, wheel, keys, size, colour scheme and printer do to a picture of lanes.

function listen(lanes) {
  const {canvas} = lanes;
  const pointers = new Map();
  let moved = 0;
  canvas.addEventListener('pointerdown', (event) => {
    pointers.set(event.pointerId, event.offsetX);
    moved = 0;
    canvas.setPointerCapture(event.pointerId);
    canvas.classList.add('drag');
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!pointers.has(event.pointerId)) {
      lanes.hover(lanes.hit(event.offsetX, event.offsetY), event.offsetX, event.offsetY);
      return;
    }
    const before = [...pointers.values()];
    const by = event.offsetX - pointers.get(event.pointerId);
    moved += Math.abs(by);
    pointers.set(event.pointerId, event.offsetX);
    if (pointers.size === 2) {
      const after = [...pointers.values()];
      const spread = (pair) => Math.max(24, Math.abs(pair[0] - pair[1]));
      lanes.zoom(spread(before) / spread(after), (after[0] + after[1]) / 2);
    } else if (moved > 3) {
      lanes.hover(null);
      lanes.pan(-by / lanes.width);
    }
  });
  const lift = (event) => {
    if (pointers.delete(event.pointerId) && moved <= 3 && event.type === 'pointerup') lanes.select(lanes.hit(event.offsetX, event.offsetY), false);
    if (pointers.size === 0) canvas.classList.remove('drag');
  };
  canvas.addEventListener('pointerup', lift);
  canvas.addEventListener('pointercancel', lift);
  canvas.addEventListener('pointerleave', () => lanes.hover(null));
  canvas.addEventListener('dblclick', (event) => {
    const at = lanes.hit(event.offsetX, event.offsetY);
    if (at) lanes.closer(at);
  });
  canvas.addEventListener('wheel', (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (!event.ctrlKey && !event.metaKey && !sideways) return;  // the page scrolls
    event.preventDefault();
    if (sideways) lanes.pan((event.deltaX || event.deltaY) / lanes.width);
    else lanes.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.01), event.offsetX);
  }, {passive: false});
  document.addEventListener('keydown', (event) => {
    if (!/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) lanes.key(event);
  });
  new ResizeObserver(() => lanes.redraw()).observe(lanes.scene);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => lanes.redraw());
  // On paper everything is light.
  const paper = (light) => () => { document.documentElement.classList.toggle('light', light); lanes.draw(); };
  addEventListener('beforeprint', paper(true));
  addEventListener('afterprint', paper(false));
}
