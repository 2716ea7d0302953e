// Names, reasons and values are data: they enter the document as text nodes only.
const MAX_RUNS = 8, MAX_ROWS = 200, MAX_STRIPS = 60, LIST_SECONDS = 5, SPEAK_SECONDS = 5, HEIGHT = 220,
  DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 4], [12, 5], [4, 6]];
const runs = new Map(), metrics = new Map(), charts = new Map(); // by id of run, key of metric, id of figure
const page = { list: [], chosen: [], focus: "", lastId: "", source: null, sort: ["name", false], spoken: 0, drawn: 0 };
const $ = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
function el(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props ?? {})) key in node ? node[key] = value : node.setAttribute(key, value);
  node.append(...children.flat().filter((child) => child !== "" && child !== null));
  return node;
}
const write = (id, text) => $(id).textContent === text || ($(id).textContent = text);
function refill(node, ...children) { // leaves equal content alone; focus stays on its id
  const next = node.cloneNode(false), focused = document.activeElement?.id;
  next.append(...children.flat());
  if (node.isEqualNode(next)) return;
  node.replaceChildren(...next.childNodes);
  if (focused && document.activeElement?.id !== focused) $(focused)?.focus();
}
function fill(table, header, rows) { // header: [title or node, is number]; rows: arrays of texts or cells
  const kind = (i) => ({ className: header[i][1] ? "number" : "" });
  const head = header.map(([title], i) => el("th", { scope: "col", ...kind(i) }, title));
  const cell = (value, i) => value instanceof HTMLTableCellElement ? value : el("td", kind(i), value);
  refill(table.tHead ?? table.createTHead(), el("tr", null, head));
  refill(table.tBodies[0] ?? table.createTBody(), rows.map((row) => el("tr", null, row.map(cell))));
}
const wide = (text) => el("td", { className: "wide" }, text);
const fillOpen = (details, header, rows) => details.open && fill(details.querySelector("table"), header, rows());
const is = (value) => typeof value === "number" && Number.isFinite(value);
const about = (key) => metrics.get(key) ?? { label: key, better: "", digits: 3, meaning: "" };
const fixed = (value, digits) => is(value) ? Math.abs(value) < 1e4 ? value.toFixed(digits) : value.toPrecision(3) : "–";
const show = (key, value) => fixed(value, about(key).digits);
const title = (key) => about(key).label + ({ higher: " ↑", lower: " ↓" }[about(key).better] ?? "");
const count = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
const day = (t) => is(t) ? new Date(1000 * t).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }) : "–";
const hour = (t) => t ? new Date(1000 * t).toLocaleTimeString("en-GB") : "–";
const lastOf = (all, test) => [...all].reverse().find(test);
const group = (all, key) => all.reduce((found, one) => found.set(key(one), [...(found.get(key(one)) ?? []), one]), new Map());
const byName = new Intl.Collator("en", { numeric: true }).compare;
function duration(s) {
  if (!(s >= 99.5)) return is(s) ? `${s < 9.95 ? s.toFixed(1) : Math.round(s)} s` : "–";
  const m = Math.floor(Math.round(s) / 60), rest = m < 60 ? Math.round(s) % 60 : m % 60;
  return `${m < 60 ? m : Math.floor(m / 60)} ${m < 60 ? "min" : "h"} ${`${rest}`.padStart(2, "0")} ${m < 60 ? "s" : "min"}`;
}
const size = (bytes, power = 0) => bytes >= 999.5 && power < 4 ? size(bytes / 1000, power + 1)
  : `${bytes.toFixed(power && bytes < 99.95 ? 1 : 0)} ${["B", "kB", "MB", "GB", "TB"][power]}`;
function median(values) {
  const sorted = values.filter(is).sort((a, b) => a - b), half = sorted.length >> 1;
  return (sorted[half] + sorted[sorted.length - 1 - half]) / 2;
}
const newRun = (id) => ({ id, start: null, starts: 0, rounds: new Map(), waiting: null, finish: null, clients: new Map(),
  strips: new Map(), skipped: 0, detail: null, examples: null });
function client(run, name) {
  if (run.clients.has(name)) return run.clients.get(name);
  run.clients.set(name, { name, state: "", seen: 0, seconds: [], traffic: [], up: 0, down: 0, refusals: 0, reason: "" });
  return client(run, name);
}
function apply(run, event) {
  if (event.event === "refusal") return Object.assign(client(run, event.client), { state: "refused", reason: event.reason });
  Object.assign(run, { waiting: null, finish: null, [event.event]: event });
  if (event.event === "round") return applyRound(run, event);
  if (event.event === "start") { run.starts += 1; for (const name of event.clients) client(run, name); }
  if (event.event === "finish") list();
}
function applyRound(run, event) {
  const { clients, clusters, missing, refused, shortened = {}, ...round } = event, n = event.round;
  for (const number of run.rounds.keys()) if (number > n) run.rounds.delete(number); // a resumed run repeats rounds
  run.rounds.set(n, round); for (const name of missing) client(run, name).state = "missing";
  for (const [name, reason] of Object.entries(refused))
    Object.assign(client(run, name), { state: "refused", refusals: client(run, name).refusals + 1, reason });
  for (const [name, reason] of Object.entries(shortened)) client(run, name).reason = reason;
  for (const [name, its] of Object.entries(clients)) {
    const one = client(run, name), [up, down] = one.traffic[n] ?? [0, 0];
    one.traffic[n] = [its.bytes_up, its.bytes_down];
    if (its.seconds > 0) one.seconds[n] = its.seconds;
    Object.assign(one, { state: its.state, left: its.left, seen: Math.max(one.seen, its.last_seen),
      up: one.up + its.bytes_up - up, down: one.down + its.bytes_down - down });
  }
  for (const [name, cluster] of Object.entries(clusters)) {
    const stays = (run.strips.get(name) ?? []).filter((stay) => stay[0] < n), last = stays.at(-1);
    if (last?.[2] === cluster && last[1] >= n - 1) last[1] = n; else stays.push([n, n, cluster]);
    run.strips.set(name, stays);
  }
}
function receive(message, isReset) {
  const batch = JSON.parse(message.data); page.lastId = message.lastEventId;
  for (const [key, value] of Object.entries(batch.metrics)) metrics.set(key, value);
  if (!runs.has(batch.run)) return;
  const run = isReset ? { ...newRun(batch.run), detail: runs.get(batch.run).detail } : runs.get(batch.run);
  runs.set(batch.run, Object.assign(run, { skipped: batch.skipped }));
  for (const event of batch.events) apply(run, event); schedule();
}
const query = () => page.chosen.map((id) => `run=${encodeURIComponent(id)}`).join("&");
function connect() {
  page.source?.close();
  if (!page.chosen.length) return write("link", "no run yet");
  const source = page.source = new EventSource(`/api/events?${query()}&after=${encodeURIComponent(page.lastId)}`);
  source.addEventListener("events", (message) => receive(message, false));
  source.addEventListener("reset", (message) => receive(message, true));
  source.addEventListener("open", () => write("link", "live"));
  source.addEventListener("error", () => {
    write("link", "connection lost, trying again");
    if (source.readyState === EventSource.CLOSED && page.source === source) setTimeout(connect, 2000);
  });
}
const get = (path) => fetch(path).then((answer) => answer.ok ? answer.json() : null, () => null);
async function load(run) {
  const path = `/api/runs/${encodeURIComponent(run.id)}`, detail = await get(path);
  if (detail) run.detail = detail;
  if (detail?.has_examples) run.examples ??= await get(`${path}/examples`);
  schedule();
}
async function list() {
  page.list = await get("/api/runs?limit=200") ?? page.list;
  const first = page.list.find((one) => one.status === "running") ?? page.list[0];
  if (!page.chosen.length && first) choose([first.id]);
  const isDue = (run) => summary(run) && (!run.detail || run.finish?.time > Date.now() / 1000 - 900); // verdict and examples follow
  for (const run of runs.values()) if (isDue(run)) load(run); schedule();
}
function choose(ids) {
  Object.assign(page, { chosen: ids.slice(0, MAX_RUNS), lastId: "" });
  page.focus = page.chosen.includes(page.focus) ? page.focus : page.chosen[0] ?? "";
  forget(runs.clear()); for (const id of page.chosen) runs.set(id, newRun(id));
  history.replaceState(null, "", `/?${query()}`);
  connect(); list();
}
function forget() { // the next rendering draws everything anew
  for (const { plot } of charts.values()) plot.destroy(); charts.clear();
  for (const box of document.querySelectorAll(".figures")) box.replaceChildren();
}
function drawRing({ ctx, ring, valToPos }) {
  const circle = new Path2D();
  if (ring) circle.arc(valToPos(ring[0], "x", true), valToPos(ring[1], "y", true), 6 * devicePixelRatio, 0, 2 * Math.PI);
  Object.assign(ctx, { strokeStyle: css("--ink"), lineWidth: 1.5 * devicePixelRatio }).stroke(circle);
}
function options(spec, width) {
  const soft = css("--soft"), rule = css("--rule"), font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const series = spec.series.map((s) => ({ label: s.label, class: s.dots && "dots", stroke: css(`--series-${s.color}`), width: 1.75, dash: s.dash,
    spanGaps: true, value: (plot, v, k, i) => fixed(i === null ? lastOf(plot.data[k], is) : v, spec.digits), fill: s.bars ? css(`--series-${s.color}`) : undefined,
    paths: s.bars ? uPlot.paths.bars({ size: [0.7, 40] }) : s.dots ? () => null : undefined,
    points: s.bars ? { show: false } : s.dots ? { show: true, size: 9, fill: css("--paper"), width: 2 } : { size: 5 } }));
  const [low, high] = spec.range ?? [], { bars, dots } = spec.series[0], pad = bars || dots ? 0.6 : 0;
  const range = (plot, a, b) => high > low ? [low - pad, high + pad] : [a - 1, b + 1];
  const flat = (a, b) => b - a <= 1e-4 * Math.abs(b) && [a - (Math.abs(a) / 20 || 0.1), b + (Math.abs(b) / 20 || 0.1)];
  const levels = (plot, a, b) => !bars && flat(a, b) || uPlot.rangeNum(bars ? Math.min(a, 0) : a, b, 0.08, true);
  return { width, height: HEIGHT, cursor: { y: false, drag: { x: false, y: false } }, hooks: { draw: [drawRing] },
    legend: { markers: { dash: (plot, i) => spec.series[i - 1]?.dash?.length ? "dashed" : "solid" } },
    scales: { x: { time: false, range }, y: { range: levels } }, series: [{ label: spec.x ?? "Round", value: (plot, v, k, i) => tick(spec, i === null ? plot.data[0].at(-1) : v) }, ...series],
    axes: [{ stroke: soft, font, grid: { show: false }, ticks: { stroke: rule, size: 4 }, size: 34, space: 44,
      incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 5e3, 1e4], values: (plot, all) => all.map((v) => tick(spec, v)) },
    { stroke: soft, font, grid: { stroke: rule, width: 1 }, ticks: { show: false }, size: 56, space: 36,
      values: (plot, all, axis, space, step) => all.map((v) => v.toFixed(step.toFixed(8).replace(/\.?0+$/, "").split(".")[1]?.length)) }] };
}
const tick = (spec, v) => v === null ? "–" : spec.ticks ? spec.ticks[v] ?? "" : v;
function figure(box, key, spec) { // spec: title, note, digits, xs, series, and where wanted range, ring, ticks, x
  const id = `${box.id}-${key}`, signature = JSON.stringify([spec.range, spec.series.map((s) => [s.label, s.color, s.dots])]);
  let entry = charts.get(id);
  if (entry?.signature !== signature) {
    const chart = el("div", { className: "chart", role: "img" }), table = el("table"), note = el("p", { id: `${id}-note` });
    const scroll = el("div", { className: "scroll tall", tabIndex: 0, role: "region", "aria-label": spec.title }, table);
    const numbers = el("details", { open: entry?.numbers.open ?? false }, el("summary", null, "Numbers"), scroll);
    const node = el("figure", null, el("figcaption", null, el("h3", null, spec.title), note), chart, numbers);
    if (entry) entry.node.replaceWith(node); else box.append(node);
    entry?.plot.destroy();
    entry = { signature, node, chart, numbers, plot: new uPlot(options(spec, Math.max(chart.clientWidth, 200)), [[]], chart) };
    charts.set(id, entry);
  }
  const { plot, chart, numbers } = entry, newest = spec.series.map((s) => `${s.label} ${fixed(lastOf(s.values, is), spec.digits)}`).join(", ");
  write(`${id}-note`, spec.note);
  chart.setAttribute("aria-label", `${spec.title}, ${count(spec.xs.length, "value")}; the newest: ${newest}.`);
  fillOpen(numbers, [[spec.x ?? "Round", true], ...spec.series.map((s) => [s.label, true])], () =>
    spec.xs.map((x, i) => [`${tick(spec, x)}`, ...spec.series.map((s) => fixed(s.values[i], spec.digits))]));
  Object.assign(plot, { ring: spec.ring }).setData([spec.xs, ...spec.series.map((s) => s.values)]);
}
function perRound(id, key, label, note, run, value, digits, kind) { // one number of the server in each round
  const rounds = ordered(run).filter((r) => is(value(r))), series = [{ label, values: rounds.map(value), color: 1, ...kind }];
  const xs = rounds.map((r) => r.round), spec = { title: label, note, digits, xs, series, range: [1, total(run)] };
  if (xs.length) figure($(`${id}-figures`), key, spec);
}
const ordered = (run) => [...run.rounds.values()].sort((a, b) => a.round - b.round);
const total = (run) => run.start?.rounds ?? Math.max(1, ...run.rounds.keys());
const summary = (run) => page.list.find((one) => one.id === run.id);
const isDone = (run) => run.finish?.status === "completed", objective = (run) => run?.detail?.objective;
const reason = (run) => run.finish.reason.replace(/^ended early: /, "");
const latest = (run) => (run.finish && run.detail?.result ? run.detail.result
  : lastOf(ordered(run), (r) => Object.keys(r.metrics).length))?.metrics ?? {};
const headlines = (keys, first) => [...metrics.keys()].filter((key) => keys.has(key) && about(key).headline && !about(key).baseline).sort((a, b) => (b === first) - (a === first));
const nameOf = ({ start, id }) => start ? `${start.method}, seed ${start.seed}` : id;
const label = (run) => page.chosen.filter((id) => nameOf(runs.get(id)) === nameOf(run)).length > 1 ? run.id : nameOf(run);
function bestRound(run) { // best value of the task's objective before the test, as the server chooses it
  const key = objective(run), sign = about(key).better === "higher" ? -1 : 1, value = (r) => sign * (r.selection ?? r.metrics[key]);
  const [best] = ordered(run).filter((r) => r.split !== "test" && is(r.metrics[key])).sort((a, b) => value(a) - value(b));
  return run.finish && run.detail?.result?.best?.round || best?.round;
}
function state(run) { // text and class
  const rounds = ordered(run), last = rounds.at(-1), done = last?.round ?? 0, { finish, waiting } = run;
  const outcome = `${!isDone(run) ? "Failed" : finish.reason ? "Ended early" : "Completed"} after ${count(done, "round")}`;
  if (finish) return [reason(run) ? `${outcome}: ${reason(run)}` : outcome, isDone(run) ? "good" : "bad"];
  if (summary(run)?.status === "stopped") return [`Stopped after ${count(done, "round")}; --resume ${run.id} continues it`, "warn"];
  const refused = Object.entries(waiting?.refused ?? {}).map(([why, n]) => `; ${n} refused: ${why}`).join("");
  if (waiting) return [waiting.disk ? `Waiting for room: ${waiting.disk}` : `Waiting for clients: ${waiting.online.length} of ${waiting.wanted} connected, until ${hour(waiting.until)}${refused}`, "warn"];
  if (!last) return [run.start ? `Round 1 of ${total(run)} is under way` : "Waiting for the run to start", ""];
  const ends = rounds.slice(-11).map((r) => r.time), gaps = ends.slice(1).map((t, i) => t - ends[i]);
  const rest = (total(run) - done) * (gaps.length ? median(gaps) : last.seconds);
  const paused = [...run.clients.values()].filter((one) => one.state === "paused").length;
  return [[`Round ${done} of ${total(run)}`, `${last.answered} of ${count(last.asked, "client")} answered`,
    rest && `about ${duration(rest)} left`, paused && `${paused} paused`, run.starts > 1 && "resumed"].filter(Boolean).join(" · "), ""];
}
function renderTop(run) {
  const { start, detail } = run, many = page.chosen.length > 1, row = summary(run), last = ordered(run).at(-1);
  const { method, task } = start ?? row ?? {}, name = method ? `${method} on ${task}` : run.id;
  write("title", many ? `${page.chosen.length} runs compared` : name);
  $("focus-label").hidden = !many;
  refill($("focus"), page.chosen.map((id) => el("option", { value: id }, id)));
  $("focus").value = page.focus;
  write("about", run.id + (start ? ` · model ${start.model} · seed ${start.seed} · started ${day(row?.started ?? start.time)}` : ""));
  const [text, kind] = state(run), values = latest(run), simple = start?.simple ?? {};
  refill($("state"), el("span", { className: kind }, text));
  const isDue = performance.now() - page.spoken > 1000 * SPEAK_SECONDS && $("announcer").textContent !== text;
  if (isDue) write("announcer", text, page.spoken = performance.now());
  $("bar").hidden = Boolean(run.finish);
  $("bar-fill").style.width = `${100 * (last?.round ?? 0) / total(run)}%`;
  write("skipped", run.skipped ? `${count(run.skipped, "line")} of metrics.jsonl cannot be read, and are left out.` : "");
  write("verdict", (detail?.result?.verdict?.text ?? "").replaceAll("`", ""));
  const isTest = run.finish && ordered(run).some((r) => r.split), split = isTest ? "on test data" : last?.split ? "on validation data" : "";
  const notes = (key) => [is(values[simple[key]]) ? `baseline ${show(key, values[simple[key]])}` : "", split].filter(Boolean).join(", ");
  refill($("keys"), headlines(new Set(Object.keys(values)), objective(run)).slice(0, 6).map((key) => el("div", null,
    el("dt", null, title(key)), el("dd", null, show(key, values[key])), el("dd", null, notes(key)))));
}
function curves(run, k, key, xs, isSingle) { // series of one run: its rounds, and the last one on test data
  const at = (x, isTest) => (run.rounds.get(x)?.split === "test") === isTest ? run.rounds.get(x)?.metrics[key] ?? null : null;
  const split = ordered(run)[0]?.split || "model", line = { color: k + 1, dash: DASHES[k], values: xs.map((x) => at(x, false)) };
  const test = { color: k + 1, dots: true, values: xs.map((x) => at(x, true)), label: isSingle ? "test" : `${label(run)}, test` };
  return [{ ...line, label: isSingle ? split : label(run) }, test].filter((s) => s.values.some(is));
}
function references(run, key, xs) { // horizontal lines: untrained baseline, and clients alone
  const all = run.detail?.result?.verdict, verdict = all?.metric === key ? all : {}, simple = latest(run)[run.start?.simple[key]];
  const levels = [[verdict.simple_name || "baseline", simple, 7, [6, 4]], ["clients alone", verdict.alone, 4, [2, 3]]];
  return levels.filter((l) => is(l[1])).map(([label, level, color, dash]) => ({ label, color, dash, values: xs.map(() => level) }));
}
function renderCurves(chosen) {
  const keys = headlines(new Set(chosen.flatMap((run) => ordered(run).flatMap((r) => Object.keys(r.metrics)))), objective(chosen[0]));
  const rounds = chosen.flatMap(ordered), xs = [...new Set(rounds.map((r) => r.round))].sort((a, b) => a - b);
  const isSingle = chosen.length === 1, has = (split) => rounds.some((r) => r.split === split);
  $("curves").hidden = !keys.length;
  write("curves-note", !has("validation") ? "The shared model after each evaluated round."
    : `The shared model after each evaluated round, on validation data${has("test") ? "; the open dot is the last one, on test data" : ""}.`);
  for (const key of keys) {
    const [run] = chosen, n = bestRound(run), top = run.rounds.get(n)?.metrics[key], ring = isSingle && is(top) && [n, top];
    const series = chosen.flatMap((one, k) => curves(one, k, key, xs, isSingle)).concat(isSingle ? references(run, key, xs) : []);
    const note = about(key).meaning + (ring ? ` Ring: round ${n}, the best by ${about(objective(run)).label}.` : "");
    figure($("curves-figures"), key, { title: title(key), note, digits: about(key).digits, xs, series, ring,
      range: [1, Math.max(...chosen.map(total))] });
  }
}
function clearGain(key, run, other) { // mean over clients of other minus run; 0 if it is not clear, as in deploy/pages/view.py
  const [before, after] = [run, other].map((one) => one.detail?.result?.clients ?? {}), of = (one) => one?.metrics[key] ?? NaN;
  const gains = Object.keys(before).map((name) => of(after[name]) - of(before[name])).filter(Number.isFinite), n = gains.length;
  const mean = gains.reduce((a, b) => a + b, 0) / n, se = Math.hypot(...gains.map((gain) => gain - mean)) / Math.sqrt(n * (n - 1));
  return n >= 5 && Math.abs(mean) >= 2 * se ? mean : 0;
}
function renderComparison(chosen) {
  const values = chosen.map(latest), keys = headlines(new Set(values.flatMap(Object.keys)), objective(chosen[0]));
  const groups = chosen.map((run) => isDone(run) && summary(run)?.group || run.id);
  const isBest = (key, k) => {
    const sign = about(key).baseline ? 0 : { higher: 1, lower: -1 }[about(key).better] ?? 0;
    const rivals = chosen.filter((run, i) => i !== k && groups[i] === groups[k] && is(values[i][key]));
    return rivals.length > 0 && rivals.every((run) => sign * clearGain(key, run, chosen[k]) > 0);
  };
  $("comparison").hidden = chosen.length < 2;
  write("comparison-note", new Set(groups).size < groups.length
    ? "Bold with a star: clearly the best of completed runs with equal data, task, split and seed, by the differences of their clients."
    : "No value is marked as the best: the runs differ in data, task, split or seed, or have not completed.");
  const row = (name, text) => [name, ...chosen.map(text)], star = (key, k) => el("td", { className: "number best" }, `${show(key, values[k][key])} *`);
  fill($("comparison-table"), [["Metric", false], ...chosen.map((run) => [label(run), true])], [
    ...keys.map((key) => row(title(key), (run, k) => isBest(key, k) ? star(key, k) : show(key, values[k][key]))),
    row("Rounds", (run) => `${run.rounds.size}`), row("ε", (run) => `${summary(run)?.epsilon ?? "no noise"}`),
    row("Time", (run) => duration(run.detail?.result?.seconds ?? summary(run)?.seconds))]);
}
const COLUMNS = [["name", "Client", (c) => c.name], ["state", "State", (c) => c.state], ["seen", "Last seen", (c) => hour(c.seen)],
  ["last", "Seconds", (c) => fixed(c.last, 2)], ["median", "Median", (c) => fixed(c.median, 2)],
  ["up", "Sent", (c) => size(c.up)], ["down", "Received", (c) => size(c.down)], ["left", "Budget left", (c) => fixed(c.left, 4)],
  ["cluster", "Cluster", (c) => `${c.cluster ?? "–"}`], ["refusals", "Refusals", (c) => `${c.refusals || "–"}`],
  ["reason", "Last reason", (c) => wide(c.reason)]];
function renderClients(run) {
  const over = run.finish || summary(run)?.status === "stopped", stateOf = (c) => over && c.state === "online" ? "took part" : c.state;
  const all = [...run.clients.values()].map((c) => ({ ...c, state: stateOf(c), last: lastOf(c.seconds, is), median: median(c.seconds),
    cluster: run.strips.get(c.name)?.at(-1)[2] })), [key, isDown] = page.sort, states = group(all, (c) => c.state);
  const compare = (a, b) => is(a) || is(b) ? (a ?? -1) - (b ?? -1) : byName(a ?? "", b ?? "");
  all.sort((a, b) => (isDown ? -1 : 1) * compare(a[key], b[key]) || byName(a.name, b.name));
  $("clients").hidden = !all.length;
  write("clients-note", (all.length > MAX_ROWS ? `The first ${MAX_ROWS} of ${all.length} clients in this order: ` : "")
    + [...states].filter(([name]) => name).map(([name, of]) => `${of.length} ${name}`).join(", "));
  const used = COLUMNS.filter(([name]) => ["name", "state"].includes(name) || all.some((c) => c[name] || c[name] === 0 && name === "left"));
  const sort = ([name, text]) => [el("button", { id: `sort-${name}`, type: "button", "aria-pressed": `${name === key}` },
    text + (name !== key ? "" : isDown ? " ↓" : " ↑")), !["name", "state", "reason"].includes(name)];
  fill($("clients-table"), used.map(sort), all.slice(0, MAX_ROWS).map((c) => used.map(([, , text]) => text(c))));
}
function renderPrivacy(run) {
  const p = run.detail?.privacy, delta = is(p?.delta) ? `, δ = ${p.delta < 1e-3 ? p.delta.toExponential() : p.delta}` : "";
  if ($("privacy").hidden = !p) return;
  const spent = is(p.epsilon_spent_max) && run.finish ? `at most ε = ${p.epsilon_spent_max.toPrecision(3)}${delta}, for planning` : "";
  const facts = p.exact ? [["Mechanism", p.mechanism]] : [["Unit", p.unit], ["Neighbours", p.neighbours],
    ["Mechanism", p.mechanism], ["Guarantee", `ε = ${p.epsilon}${delta}`], ["Counted in", p.counted], ["Spent", spent]];
  write("privacy-exact", p.exact ? "No noise is added." : "");
  write("privacy-claim", p.claim);
  refill($("privacy-facts"), facts.filter(([, text]) => text).flatMap(([name, text]) => [el("dt", null, name), el("dd", null, text)]));
  refill($("privacy-uncovered"), p.uncovered.map((text) => el("li", null, text)));
  const costs = (r) => r.server.cost > 0 ? r.server.cost : null, left = (r) => costs(r) && 100 * r.server.left;
  perRound("privacy", "cost", `Spent per round, ${p.cost}`, "Cost to each client of the round.", run, costs, 4, { bars: true });
  perRound("privacy", "left", "Budget left, %", "Of the client with the least.", run, left, 1);
}
function renderPlanner(run) {
  const rounds = ordered(run).filter((r) => is(r.server.arm)), of = (key) => (r) => r.server[key];
  const keys = [["arm", 0], ["p_arm", 2], ["cost", 4], ["predicted", 3], ["reward", 4], ["left", 3]];
  if ($("planner").hidden = !rounds.some((r) => r.server.arm > 0 || r.server.p_arm < 1)) return;
  write("planner-note", run.finish ? `The run ended: ${reason(run) || "all rounds are done"}.`
    : "Before each round the planner chooses an arm, a level of cost.");
  perRound("planner", "arm", "Arm", "Chosen arm; a higher one costs more.", run, of("arm"), 0, { dots: true });
  perRound("planner", "p", "Probability", "Of the chosen arm.", run, of("p_arm"), 2, { bars: true });
  perRound("planner", "reward", "Reward", "Gain by the round.", run, of("reward"), 4, { bars: true });
  fillOpen($("planner-rounds"), ["Round", "Arm", "Probability", "Cost", "Predicted", "Reward", "Left"].map((t) => [t, true]),
    () => rounds.map((r) => [`${r.round}`, ...keys.map(([key, digits]) => fixed(r.server[key], digits))]));
}
function renderClusters(run) {
  const current = (name) => run.strips.get(name).at(-1)[2], few = (all) => all.slice(0, MAX_STRIPS);
  const names = [...run.strips.keys()].sort((a, b) => current(a) - current(b) || byName(a, b));
  $("clusters").hidden = !names.length;
  write("clusters-note", `A strip is a client; colour and number are its cluster in each round.${names.length > MAX_STRIPS ? ` The first ${MAX_STRIPS} of ${names.length} clients.` : ""}`);
  const span = (n, j) => el("span", { className: j === "" ? "" : `c${j % 8 + 1}`, style: `flex-grow: ${n}` }, `${j}`);
  const strip = (stays) => stays.flatMap(([from, to, j], i) => [span(from - 1 - (stays[i - 1]?.[1] ?? 0), ""), span(to - from + 1, j)]);
  refill($("clusters-strips"), few(names).map((name) => el("div", null, el("b", null, name), strip(run.strips.get(name)),
    span(total(run) - run.strips.get(name).at(-1)[1], ""))));
  const words = run.examples?.clusters ?? {}, header = [["Cluster", false], ["Clients", true], ["Members now", false], ["Property", false]];
  fill($("clusters-table"), header, [...group(names, current)].map(([j, members]) =>
    [`${j}`, `${members.length}`, wide(few(members).join(", ")), wide(words[j] ?? "–")]));
  fillOpen($("clusters-rounds"), [["Client", false], ["Rounds: cluster", false]], () => names.map((name) =>
    [name, wide(run.strips.get(name).map(([from, to, j]) => `${from}–${to}: ${j}`).join(", "))]));
}
function renderExamples(run) {
  const found = run.examples?.examples ?? [], isRemote = ["serve", "submit"].includes(run.detail?.origin?.command);
  $("examples").hidden = !run.detail?.result;
  write("examples-note", found.length ? "Answers of the final model." : isRemote ? "Made at the clients."
    : "None: they are made for demo data, and for your own data with --examples.");
  found.slice(0, 3).forEach((one, k) => {
    if (!one.times) return renderPicks(one, k);
    const line = (label, color, kind) => ({ label, color, values: one[label], ...kind });
    figure($("examples-figures"), `${k}`, { title: one.title, note: one.note, digits: one.digits, x: "Time", range: [0, one.times.length - 1],
      xs: one.times.map((t, i) => i), ticks: one.times, series: [line("truth", 2, { dots: true }), line("forecast", 1),
        line("low", 7, { dash: [4, 4] }), line("high", 7, { dash: [4, 4] })] });
  });
}
function renderPicks(one, k) {
  const id = `picks-${k}`, box = $(id) ?? el("div", { id }, el("h3", null, one.title), el("div", { className: "scroll" }, el("table")));
  $("examples-figures").append(box);
  const isNumber = (i) => one.rows.every((row) => /^[-\d.,]+$/.test(row[i]));
  fill(box.querySelector("table"), one.columns.map((text, i) => [text, isNumber(i)]), one.rows.map((row) => row.map((t, i) => isNumber(i) ? t : wide(t))));
}
function renderList() {
  const filters = ["task", "method", "status"].map((key) => [key, $(`filter-${key}`)]), option = (t) => el("option", { value: t }, t);
  for (const [key, select] of filters) refill(select, ["all", ...new Set(page.list.map((one) => one[key]).sort())].map(option));
  const shown = page.list.filter((one) => filters.every(([key, select]) => ["all", one[key]].includes(select.value)));
  write("runs-title", `Runs: ${page.chosen.length} of ${page.list.length} shown`);
  write("runs-note", page.list.length ? `Choose up to ${MAX_RUNS}.` : "There are no runs yet; fedloom up trains a first one.");
  const pick = (id) => el("input", { type: "checkbox", id: `pick-${id}`, defaultChecked: page.chosen.includes(id), ariaLabel: `Show ${id}` });
  const header = ["Show", "Run", "Task", "Method", "Status", "Rounds", "Metric", "ε", "Started", "Time", "Reason"];
  const row = (one) => [pick(one.id), one.id, one.task, one.method, one.status, `${one.rounds_done}/${one.rounds}`,
    `${one.metric} ${one.value}`, `${one.epsilon ?? "–"}`, day(one.started), duration(one.seconds), wide(one.reason)];
  fillOpen($("runs"), header.map((t) => [t, ["Rounds", "ε", "Time"].includes(t)]), () => shown.map(row));
}
function render() {
  const chosen = page.chosen.map((id) => runs.get(id)), run = runs.get(page.focus);
  renderList(Object.assign(page, { isQueued: false, drawn: performance.now() }));
  if (!run) return;
  for (const part of [renderTop, renderClients, renderPrivacy, renderPlanner, renderClusters, renderExamples]) part(run);
  for (const part of [renderCurves, renderComparison]) part(chosen);
}
function schedule() {
  if (page.isQueued) return;
  page.isQueued = true;
  setTimeout(() => requestAnimationFrame(render), Math.max(0, 150 - (performance.now() - page.drawn)));
}
document.addEventListener("change", ({ target }) => {
  const id = target.id.slice(5), rest = page.chosen.filter((one) => one !== id);
  if (target.id === "focus") forget(page.focus = target.value);
  if (!target.id.startsWith("pick-")) schedule();
  else if (target.checked ? rest.length < MAX_RUNS : rest.length) choose(target.checked ? [...rest, id] : rest);
  else target.checked = !target.checked;
});
document.addEventListener("click", ({ target: { id } }) => {
  if (id.startsWith("sort-")) schedule(page.sort = [id.slice(5), page.sort[0] === id.slice(5) && !page.sort[1]]);
});
document.addEventListener("toggle", schedule, true);
const fit = ({ plot, chart }) => plot.setSize({ width: Math.max(chart.clientWidth, 200), height: HEIGHT });
new ResizeObserver(() => charts.forEach(fit)).observe($("main"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => schedule(forget()));
choose(new URLSearchParams(location.search).getAll("run"));
setInterval(() => document.hidden || list(), 1000 * LIST_SECONDS);
