// Zoom and pan of the picture: keys, wheel, pinch, drag, double click. Nothing else moves.

const MOST = 8;

export class Zoom {
  constructor(stage) {
    this.stage = stage;
    this.pointers = new Map();
    stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    stage.addEventListener("pointerdown", (event) => this.down(event));
    stage.addEventListener("pointermove", (event) => this.move(event));
    for (const type of ["pointerup", "pointercancel"]) {
      stage.addEventListener(type, (event) => this.up(event));
    }
    stage.addEventListener("dblclick", (event) => {
      if (this.scale > 1) this.reset();
      else this.by(2.5, this.point(event));
    });
    this.attach(null);
  }

  attach(image) {
    this.image = image;
    this.pointers.clear();
    this.reset();
  }

  reset() {
    [this.scale, this.x, this.y] = [1, 0, 0];
    this.apply();
  }

  /** Pointer position relative to the middle of the stage. */
  point({ clientX, clientY }) {
    const box = this.stage.getBoundingClientRect();
    return { x: clientX - box.left - box.width / 2, y: clientY - box.top - box.height / 2 };
  }

  /** Zoom by a factor, keeping the point under the pointer where it is. */
  by(factor, at = { x: 0, y: 0 }) {
    const scale = Math.min(MOST, Math.max(1, this.scale * factor));
    const ratio = scale / this.scale;
    this.x = at.x - (at.x - this.x) * ratio;
    this.y = at.y - (at.y - this.y) * ratio;
    this.scale = scale;
    this.apply();
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.apply();
  }

  apply() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    const [roomX, roomY] = [(width * (this.scale - 1)) / 2, (height * (this.scale - 1)) / 2];
    this.x = Math.min(roomX, Math.max(-roomX, this.x));
    this.y = Math.min(roomY, Math.max(-roomY, this.y));
    this.stage.classList.toggle("is-zoomed", this.scale > 1);
    if (this.image) {
      this.image.style.transform =
        this.scale === 1 ? "" : `translate(${this.x}px, ${this.y}px) scale(${this.scale})`;
    }
  }

  wheel(event) {
    if (!this.image) return;
    event.preventDefault();
    this.by(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0022)), this.point(event));
  }

  down(event) {
    if (!this.image || event.button) return;
    this.pointers.set(event.pointerId, this.point(event));
    if (this.scale > 1 || this.pointers.size > 1) this.stage.setPointerCapture(event.pointerId);
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = this.point(event);
    this.pointers.set(event.pointerId, now);
    if (this.pointers.size === 1) {
      if (this.scale > 1) this.pan(now.x - before.x, now.y - before.y);
      return;
    }
    const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
    const distance = (a) => Math.hypot(a.x - other.x, a.y - other.y) || 1;
    this.by(distance(now) / distance(before), {
      x: (now.x + other.x) / 2,
      y: (now.y + other.y) / 2,
    });
  }

  up(event) {
    this.pointers.delete(event.pointerId);
  }
}
