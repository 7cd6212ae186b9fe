// SPDX-License-Identifier: Apache-2.0
// Drawing on a canvas: colours from the style sheet, boxes that merge below one pixel, hatching, arrows.

/** Colours by name, read anew when light and dark change. */
function palette() {
  const style = getComputedStyle(document.documentElement);
  const cache = new Map();
  return (name) => {
    if (!cache.has(name)) cache.set(name, style.getPropertyValue('--' + name).trim() || '#888');
    return cache.get(name);
  };
}

/** Whether black or white reads better on a colour "#rrggbb". */
function isLight(colour) {
  const value = parseInt(colour.slice(1), 16);
  const channel = (shift) => {
    const c = ((value >> shift) & 255) / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(16) + 0.7152 * channel(8) + 0.0722 * channel(0) > 0.2;
}

class Brush {
  constructor(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    const pixels = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
    this.context = canvas.getContext('2d');
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, width, height);
    this.colour = palette();
    this.width = width;
    this.hatches = new Map();
    this.ratio = ratio;
    this.light = new Map();
  }

  fill(colour, x, y, width, height) {
    this.context.fillStyle = colour;
    this.context.fillRect(x, y, width, height);
  }

  hatch(colour) {
    if (!this.hatches.has(colour)) {
      const tile = document.createElement('canvas');
      const size = tile.width = tile.height = Math.round(6 * this.ratio);
      const pen = tile.getContext('2d');
      pen.strokeStyle = colour;
      pen.lineWidth = size / 3.2;
      pen.beginPath();
      for (const shift of [-size, 0, size]) {
        pen.moveTo(shift - 1, size + 1);
        pen.lineTo(shift + size + 1, -1);
      }
      pen.stroke();
      const pattern = this.context.createPattern(tile, 'repeat');
      pattern.setTransform(new DOMMatrix().scale(1 / this.ratio));
      this.hatches.set(colour, pattern);
    }
    return this.hatches.get(colour);
  }

  font(size, weight) {
    this.context.font = `${weight || 400} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif`;
  }

  /** Text that ends with an ellipsis where it does not fit. */
  text(text, x, y, room, colour) {
    let shown = text.length > 200 ? text.slice(0, 200) : text;
    let size = this.context.measureText(shown).width;
    if (size > room) {
      const letters = Math.floor(shown.length * room / size) - 1;
      if (letters < 2) return;
      shown = shown.slice(0, letters) + '…';
    }
    this.context.fillStyle = colour;
    this.context.fillText(shown, x, y);
  }

  onColour(colour) {
    if (!this.light.has(colour)) this.light.set(colour, isLight(colour));
    return this.colour(this.light.get(colour) ? 'on-light' : 'on-dark');
  }

  /** The events of a row as boxes; those below a pixel become one column, as dense as they are. `toX` maps times;
      `scale` is pixels a nanosecond. */
  row(row, view, toX, y, height, look) {
    const scale = view.scale;
    const context = this.context;
    const {members, start, reach, length, lane} = row;
    let i = lowerBound(reach, view.from);
    while (i < members.length && start[i] <= view.to) {
      const x = toX(start[i]);
      const size = lane.dur[members[i]] * scale;
      const colour = look.colour(members[i]);
      if (size >= 1) {
        const left = Math.max(x, -2);
        const right = Math.min(x + size, this.width + 2);
        const gap = size > 4 ? 0.75 : 0;
        context.fillStyle = look.hatched ? this.hatch(colour) : colour;
        context.fillRect(left, y, Math.max(right - left - gap, 0.75), height);
        if (look.hatched && height > 6) {
          context.fillStyle = colour;
          context.fillRect(left, y + height - 2, Math.max(right - left - gap, 0.75), 2);
        }
        if (look.label && right - left > 34) {
          this.text(look.label(members[i]), left + 5, y + height / 2 + 4, right - left - 10, this.onColour(colour));
        }
        i++;
      } else {
        // All that starts within this pixel, weighed by how much of it they fill.
        const next = Math.max(i + 1, lowerBound(start, start[i] + (Math.floor(x) + 1 - x) / scale));
        context.globalAlpha = Math.min(1, 0.3 + 0.7 * (length[next] - length[i]) * scale);
        context.fillStyle = colour;
        context.fillRect(Math.floor(x), y, 1, height);
        context.globalAlpha = 1;
        i = next;
      }
    }
  }

  /** From a launch call down to its kernel. */
  arrow(x0, y0, x1, y1, colour, strong) {
    const context = this.context;
    context.strokeStyle = context.fillStyle = colour;
    context.globalAlpha = strong ? 1 : 0.42;
    context.lineWidth = strong ? 1.75 : 1;
    const bend = (y1 - y0) * 0.55;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1 - 3);
    context.stroke();
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 2.6, y1 - 5);
    context.lineTo(x1 + 2.6, y1 - 5);
    context.fill();
    context.globalAlpha = 1;
  }

  box(x, y, width, height, colour, strong) {
    const context = this.context;
    context.strokeStyle = colour;
    context.lineWidth = strong ? 2.5 : 1.5;
    context.beginPath();
    context.roundRect(x, y, Math.max(width, 1), height, Math.min(4, width / 2));
    context.stroke();
  }
}

/** Distance between marks of an axis: 1, 2 or 5 times a power of ten, at least `least`. */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  for (const factor of [1, 2, 5]) if (factor * power >= least) return factor * power;
  return 10 * power;
}
