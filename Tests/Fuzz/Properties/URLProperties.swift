internal import Transfer

/// The text is a URL; behind a newline may stand a Location that it redirects to.
func checkURL(_ bytes: [UInt8]) throws(Violation) {
  let texts = bytes.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
    .map { String(decoding: $0, as: UTF8.self) }
  guard let url = try accepted({ () throws(URLProblem) in try URLParts(texts[0]) }) else { return }
  try checkParts(url)
  guard texts.count == 2 else { return }
  guard let target = try accepted({ () throws(URLProblem) in try url.resolving(texts[1]) }) else { return }
  try checkParts(target)
}

/// Nil where the text is refused, with a reason that may be shown.
private func accepted(_ read: () throws(URLProblem) -> URLParts) throws(Violation) -> URLParts? {
  let reason: String
  do throws(URLProblem) { return try read() } catch { reason = error.reason }
  try require(!reason.isEmpty && !hasControls(reason), "a reason that steers a terminal")
  return nil
}

private func checkParts(_ url: URLParts) throws(Violation) {
  try require(
    !url.host.isEmpty && url.host.utf8.allSatisfy { (0x21...0x7E).contains($0) && !(0x41...0x5A).contains($0) },
    "a host in other than lower-case ASCII")
  try require(url.port > 0, "port 0")
  let shown = url.redacted
  try require(shown.utf8.allSatisfy { (0x21...0x7E).contains($0) }, "a URL that steers a terminal")
  try require(!shown.contains("?") && !shown.contains("#"), "a query is shown")
  let authority = shown.dropFirst(url.scheme.rawValue.count + 3).prefix { $0 != "/" }
  try require(!authority.contains("@"), "user information is shown")
  if let name = url.lastPathSegment {
    try require(!name.isEmpty && name != "." && name != ".." && !name.utf8.contains(0x2F), "a name that is a path")
    try require(!hasControls(name), "a name that steers a terminal")
  }
  // What is shown can be pasted into another job.
  guard let again = try accepted({ () throws(URLProblem) in try URLParts(shown) }) else {
    throw Violation(description: "what is shown of a URL is none")
  }
  try require(again.redacted == shown && again.hasSameOrigin(as: url), "what is shown of a URL is another one")
  try require(same(again.lastPathSegment, url.lastPathSegment), "what is shown of a URL names another file")
}
