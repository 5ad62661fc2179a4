// The dialogs of the judging page. While one is open the page's keys are dead.

import { connectKeyFields } from "../keyfields.js";
import { plain, say } from "./view.js";

const $ = (id) => document.getElementById(id);

export class Dialogs {
  constructor(page) {
    this.page = page;
    for (const dialog of document.querySelectorAll("dialog.dialog")) {
      dialog.addEventListener("click", (event) => {
        if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
      });
    }
    this.connectGuide();
    this.connectChoice("skip-dialog", (data) =>
      this.onSkip?.(data.get("reason"), data.get("remark")),
    );
    this.connectChoice("flag-dialog", (data) =>
      this.onFlag?.(data.get("kind"), data.get("remark")),
    );
    this.connectSignIn();
    this.connectKeys();
    this.connectState();
  }

  open(id) {
    const dialog = $(id);
    if (!dialog.open) dialog.showModal();
    return dialog;
  }

  connectGuide() {
    // The key that opens the guideline closes it too.
    $("guide-dialog").addEventListener("keydown", (event) => {
      const key = event.key.toLowerCase();
      if (key === this.page.keys.shortcuts.guide || key === "?") {
        event.preventDefault();
        event.stopPropagation(); // Or the page would open it again.
        $("guide-dialog").close();
      }
    });
  }

  guide(category) {
    const dialog = this.open("guide-dialog");
    for (const example of dialog.querySelectorAll("[data-example]")) {
      example.hidden = plain(example.dataset.example) !== plain(category);
      const image = example.querySelector("img[data-src]");
      if (!example.hidden && image && !image.src) image.src = image.dataset.src;
    }
    const shown = dialog.querySelector("[data-example]:not([hidden])");
    dialog.querySelector("[data-examples]").hidden = !shown;
    dialog.querySelector(".dialog-body").scrollTop = 0;
  }

  connectChoice(id, done) {
    const dialog = $(id);
    const form = dialog.querySelector("form");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const data = new FormData(form);
      dialog.close();
      done(data);
      form.reset();
    });
    // 1, 2, 3 choose; in the remark they are digits.
    form.addEventListener("keydown", (event) => {
      if (event.target.matches("textarea, input[type=text]")) return;
      const radios = form.querySelectorAll("input[type=radio]");
      const radio = radios[Number(event.key) - 1];
      if (radio) {
        radio.checked = true;
        radio.focus();
      }
    });
  }

  skip(done, broken = false) {
    this.onSkip = done;
    const dialog = this.open("skip-dialog");
    if (broken) dialog.querySelector('input[value="image_broken"]').checked = true;
  }

  flag(done) {
    this.onFlag = done;
    this.open("flag-dialog");
  }

  enlarge(item) {
    const image = $("large-dialog").querySelector("img");
    image.src = item.image;
    image.width = item.width;
    image.height = item.height;
    this.open("large-dialog");
  }

  connectSignIn() {
    const form = $("signin-form");
    const problem = $("signin-problem");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const { words } = this.page;
      problem.textContent = "";
      let outcome;
      try {
        outcome = await this.page.api.signIn(form.username.value, form.password.value);
      } catch {
        problem.textContent = words.signin_offline;
        return;
      }
      if (outcome.code === "other_user") problem.textContent = words.signin_other;
      else if (outcome.code)
        problem.textContent = outcome.code === "locked" ? words.signin_locked : words.signin_wrong;
      else {
        form.reset();
        $("signin-dialog").close();
        this.page.signedIn();
      }
    });
  }

  signIn(waiting, code) {
    $("signin-count").textContent = say(this.page.words, "signin_kept", { n: waiting });
    $("signin-problem").textContent = code === "other_user" ? this.page.words.signin_other : "";
    this.open("signin-dialog");
  }

  connectKeys() {
    const form = $("keys-form");
    connectKeyFields(form);
    form.querySelector("[data-keys-reset]").addEventListener("click", () => {
      for (const input of form.querySelectorAll("[data-key-input]"))
        input.value = input.dataset.default;
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const keys = Object.fromEntries(new FormData(form));
      $("keys-problem").textContent = "";
      try {
        const reply = await this.page.api.call(this.page.api.shortcutsUrl, {
          method: "POST",
          body: JSON.stringify(keys),
        });
        this.page.useShortcuts(reply.shortcuts);
        $("keys-dialog").close();
      } catch (error) {
        $("keys-problem").textContent =
          error.message === error.kind ? this.page.words.keys_not_saved : error.message;
      }
    });
  }

  keys() {
    for (const input of $("keys-form").querySelectorAll("[data-key-input]")) {
      input.value = this.page.keys.shortcuts[input.name] ?? input.value;
    }
    this.open("keys-dialog");
  }

  connectState() {
    $("state-compare").addEventListener("click", () => this.compare());
    $("state-dismiss").addEventListener("click", async () => {
      await this.page.outbox.dismiss();
      this.state();
    });
  }

  state() {
    const { outbox, words } = this.page;
    $("state-text").textContent = say(words, `state_${outbox.state}`, { n: outbox.waiting });
    const list = $("state-refused");
    list.replaceChildren(
      ...outbox.refused.map((record) => {
        const line = document.createElement("li");
        line.textContent = record.refused === true ? words.not_taken : record.refused;
        return line;
      }),
    );
    $("state-problems").hidden = !outbox.refused.length;
    this.open("state-dialog");
    this.compare();
  }

  async compare() {
    const { outbox, words } = this.page;
    const line = $("state-compared");
    line.textContent = words.comparing;
    try {
      const { mine, compared, missing } = await outbox.reconcile();
      line.textContent = say(words, missing ? "compared_missing" : "compared_all", {
        mine,
        compared,
        missing,
      });
    } catch {
      line.textContent = words.compare_failed;
    }
  }

  feedback({ correct, explanation }, done) {
    const dialog = $("feedback-dialog");
    dialog.dataset.correct = String(correct);
    $("feedback-title").textContent = correct ? this.page.words.right : this.page.words.wrong;
    $("feedback-text").textContent = explanation || "";
    dialog.addEventListener("close", done, { once: true });
    this.open("feedback-dialog");
  }
}
