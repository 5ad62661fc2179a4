// data-autosubmit on a form: a changed select or checkbox sends it. A form is sent once, whatever is clicked.

export function start() {
  document.addEventListener("change", (event) => {
    const form = event.target.form;
    if (
      form &&
      "autosubmit" in form.dataset &&
      event.target.matches("select, input[type=checkbox]")
    ) {
      form.requestSubmit();
    }
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method === "dialog") return;
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
    // A download or a page from the back–forward cache leaves the form usable.
    setTimeout(() => delete form.dataset.sent, 3000);
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });
}
