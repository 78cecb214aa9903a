import Glibc
import TestSupport

/// A server that does its work right, as far as a script lets it.
struct Origin: Sendable {
  enum IfRange {
    case honoured
    /// Takes a Range for good, whatever `If-Range` says.
    case ignored
    /// Answers every `If-Range` with the whole.
    case refused
  }

  var bytes = payload
  var etag: String? = v1
  var fields: [String] = []
  var ifRange = IfRange.honoured

  /// Where the response has to begin; nil: the whole is to be sent.
  func rangeStart(_ request: ServerRequest) -> Int? {
    guard let start = request.rangeStart else { return nil }
    guard let condition = request.value("if-range") else { return start }
    switch ifRange {
    case .ignored: return start
    case .refused: return nil
    case .honoured:
      let isDate = fields.contains("Last-Modified: \(condition)")
      return condition == etag || isDate ? start : nil
    }
  }

  var headFields: [String] {
    fields + (etag.map { ["ETag: \($0)"] } ?? [])
  }

  /// What a server that does its work right says: the status line's end, the fields, the body.
  func response(to request: ServerRequest) -> (status: String, fields: [String], body: ArraySlice<UInt8>) {
    guard let start = rangeStart(request) else {
      return ("200 OK", headFields + ["Accept-Ranges: bytes", "Content-Length: \(bytes.count)"], bytes[...])
    }
    guard start < bytes.count else {
      return (
        "416 Range Not Satisfiable", headFields + ["Content-Range: bytes */\(bytes.count)", "Content-Length: 0"], []
      )
    }
    let body = bytes[start..<min(bytes.count, (request.rangeEnd ?? bytes.count) + 1)]
    return (
      "206 Partial Content",
      headFields + [
        "Content-Range: bytes \(start)-\(start + body.count - 1)/\(bytes.count)", "Content-Length: \(body.count)",
      ], body
    )
  }

  /// Answers with at most `limit` bytes of the body, whatever the head says. Returns the number of bytes held back;
  /// how the connection ends is then the script's choice.
  @discardableResult
  func answer(_ request: ServerRequest, _ reply: Reply, limit: Int = .max) throws -> Int {
    let (status, fields, body) = response(to: request)
    try reply.head(status, fields)
    try reply.send(body.prefix(limit))
    return max(0, body.count - limit)
  }

  /// As `answer`, and closes the connection behind bytes that are not the file's, as a proxy does with its error page.
  func answerAndBreak(_ request: ServerRequest, _ reply: Reply, after limit: Int, junk: some Collection<UInt8>) throws {
    let (status, fields, body) = response(to: request)
    guard body.count > limit + junk.count else { return _ = try answer(request, reply) }
    try reply.head(status, fields)
    try reply.send(body.prefix(limit))
    try reply.send(junk)
    try reply.finish()
  }

  /// As `answer`, and closes the connection where the body was held back.
  func answerAndCut(_ request: ServerRequest, _ reply: Reply, after limit: Int) throws {
    if try answer(request, reply, limit: limit) > 0 { try reply.finish() }
  }

  func contentRange(_ start: Int) -> String {
    "bytes \(start)-\(bytes.count - 1)/\(bytes.count)"
  }

  /// A script that is right but for 206: `lie` gets the start asked for and yields the head fields and the body.
  /// `If-Range` is ignored, so that each lie is told.
  func lyingIn206(
    _ lie: @escaping @Sendable (_ start: Int) -> (fields: [String], body: [UInt8])
  ) -> ScriptedServer.Script {
    { request, reply in
      guard let start = request.rangeStart, start < bytes.count else {
        try answer(request, reply)
        return
      }
      let (fields, body) = lie(start)
      try reply.respond("206 Partial Content", fields, body: body)
    }
  }
}

/// An HTTP-date in the preferred format (RFC 9110 section 5.6.7).
func httpDate(secondsFromNow seconds: Int) -> String {
  var moment = time(nil) + seconds
  var parts = tm()
  gmtime_r(&moment, &parts)
  var text = [CChar](repeating: 0, count: 64)
  let length = strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
  return String(decoding: text.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self)
}
