// Rows to a CSV file that spreadsheets open without harm.

/** One field: quoted where needed; a leading = + - @ that is no number gets a quote mark in front. */
export function field(value) {
  let text = value === null || value === undefined ? "" : String(value);
  if (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text))) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Lines of fields as one CSV text with CRLF ends (RFC 4180). */
export function toCsv(rows) {
  return rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

/** Offer a text or blob to be saved under a name. */
export function save(name, content, type = "text/csv;charset=utf-8") {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
