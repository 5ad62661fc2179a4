// Active milliseconds: the time in which the page was visible and the person did something lately.

const IDLE_AFTER = 30_000;

export class ActiveClock {
  constructor(now = () => performance.now(), idleAfter = IDLE_AFTER) {
    Object.assign(this, { now, idleAfter });
    this.total = 0;
    this.mark = now();
    this.lastInput = this.mark;
    this.visible = !document.hidden;
    this.watch();
  }

  watch() {
    const active = () => this.input();
    for (const type of ["pointermove", "pointerdown", "keydown", "wheel", "touchstart"]) {
      addEventListener(type, active, { passive: true, capture: true });
    }
    document.addEventListener("visibilitychange", () => {
      this.settle();
      this.visible = !document.hidden;
      this.lastInput = this.now();
    });
  }

  /** Something was done: what passed since counts, up to the idle limit. */
  input() {
    this.settle();
    this.lastInput = this.now();
  }

  settle() {
    const now = this.now();
    if (this.visible) {
      const end = Math.min(now, this.lastInput + this.idleAfter);
      this.total += Math.max(0, end - this.mark);
    }
    this.mark = now;
  }

  /** Whole milliseconds since the last lap; starts the next one. */
  lap() {
    this.settle();
    const lap = Math.round(this.total);
    this.total = 0;
    return lap;
  }
}
