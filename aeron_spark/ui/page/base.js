// What all views share: elements without markup, questions to the server, lists of which only the visible rows exist.
// Texts of other processes go into text nodes and attributes by name alone, never into markup.

const SVG = "http://www.w3.org/2000/svg";

export const find = id => document.getElementById(id);

/** An element with properties, `class` and data, and its children: elements or texts. */
export function made(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** An element of a drawing. */
export function drawn(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A table of rows of texts. */
export function table(heads, rows) {
  const cell = text => made("td", {class: String(text).length > 18 ? "long" : ""}, String(text));
  return made("div", {class: "wide"}, made("table", {},
    made("thead", {}, made("tr", {}, ...heads.map(head => made("th", {}, head)))),
    made("tbody", {}, ...rows.map(row => made("tr", {}, ...row.map(cell))))));
}

/** Show a text in an element, or hide it where there is none. */
export function tell(element, text) {
  element.hidden = !text;
  element.textContent = text || "";
}

export class TokenError extends Error {}
/** What the server says of a question: wrong, or it cannot read what it is about. */
export class AnswerError extends Error {}

// The token comes behind # in the address, which no server sees, and leaves the address bar at once.
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", location.pathname);
}

// A server that hangs, or a tunnel to it, never ends a question by itself.
const MOST_MS = 10000;

async function answer(path, options) {
  const token = sessionStorage.getItem("token");
  const headers = {...options.headers, ...(token ? {Authorization: `Bearer ${token}`} : {})};
  const response = await fetch(path, {...options, headers, cache: "no-store", signal: AbortSignal.timeout(MOST_MS)});
  const found = await response.json();
  if (response.status === 401) throw new TokenError(found.error);
  if (found.error && !("rows" in found)) throw new AnswerError(found.error);
  return found;
}

export const ask = (path, query = {}) => answer(`/api/${path}?${new URLSearchParams(query)}`, {});
export const send = (path, body) => answer(`/api/${path}`,
  {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)});

const AROUND = 4;
const MOST = 100;

/** A list of rows of one height, as long as there are rows; only those near the window are asked for and exist. */
export class Windowed {
  constructor(element, height, load, draw) {
    Object.assign(this, {element, height, load, draw, total: 0, first: 0, rows: [], wanted: null, isLoading: false});
    const again = () => { if (this.element.offsetParent && !this.covers(this.visible())) this.refresh(); };
    addEventListener("scroll", again, {passive: true});
    addEventListener("resize", again);
  }

  visible() {
    const above = Math.max(0, -this.element.getBoundingClientRect().top);
    const first = Math.max(0, Math.floor(above / this.height) - AROUND);
    const count = Math.min(MOST, Math.ceil(innerHeight / this.height) + 2 * AROUND);
    return {first, count};
  }

  covers({first, count}) {
    return first >= this.first && Math.min(this.total, first + count) <= this.first + this.rows.length;
  }

  /** Ask for the visible rows, and show them. One question at a time; the last place wins. */
  async refresh() {
    if (this.isLoading) {
      this.wanted = true;
      return;
    }
    this.isLoading = true;
    try {
      do {
        this.wanted = null;
        const {first, count} = this.visible();
        const found = await this.load({start: first, count});
        Object.assign(this, {total: found.total, first, rows: found.rows});
        this.show(found);
      } while (this.wanted);
    } finally {
      this.isLoading = false;
    }
  }

  show(found) {
    const focused = document.activeElement?.dataset?.key;
    this.element.style.height = `${this.total * this.height}px`;
    this.element.replaceChildren(...this.rows.map((row, number) => {
      const element = this.draw(row, found);
      element.style.top = `${(this.first + number) * this.height}px`;
      return element;
    }));
    if (focused) [...this.element.querySelectorAll("[data-key]")].find(one => one.dataset.key === focused)?.focus({preventScroll: true});
  }
}

/** Show the dialog with a title and elements. */
export function detail(title, ...children) {
  find("detail-title").textContent = title;
  find("detail-body").replaceChildren(...children);
  if (!find("detail").open) find("detail").showModal();
}
