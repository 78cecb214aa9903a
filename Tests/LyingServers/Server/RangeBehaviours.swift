import TestSupport

private let origin = Origin()

/// Answers to a Range, right and wrong.
let rangeBehaviours: [Behaviour] =
  [
    Behaviour("206 as asked", asks: resumesOnce) { try origin.answer($0, $1) },
    Behaviour("200: knows no ranges", asks: resumesOnce) { request, reply in
      try reply.respond("200 OK", origin.headFields + ["Accept-Ranges: none"], body: payload)
    },
    Behaviour("unasked: always 206 from 0") { request, reply in
      let start = origin.rangeStart(request) ?? 0
      if start >= n {
        try origin.answer(request, reply)
      } else {
        try reply.respond(
          "206 Partial Content", origin.headFields + ["Content-Range: \(origin.contentRange(start))"],
          body: payload[start...])
      }
    },
    Behaviour("200 with the part that was asked for", asks: uselessTwice) { request, reply in
      let start = request.rangeStart ?? 0
      try reply.respond("200 OK", origin.headFields, body: payload[min(start, n)...])
    },
    Behaviour("200 with the part that was asked for, and its Content-Range", asks: resumesOnce) { request, reply in
      guard let start = request.rangeStart, start < n else { return _ = try origin.answer(request, reply) }
      try reply.respond(
        "200 OK", origin.headFields + ["Content-Range: \(origin.contentRange(start))"], body: payload[start...])
    },
    Behaviour("200 with the part that was asked for, and its Content-Range, in chunks", asks: uselessTwice) {
      request, reply in
      guard let start = request.rangeStart, start < n else { return _ = try origin.answer(request, reply) }
      try reply.head(
        "200 OK",
        origin.headFields + ["Content-Range: \(origin.contentRange(start))", "Transfer-Encoding: chunked"])
      try reply.send(chunk(Array(payload[start...])) + Array("0\r\n\r\n".utf8))
    },
    Behaviour(
      "short 206: a thousand bytes at a time",
      asks: { k in
        stride(from: k, to: n, by: 1000).map { "range \($0) if \(v1)" }
      }
    ) { request, reply in
      guard let start = origin.rangeStart(request), start < n else {
        try origin.answer(request, reply)
        return
      }
      let end = min(start + 1000, n)
      try reply.respond(
        "206 Partial Content", origin.headFields + ["Content-Range: bytes \(start)-\(end - 1)/\(n)"],
        body: payload[start..<end])
    },
    Behaviour(
      "short 206: a byte at a time, without end",
      // Done where only a few are left.
      outcomes: .resuming(.either(.done, .waits("bad-response")))
    ) { request, reply in
      guard let start = origin.rangeStart(request), start < n else {
        try origin.answer(request, reply)
        return
      }
      try reply.respond(
        "206 Partial Content", origin.headFields + ["Content-Range: bytes \(start)-\(start)/\(n)"],
        body: payload[start...start])
    },
    Behaviour("short 206 after a cut 200") { request, reply in
      guard let start = origin.rangeStart(request), start < n else {
        try origin.answerAndCut(request, reply, after: 3000)
        if request.rangeStart == nil { try reply.finish() }
        return
      }
      let end = min(start + 3000, n)
      try reply.respond(
        "206 Partial Content", origin.headFields + ["Content-Range: bytes \(start)-\(end - 1)/\(n)"],
        body: payload[start..<end])
    },
    // RFC 9110 section 14.4: the length of the body and Content-Range disagree.
    Behaviour(
      "206 with fewer bytes than its Content-Range",
      script: origin.lyingIn206 { start in
        (origin.headFields + ["Content-Range: \(origin.contentRange(start))"], Array(payload[start...].prefix(1500)))
      }),
    Behaviour(
      "206 with more bytes than its Content-Range", outcomes: .resuming(.either(.done, .waits("bad-response"))),
      script: origin.lyingIn206 { start in
        let end = min(start + 1000, n)
        return (origin.headFields + ["Content-Range: bytes \(start)-\(end - 1)/\(n)"], Array(payload[start...]))
      }),
    // A surplus that is no data: nothing of such an answer is to be believed.
    Behaviour(
      "206 with garbage beyond its Content-Range",
      script: origin.lyingIn206 { start in
        let end = min(start + 1000, n)
        return (
          origin.headFields + ["Content-Range: bytes \(start)-\(end - 1)/\(n)", "Transfer-Encoding: chunked"],
          chunk(Array(payload[start..<end]) + garbage(260)) + Array("0\r\n\r\n".utf8)
        )
      }),
    Behaviour("206 with garbage beyond its Content-Range, until close") { request, reply in
      guard let start = request.rangeStart, start < n else {
        try origin.answer(request, reply)
        return
      }
      let end = min(start + 1000, n)
      try reply.head("206 Partial Content", origin.headFields + ["Content-Range: bytes \(start)-\(end - 1)/\(n)"])
      try reply.send(payload[start..<end] + garbage(260))
      try reply.finish()
    },
    // As squid 5.7 does behind an origin that answers in chunks.
    Behaviour("206 in chunks, the last of which never comes", asks: resumesOnce) { request, reply in
      guard let start = request.rangeStart, start < n else {
        try origin.answer(request, reply)
        return
      }
      try reply.head(
        "206 Partial Content",
        origin.headFields + ["Content-Range: \(origin.contentRange(start))", "Transfer-Encoding: chunked"])
      try reply.send(chunk(Array(payload[start...])))
      try reply.stall()
    },
    Behaviour(
      "206 multipart/byteranges", asks: uselessTwice,
      script: origin.lyingIn206 {
        start in
        let part = "\r\n--B\r\nContent-Range: \(origin.contentRange(start))\r\n\r\n"
        return (
          origin.headFields + ["Content-Type: multipart/byteranges; boundary=B"],
          Array(part.utf8) + payload[start...] + Array("\r\n--B--\r\n".utf8)
        )
      }),
    Behaviour(
      "206 multipart with a Content-Range as asked", asks: uselessTwice,
      script: origin.lyingIn206 { start in
        (
          origin.headFields + [
            "Content-Type: Multipart/ByteRanges; boundary=B", "Content-Range: \(origin.contentRange(start))",
          ], Array(payload[start...])
        )
      }),
    Behaviour(
      "206 as asked, unit in capitals", asks: resumesOnce,
      script: origin.lyingIn206 { start in
        (origin.headFields + ["CONTENT-RANGE: BYTES \(start)-\(n - 1)/\(n)"], Array(payload[start...]))
      }),
    Behaviour(
      "206 with total *", asks: resumesOnce,
      script: origin.lyingIn206 { start in
        (origin.headFields + ["Content-Range: bytes \(start)-\(n - 1)/*"], Array(payload[start...]))
      }),
    Behaviour(
      "206 with total *, the total never known", facts: .strongWithoutSize,
      script: origin.lyingIn206 { start in
        (origin.headFields + ["Content-Range: bytes \(start)-\(n - 1)/*"], Array(payload[start...]))
      }),
    Behaviour(
      "206 shorter than asked for, with total *, declared size", facts: .strongWithoutSize, declares: .size,
      script: origin.lyingIn206 { start in
        let body = Array(payload[start...].prefix(3000))
        return (origin.headFields + ["Content-Range: bytes \(start)-\(start + body.count - 1)/*"], body)
      }),
    Behaviour("206 tells the total for the first time", facts: .strongWithoutSize, asks: resumesOnce) {
      try origin.answer($0, $1)
    },
  ]
  // Each of these 206 is refused before a byte is written. After the second the whole is asked for.
  + [
    wrongRange("one byte early") { "bytes \($0 - 1)-\(n - 1)/\(n)" },
    wrongRange("one byte late") { "bytes \($0 + 1)-\(n - 1)/\(n)" },
    wrongRange("from 0") { _ in "bytes 0-\(n - 1)/\(n)" },
    wrongRange("end beyond the total") { "bytes \($0)-\(n + 9)/\(n)" },
    wrongRange("end at the total") { "bytes \($0)-\(n)/\(n)" },
    wrongRange("last before first") { "bytes \($0)-\($0 - 1)/\(n)" },
    wrongRange("another total", asks: resumesThenRestarts) { "bytes \($0)-\(n - 1)/\(n + 5)" },
    wrongRange("without Content-Range") { _ in nil },
    wrongRange("empty Content-Range") { _ in "" },
    wrongRange("unit lines") { "lines \($0)-\(n - 1)/\(n)" },
    wrongRange("no unit") { "\($0)-\(n - 1)/\(n)" },
    wrongRange("bytes=") { "bytes=\($0)-\(n - 1)/\(n)" },
    wrongRange("unsatisfied form") { _ in "bytes */\(n)" },
    wrongRange("start overflows") { "bytes 1844674407370955161\($0)-\(n - 1)/\(n)" },
    wrongRange("start overflows to what was asked") { "bytes \(overflowing($0))-\(n - 1)/\(n)" },
    wrongRange("total overflows to what is known") { "bytes \($0)-\(n - 1)/\(overflowing(n))" },
    wrongRange("signs") { "bytes +\($0)-+\(n - 1)/+\(n)" },
    wrongRange("hexadecimal") { "bytes 0x\(String($0, radix: 16))-\(n - 1)/\(n)" },
    wrongRange("no total") { "bytes \($0)-\(n - 1)" },
    wrongRange("rest after the total") { "bytes \($0)-\(n - 1)/\(n), bytes 0-1/\(n)" },
    Behaviour(
      "206 with two Content-Range", holds: previous, asks: uselessTwice,
      script: Origin().lyingIn206 { start in
        (
          origin.headFields + [
            "Content-Range: \(origin.contentRange(start))", "Content-Range: bytes 0-\(n - 1)/\(n)",
          ], Array(payload[start...])
        )
      }),
  ]
  + [
    // 416 where there is something to send after all, or nothing more.
    Behaviour("416 for every range, */N right", asks: resumesThenRestarts) { try refuseRanges($0, $1, "bytes */\(n)") },
    Behaviour("416 for every range, no Content-Range", asks: resumesThenRestarts) { try refuseRanges($0, $1, nil) },
    Behaviour("416 for every range, garbage", asks: resumesThenRestarts) { try refuseRanges($0, $1, "bytes */ten") },
    Behaviour("416 for every range, another total", asks: resumesThenRestarts) {
      try refuseRanges($0, $1, "bytes */\(n + 5)")
    },
    Behaviour("416 that agrees with whatever we have", asks: resumesThenRestarts) { request, reply in
      try refuseRanges(request, reply, "bytes */\(request.rangeStart ?? 0)")
    },
    Behaviour("416 that agrees, size unknown before", facts: .strongWithoutSize) { request, reply in
      try refuseRanges(request, reply, "bytes */\(n)")
    },
    Behaviour("416 with another etag", facts: PartialFacts(etag: v1), holds: previous, asks: resumesThenRestarts) {
      try refuseRanges($0, $1, "bytes */\(n)", etag: v2)
    },
    Behaviour("416 without etag, declared checksum", facts: .nothing, declares: .checksum) {
      try refuseRanges($0, $1, "bytes */\(n)", etag: nil)
    },
    // Where the server says that this is all, a wrong checksum is a mismatch: shown, or put right at once.
    Behaviour(
      "416 without etag, checksum disagrees", facts: PartialFacts(), holds: previous, declares: .checksum,
      outcomes: Outcomes(empty: .done, middle: .done, full: .either(.done, .waits("mismatch-crc32")), over: .done)
    ) {
      try refuseRanges($0, $1, "bytes */\(n)", etag: nil)
    },
    Behaviour("416, nothing to go by", facts: PartialFacts(), holds: previous, asks: restarts) {
      try refuseRanges($0, $1, "bytes */\(n)", etag: nil)
    },
    Behaviour("416 whatever is asked", outcomes: .all(.waits("bad-response")), keepsData: false) { _, reply in
      try reply.respond("416 Range Not Satisfiable", ["Content-Range: bytes */\(n)", "ETag: \(v1)"], body: [])
    },
  ]

/// 206 with the right body and this Content-Range. The data held is the previous version's, and the ETag is
/// unchanged: a client that takes the body has made a splice.
private func wrongRange(
  _ name: String, asks: @escaping @Sendable (Int) -> [String] = uselessTwice,
  _ field: @escaping @Sendable (Int) -> String?
) -> Behaviour {
  Behaviour(
    "206 \(name)", holds: previous, asks: asks,
    script: origin.lyingIn206 { start in
      (origin.headFields + (field(start).map { ["Content-Range: \($0)"] } ?? []), Array(payload[start...]))
    })
}

/// A chunk of a chunked body (RFC 9112 section 7.1).
private func chunk(_ bytes: [UInt8]) -> [UInt8] {
  Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n".utf8)
}

/// Bytes that no version has anywhere.
private func garbage(_ count: Int) -> [UInt8] { Array(repeating: 0x21, count: count) }

/// `number` plus 2⁶⁴ = 18446744073709551616, in decimal.
private func overflowing(_ number: Int) -> String {
  "1844674407370\(9_551_616 + number)"
}

private func refuseRanges(
  _ request: ServerRequest, _ reply: Reply, _ contentRange: String?, etag: String? = v1
) throws {
  guard request.rangeStart != nil else {
    try Origin(etag: etag).answer(request, reply)
    return
  }
  let fields = (etag.map { ["ETag: \($0)"] } ?? []) + (contentRange.map { ["Content-Range: \($0)"] } ?? [])
  try reply.respond("416 Range Not Satisfiable", fields, body: Array("<html>no such range</html>".utf8))
}
