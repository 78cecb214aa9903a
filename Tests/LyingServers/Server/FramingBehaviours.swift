import TestSupport

private let origin = Origin()
private let bad = Outcome.waits("bad-response")

/// Where a body ends, by its own framing or by force.
let framingBehaviours: [Behaviour] =
  [
    Behaviour("cut after each 1000 bytes") { try origin.answerAndCut($0, $1, after: 1000) },
    Behaviour("reset after each 1000 bytes") { request, reply in
      if try origin.answer(request, reply, limit: 1000) > 0 { try reply.reset() }
    },
    Behaviour("reset in the middle once") { request, reply in
      if request.nth == 1 {
        if try origin.answer(request, reply, limit: 500) > 0 { try reply.reset() }
      } else {
        try origin.answer(request, reply)
      }
    },
    Behaviour("breaks off with an error page once") { request, reply in
      guard request.nth == 1 else { return _ = try origin.answer(request, reply) }
      try origin.answerAndBreak(request, reply, after: 500, junk: Array("<h1>502 Bad Gateway</h1>".utf8))
    },
    Behaviour("breaks off with zeros twice") { request, reply in
      guard request.nth <= 2 else { return _ = try origin.answer(request, reply) }
      try origin.answerAndBreak(request, reply, after: 700 * request.nth, junk: [UInt8](repeating: 0, count: 300))
    },
    Behaviour("reset after the head", outcomes: wholeAtFull(.waits("cut"))) { request, reply in
      if try origin.answer(request, reply, limit: 0) > 0 { try reply.reset() }
    },
    Behaviour("closed after the head", outcomes: wholeAtFull(.waits("short-body"))) {
      try origin.answerAndCut($0, $1, after: 0)
    },
    Behaviour("reset instead of an answer", outcomes: .all(.waits("cut"))) { _, reply in try reply.reset() },
    Behaviour("closed instead of an answer", outcomes: .all(.waits("cut"))) { _, reply in try reply.finish() },
    Behaviour("closed within the status line", outcomes: .all(.either(.waits("cut"), bad))) { _, reply in
      try reply.send("HTTP/1.1 20")
      try reply.finish()
    },
    Behaviour("closed within the head", outcomes: .all(.either(.waits("cut"), bad))) { _, reply in
      try reply.send("HTTP/1.1 200 OK\r\nETag: \(v1)\r\nContent-Le")
      try reply.finish()
    },
    Behaviour("says keep-alive, closes after each response") { request, reply in
      try origin.answer(request, reply)
      try reply.finish()
    },
    Behaviour("drips, for longer than the idle time-out", lines: ["timeout: 4s"]) { request, reply in
      guard request.nth == 1, request.rangeStart == nil else {
        try origin.answer(request, reply)
        return
      }
      try reply.head("200 OK", origin.headFields + ["Content-Length: \(n)"])
      try reply.drip(payload, piece: 1000, milliseconds: 500)
    },
    Behaviour("accepts, never answers", lines: ["timeout: 1s"], outcomes: .all(.waits("stalled"))) { _, reply in
      try reply.stall()
    },
    Behaviour("stalls within the head", lines: ["timeout: 1s"], outcomes: .all(.waits("stalled"))) { _, reply in
      try reply.send("HTTP/1.1 200 OK\r\nETag: \(v1)\r\n")
      try reply.stall()
    },
    Behaviour("stalls after the head", lines: ["timeout: 1s"], outcomes: wholeAtFull(.waits("stalled"))) {
      request, reply in
      if try origin.answer(request, reply, limit: 0) > 0 { try reply.stall() }
    },
    Behaviour("stalls in the middle once", lines: ["timeout: 1s"], outcomes: .all(.either(.done, .waits("stalled")))) {
      request, reply in
      let limit = request.nth == 1 ? 500 : .max
      if try origin.answer(request, reply, limit: limit) > 0 { try reply.stall() }
    },
    // Who lacks one byte gets it in time.
    Behaviour(
      "a byte now and then, beyond the total time-out", lines: ["timeout: 60s 2s"],
      outcomes: Outcomes(
        empty: .waits("timeout"), middle: .either(.waits("timeout"), .done), full: .done, over: .waits("timeout"))
    ) { request, reply in
      guard try origin.answer(request, reply, limit: 0) > 0 else { return }
      try reply.drip(payload[(origin.rangeStart(request) ?? 0)...], piece: 1, milliseconds: 100)
    },
  ]
  + contentLengthBehaviours + chunkedBehaviours + closeDelimitedBehaviours

/// Content-Length that is not the length of the body. Ranges are not offered, so that the whole is at stake.
private let contentLengthBehaviours: [Behaviour] = [
  lengthFields("too long by 500", ["Content-Length: \(n + 500)"], outcomes: .all(.waits("short-body"))),
  lengthFields(
    "too long, declared size", ["Content-Length: \(n + 500)"], declares: .size,
    outcomes: .all(.waits("mismatch-size"))),
  lengthFields(
    "too short, declared size", ["Content-Length: \(n - 500)"], declares: .size,
    outcomes: .all(.waits("mismatch-size"))),
  lengthFields(
    "too short, declared checksum", ["Content-Length: \(n - 500)"], declares: .checksum,
    outcomes: .all(.waits("mismatch-crc32"))),
  lengthFields("twice the same", ["Content-Length: \(n)", "Content-Length: \(n)"]),
  lengthFields("twice, the second shorter", ["Content-Length: \(n)", "Content-Length: 400"], outcomes: .all(bad)),
  lengthFields("twice, the second longer", ["Content-Length: 400", "Content-Length: \(n)"], outcomes: .all(bad)),
  // RFC 9110 section 8.6 allows either for a list of equal values.
  lengthFields("a list of equals", ["Content-Length: \(n), \(n)"], outcomes: .all(.either(.done, bad))),
  lengthFields("a list", ["Content-Length: 400, \(n)"], outcomes: .all(bad)),
  lengthFields("negative", ["Content-Length: -\(n)"], outcomes: .all(bad)),
  lengthFields("with a sign", ["Content-Length: +\(n)"], outcomes: .all(bad)),
  lengthFields("words", ["Content-Length: many"], outcomes: .all(bad)),
  lengthFields("empty", ["Content-Length:"], outcomes: .all(bad)),
  lengthFields("1e4", ["Content-Length: 1e4"], outcomes: .all(bad)),
  lengthFields("hexadecimal", ["Content-Length: 0x2710"], outcomes: .all(bad)),
  lengthFields("with a fraction", ["Content-Length: \(n).0"], outcomes: .all(bad)),
  lengthFields("beyond 64 bits", ["Content-Length: 18446744073709561616"], outcomes: .all(bad)),
  lengthFields(
    "with zeros before it", ["Content-Length: 000000000000000000000\(n)"], outcomes: .all(.either(.done, bad))),
]

private func lengthFields(
  _ name: String, _ fields: [String], declares: Declared = [], outcomes: Outcomes = .all(.done)
) -> Behaviour {
  // Without an ETag of the old version: each job begins anew.
  Behaviour("Content-Length \(name)", facts: PartialFacts(), declares: declares, outcomes: outcomes, keepsData: false) {
    _, reply in
    try reply.head("200 OK", fields + ["Connection: close"])
    try reply.send(payload)
    try reply.finish()
  }
}

private let chunkedBehaviours: [Behaviour] = [
  Behaviour("chunked") { try sendChunked($0, $1) },
  Behaviour("chunked, 206 too", asks: resumesOnce) { try sendChunked($0, $1) },
  Behaviour("chunked, said twice", asks: resumesOnce) {
    try sendChunked($0, $1, coding: "chunked\r\nTransfer-Encoding: chunked")
  },
  Behaviour("chunked, with extensions and a trailer") {
    try sendChunked($0, $1, extensions: ";a=b;c=\"d\"", trailer: "X-Sum: 1\r\n")
  },
  Behaviour("chunked, trailer of lies") {
    try sendChunked($0, $1, trailer: "ETag: \(v2)\r\nContent-Range: bytes 0-1/2\r\nContent-Encoding: gzip\r\n")
  },
  Behaviour("chunked and Content-Length", outcomes: .all(.either(.done, bad))) {
    try sendChunked($0, $1, fields: ["Content-Length: 400"])
  },
  Behaviour("chunked, no last chunk") { request, reply in
    try sendChunked(request, reply, end: request.nth == 1 ? "" : "0\r\n\r\n")
    if request.nth == 1 { try reply.finish() }
  },
  Behaviour("chunked, cut within each chunk") { request, reply in
    guard let start = origin.rangeStart(request), start >= n else {
      let start = origin.rangeStart(request) ?? 0
      try chunkedHead(request, reply)
      try reply.send("fff\r\n")
      try reply.send(payload[start...].prefix(2000))
      return try reply.finish()
    }
    try origin.answer(request, reply)
  },
  Behaviour("chunked, size is no number", outcomes: wholeAtFull(bad)) { try badChunk($0, $1, "zz\r\n") },
  Behaviour("chunked, size negative", outcomes: wholeAtFull(bad)) { try badChunk($0, $1, "-1\r\n") },
  Behaviour("chunked, size beyond 64 bits", outcomes: wholeAtFull(bad)) {
    try badChunk($0, $1, "10000000000000000\r\n")
  },
  Behaviour("identity as a transfer coding, not closed", facts: PartialFacts(), keepsData: false) { _, reply in
    try reply.head("200 OK", ["Transfer-Encoding: identity", "Content-Length: \(n)"])
    try reply.send(payload)
  },
  Behaviour("unknown transfer coding", outcomes: wholeAtFull(bad)) {
    try sendChunked($0, $1, coding: "shuffled, chunked")
  },
]

private func chunkedHead(
  _ request: ServerRequest, _ reply: Reply, coding: String = "chunked", fields: [String] = []
) throws {
  let fields = fields + origin.headFields + ["Transfer-Encoding: \(coding)"]
  if let start = origin.rangeStart(request) {
    try reply.head("206 Partial Content", fields + ["Content-Range: \(origin.contentRange(start))"])
  } else {
    try reply.head("200 OK", fields)
  }
}

private func sendChunked(
  _ request: ServerRequest, _ reply: Reply, coding: String = "chunked", extensions: String = "",
  trailer: String = "", fields: [String] = [], end: String = "0\r\n"
) throws {
  let start = origin.rangeStart(request) ?? 0
  guard start < n else {
    try origin.answer(request, reply)
    return
  }
  try chunkedHead(request, reply, coding: coding, fields: fields)
  var rest = payload[start...]
  while !rest.isEmpty {
    let chunk = rest.prefix(3000)
    try reply.send("\(String(chunk.count, radix: 16))\(extensions)\r\n")
    try reply.send(chunk)
    try reply.send("\r\n")
    rest = rest.dropFirst(3000)
  }
  if end == "0\r\n" { try reply.send("0\r\n\(trailer)\r\n") } else { try reply.send(end) }
}

private func badChunk(_ request: ServerRequest, _ reply: Reply, _ line: String) throws {
  guard (origin.rangeStart(request) ?? 0) < n else {
    try origin.answer(request, reply)
    return
  }
  try chunkedHead(request, reply)
  try reply.send(line)
  try reply.send(payload)
  try reply.finish()
}

/// Bodies that end with the connection.
private let closeDelimitedBehaviours: [Behaviour] = [
  Behaviour("until close, HTTP/1.1", facts: .nothing) { _, reply in
    try untilClose(reply, ["Connection: close"], payload)
  },
  Behaviour("until close, HTTP/1.0", facts: .nothing) { _, reply in
    try untilClose(reply, [], payload, version: "HTTP/1.0")
  },
  Behaviour("HTTP/1.0 with Content-Length", facts: .nothing) { _, reply in
    try untilClose(reply, ["Content-Length: \(n)"], payload, version: "HTTP/1.0")
  },
  Behaviour("until close, 206") { request, reply in
    guard let start = origin.rangeStart(request), start < n else {
      try origin.answer(request, reply)
      return
    }
    try reply.head("206 Partial Content", origin.headFields + ["Content-Range: \(origin.contentRange(start))"])
    try reply.send(payload[start...])
    try reply.finish()
  },
  Behaviour(
    "until close, cut once, then a 206", facts: .strongWithoutSize, declares: .size,
    outcomes: Outcomes(
      empty: .either(.done, .waits("mismatch-size")), middle: .done, full: .done,
      over: .either(.done, .waits("mismatch-size"))), keepsData: false
  ) { request, reply in
    guard request.nth == 1, request.rangeStart == nil else {
      try origin.answer(request, reply)
      return
    }
    try untilClose(reply, origin.headFields, Array(payload.prefix(4000)))
  },
  Behaviour(
    "until close, always cut, declared size", facts: PartialFacts(), declares: .size,
    outcomes: .all(.either(.waits("short-body"), .waits("mismatch-size"))), keepsData: false
  ) { _, reply in try untilClose(reply, [], Array(payload.prefix(4000))) },
  Behaviour(
    "until close, always cut, declared checksum", facts: PartialFacts(), declares: .checksum,
    outcomes: .all(.either(.waits("short-body"), .waits("mismatch-crc32"))), keepsData: false
  ) { _, reply in try untilClose(reply, [], Array(payload.prefix(4000))) },
  Behaviour("until close, reset instead", facts: .strongWithoutSize) { request, reply in
    guard request.nth == 1, request.rangeStart == nil else {
      try origin.answer(request, reply)
      return
    }
    try reply.head("200 OK", origin.headFields)
    try reply.send(payload.prefix(4000))
    try reply.reset()
  },
  Behaviour(
    "nothing until close, declared size", facts: PartialFacts(), declares: .size,
    outcomes: .all(.either(.waits("short-body"), .waits("mismatch-size"))), keepsData: false
  ) { _, reply in try untilClose(reply, [], []) },
]

private func untilClose(
  _ reply: Reply, _ fields: [String], _ body: [UInt8], version: String = "HTTP/1.1"
) throws {
  try reply.head("200 OK", fields, version: version)
  try reply.send(body)
  try reply.finish()
}
