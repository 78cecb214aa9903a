import TestSupport

private let origin = Origin()

/// Faults over HTTP/2 that end the connection, and all streams on it.
let http2ConnectionBehaviours: [Behaviour] =
  [
    // The frames of other streams must not come between these.
    http2("head in CONTINUATION frames", asks: resumesOnce) { request, stream in
      let (status, fields, body) = origin.http2Response(to: request)
      let head = fieldBlock([":status: \(status)"] + fields)
      try stream.frame(.headers, head.prefix(20))
      try stream.frame(.continuation, [UInt8]())
      try stream.frame(.continuation, .endHeaders, head.dropFirst(20))
      try stream.data(body, end: true)
    },
    http2("closed after each 3000 bytes") { request, stream in
      try origin.answerAndEnd(request, stream, after: 3000) { try $0.reply.finish() }
    },
    http2("closed after each 3000 bytes, no content-length") { request, stream in
      try origin.answerAndEnd(request, stream, after: 3000, announcesLength: false) { try $0.reply.finish() }
    },
    http2("closed after each 3000 bytes, no close_notify") { request, stream in
      try origin.answerAndEnd(request, stream, after: 3000) { try $0.reply.reset() }
    },
    http2("closed after each 3000 bytes, no close_notify, no content-length") { request, stream in
      try origin.answerAndEnd(request, stream, after: 3000, announcesLength: false) { try $0.reply.reset() }
    },
    http2("closed after the head, no content-length", outcomes: wholeAtFull(cutOverHTTP2)) {
      request, stream in
      try origin.answerAndEnd(request, stream, after: 0, announcesLength: false) { try $0.reply.finish() }
    },
    http2("closed instead of an answer", outcomes: .all(cutOverHTTP2)) { _, stream in try stream.reply.finish() },
    http2("GOAWAY and closed behind each answer") { request, stream in
      try origin.answer(request, stream)
      try stream.goAway(.noError, lastStream: stream.number)
      try stream.reply.finish()
    },
    http2("closed within the header of a frame") { request, stream in
      try origin.answerAndEnd(request, stream, after: 3000) { stream in
        try stream.reply.send([0, 4, 0, 0])
        try stream.reply.finish()
      }
    },
    http2("closed within a frame") { request, stream in
      try origin.answerAndEnd(request, stream, after: 3000) { stream in
        let reached = (origin.rangeStart(request) ?? 0) + 3000
        try stream.reply.send([0, 4, 0, 0, 0] + bigEndian(stream.number) + payload[reached...].prefix(100))
        try stream.reply.finish()
      }
    },
    // The front holds back what is no whole frame until the end.
    http2("text of HTTP/1.1, and closed") { request, stream in
      try origin.answerAndEnd(request, stream, after: 3000) { stream in
        try stream.reply.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        try stream.reply.finish()
      }
    },
    http2("GOAWAY below the stream, once", outcomes: .all(cutOverHTTP2)) { request, stream in
      guard request.nth > 1 else {
        try stream.goAway(.noError, lastStream: 0)
        return try stream.reply.finish()
      }
      try origin.answer(request, stream)
    },
    http2("GOAWAY below the stream, always", outcomes: .all(cutOverHTTP2)) { request, stream in
      try stream.goAway(.noError, lastStream: 0)
      try stream.reply.finish()
    },
    http2("GOAWAY below the stream in the middle") { request, stream in
      try origin.answerAndEnd(request, stream, after: 3000) { stream in
        try stream.goAway(.internalError, lastStream: 0)
        try stream.reply.finish()
      }
    },
    http2("GOAWAY, then the rest") { request, stream in
      let (status, fields, body) = origin.http2Response(to: request)
      try stream.head(status, fields)
      try stream.goAway(.noError, lastStream: stream.number)
      try stream.data(body, end: true)
    },
  ] + violations

/// How a server breaks the protocol in the middle of a body, and what comes then must not get into the file.
private let violations: [Behaviour] = [
  violation("a frame beyond the maximum size") { try $0.data(previous + previous, piece: 20_000) },
  violation("a window beyond 2^31") { try $0.frame(.windowUpdate, stream: 0, bigEndian(0x7FFF_FFFF)) },
  violation("a stream's window beyond 2^31") { try $0.frame(.windowUpdate, bigEndian(0x7FFF_FFFF)) },
  violation("a window grown by 0") { try $0.frame(.windowUpdate, stream: 0, bigEndian(0)) },
  violation("a setting of the window beyond 2^31") {
    try $0.frame(.settings, stream: 0, [0, 4] + bigEndian(0xFFFF_FFFF))
  },
  violation("SETTINGS of odd length") { try $0.frame(.settings, stream: 0, [0, 4, 0]) },
  violation("SETTINGS on a stream") { try $0.frame(.settings, [UInt8]()) },
  violation("PING of odd length") { try $0.frame(.ping, stream: 0, [1, 2, 3]) },
  violation("RST_STREAM of odd length") { try $0.frame(.rstStream, [0]) },
  violation("too much padding") { try $0.frame(.data, .padded, [255] + previous.prefix(100)) },
  violation("DATA on stream 0") { try $0.frame(.data, .endStream, stream: 0, previous) },
  violation("DATA on an idle stream") { try $0.frame(.data, .endStream, stream: 0x7FFF_FFFF, previous) },
  violation("a head on a stream of the server's") {
    try $0.frame(.headers, .endHeaders, stream: 2, fieldBlock([":status: 200"]))
  },
  violation("server push") {
    let request = [":method: GET", ":scheme: https", ":authority: 127.0.0.1", ":path: /pushed"]
    try $0.frame(.pushPromise, .endHeaders, bigEndian(2) + fieldBlock(request))
  },
  violation("a header block that is none") { try $0.frame(.headers, .endHeaders, Array(repeating: 0xFF, count: 40)) },
  violation("a header block without end") { stream in
    try stream.frame(.headers, fieldBlock(["x: y"]))
    while true { try stream.frame(.continuation, fieldBlock(["x: \(String(repeating: "y", count: 1000))"])) }
  },
  violation("CONTINUATION of nothing") { try $0.frame(.continuation, .endHeaders, fieldBlock(["x: y"])) },
  flood("SETTINGS") { try $0.frame(.settings, stream: 0, [UInt8]()) },
  flood("PING") { try $0.frame(.ping, stream: 0, Array(repeating: 1, count: 8)) },
  flood("unknown frames") { try $0.frame(.unknown, Array(repeating: 1, count: 100)) },
]

/// Each answer brings 3000 bytes before it goes wrong, which a job can go on from; `timeout:` is for clients that let
/// it pass, or go on listening.
private func violation(_ name: String, _ violate: @escaping @Sendable (HTTP2Stream) throws -> Void) -> Behaviour {
  http2(name, lines: ["timeout: 1s"]) { request, stream in
    try origin.answerAndEnd(request, stream, after: 3000) { stream in
      try violate(stream)
      try stream.data(previous)
      try stream.reply.stall()
    }
  }
}

/// Frames that bring nothing, in the middle of a body whose rest never comes: at first as many as the connection takes,
/// then a few at a time without end, which costs the other tests less.
private func flood(_ name: String, _ say: @escaping @Sendable (HTTP2Stream) throws -> Void) -> Behaviour {
  http2(
    "a flood of \(name)", lines: ["timeout: 1s"],
    outcomes: .all(.either(cutOverHTTP2, stalledOverHTTP2))
  ) {
    request, stream in
    try origin.answerAndEnd(request, stream, after: 6000) { stream in
      for _ in 0..<5000 { try say(stream) }
      // The connection is shut down in the end, and other jobs do not wait for that.
      while true {
        for _ in 0..<10 { try say(stream) }
        try stream.reply.pause(milliseconds: 10)
      }
    }
  }
}
