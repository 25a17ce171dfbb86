// Stages of the explorer: their lines, the lines that belong together, and colours. First part of one function.
const began = performance.now();
const ROW = 20;
const TEXT = 0, FULL = 1, SET = 2, PLACE = 3, ABOVE = 4, FIGURES = 5, FIGURES_SHARE = 5, FIGURES_TRAFFIC = 6;
const data = JSON.parse(document.getElementById("data").textContent);
const state = { parameters: false, bars: true, pinned: null, hovered: null, search: "", hits: [], hit: -1, pair: null };
const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = text => text.replace(/[&<>"]/g, each => escapes[each]);
const element = (tag, attributes = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...children);
  return made;
};

// -- stages ----------------------------------------------------------------------------------------------

const stages = data.functions.flatMap((f, owner) => f.stages.map(stage => Object.assign(stage, { owner, of: f.name })));
for (const stage of stages) {
  stage.parent = stages.find(each => each.owner === stage.owner && each.name === stage.above) || null;
  stage.folded = new Set();
  stage.most = [FIGURES_SHARE, FIGURES_TRAFFIC].map(which => stage.lines.reduce((most, line) => Math.max(most, line[FIGURES]?.[which] || 0), 0));
}
// The set of keys of each line, from the stage above where it has none.
function setsOf(stage) {
  return stage.sets ??= Int32Array.from(stage.lines, line => {
    const above = line[ABOVE] ?? -1;
    return line[SET] || (stage.parent && above >= 0 ? setsOf(stage.parent)[above] : 0);
  });
}
const linesOf = stage => stage.byKey ??= group(stage.lines.keys(), n => data.sets[setsOf(stage)[n]]);
const below = stage => stage.byAbove ??= group(stage.lines.keys(), n => [stage.lines[n][ABOVE] ?? -1]);
function group(numbers, keys) {
  const found = new Map();
  for (const n of numbers) for (const key of keys(n)) {
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(n);
  }
  return found;
}

// The ends of blocks: a line that ends in `{` reaches to the next line with its indentation that starts with `}`.
function endsOf(stage) {
  if (stage.ends) return stage.ends;
  const ends = new Map(), open = [];
  stage.lines.forEach((line, n) => {
    const text = line[TEXT], indent = text.length - text.trimStart().length;
    if (text[indent] === "}") {
      while (open.length && open.at(-1)[1] > indent) open.pop();
      if (open.length && open.at(-1)[1] === indent) ends.set(open.pop()[0], n);
    }
    if (text.endsWith("{")) open.push([n, indent]);
  });
  return stage.ends = ends;
}

// Lines of every stage that belong to one line. strong: by the chain of lines, pale: by the user's line alone.
function related(stage, n) {
  const found = new Map(), strong = each => (found.has(each) || found.set(each, new Map()), found.get(each));
  for (const other of panes.map(pane => pane.stage)) {
    const keys = data.sets[setsOf(stage)[n]], lines = new Map();
    for (const key of keys) for (const line of linesOf(other).get(key) || []) lines.set(line, "pale");
    found.set(other, lines);
  }
  const chained = new Set([stage]);
  strong(stage).set(n, "lit");
  for (let at = stage, line = n; at.parent; at = at.parent) {
    line = at.lines[line][ABOVE] ?? -1;
    if (line < 0) break;
    strong(at.parent).set(line, "lit");
    chained.add(at.parent);
  }
  let front = [n];
  for (let at = stage; ;) {
    const next = stages.find(each => each.parent === at);
    if (!next) break;
    front = front.flatMap(line => below(next).get(line) || []);
    if (!front.length) break;
    for (const line of front) strong(next).set(line, "lit");
    chained.add(next);
    at = next;
  }
  for (const [other, lines] of found) if (!chained.has(other)) for (const line of lines.keys()) lines.set(line, "lit");
  return found;
}

// -- colours ---------------------------------------------------------------------------------------------

const TYPES = "\\b(?:[fiu]\\d+|bf16|c\\d+|bool|key)\\b\\*?(?:\\[[\\d, ]*\\])?";
const grammar = (parts, flags = "g") => [new RegExp(parts.map(([, text]) => `(${text})`).join("|"), flags), parts.map(([name]) => name)];
const NUMBER = "-?(?:\\b\\d[\\w.]*(?:e[+-]?\\d+)?|\\binf\\b|\\bnan\\b)(?::\\w+\\*?)?";
const GRAMMARS = {
  program: grammar([["v", "%[\\w.]+"], ["t", TYPES], ["k", "\\breturn\\b"], ["c", "[a-zA-Z_]\\w*(?=\\()"], ["p", "\\w+="], ["n", NUMBER], ["n", '"[^"]*"']]),
  loops: grammar([["v", "%[\\w.]+"], ["t", TYPES], ["q", "\\b(?:align|at|arena|input|output|written|donated|constant|local)\\b"],
    ["k", "\\b(?:for|in|while|if|else|carry|combine|yield|parallel|vector|step|where|condition|body|module|entry|leave)\\b"],
    ["c", "\\b(?:load|store|invoke|library|copy|update|callback|(?<==\\s)[a-z_]+)\\b"], ["n", NUMBER]]),
  llvm: grammar([["q", ";.*"], ["v", "%[\\w.\"]+"], ["c", "@[\\w.\"]+"], ["t", "<?(?:\\d+ x )?\\b(?:i\\d+|double|float|half|bfloat|ptr|void)\\b>?"],
    ["k", "\\b(?:define|declare|br|ret|phi|call|load|store|switch|label|to|internal|attributes)\\b"], ["q", "[!#]\\w+"], ["n", NUMBER]]),
  asm: grammar([["q", "[#;].*|^\\s*\\..*"], ["v", "^[\\w.$\"]+:"], ["c", "^\\s+[a-z]\\w*"], ["t", "%\\w+|\\b(?:[xwvqdsz]\\d+|sp|lr)\\b"], ["n", "[$#]?-?\\b(?:0x)?\\d\\w*\\b"]]),
  cuda: grammar([["q", "//.*"], ["n", '"[^"]*"'], ["k", "\\b(?:if|else|for|while|return|const|extern|__\\w+__|struct|static|inline)\\b"],
    ["t", "\\b(?:void|int|unsigned|long|float|double|bool|char|half)\\b"], ["c", "[a-zA-Z_]\\w*(?=\\()"], ["n", NUMBER]]),
  source: grammar([["q", "#.*"], ["n", "[rbf]?(?:\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*')"],
    ["k", "\\b(?:def|return|lambda|for|in|if|else|elif|while|with|as|import|from|not|and|or|is|None|True|False|class|yield|try|except|raise|pass|assert)\\b"],
    ["t", "@[\\w.]+"], ["c", "[a-zA-Z_]\\w*(?=\\()"], ["n", "\\b\\d[\\w.]*\\b"]]),
};
function coloured(kind, text) {
  const [pattern, names] = GRAMMARS[kind];
  let result = "", last = 0;
  for (const found of text.matchAll(pattern)) {
    const which = names[found.slice(1).findIndex(part => part !== undefined)], part = escaped(found[0]);
    const value = which === "v" ? ` data-v="${part}"` : "";
    result += `${escaped(text.slice(last, found.index))}<span class="${which}"${value}>${part}</span>`;
    last = found.index + found[0].length;
  }
  return result + escaped(text.slice(last));
}
function marked(text) {
  const low = text.toLowerCase(), wanted = state.search;
  let result = "", last = 0;
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, last)) {
    result += `${escaped(text.slice(last, at))}<mark>${escaped(text.slice(at, at + wanted.length))}</mark>`;
    last = at + wanted.length;
  }
  return result + escaped(text.slice(last));
}
const textOf = line => state.parameters && line[FULL] ? line[FULL] : line[TEXT];
