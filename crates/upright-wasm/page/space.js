// Space: 3 x 3 rotations by rows, z up. The viewer stands before the thing, a
// little to the side and above.
const space = {
  identity: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  times: (p, q) =>
    Array.from({ length: 9 }, (_, i) => {
      const [row, column] = [3 * Math.floor(i / 3), i % 3];
      return p[row] * q[column] + p[row + 1] * q[column + 3] + p[row + 2] * q[column + 6];
    }),
  transpose: ([a, b, c, d, e, f, g, h, i]) => [a, d, g, b, e, h, c, f, i],
  apply: (m, x, y, z) => [
    m[0] * x + m[1] * y + m[2] * z,
    m[3] * x + m[4] * y + m[5] * z,
    m[6] * x + m[7] * y + m[8] * z,
  ],
  about([x, y, z], angle) {
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const t = 1 - cos;
    return [
      cos + x * x * t, x * y * t - z * sin, x * z * t + y * sin,
      y * x * t + z * sin, cos + y * y * t, y * z * t - x * sin,
      z * x * t - y * sin, z * y * t + x * sin, cos + z * z * t,
    ];
  },
  angle: (m) => Math.acos(Math.max(-1, Math.min(1, (m[0] + m[4] + m[8] - 1) / 2))),
  // Between the identity and a rotation, about its own axis.
  between(m, share) {
    const angle = space.angle(m);
    let axis = [m[7] - m[5], m[2] - m[6], m[3] - m[1]];
    let length = Math.hypot(...axis);
    if (length < 1e-6) {
      if (angle < 1) return space.identity;
      axis = [0, 1, 2].map((i) => Math.sqrt(Math.max(0, (m[4 * i] + 1) / 2)));
      length = Math.hypot(...axis);
    }
    return space.about(axis.map((v) => v / length), angle * share);
  },
  // Uniform over all rotations (Shoemake).
  random() {
    const [u, v, w] = [Math.random(), 2 * Math.PI * Math.random(), 2 * Math.PI * Math.random()];
    const [a, b] = [Math.sqrt(1 - u), Math.sqrt(u)];
    const [x, y, z, s] = [a * Math.sin(v), a * Math.cos(v), b * Math.sin(w), b * Math.cos(w)];
    return [
      1 - 2 * (y * y + z * z), 2 * (x * y - z * s), 2 * (x * z + y * s),
      2 * (x * y + z * s), 1 - 2 * (x * x + z * z), 2 * (y * z - x * s),
      2 * (x * z - y * s), 2 * (y * z + x * s), 1 - 2 * (x * x + y * y),
    ];
  },
};
// To the viewer: x right, y away, z up.
space.viewer = space.times(space.about([1, 0, 0], 0.34), space.about([0, 0, 1], 0.55));
