// data-prompts-check="url" on a pair's form: checks the bank's rules while the person writes, and shows
// which words differ. It only advises; the server checks again when the form is sent.

const WAIT = 300;
const FIELDS = ["category", "prompt", "contrast", "alt_contrast", "property", "topic", "entity"];

function draft(form) {
  const value = (name) => form.elements[name]?.value ?? "";
  return { id: value("slug"), ...Object.fromEntries(FIELDS.map((name) => [name, value(name)])) };
}

function label(form, field) {
  const control = form.elements[field === "id" ? "slug" : field];
  return control?.labels?.[0]?.firstChild?.textContent.trim() || field;
}

function marked(element, text, spans) {
  element.replaceChildren();
  let done = 0;
  for (const [start, end] of spans) {
    const mark = document.createElement("mark");
    mark.textContent = text.slice(start, end);
    element.append(text.slice(done, start), mark);
    done = end;
  }
  element.append(text.slice(done));
}

function show(form, words, result, sent) {
  const box = form.querySelector("[data-check-result]");
  const broken = result.problems.length > 0;
  box.hidden = false;
  box.dataset.state = broken ? "broken" : "fine";
  box.querySelector("[data-check-state]").textContent = broken ? words.broken : words.fine;
  box.querySelector("[data-check-list]").replaceChildren(
    ...[...result.problems, ...result.remarks].map(({ field, message }) => {
      const line = document.createElement("li");
      line.textContent = `${label(form, field)}: ${message}`;
      return line;
    }),
  );
  for (const side of ["prompt", "contrast"]) {
    marked(box.querySelector(`[data-check-${side}]`), sent[side], result.spans[side]);
  }
}

function away(form, words) {
  const box = form.querySelector("[data-check-result]");
  box.hidden = false;
  box.dataset.state = "away";
  box.querySelector("[data-check-state]").textContent = words.away;
}

function start(form) {
  const words = document.querySelector("[data-check-words]").dataset;
  let timer;
  let running = new AbortController();

  async function check() {
    // Only the newest draft counts: an older answer must not overwrite a newer one.
    running.abort();
    running = new AbortController();
    const { signal } = running;
    const sent = draft(form);
    try {
      const reply = await fetch(form.dataset.promptsCheck, {
        method: "POST",
        credentials: "same-origin",
        headers: {
          "Content-Type": "application/json",
          "X-CSRFToken": form.elements.csrfmiddlewaretoken.value,
        },
        body: JSON.stringify(sent),
        signal,
      });
      if (!reply.ok) throw new Error(String(reply.status));
      show(form, words, await reply.json(), sent);
    } catch {
      if (!signal.aborted) away(form, words);
    }
  }

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, WAIT);
  });
  if (form.elements.prompt.value) check();
}

for (const form of document.querySelectorAll("form[data-prompts-check]")) start(form);
