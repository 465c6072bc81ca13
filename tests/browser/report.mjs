// Opens a report, and optionally an explanation, in a real browser and checks what no
// text comparison can: that everything is drawn, nothing overlaps or leaves its drawing,
// the sheet sorts, nothing is loaded, and light, dark, narrow and printed pages work.
//
//   npm install --prefix tests/browser
//   upright demo --report report.html --explain explain.svg
//   node tests/browser/report.mjs report.html explain.svg [--pictures FOLDER]
//
// Needs Chromium (CHROMIUM=/path, default /usr/bin/chromium).

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const words = process.argv.slice(2);
const flag = words.indexOf("--pictures");
const folder = flag >= 0 ? words.splice(flag, 2)[1] : null;
const [report, explain] = words;
if (!report) {
  console.error("usage: node report.mjs REPORT.html [EXPLAIN.svg] [--pictures FOLDER]");
  process.exit(2);
}
if (folder) mkdirSync(folder, { recursive: true });

const FIGURES = [
  "tradeoff", "energies", "sheet", "classes", "landscape", "budget",
  "proposals", "poses", "latency", "flips", "health", "limits",
];
const DRAWN = ["tradeoff", "energies", "classes", "landscape", "budget", "poses", "latency"];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

async function open(path, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const trouble = [];
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && trouble.push(m.text()));
  page.on("pageerror", (e) => trouble.push(String(e)));
  page.on("request", (r) => {
    const url = r.url();
    if (!url.startsWith("data:") && url !== pathToFileURL(resolve(path)).href) {
      trouble.push(`asked for ${url}`);
    }
  });
  await page.goto(pathToFileURL(resolve(path)).href);
  return { page, trouble };
}

const shot = (page, name, options = {}) =>
  folder && page.screenshot({ path: `${folder}/${name}.png`, fullPage: true, ...options });

// Texts of drawings that overlap each other or leave the drawing.
const clashes = (page) =>
  page.evaluate(() => {
    const found = [];
    for (const svg of document.querySelectorAll("svg")) {
      const frame = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll("text")]
        .filter((t) => t.textContent.trim())
        .map((t) => [t.textContent, t.getBoundingClientRect()]);
      for (const [i, [text, a]] of texts.entries()) {
        if (a.left < frame.left - 1 || a.right > frame.right + 1 ||
            a.top < frame.top - 1 || a.bottom > frame.bottom + 1) {
          found.push(`"${text}" leaves its drawing`);
        }
        for (const [other, b] of texts.slice(i + 1)) {
          const w = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (w > 1 && h > 3) found.push(`"${text}" overlaps "${other}"`);
        }
      }
    }
    return found;
  });

const wide = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

{
  const { page, trouble } = await open(report, { viewport: { width: 1200, height: 900 } });
  await shot(page, "light");
  const end = await page.$eval("#energies", (s) => s.getBoundingClientRect().top);
  await shot(page, "report", { clip: { x: 90, y: 0, width: 1020, height: end - 6 } });
  assert.deepEqual(await page.$$eval("section", (all) => all.map((s) => s.id)), FIGURES);
  for (const id of DRAWN) {
    const size = await page.$eval(`#${id} svg`, (svg) => {
      const box = svg.getBoundingClientRect();
      const ink = [...svg.querySelectorAll("path,rect,circle,line")].filter((e) => {
        const style = getComputedStyle(e);
        return style.fill !== "none" || style.stroke !== "none";
      });
      return { width: box.width, height: box.height, marks: ink.length };
    });
    assert.ok(size.width > 300 && size.height > 60 && size.marks > 5, `${id}: ${JSON.stringify(size)}`);
  }
  for (const id of ["flips", "health"]) {
    assert.ok((await page.$$(`#${id} tbody tr`)).length > 0, id);
  }
  assert.ok((await page.$$("#limits li")).length >= 4);
  const pictures = await page.$$eval("img", (all) => all.map((i) => i.naturalWidth));
  assert.ok(pictures.length >= 20 && pictures.every((w) => w > 0), "every picture is drawn");
  assert.deepEqual(await clashes(page), []);
  assert.ok((await wide(page)) <= 0, "no sideways scrolling");

  const cells = () => page.$$eval("#cells .cell", (all) =>
    all.map((c) => ({ ...c.dataset, harmed: c.classList.contains("harmed") })));
  const falling = (v) => v.every((x, i) => i === 0 || v[i - 1] >= x);
  const start = await cells();
  assert.ok(falling(start.map((c) => +c.gain)), "biggest gain first without a click");
  const expect = {
    loss: (c) => (c.harmed ? 1 : 0),
    rejected: (c) => (c.verdict === "rejected" ? 1 : 0),
    kept: (c) => (c.verdict === "kept" ? 1 : 0),
    energy: (c) => +c.energy,
    truth: (c) => -c.truth,
    gain: (c) => +c.gain,
  };
  for (const [by, key] of Object.entries(expect)) {
    await page.click(`.sort button[data-by=${by}]`);
    const sorted = await cells();
    assert.equal(sorted.length, start.length);
    assert.ok(falling(sorted.map(key)), `sorted by ${by}`);
    assert.equal(await page.$$eval("[aria-pressed=true]", (all) => all.length), 1);
  }
  const tables = await page.$$eval("a[download]", (all) => all.map((a) => ({
    rows: parseInt(a.parentElement.textContent.match(/(\d+) rows/)[1], 10),
    text: new TextDecoder().decode(
      Uint8Array.from(atob(a.href.split("base64,")[1]), (c) => c.charCodeAt(0))),
  })));
  assert.equal(tables.length, FIGURES.length - 1, "every figure but the limits has its data");
  for (const { rows, text } of tables) assert.equal(text.trimEnd().split("\n").length, rows + 1);
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.$eval("nav", (n) => getComputedStyle(n).display), "none");
  if (folder) await page.pdf({ path: `${folder}/print.pdf`, format: "A4", printBackground: true });
  assert.deepEqual(trouble, []);
}
{
  const { page, trouble } = await open(report,
    { viewport: { width: 1200, height: 900 }, colorScheme: "dark" });
  const paper = await page.$eval("body", (b) => getComputedStyle(b).backgroundColor);
  assert.ok(paper.match(/\d+/g).slice(0, 3).every((v) => +v < 60), `dark paper: ${paper}`);
  await shot(page, "dark");
  assert.deepEqual(trouble, []);
}
{
  const { page, trouble } = await open(report, { viewport: { width: 390, height: 844 } });
  await shot(page, "narrow");
  assert.ok((await wide(page)) <= 0, "a narrow page does not scroll sideways");
  assert.deepEqual(trouble, []);
}
if (explain) {
  for (const colorScheme of ["light", "dark"]) {
    const { page, trouble } = await open(explain,
      { viewport: { width: 900, height: 1100 }, colorScheme });
    const box = await page.$eval("svg", (s) => s.getBoundingClientRect().toJSON());
    await shot(page, `explain-${colorScheme}`, { fullPage: false,
      clip: { x: 0, y: 0, width: 900, height: Math.min(1100, box.height) } });
    assert.deepEqual(await clashes(page), []);
    assert.ok((await page.$$("image")).length >= 3, "input, view and steps are drawn");
    assert.deepEqual(trouble, []);
  }
}
await browser.close();
console.log("ok");
