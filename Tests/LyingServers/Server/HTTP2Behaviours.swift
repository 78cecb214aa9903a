import TestSupport

private let origin = Origin()

/// Answers over HTTP/2 that are good, or whose faults concern nothing but themselves.
let http2Behaviours = wholeHTTP2Behaviours + lengthHTTP2Behaviours + malformedHTTP2Behaviours + silentHTTP2Behaviours

/// Whole answers, in every form that the protocol allows.
private let wholeHTTP2Behaviours: [Behaviour] = [
  http2("one frame of DATA", asks: resumesOnce) { try origin.answer($0, $1, piece: 16_384) },
  http2("many frames of DATA", asks: resumesOnce) { try origin.answer($0, $1, piece: 100) },
  http2("no content-length") { try origin.answer($0, $1, announcesLength: false) },
  http2("no content-length, 206 by its Content-Range", asks: resumesOnce) { request, stream in
    try origin.answer(request, stream, announcesLength: request.rangeStart != nil)
  },
  http2("no content-length, declared size", declares: .size, asks: resumesOnce) {
    try origin.answer($0, $1, announcesLength: false)
  },
  http2("no content-length, declared checksum", declares: .checksum, asks: resumesOnce) {
    try origin.answer($0, $1, announcesLength: false)
  },
  http2("padding, and frames that say nothing", asks: resumesOnce) { request, stream in
    let (status, fields, body) = origin.http2Response(to: request)
    let head = fieldBlock([":status: \(status)"] + fields)
    try stream.frame(.ping, stream: 0, Array(repeating: 7, count: 8))
    // Padding of 5, a weight, and a stream to depend on.
    try stream.frame(
      .headers, [.endHeaders, .padded, .priority], [5, 0, 0, 0, 0, 16] + head + Array(repeating: 0, count: 5))
    var rest = body
    while !rest.isEmpty {
      try stream.data([])
      try stream.frame(.data, .padded, [255] + rest.prefix(900) + Array(repeating: 0, count: 255))
      try stream.frame(.unknown, Array("what is that?".utf8))
      try stream.frame(.windowUpdate, bigEndian(1000))
      try stream.frame(.priority, [0, 0, 0, 0, 1])
      try stream.frame(.settings, stream: 0, [UInt8]())
      rest = rest.dropFirst(900)
    }
    try stream.data([], end: true)
  },
  http2("three 1xx before the head", asks: resumesOnce) { request, stream in
    for status in ["100", "103", "199"] { try stream.head(status, ["link: </style.css>"]) }
    try origin.answer(request, stream)
  },
  http2("trailers", asks: resumesOnce) { request, stream in
    let (status, fields, body) = origin.http2Response(to: request)
    try stream.head(status, fields)
    try stream.data(body)
    try stream.headers(["x-sum: 1"], .endStream)
  },
  http2("trailers of lies") { request, stream in
    let (status, fields, body) = origin.http2Response(to: request)
    try stream.head(status, fields)
    try stream.data(body)
    try stream.headers(
      ["etag: \(v2)", "content-range: bytes 0-1/2", "content-encoding: gzip", "last-modified: \(longAgo)"], .endStream)
  },
  http2("END_STREAM never comes, content-length") { request, stream in
    let (status, fields, body) = origin.http2Response(to: request)
    try stream.head(status, fields, end: body.isEmpty)
    try stream.data(body)
  },
  http2("reset with NO_ERROR behind the whole body") { request, stream in
    try origin.answer(request, stream)
    try stream.resetStream(.noError)
  },
  http2("DATA after END_STREAM", outcomes: .all(brokenOverHTTP2)) { request, stream in
    try origin.answer(request, stream)
    try stream.data(previous, end: true)
  },
]

/// Lengths that are not the body's.
private let lengthHTTP2Behaviours: [Behaviour] = [
  // What a proxy sends when the origin behind it dies in the middle of a chunked body.
  http2("END_STREAM too early, no content-length") { request, stream in
    try origin.answerAndEnd(request, stream, after: 1000, announcesLength: false) { try $0.data([], end: true) }
  },
  http2(
    "END_STREAM in the head, no content-length",
    outcomes: Outcomes(empty: .done, middle: brokenOverHTTP2, full: .done, over: .done)
  ) { request, stream in
    let (status, fields, _) = origin.http2Response(to: request, announcesLength: false)
    try stream.head(status, fields, end: true)
  },
  http2("END_STREAM too early, no content-length, declared size", declares: .size) { request, stream in
    try origin.answerAndEnd(request, stream, after: 1000, announcesLength: false) { try $0.data([], end: true) }
  },
  http2(
    "END_STREAM too early, no content-length, declared checksum", facts: PartialFacts(), declares: .checksum,
    outcomes: .all(.either(.waits("mismatch-crc32"), .done)), keepsData: false
  ) { request, stream in
    try stream.head("200")
    try stream.data(payload.prefix(1000), end: true)
  },
  // Without an ETag of the old version: each job begins anew.
  wholeFile("content-length too long by 500", ["content-length: \(n + 500)"], brokenOverHTTP2),
  wholeFile("content-length too short by half a frame", ["content-length: \(n - 500)"], brokenOverHTTP2),
  // libcurl is content when it has that much, as with HTTP/1.1: only the declared size tells.
  wholeFile(
    "content-length too short by a frame, declared size", ["content-length: \(n - 1000)"], tooShort, declares: .size),
  wholeFile("content-length 0, declared size", ["content-length: 0"], tooShort, declares: .size),
  wholeFile("content-length twice", ["content-length: \(n)", "content-length: 400"], brokenOverHTTP2),
  wholeFile("content-length negative", ["content-length: -\(n)"], brokenOverHTTP2),
  wholeFile("content-length beyond 64 bits", ["content-length: 18446744073709561616"], brokenOverHTTP2),
  http2(
    "206 with a surplus, no content-length", outcomes: .resuming(brokenOverHTTP2), keepsData: false
  ) { request, stream in
    guard let start = origin.rangeStart(request), start < n else {
      try origin.answer(request, stream)
      return
    }
    let body = Array(payload[start...].prefix(2000))
    try stream.head(
      "206", ["etag: \(v1)", "content-range: bytes \(start)-\(start + body.count - 1)/\(n)"])
    try stream.data(body + previous.prefix(260), end: true, piece: 500)
  },
  http2(
    "206 with a surplus of whole frames, no content-length", outcomes: .resuming(brokenOverHTTP2),
    keepsData: false
  ) {
    request, stream in
    guard let start = origin.rangeStart(request), start < n else {
      try origin.answer(request, stream)
      return
    }
    let body = payload[start...]
    try stream.head("206", ["etag: \(v1)", "content-range: \(origin.contentRange(start))"])
    try stream.data(body, piece: 500)
    try stream.data(previous.prefix(260), end: true)
  },
]

private let tooShort = Outcome.either(brokenOverHTTP2, .either(.waits("mismatch-size"), .waits("other-kind")))

private func wholeFile(_ name: String, _ fields: [String], _ outcome: Outcome, declares: Declared = []) -> Behaviour {
  http2(name, facts: PartialFacts(), declares: declares, outcomes: .all(outcome), keepsData: false) { _, stream in
    try stream.head("200", fields)
    try stream.data(payload, end: true, piece: 1000)
  }
}

/// Heads that RFC 9113 section 8 calls malformed, before a body that nothing else is wrong with.
private let malformedHTTP2Behaviours: [Behaviour] = [
  malformed("no :status") { status, fields in fields },
  malformed(":status twice") { status, fields in [status, status] + fields },
  malformed(":status last") { status, fields in fields + [status] },
  malformed(":status of four digits") { status, fields in ["\(status)0"] + fields },
  malformed(":status empty") { status, fields in [":status: "] + fields },
  malformed("an unknown pseudo-header field") { status, fields in [status, ":path: /"] + fields },
  malformed("upper case in a field name") { status, fields in [status, "X-Loud: 1"] + fields },
  malformed("a blank in a field name") { status, fields in [status, "x quiet: 1"] + fields },
  malformed("a line break in a value") { status, fields in [status, "x: a\r\ncontent-length: 400"] + fields },
  malformed("a connection field") { status, fields in [status, "connection: close"] + fields },
  malformed("a transfer coding") { status, fields in [status, "transfer-encoding: chunked"] + fields },
  http2("DATA before the head", outcomes: .all(brokenOverHTTP2)) { request, stream in
    try stream.data(Array("early".utf8))
    try origin.answer(request, stream)
  },
  http2("DATA and no head", outcomes: .all(brokenOverHTTP2)) { _, stream in try stream.data(payload, end: true) },
  http2("a 1xx, then the end", outcomes: .all(brokenOverHTTP2)) { _, stream in try stream.head("103", end: true) },
  http2("1xx without end", outcomes: .all(brokenOverHTTP2)) { _, stream in
    while true { try stream.head("103", ["link: <\(String(repeating: "/x", count: 400))>"]) }
  },
]

/// What a client may do with it, beside taking it for an error: leave out the field. The body is right.
private func malformed(
  _ name: String, _ head: @escaping @Sendable (_ status: String, _ fields: [String]) -> [String]
) -> Behaviour {
  http2(name, outcomes: wholeAtFull(brokenOverHTTP2)) { request, stream in
    let (status, fields, body) = origin.http2Response(to: request)
    try stream.headers(head(":status: \(status)", fields))
    try stream.data(body, end: true)
  }
}

/// Streams on which nothing comes any more.
private let silentHTTP2Behaviours: [Behaviour] = [
  http2("silence instead of an answer", lines: ["timeout: 1s"], outcomes: .all(.waits("stalled"))) { _, stream in
    try stream.reply.stall()
  },
  http2("silence after the head", lines: ["timeout: 1s"], outcomes: wholeAtFull(stalledOverHTTP2)) { request, stream in
    try origin.answerAndEnd(request, stream, after: 0) { try $0.reply.stall() }
  },
  http2("silence in the middle, once", lines: ["timeout: 1s"]) { request, stream in
    try origin.answerAndEnd(request, stream, after: request.nth == 1 ? 500 : .max) { try $0.reply.stall() }
  },
  http2(
    "empty DATA without end", lines: ["timeout: 1s"], outcomes: wholeAtFull(.either(stalledOverHTTP2, brokenOverHTTP2))
  ) {
    request, stream in
    try origin.answerAndEnd(request, stream, after: 0) { stream in
      while true {
        try stream.data([])
        try stream.reply.pause(milliseconds: 10)
      }
    }
  },
]
