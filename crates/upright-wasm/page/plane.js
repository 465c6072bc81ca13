// The plane: 2 x 2 matrices [a, b, c, d], x to the right and y down. A drawing
// is turned, sheared and scaled by turn(t) · shear(k) · scale(x, y).
const plane = {
  identity: [1, 0, 0, 1],
  times: ([a, b, c, d], [e, f, g, h]) =>
    [a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h],
  apply: ([a, b, c, d], x, y) => [a * x + b * y, c * x + d * y],
  determinant: ([a, b, c, d]) => a * d - b * c,
  inverse([a, b, c, d]) {
    const by = 1 / (a * d - b * c);
    return [d * by, -b * by, -c * by, a * by];
  },
  // Degrees, a shear, the ratio of width to height, and the mean factor.
  of({ turn, shear, stretch, size }) {
    const t = (turn * Math.PI) / 180;
    const [x, y] = [size * Math.sqrt(stretch), size / Math.sqrt(stretch)];
    const [cos, sin] = [Math.cos(t), Math.sin(t)];
    return [cos * x, (cos * shear - sin) * y, sin * x, (sin * shear + cos) * y];
  },
  parts([a, b, c, d]) {
    const x = Math.hypot(a, c);
    const y = (a * d - b * c) / x;
    return {
      turn: (Math.atan2(c, a) * 180) / Math.PI,
      shear: (a * b + c * d) / x / y,
      stretch: x / Math.abs(y),
      size: Math.sqrt(x * Math.abs(y)),
    };
  },
  // Between the identity and a matrix, by the parts: 0 is the identity.
  between(m, share) {
    const p = plane.parts(m);
    return plane.of({
      turn: p.turn * share,
      shear: p.shear * share,
      stretch: p.stretch ** share,
      size: p.size ** share,
    });
  },
};
