// QR codes (ISO/IEC 18004): bytes, error correction level M, versions 1 to 10.
const QR_CODEWORDS = [26, 44, 70, 100, 134, 172, 196, 242, 292, 346];
const QR_CORRECTION = [10, 16, 26, 18, 24, 16, 18, 22, 22, 26];
const QR_BLOCKS = [1, 1, 1, 2, 2, 4, 4, 4, 5, 5];
const QR_ALIGNMENT = [[], [6, 18], [6, 22], [6, 26], [6, 30], [6, 34], [6, 22, 38], [6, 24, 42], [6, 26, 46], [6, 28, 50]];
const QR_MASKS = [
  (r, c) => (r + c) % 2,
  (r) => r % 2,
  (r, c) => c % 3,
  (r, c) => (r + c) % 3,
  (r, c) => ((r >> 1) + Math.floor(c / 3)) % 2,
  (r, c) => ((r * c) % 2) + ((r * c) % 3),
  (r, c) => (((r * c) % 2) + ((r * c) % 3)) % 2,
  (r, c) => (((r + c) % 2) + ((r * c) % 3)) % 2,
];

const qrExponents = [1];
for (let i = 1; i < 255; i++) qrExponents[i] = (qrExponents[i - 1] << 1) ^ (qrExponents[i - 1] & 128 ? 0x11d : 0);
const qrLogarithms = [];
qrExponents.forEach((value, i) => (qrLogarithms[value] = i));
const qrProduct = (a, b) => (a && b ? qrExponents[(qrLogarithms[a] + qrLogarithms[b]) % 255] : 0);

function qrCorrection(data, degree) {
  let generator = [1];
  for (let i = 0; i < degree; i++) {
    const next = [...generator, 0];
    generator.forEach((value, place) => (next[place + 1] ^= qrProduct(value, qrExponents[i])));
    generator = next;
  }
  const rest = [...data, ...Array(degree).fill(0)];
  for (let i = 0; i < data.length; i++) {
    const lead = rest[i];
    if (lead) generator.forEach((value, place) => (rest[i + place] ^= qrProduct(value, lead)));
  }
  return rest.slice(data.length);
}

function qrVersion(length) {
  for (let version = 1; version <= 10; version++) {
    const held = QR_CODEWORDS[version - 1] - QR_CORRECTION[version - 1] * QR_BLOCKS[version - 1];
    if (length + (version < 10 ? 2 : 3) <= held) return { version, held };
  }
  throw new Error("the text is too long for a QR code of this size");
}

// The data in blocks with their correction, in the order in which the symbol has them.
function qrCodewords(bytes, version, held) {
  let bits = "0100" + bytes.length.toString(2).padStart(version < 10 ? 8 : 16, "0");
  for (const byte of bytes) bits += byte.toString(2).padStart(8, "0");
  bits += "0".repeat(Math.min(4, held * 8 - bits.length));
  bits += "0".repeat((8 - (bits.length % 8)) % 8);
  const data = bits.match(/.{8}/g).map((word) => parseInt(word, 2));
  for (let pad = 0xec; data.length < held; pad ^= 0xec ^ 0x11) data.push(pad);
  const count = QR_BLOCKS[version - 1];
  const degree = QR_CORRECTION[version - 1];
  const short = Math.floor(held / count);
  const blocks = [];
  for (let i = 0, from = 0; i < count; i++) {
    const size = short + (i >= count - (held % count) ? 1 : 0);
    blocks.push(data.slice(from, from + size));
    from += size;
  }
  const corrections = blocks.map((block) => qrCorrection(block, degree));
  const found = [];
  for (let i = 0; i <= short; i++) for (const block of blocks) if (i < block.length) found.push(block[i]);
  for (let i = 0; i < degree; i++) for (const block of corrections) found.push(block[i]);
  return found;
}

function qrRemainder(value, generator, bits) {
  let rest = value << bits;
  for (let i = 31 - Math.clz32(rest); i >= bits; i--) if ((rest >> i) & 1) rest ^= generator << (i - bits);
  return (value << bits) | rest;
}

// Everything but data and format: modules that are set are 0 or 1, the others undefined.
function qrFrame(version) {
  const size = 17 + 4 * version;
  const grid = Array.from({ length: size }, () => Array(size));
  const square = (row, column, far, dark) => {
    for (let r = -far; r <= far; r++)
      for (let c = -far; c <= far; c++) if (grid[row + r] && column + c >= 0 && column + c < size) grid[row + r][column + c] = dark(Math.max(Math.abs(r), Math.abs(c)));
  };
  for (const [row, column] of [[3, 3], [3, size - 4], [size - 4, 3]]) square(row, column, 4, (far) => (far === 2 || far === 4 ? 0 : 1));
  const places = QR_ALIGNMENT[version - 1];
  for (const row of places)
    for (const column of places) if (grid[row][column] === undefined) square(row, column, 2, (far) => (far === 1 ? 0 : 1));
  for (let i = 8; i < size - 8; i++) grid[6][i] = grid[i][6] = (i + 1) % 2;
  if (version >= 7) {
    const word = qrRemainder(version, 0x1f25, 12);
    for (let i = 0; i < 18; i++) grid[Math.floor(i / 3)][size - 11 + (i % 3)] = grid[size - 11 + (i % 3)][Math.floor(i / 3)] = (word >> i) & 1;
  }
  qrFormat(grid, 0);
  return grid;
}

function qrFormat(grid, mask) {
  const size = grid.length;
  const word = qrRemainder(mask, 0x537, 10) ^ 0x5412; // level M is 00
  for (let i = 0; i < 15; i++) {
    const bit = (word >> i) & 1;
    grid[i < 6 ? i : i < 8 ? i + 1 : size - 15 + i][8] = bit;
    grid[8][i < 8 ? size - 1 - i : i === 8 ? 7 : 14 - i] = bit;
  }
  grid[size - 8][8] = 1;
}

function qrPenalty(grid) {
  const size = grid.length;
  const lines = [...grid, ...grid.map((_, column) => grid.map((row) => row[column]))].map((line) => line.join(""));
  let penalty = 0;
  for (const line of lines) {
    for (const run of line.match(/0{5,}|1{5,}/g) ?? []) penalty += run.length - 2;
    for (const pattern of [/(?=10111010000)/g, /(?=00001011101)/g]) penalty += 40 * [...line.matchAll(pattern)].length;
  }
  for (let r = 0; r < size - 1; r++)
    for (let c = 0; c < size - 1; c++) {
      const sum = grid[r][c] + grid[r][c + 1] + grid[r + 1][c] + grid[r + 1][c + 1];
      if (sum === 0 || sum === 4) penalty += 3;
    }
  const dark = grid.flat().reduce((sum, module) => sum + module, 0);
  return penalty + 10 * Math.floor(Math.abs((dark * 20) / (size * size) - 10));
}

// The modules, rows of 0 and 1, and the number of the mask that was chosen.
function makeQr(text) {
  const bytes = new TextEncoder().encode(text);
  const { version, held } = qrVersion(bytes.length);
  const words = qrCodewords(bytes, version, held);
  const frame = qrFrame(version);
  const size = frame.length;
  const places = [];
  for (let right = size - 1, up = true; right > 0; right -= 2, up = !up) {
    if (right === 6) right--;
    for (let i = 0; i < size; i++) for (const column of [right, right - 1]) places.push([up ? size - 1 - i : i, column]);
  }
  const free = places.filter(([row, column]) => frame[row][column] === undefined);
  let best = null;
  QR_MASKS.forEach((masks, mask) => {
    const grid = frame.map((row) => [...row]);
    free.forEach(([row, column], i) => {
      const bit = i >> 3 < words.length ? (words[i >> 3] >> (7 - (i & 7))) & 1 : 0;
      grid[row][column] = bit ^ (masks(row, column) ? 0 : 1);
    });
    qrFormat(grid, mask);
    const penalty = qrPenalty(grid);
    if (best === null || penalty < best.penalty) best = { modules: grid, mask, penalty };
  });
  return best;
}

function drawQr(text, label) {
  const { modules } = makeQr(text);
  const edge = modules.length + 8;
  const drawn = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const dark = modules.flatMap((row, r) => row.flatMap((module, c) => (module ? [`M${c + 4} ${r + 4}h1v1h-1z`] : [])));
  const picture = drawn("svg", { width: edge * 6, height: edge * 6, viewBox: `0 0 ${edge} ${edge}`, role: "img", "aria-label": label, "shape-rendering": "crispEdges" });
  picture.append(drawn("rect", { width: edge, height: edge, fill: "#fff" }), drawn("path", { d: dark.join(""), fill: "#000" }));
  return picture;
}
