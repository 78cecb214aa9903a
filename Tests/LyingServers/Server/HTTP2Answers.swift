import TestSupport

extension Origin {
  /// The head of a right answer over HTTP/2, and the body that belongs to it. `announcesLength`: with Content-Length; a
  /// 206 has its Content-Range in any case.
  func http2Response(
    to request: ServerRequest, announcesLength: Bool = true
  ) -> (status: String, fields: [String], body: ArraySlice<UInt8>) {
    let (status, fields, body) = response(to: request)
    let named = fields.map { field in
      let name = field.prefix { $0 != ":" }
      return name.lowercased() + field.dropFirst(name.count)
    }
    return (
      String(status.prefix(3)), named.filter { announcesLength || !$0.hasPrefix("content-length: ") }, body
    )
  }

  /// Answers with at most `limit` bytes of the body, whatever the head says. Returns the number of bytes held back;
  /// where there are any, the stream does not end.
  @discardableResult
  func answer(
    _ request: ServerRequest, _ stream: HTTP2Stream, limit: Int = .max, announcesLength: Bool = true, piece: Int = 1000
  ) throws -> Int {
    let (status, fields, body) = http2Response(to: request, announcesLength: announcesLength)
    try stream.head(status, fields)
    let rest = max(0, body.count - limit)
    if rest == 0 || limit > 0 { try stream.data(body.prefix(limit), end: rest == 0, piece: piece) }
    return rest
  }

  /// As `answer`, and ends as `end` does where the body was held back.
  func answerAndEnd(
    _ request: ServerRequest, _ stream: HTTP2Stream, after limit: Int, announcesLength: Bool = true,
    _ end: (HTTP2Stream) throws -> Void
  ) throws {
    if try answer(request, stream, limit: limit, announcesLength: announcesLength) > 0 { try end(stream) }
  }
}

/// A behaviour over HTTP/2. Over HTTP/1.1 the same server is honest, which is where a client has to turn to when it is
/// told no length.
func http2(
  _ name: String, facts: PartialFacts = .strong, declares: Declared = [], lines: [String] = [],
  outcomes: Outcomes = .all(.done), asks: (@Sendable (Int) -> [String])? = nil, keepsData: Bool = true,
  script: @escaping @Sendable (ServerRequest, HTTP2Stream) throws -> Void
) -> Behaviour {
  Behaviour(
    "HTTP/2, \(name)", facts: facts, declares: declares, lines: lines, outcomes: outcomes, asks: asks,
    keepsData: keepsData
  ) { request, reply in
    guard let stream = HTTP2Stream(request, reply) else {
      try Origin().answer(request, reply)
      return
    }
    try script(request, stream)
  }
}

/// libcurl has one code for a stream that was reset and one for which the protocol was broken, and another where it
/// ended in good order. Before an attempt is over, HTTP/1.1 may be tried.
let cutOverHTTP2 = Outcome.either(.done, .either(.waits("cut"), .waits("short-body")))
let brokenOverHTTP2 = Outcome.either(cutOverHTTP2, .waits("bad-response"))
let stalledOverHTTP2 = Outcome.either(.done, .waits("stalled"))
