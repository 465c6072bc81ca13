// Pictures of inputs and views.
const paint = {
  colour: (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim(),

  // A context in units of CSS pixels, cleared.
  on(canvas) {
    const { width, height } = canvas.getBoundingClientRect();
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return { context, width, height };
  },

  // Ink rows (x, y, half width, start) under a matrix, in a square of half side `half`, with
  // lines `pen` times as wide.
  ink(context, rows, matrix, [cx, cy], half, colour, pen) {
    const thick = pen * Math.sqrt(Math.abs(plane.determinant(matrix)));
    context.strokeStyle = context.fillStyle = colour;
    context.lineCap = context.lineJoin = "round";
    let before = null;
    for (let i = 0; i < rows.length; i += 4) {
      const [x, y] = plane.apply(matrix, rows[i], rows[i + 1]);
      const at = [cx + half * x, cy + half * y];
      const start = rows[i + 3] > 0.5 || !before;
      context.lineWidth = 2 * half * rows[i + 2] * thick;
      context.beginPath();
      context.moveTo(...(start ? at : before));
      context.lineTo(...at);
      context.stroke();
      before = at;
    }
  },

  // Gray values in 0..1, bright being ink.
  pixels(context, item, side, [x, y, width], colour) {
    const small = document.createElement("canvas");
    small.width = small.height = side;
    const own = small.getContext("2d");
    own.fillStyle = colour;
    own.fillRect(0, 0, side, side);
    const image = own.getImageData(0, 0, side, side);
    for (let i = 0; i < side * side; i++) {
      image.data[4 * i + 3] = 255 * Math.max(0, Math.min(1, item[i]));
    }
    own.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, x, y, width, width);
  },

  // Rows (x, y, pen), centred on what they cover.
  path(context, item, [x, y, width], colour, dots) {
    const points = [];
    for (let i = 0; i < item.length; i += 3) {
      if (item[i + 2] >= 0) points.push([item[i], item[i + 1], item[i + 2] > 0.5]);
    }
    if (!points.length) return;
    const middle = [0, 1].map((d) => {
      const all = points.map((p) => p[d]);
      return (Math.min(...all) + Math.max(...all)) / 2;
    });
    const place = (p) => [0, 1].map((d) => [x, y][d] + (width / 2) * (1 + p[d] - middle[d]));
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = Math.max(1.2, width * 0.022);
    context.lineCap = context.lineJoin = "round";
    context.beginPath();
    for (const p of points) {
      if (p[2]) context.moveTo(...place(p));
      else context.lineTo(...place(p));
    }
    context.stroke();
    if (!dots) return;
    for (const p of points) {
      context.beginPath();
      context.arc(...place(p), Math.max(1, width * 0.012), 0, 7);
      context.fill();
    }
  },

  // Points under a rotation, as the viewer sees them; the nearer the darker and larger.
  cloud(context, points, rotation, [cx, cy], half, colour) {
    const seen = space.times(space.viewer, rotation);
    const all = [];
    for (let i = 0; i < points.length; i += 3) {
      all.push(space.apply(seen, points[i], points[i + 1], points[i + 2]));
    }
    all.sort((a, b) => b[1] - a[1]);
    context.fillStyle = colour;
    const radius = Math.max(1.2, half * 0.017);
    for (const [x, y, z] of all) {
      const by = 3.4 / (3.4 + y);
      const near = Math.max(0, Math.min(1, 0.5 - y / 1.8));
      context.globalAlpha = 0.28 + 0.72 * near;
      context.beginPath();
      context.arc(cx + half * x * by * 0.8, cy - half * z * by * 0.8, radius * by * (0.75 + 0.5 * near), 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
  },

  // An input or a view of any kind, as the model sees it.
  item(context, facts, item, box, colour) {
    const [x, y, width] = box;
    if (facts.signal === "image") paint.pixels(context, item, facts.shape[1], box, colour);
    else if (facts.signal === "strokes") paint.path(context, item, box, colour, false);
    else paint.cloud(context, item, space.identity, [x + width / 2, y + width / 2], width / 2, colour);
  },
};
