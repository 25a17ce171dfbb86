// Page of the explorer: search, comparison, keyboard and tools. Last part.
// -- search ----------------------------------------------------------------------------------------------

const box = element("input", { type: "search", placeholder: "search", ariaLabel: "search all panes", spellcheck: false });
const hits = element("output");
function find() {
  state.search = box.value.toLowerCase();
  state.hits = state.search ? panes.flatMap(pane => [...pane.stage.lines.keys()]
    .filter(n => textOf(pane.stage.lines[n]).toLowerCase().includes(state.search)).map(line => ({ pane, line }))) : [];
  if (state.hit >= state.hits.length) state.hit = -1;
  hits.textContent = state.search ? `${state.hit + 1}/${state.hits.length}` : "";
}
function step(by) {
  if (!state.hits.length) return;
  state.hit = (state.hit + by + state.hits.length) % state.hits.length;
  const { pane, line } = state.hits[state.hit];
  if (alone && alone !== pane) (alone = null, arrange());
  pane.now = pane.reveal(line);
  activate(pane);
  pane.show(line);
  pane.draw();
  hits.textContent = `${state.hit + 1}/${state.hits.length}`;
}
box.addEventListener("input", () => {
  state.hit = -1;
  find();
  for (const pane of panes) pane.draw();
  if (state.hits.length) step(1);
});
box.addEventListener("keydown", event => {
  if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
});

// -- comparison ------------------------------------------------------------------------------------------

// Lines are compared without the names of their values, since one more value renames those after it.
const bare = line => line[TEXT].trim().replace(/%[\w.]+/g, "%").replace(/\bnest\d+/g, "nest").replace(/\b(loop|done|t)\d+\b/g, "$1");
const MAX_CHANGES = 2500;  // differences, above which the rest counts as changed
function aligned(left, right) {
  const a = left.lines.map(bare), b = right.lines.map(bare);
  let start = 0, enda = a.length, endb = b.length;
  while (start < enda && start < endb && a[start] === b[start]) start++;
  while (enda > start && endb > start && a[enda - 1] === b[endb - 1]) (enda--, endb--);
  const pairs = [];  // [line, line], -1 for none
  for (let n = 0; n < start; n++) pairs.push([n, n]);
  for (const [x, y] of shortest(a.slice(start, enda), b.slice(start, endb))) pairs.push([x < 0 ? -1 : x + start, y < 0 ? -1 : y + start]);
  for (let n = 0; enda + n < a.length; n++) pairs.push([enda + n, endb + n]);
  return pairs;
}
// Myers 1986, An O(ND) difference algorithm: the shortest script from a to b.
function shortest(a, b) {
  const n = a.length, m = b.length, trail = [], far = new Map([[1, 0]]);
  let found = -1;
  for (let d = 0; d <= Math.min(n + m, MAX_CHANGES) && found < 0; d++) {
    trail.push(new Map(far));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (far.get(k - 1) ?? -1) < (far.get(k + 1) ?? -1)) ? far.get(k + 1) : far.get(k - 1) + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      far.set(k, x);
      if (x >= n && x - k >= m) found = d;
    }
  }
  if (found < 0) return [...a.map((_, x) => [x, -1]), ...b.map((_, y) => [-1, y])];
  const script = [];
  let x = n, y = m;
  for (let d = found; d >= 0; d--) {
    const before = trail[d], k = x - y;
    const from = k === -d || (k !== d && (before.get(k - 1) ?? -1) < (before.get(k + 1) ?? -1)) ? k + 1 : k - 1;
    const x0 = d ? before.get(from) : 0, y0 = d ? x0 - from : 0;
    while (x > x0 && y > y0) script.push([--x, --y]);
    if (d) script.push(x === x0 ? [-1, --y] : [--x, -1]);
  }
  return script.reverse();
}
const choice = () => element("select", { onchange: compare },
  ...stages.map((stage, n) => element("option", { value: n, textContent: data.functions.length > 1 ? `${stage.of}: ${stage.name}` : stage.name })));
const choices = element("span", { className: "pair", hidden: true }, choice(), "→", choice());
const [fromStage, toStage] = choices.querySelectorAll("select");
const summary = element("span", { className: "legend" });
choices.append(summary);
function compare() {
  const left = stages[fromStage.value], right = stages[toStage.value];
  state.pair = [left, right];
  choices.hidden = false;
  comparing.setAttribute("aria-pressed", true);
  const pairs = aligned(left, right);
  panes = [];
  const a = new Pane(left), b = left === right ? a : new Pane(right);
  if (a !== b) for (const [pane, side, kind] of [[a, 0, "gone"], [b, 1, "add"]]) {
    pane.aligned = packed(pairs).map(pair => pair[side]);
    pane.marks = new Map(pairs.filter(pair => pair[1 - side] < 0).map(pair => [pair[side], kind]));
  }
  const gone = a.marks?.size || 0, added = b.marks?.size || 0;
  summary.textContent = ` ${gone.toLocaleString("en")} removed, ${added.toLocaleString("en")} added, ${(pairs.length - gone - added).toLocaleString("en")} equal`;
  open(a === b ? [left] : []);
  if (a === b) return;
  panes = [a, b];
  active = a;
  arrange();
  const together = (one, other) => one.scroller.addEventListener("scroll", () => { other.scroller.scrollTop = one.scroller.scrollTop; });
  together(a, b);
  together(b, a);
  const first = pairs.find(pair => pair[0] < 0 || pair[1] < 0);
  if (first) (first[0] >= 0 ? a : b).show(Math.max(first[0], first[1]));
}
// Puts the removed lines of a change beside its added ones.
function packed(pairs) {
  const rows = [];
  let gone = [], added = [];
  const flush = () => {
    for (let n = 0; n < Math.max(gone.length, added.length); n++) rows.push([gone[n] ?? -1, added[n] ?? -1]);
    [gone, added] = [[], []];
  };
  for (const pair of pairs) {
    if (pair[1] < 0) gone.push(pair[0]);
    else if (pair[0] < 0) added.push(pair[1]);
    else (flush(), rows.push(pair));
  }
  flush();
  return rows;
}
function leavePair() {
  if (!state.pair) return;
  const kept = state.pair;
  state.pair = null;
  choices.hidden = true;
  comparing.setAttribute("aria-pressed", false);
  panes = [];
  return kept;
}

// -- keyboard --------------------------------------------------------------------------------------------

const help = element("dialog", {}, element("h2", { textContent: "Keys" }));
const KEYS = [["j k ↓ ↑", "the next, the previous line"], ["h l ← →", "the pane on the left, on the right"], ["Enter", "pin the line: its lines come into view in every pane"],
  ["Space", "fold or unfold the block"], ["/", "search, then Enter and Shift+Enter, or n and N"], ["p", "show or hide usual parameters"], ["b", "show or hide the bars"],
  ["c", "compare two stages"], ["f", "only this pane"], ["Escape", "clear the search, the pin, the comparison"], ["?", "this list"]];
help.append(element("dl", {}, ...KEYS.flatMap(([keys, does]) => [
  element("dt", {}, ...keys.split(" ").flatMap(key => [element("kbd", { textContent: key }), " "])), element("dd", { textContent: does })])));
help.addEventListener("click", () => help.close());
function move(by) {
  if (!active) return;
  let to = active.now + by;
  while (active.rows[to] < 0) to += Math.sign(by);
  if (to < 0 || to >= active.rows.length) return;
  active.now = to;
  const line = active.rows[to];
  active.show(line, { middle: false });
  state.hovered = { stage: active.stage, line };
  relight();
}
function aside(by) {
  const shown = alone ? [alone] : panes;
  if (!shown.length) return;
  const next = shown[(shown.indexOf(active) + by + shown.length) % shown.length];
  next.scroller.focus({ preventScroll: false });
  activate(next);
}
const current = () => active && active.rows[active.now];
const ACTIONS = {
  j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1), PageDown: () => move(20), PageUp: () => move(-20),
  h: () => aside(-1), ArrowLeft: () => aside(-1), l: () => aside(1), ArrowRight: () => aside(1),
  Enter: () => active && pin(active, current()), " ": () => active && active.fold(current()),
  "/": () => (box.focus(), box.select()), n: () => step(1), N: () => step(-1),
  p: () => parameters.click(), b: () => barsChip.click(), c: () => comparing.click(), f: () => active && solo(active), "?": () => help.showModal(),
  Home: () => active && move(-active.now), End: () => active && move(active.rows.length - 1 - active.now),
};
document.addEventListener("keydown", event => {
  if (event.key === "Escape") return escape(event);
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.target.tagName === "BUTTON" && (event.key === "Enter" || event.key === " ")) return;
  const action = ACTIONS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
function escape() {
  if (box.value) {
    box.value = "";
    find();
    for (const pane of panes) pane.draw();
  } else if (state.pinned || state.hovered) {
    state.pinned = state.hovered = null;
    relight();
  } else if (alone) (alone = null, arrange());
  else if (state.pair) (leavePair(), open(usual()));
  active?.scroller.focus();
}

// -- page ------------------------------------------------------------------------------------------------

const flip = (text, title, pressed, click) => {
  const chip = element("button", { className: "chip", textContent: text, title, onclick: () => {
    const on = chip.getAttribute("aria-pressed") !== "true";
    chip.setAttribute("aria-pressed", on);
    click(on);
  } });
  chip.setAttribute("aria-pressed", pressed);
  return chip;
};
const relayout = () => panes.forEach(pane => pane.layout());
const parameters = flip("parameters", "show parameters that are usual or repeat the types (p)", false, on => (state.parameters = on, find(), relayout()));
const barsChip = flip("bars", "show work and memory traffic of each equation (b)", true, on => (state.bars = on, relayout()));
const comparing = flip("compare", "compare two stages line by line (c)", false, on => {
  if (on) compare();
  else (leavePair(), open(usual()));
});
const usual = () => {
  const few = data.functions.length > 1 ? ["source", "program", "optimized"]
    : innerWidth < 1250 && innerHeight < 900 ? ["source", "optimized", "loops", "assembly"] : null;
  return stages.filter(stage => stage.main && (!few || few.includes(stage.name)));
};
function chipOf(stage) {
  const chip = element("button", { className: "chip", textContent: stage.name, title: stage.note, onclick: () => toggle(stage) });
  chips.set(stage, chip);
  return chip;
}
const rest = stages.filter(stage => !stage.main);
const more = element("select", { title: "stages between", ariaLabel: "stages between", onchange: () => {
  if (more.value) toggle(stages[more.value]);
  more.value = "";
} }, element("option", { value: "", textContent: `${rest.length} passes between…` }),
...rest.map(stage => element("option", { value: stages.indexOf(stage), textContent: data.functions.length > 1 ? `${stage.of}: ${stage.name}` : stage.name })));
const header = element("header", {}, ...data.functions.map(f => element("div", { className: "function" },
  element("h1", { textContent: f.name }), element("span", { className: "signature", textContent: f.signature, title: f.signature }),
  element("div", { className: "totals" }, ...f.totals.map(([name, value]) => element("span", {}, element("b", { textContent: value }), ` ${name}`))))));
const legend = element("span", { className: "legend" }, element("span", {}, element("i", { className: "work" }), "work"), element("span", {}, element("i", { className: "move" }), "memory traffic"));
const chipsOf = owner => stages.filter(stage => stage.main && stage.owner === owner).map(chipOf);
const tools = [...(rest.length ? [more] : []), element("span", { className: "gap" }), choices, comparing, parameters, barsChip, legend,
  element("span", { className: "search" }, box, hits)];
const bar = element("div", { className: "bar" }, ...(data.functions.length > 1 ? [] : chipsOf(0)), ...tools);
if (data.functions.length > 1) data.functions.forEach((f, n) => header.children[n].append(element("div", { className: "chips" }, ...chipsOf(n))));
const footer = element("footer", {}, what, element("span", { className: "keys" }, element("kbd", { textContent: "j" }), " ", element("kbd", { textContent: "k" }), " lines  ",
  element("kbd", { textContent: "/" }), " search  ", element("kbd", { textContent: "?" }), " keys"));
document.getElementById("app").append(header, bar, grid, footer, help);
addEventListener("resize", arrange);
open(usual());
for (const pane of panes) {  // of a file, the lines in use come first
  const first = pane.stage.kind === "source" ? pane.stage.lines.findIndex(line => line[SET]) : -1;
  if (first > 3) pane.scroller.scrollTop = (first - 2) * ROW;
}
if (data.functions.length > 1) {
  const optimized = owner => stages.findIndex(stage => stage.owner === owner && stage.name === "optimized");
  fromStage.value = optimized(0);
  toStage.value = optimized(1);
} else {
  fromStage.value = stages.findIndex(stage => stage.name === "program");
  toStage.value = stages.findIndex(stage => stage.name === "optimized");
}
document.documentElement.dataset.ready = Math.round(performance.now());
document.documentElement.dataset.script = Math.round(performance.now() - began);
