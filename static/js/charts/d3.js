// d3 as vendored (an UMD file that sets a global), as a module.
import "../../vendor/d3/d3.min.js";

export const d3 = globalThis.d3;
