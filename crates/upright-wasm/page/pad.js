// The stage: draw, turn by the ring, shear and scale by the corners, turn in
// space by dragging. Tells `changed` of every change, and whether it is over.
function makePad(canvas, changed) {
  const RING = 0.93;
  const CORNER = 0.56;
  const NIB = 0.062;
  const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map((c) => c.map((v) => v * CORNER));
  let scene = null;
  let held = null;

  const solid = () => scene.facts.signal === "cloud";
  const box = () => canvas.getBoundingClientRect();
  const half = () => box().width / 2;
  const at = (e) => {
    const b = box();
    return [(e.clientX - b.left) / half() - 1, (e.clientY - b.top) / half() - 1];
  };

  function draw() {
    if (!scene) return;
    const { context, width } = paint.on(canvas);
    const h = width / 2;
    const [ink, soft, line, main] = ["--ink", "--soft", "--line", "--main"].map(paint.colour);
    const turn = solid() ? scene.roll : (plane.parts(scene.matrix).turn * Math.PI) / 180;
    context.strokeStyle = line;
    context.lineWidth = 1.5;
    context.beginPath();
    context.arc(h, h, RING * h, 0, 7);
    context.stroke();
    familiar(context, h);
    context.strokeStyle = soft;
    for (let i = 0; i < 24; i++) {
      const a = (i * Math.PI) / 12;
      const from = RING - (i % 6 ? 0.018 : 0.04);
      context.beginPath();
      context.moveTo(h + from * h * Math.cos(a), h + from * h * Math.sin(a));
      context.lineTo(h + RING * h * Math.cos(a), h + RING * h * Math.sin(a));
      context.lineWidth = i % 6 ? 1 : 1.5;
      context.stroke();
    }
    if (solid()) {
      paint.cloud(context, scene.drawn, scene.rotation, [h, h], h, ink);
    } else {
      const spots = corners.map(([x, y]) => plane.apply(scene.matrix, x, y).map((v) => h + h * v));
      context.setLineDash([3, 5]);
      context.strokeStyle = line;
      context.lineWidth = 1.5;
      context.beginPath();
      spots.forEach((p) => context.lineTo(...p));
      context.closePath();
      context.stroke();
      context.setLineDash([]);
      paint.ink(context, scene.drawn, scene.matrix, [h, h], h, ink, scene.pen);
      for (const [i, p] of spots.entries()) {
        const big = held?.corner === i;
        context.beginPath();
        context.roundRect(p[0] - 6, p[1] - 6, 12, 12, 3);
        context.fillStyle = big ? main : paint.colour("--card");
        context.strokeStyle = main;
        context.lineWidth = 2;
        context.fill();
        context.stroke();
      }
    }
    const [x, y] = [h + RING * h * Math.sin(turn), h - RING * h * Math.cos(turn)];
    context.beginPath();
    context.arc(x, y, 11, 0, 7);
    context.fillStyle = main;
    context.fill();
    context.lineWidth = 3;
    context.strokeStyle = paint.colour("--card");
    context.stroke();
  }

  // Along the ring, how familiar the input would look if it were turned there.
  function familiar(context, h) {
    if (!scene.ring) return;
    const { energies: all, turn } = scene.ring;
    const [colour, step] = [colours(), (2 * Math.PI) / all.length];
    context.lineWidth = 9;
    all.forEach((energy, i) => {
      const middle = turn - ((i + 0.5) * step - Math.PI) - Math.PI / 2;
      context.strokeStyle = colour(energy);
      context.beginPath();
      context.arc(h, h, RING * h, middle - step * 0.52, middle + step * 0.52);
      context.stroke();
    });
  }

  function hit([x, y]) {
    const reach = 22 / half();
    if (!solid()) {
      const spots = corners.map(([a, b]) => plane.apply(scene.matrix, a, b));
      const corner = spots.findIndex(([a, b]) => Math.hypot(x - a, y - b) < reach);
      if (corner >= 0) return { corner };
    }
    if (Math.abs(Math.hypot(x, y) - RING) < Math.max(reach, 0.06)) return { ring: Math.atan2(y, x) };
    return solid() ? { ball: [x, y] } : { pen: true };
  }

  function turnRing(by) {
    if (solid()) {
      scene.roll += by;
      turnSeen(space.about([0, 1, 0], by));
    } else {
      const [cos, sin] = [Math.cos(by), Math.sin(by)];
      scene.matrix = plane.times([cos, -sin, sin, cos], scene.matrix);
    }
  }

  // Turns what the viewer sees.
  function turnSeen(by) {
    const { viewer } = space;
    scene.rotation = space.times(
      space.times(space.transpose(viewer), space.times(by, viewer)), scene.rotation);
  }

  // Moves one corner and the one across; the other two stay.
  function moveCorner(i, [x, y]) {
    const [a, b] = [corners[i], corners[(i + 1) % 4]];
    const kept = plane.apply(scene.matrix, ...b);
    const basis = plane.inverse([a[0], b[0], a[1], b[1]]);
    const next = plane.times([x, kept[0], y, kept[1]], basis);
    const { shear, stretch, size } = plane.parts(next);
    const fits = plane.determinant(next) > 0 && Math.abs(shear) < 0.9 &&
      stretch > 0.4 && stretch < 2.5 && size > 0.5 && size < 1.5;
    if (fits) scene.matrix = next;
  }

  function ink([x, y], start) {
    if (start && scene.truth !== null) {
      scene.drawn = [];
      scene.matrix = plane.identity;
      scene.truth = scene.ring = null;
    }
    const [a, b] = plane.apply(plane.inverse(scene.matrix), x, y);
    const n = scene.drawn.length;
    if (!start && Math.hypot(a - scene.drawn[n - 4], b - scene.drawn[n - 3]) < 0.012) return;
    scene.drawn.push(a, b, NIB, start ? 1 : 0);
  }

  canvas.addEventListener("pointerdown", (e) => {
    if (!scene || (e.pointerType === "mouse" && e.button !== 0)) return;
    e.preventDefault();
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(e.pointerId);
    held = { ...hit(at(e)), id: e.pointerId };
    if (held.pen) {
      if (Math.hypot(...at(e)) > RING) held = null;
      else ink(at(e), true);
    }
    draw();
    if (held?.pen) changed(false);
  });
  canvas.addEventListener("pointermove", (e) => {
    if (!scene) return;
    if (!held) {
      const over = hit(at(e));
      canvas.style.cursor = over.pen ? "crosshair" : over.ball ? "grab" : "pointer";
      return;
    }
    if (held.id !== e.pointerId) return;
    const p = at(e);
    if (held.pen) {
      const all = e.getCoalescedEvents?.() ?? [];
      for (const one of all.length ? all : [e]) ink(at(one), false);
    } else if (held.corner !== undefined) {
      moveCorner(held.corner, p);
    } else if (held.ring !== undefined) {
      const angle = Math.atan2(p[1], p[0]);
      turnRing(angle - held.ring);
      held.ring = angle;
    } else {
      const [dx, dy] = [p[0] - held.ball[0], p[1] - held.ball[1]];
      const length = Math.hypot(dx, dy);
      if (length > 0) turnSeen(space.about([dy / length, 0, dx / length], 1.6 * length));
      held.ball = p;
    }
    draw();
    changed(false);
  });
  const release = (e) => {
    if (!held || held.id !== e.pointerId) return;
    held = null;
    draw();
    changed(true);
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);

  canvas.addEventListener("keydown", (e) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[e.key];
    if (!scene || !step || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    const [x, y] = step;
    if (solid()) {
      const by = Math.PI / 36;
      if (e.shiftKey) turnRing(by * (x || y));
      else turnSeen(space.about(x ? [0, 0, x] : [-y, 0, 0], by));
    } else {
      const parts = plane.parts(scene.matrix);
      if (e.shiftKey) parts.shear = Math.max(-0.8, Math.min(0.8, parts.shear + 0.05 * (x || y)));
      else if (x) parts.turn += 5 * x;
      else parts.size = Math.max(0.55, Math.min(1.45, parts.size * 1.05 ** y));
      scene.matrix = plane.of(parts);
    }
    draw();
    changed(true);
  });

  return {
    draw,
    show(other) {
      [scene, held] = [other, null];
      draw();
    },
  };
}
