// Panes of the explorer: rows are drawn only where they are seen, so stages may be of any length. Second part.
// -- panes -----------------------------------------------------------------------------------------------

class Pane {
  constructor(stage) {
    this.stage = stage;
    this.now = 0;  // the position of the current row
    this.lit = new Map();
    this.marks = null;  // by line, "add" or "gone" in comparisons
    const owner = data.functions.length > 1 ? [element("span", { className: "owner", textContent: stage.of })] : [];
    this.count = element("span", { className: "count" });
    const tool = (text, title, click) => element("button", { className: "tool", textContent: text, title, ariaLabel: title, onclick: click });
    this.head = element("div", { className: "head" },
      element("span", { className: "name", textContent: stage.name }), ...owner,
      element("span", { className: "note", textContent: stage.note }), this.count,
      tool("−", "fold all blocks", () => this.foldAll()), tool("⤢", "only this pane", () => solo(this)), tool("×", "close", () => toggle(stage)));
    this.window = element("div", { className: "window" });
    this.space = element("div", { className: "space" }, this.window);
    this.scroller = element("div", { className: "scroller", tabIndex: 0, role: "listbox", ariaLabel: stage.name }, this.space);
    this.canvas = element("canvas");
    this.root = element("section", { className: "pane" }, this.head, element("div", { className: "view" }, this.scroller, this.canvas));
    this.root.dataset.stage = stage.name;
    this.root.dataset.of = stage.owner;
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    this.scroller.addEventListener("mousemove", event => hover(this, this.lineAt(event.target)));
    this.scroller.addEventListener("mouseleave", () => hover(null, -1));
    this.scroller.addEventListener("click", event => this.click(event));
    this.root.addEventListener("focusin", () => activate(this));
    this.hasBars = stage.most[1] > 0;
  }
  layout() {
    if (state.pair && this.aligned) this.rows = this.aligned;
    else {
      const ends = endsOf(this.stage), rows = [];
      for (let n = 0; n < this.stage.lines.length; n++) {
        rows.push(n);
        if (this.stage.folded.has(n)) {
          const end = ends.get(n);
          const chained = this.stage.lines[end][TEXT].endsWith("{");  // `} else {` stays
          n = chained ? end - 1 : end;
        }
      }
      this.rows = rows;
    }
    this.positions = { get: line => this.index[line] < 0 ? undefined : this.index[line], has: line => this.index[line] >= 0 };
    this.index = new Int32Array(this.stage.lines.length).fill(-1);
    this.rows.forEach((n, position) => { if (n >= 0) this.index[n] = position; });
    this.now = Math.min(this.now, this.rows.length - 1);
    const widest = widestOf(this.stage);
    this.space.style.height = `${this.rows.length * ROW + 6}px`;
    this.space.style.minWidth = `calc(${widest}ch * 0.98 + 150px)`;
    this.drawn = "";
    this.draw();
  }
  lineAt(target) {
    const row = target.closest?.(".row");
    return row ? Number(row.dataset.line) : -1;
  }
  click(event) {
    const line = this.lineAt(event.target);
    if (line < 0) return;
    if (event.target.closest(".fold")) return this.fold(line);
    this.now = this.positions.get(line);
    pin(this, line);
  }
  fold(line) {
    const { folded } = this.stage;
    if (!endsOf(this.stage).has(line)) return;
    folded.has(line) ? folded.delete(line) : folded.add(line);
    this.layout();
  }
  foldAll() {
    const { folded } = this.stage, ends = [...endsOf(this.stage).keys()];
    const inner = ends.filter(n => n > 0 || this.stage.kind !== "program");  // the program itself stays open
    const close = !inner.every(n => folded.has(n));
    folded.clear();
    if (close) inner.forEach(n => folded.add(n));
    this.layout();
  }
  reveal(line) {
    for (const n of this.stage.folded) if (n < line && endsOf(this.stage).get(n) >= line) this.stage.folded.delete(n);
    if (!this.positions.has(line)) this.layout();
    return this.positions.get(line) ?? 0;
  }
  show(line, { middle = true } = {}) {
    const top = this.reveal(line) * ROW, { scroller } = this, height = scroller.clientHeight;
    if (top >= scroller.scrollTop + ROW && top <= scroller.scrollTop + height - 3 * ROW) return;
    scroller.scrollTop = middle ? top - height / 3 : top < scroller.scrollTop + ROW ? top - ROW : top - height + 3 * ROW;
  }
  draw() {
    const { scroller } = this, count = Math.ceil((scroller.clientHeight || 600) / ROW) + 24;
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - 12), last = Math.min(this.rows.length, first + count);
    const html = [];
    const ends = endsOf(this.stage), digits = String(this.stage.lines.length).length;
    for (let position = first; position < last; position++) html.push(this.row(position, ends, digits));
    const text = html.join("");
    if (text !== this.drawn) this.window.innerHTML = this.drawn = text;
    this.window.style.transform = `translateY(${first * ROW}px)`;
    this.ticks();
  }
  row(position, ends, digits) {
    const n = this.rows[position];
    if (n < 0) return '<div class="row none"></div>';
    const { stage } = this, line = stage.lines[n];
    const lit = this.marks ? this.marks.get(n) || this.lit.get(n) || "" : this.lit.get(n) || "";
    const pinned = state.pinned && state.pinned.stage === stage && state.pinned.line === n;
    const isNow = active === this && position === this.now;
    const sign = this.marks?.has(n) ? (this.marks.get(n) === "add" ? "+" : "−") : stage.kind === "source" ? line[PLACE] || "" : n + 1;
    const folds = ends.has(n) && !this.aligned, folded = stage.folded.has(n);
    const text = textOf(line), found = state.search && text.toLowerCase().includes(state.search);
    const code = found ? marked(text) : coloured(stage.kind, text);
    return `<div class="row ${lit}${pinned ? " pin" : isNow ? " now" : ""}" role="option" aria-selected="${pinned || false}" data-line="${n}">`
      + `<span class="no" style="width:${digits + 3}ch">${sign}</span>`
      + (this.hasBars && state.bars ? bars(line[FIGURES], stage.most) : "")
      + (!ends.size || this.aligned ? "" : folds ? `<button class="fold" tabindex="-1" aria-label="fold">${folded ? "▸" : "▾"}</button>` : '<span class="fold"></span>')
      + `<code>${code}${folded ? `<span class="more">${(ends.get(n) - n - 1).toLocaleString("en")} lines</span> }` : ""}</code>`
      + (line[PLACE] && stage.kind !== "source" ? `<span class="place">${escaped(line[PLACE])}</span>` : "") + "</div>";
  }
  light(lines) {
    this.lit = lines || new Map();
    this.count.textContent = this.lit.size ? `${this.lit.size.toLocaleString("en")} lit` : this.stage.lines.length.toLocaleString("en");
    this.count.classList.toggle("some", this.lit.size > 0);
    this.draw();
  }
  ticks() {
    const { canvas } = this, marks = this.marks || this.lit, height = canvas.clientHeight || 1;
    if (this.ticked === marks && this.ticksFor === this.rows && canvas.height === height) return;
    this.ticked = marks;
    this.ticksFor = this.rows;
    canvas.width = 5;
    canvas.height = height;
    if (!marks.size) return;
    const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    const colours = { pale: "--mark", lit: "--pin", add: "--addbar", gone: "--gonebar" };
    const tall = Math.max(2, Math.round(height / this.rows.length)), seen = new Set();
    for (const wanted of Object.keys(colours)) {
      pen.fillStyle = style.getPropertyValue(colours[wanted]);
      for (const [line, kind] of marks) {
        const at = kind === wanted && this.positions.get(line), top = Math.floor(at / this.rows.length * height);
        if (typeof at !== "number" || seen.has(top + wanted)) continue;
        seen.add(top + wanted);
        pen.fillRect(0, top, 5, tall);
      }
    }
  }
}
// Characters of the widest line, with its place.
function widestOf(stage) {
  stage.widest ??= {};
  return stage.widest[state.parameters] ??= stage.lines.reduce((most, line) => Math.max(most, textOf(line).length + (line[PLACE] || "").length), 0);
}
function bars(f, most) {
  if (!f) return '<span class="cost"></span>';
  const width = which => Math.round(34 * f[which] / (most[which - FIGURES_SHARE] || 1));
  return `<span class="cost" title="${escaped(figuresText(f))}"><i style="width:${width(FIGURES_SHARE)}px"></i><i style="width:${width(FIGURES_TRAFFIC)}px"></i></span>`;
}
const bytes = n => {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (n < 1000) return `${unit === "B" ? n : n.toPrecision(3)} ${unit}`;
    n /= 1000;
  }
  return `${n.toPrecision(3)} TB`;
};
const percent = share => `${(100 * share).toFixed(share && share < 0.1 ? 1 : 0)} %`;
const figuresText = f => `${f[0].toLocaleString("en")} flops, ${f[1].toLocaleString("en")} functions: ${percent(f[5])} of the work; `
  + `reads ${bytes(f[2])}, writes ${bytes(f[3])}: ${percent(f[6])} of the traffic; results of ${bytes(f[4])}`;

// -- what is shown ---------------------------------------------------------------------------------------

let panes = [], active = null, alone = null;
const grid = element("main", { className: "panes" });
const what = element("span", { className: "what" });
const chips = new Map();

function open(wanted) {
  const known = new Map(panes.map(pane => [pane.stage, pane]));
  panes = wanted.map(stage => known.get(stage) || new Pane(stage));
  alone = null;
  if (!panes.includes(active)) active = panes[0] || null;
  arrange();
}
function toggle(stage) {
  leavePair();
  const shown = panes.map(pane => pane.stage);
  open(shown.includes(stage) ? shown.filter(each => each !== stage) : stages.filter(each => each === stage || shown.includes(each)));
}
function solo(pane) {
  alone = alone === pane ? null : pane;
  arrange();
  pane.scroller.focus();
}
function arrange() {
  const shown = alone ? [alone] : panes;
  if (grid.children.length !== shown.length || shown.some((pane, n) => grid.children[n] !== pane.root)) grid.replaceChildren(...shown.map(pane => pane.root));
  const width = document.documentElement.clientWidth, most = Math.max(1, Math.floor(width / 430));
  const rows = Math.max(1, Math.ceil(shown.length / most)), columns = Math.ceil(shown.length / rows) || 1;
  grid.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
  grid.style.gridTemplateRows = `repeat(${rows}, minmax(${columns === 1 && rows > 1 ? 320 : 200}px, 1fr))`;
  for (const [stage, chip] of chips) chip.setAttribute("aria-pressed", shown.some(pane => pane.stage === stage));
  for (const pane of panes) pane.root.classList.toggle("active", pane === active);
  find();
  for (const pane of shown) pane.layout();
  relight();
}
function activate(pane) {
  if (active === pane) return;
  active = pane;
  for (const each of panes) {
    each.root.classList.toggle("active", each === pane);
    each.draw();
  }
}

// -- lighting --------------------------------------------------------------------------------------------

let waiting = false;
function hover(pane, line) {
  const wanted = pane && line >= 0 ? { stage: pane.stage, line } : null;
  if (wanted?.stage === state.hovered?.stage && wanted?.line === state.hovered?.line) return;
  state.hovered = wanted;
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => (waiting = false, relight()));
}
function relight() {
  const from = state.hovered || state.pinned;
  const found = from ? related(from.stage, from.line) : new Map();
  for (const pane of panes) pane.light(found.get(pane.stage));
  describe(from, found);
}
function pin(pane, line, { always = false } = {}) {
  const { pinned } = state;
  const same = pinned && pinned.stage === pane.stage && pinned.line === line;
  state.pinned = same && !always ? null : { stage: pane.stage, line };
  state.hovered = null;
  relight();
  if (!state.pinned) return;
  const found = related(pane.stage, line);
  for (const each of panes) {
    if (each === pane) continue;
    const lines = found.get(each.stage), strong = [...lines].filter(([, kind]) => kind === "lit").map(([n]) => n);
    const first = Math.min(...(strong.length ? strong : lines.keys()));
    if (Number.isFinite(first)) each.show(first);
  }
}
function describe(from, found) {
  if (!from) return what.replaceChildren("hover a line to light its lines in every pane, click to pin it");
  const { stage, line } = from, keys = data.sets[setsOf(stage)[line]].map(key => data.keys[key]);
  const counts = panes.filter(pane => pane.stage !== stage).map(pane => [pane.stage, found.get(pane.stage)?.size || 0]).filter(([, n]) => n);
  const parts = [element("b", { textContent: keys.slice(0, 4).join(", ") + (keys.length > 4 ? ` and ${keys.length - 4} more` : "") || `${stage.name}, line ${line + 1}` })];
  const figures = stage.lines[line][FIGURES];
  if (figures) parts.push(`  ·  ${figuresText(figures)}`);
  else if (counts.length) parts.push(`  ·  ${counts.map(([each, n]) => `${n.toLocaleString("en")} in ${each.name}`).join(", ")}`);
  else parts.push("  ·  computes nothing of a line of yours");
  what.replaceChildren(...parts);
}
grid.addEventListener("mouseover", event => {
  const variable = event.target.dataset?.v, pane = panes.find(each => each.root.contains(event.target));
  for (const each of grid.querySelectorAll(".v.same")) each.classList.remove("same");
  if (!variable || !pane) return;
  for (const each of pane.window.querySelectorAll(".v")) each.classList.toggle("same", each.dataset.v === variable);
  event.target.title = typeOf(pane.stage, variable);
});
function typeOf(stage, variable) {
  if (!["program", "loops"].includes(stage.kind)) return "";
  const line = stage.lines.find(each => each[TEXT].includes(`${variable}: `));
  const rest = line ? line[TEXT].slice(line[TEXT].indexOf(`${variable}: `) + variable.length + 2) : "";
  return line ? `${variable}: ${/^[^\s,)=]+(?:,\d+)*\]?/.exec(rest)?.[0] || ""}` : variable;
}
