// data-confirm="Really …?" on a button or form: asks in a dialog first, and submits when confirmed.
// data-confirm-label names the button that goes on, data-confirm-danger colours it.

function ask(source) {
  const dialog = document.createElement("dialog");
  dialog.className = "dialog";
  dialog.setAttribute("aria-label", source.dataset.confirm);
  const body = document.createElement("div");
  body.className = "dialog-body";
  body.textContent = source.dataset.confirm;
  const foot = document.createElement("form");
  foot.method = "dialog";
  foot.className = "dialog-foot";
  foot.append(
    choice("", document.body.dataset.labelCancel || "Cancel", "button"),
    choice(
      "yes",
      source.dataset.confirmLabel || document.body.dataset.labelConfirm || "Continue",
      "confirmDanger" in source.dataset ? "button button-danger" : "button button-primary",
    ),
  );
  dialog.append(body, foot);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      source.focus?.();
      resolve(dialog.returnValue === "yes");
    });
  });
}

function choice(value, label, className) {
  const button = document.createElement("button");
  button.value = value;
  button.className = className;
  button.textContent = label;
  return button;
}

export function start() {
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    const source = event.submitter?.dataset.confirm ? event.submitter : form;
    if (!source.dataset?.confirm || form.dataset.confirmed) return;
    event.preventDefault();
    const submitter = event.submitter;
    if (!(await ask(source))) return;
    form.dataset.confirmed = "yes";
    form.requestSubmit(submitter);
    delete form.dataset.confirmed;
  });
}
