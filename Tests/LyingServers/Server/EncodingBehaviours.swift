import TestSupport

private let origin = Origin()
private let bad = Outcome.waits("bad-response")
/// One attempt shows it, unless there is data.
private let encoded = Outcomes(empty: .givenUp("encoded"), middle: bad, full: bad, over: bad)

/// Encodings, odd heads and what comes before the final response.
let encodingBehaviours: [Behaviour] =
  [
    Behaviour("gzip though identity was asked for", outcomes: encoded) { request, reply in
      try withFields(["Content-Encoding: gzip"]).answer(request, reply)
    },
    Behaviour(
      "gzip in 206 only", asks: uselessTwice,
      script: origin.lyingIn206 { start in
        (
          origin.headFields + ["Content-Encoding: gzip", "Content-Range: \(origin.contentRange(start))"],
          Array(payload[start...])
        )
      }),
    Behaviour("br", outcomes: encoded) { try withFields(["Content-Encoding: br"]).answer($0, $1) },
    Behaviour("a word that names no encoding") {
      try withFields(["Content-Encoding: x-rot13"]).answer($0, $1)
    },
    Behaviour("identity, then gzip", outcomes: encoded) {
      try withFields(["Content-Encoding: identity", "Content-Encoding: gzip"]).answer($0, $1)
    },
    // Not lawful, but harmless (RFC 9110 section 8.4.1).
    Behaviour("identity", outcomes: .all(.either(.done, bad))) {
      try withFields(["Content-Encoding: identity"]).answer($0, $1)
    },
    // An empty list (RFC 9110 section 5.6.1.2), as object stores send it for what was uploaded in pieces.
    Behaviour("an encoding without a value") { try withFields(["Content-Encoding:"]).answer($0, $1) },
    Behaviour("identity twice in one field") {
      try withFields(["Content-Encoding: identity, ,identity"]).answer($0, $1)
    },
    Behaviour("identity and gzip in one field", outcomes: encoded) {
      try withFields(["Content-Encoding: identity, gzip"]).answer($0, $1)
    },

    Behaviour("100 Continue first") { request, reply in
      try reply.head("100 Continue")
      try origin.answer(request, reply)
    },
    Behaviour("103 Early Hints with lies first") { request, reply in
      try reply.head(
        "103 Early Hints",
        [
          "ETag: \(v2)", "Content-Length: 3", "Content-Range: bytes 0-1/2", "Content-Encoding: gzip",
          "Location: file:///etc/passwd", "Last-Modified: \(longAgo)",
        ])
      try origin.answer(request, reply)
    },
    Behaviour("three interim responses first") { request, reply in
      for status in ["100 Continue", "102 Processing", "103 Early Hints"] { try reply.head(status) }
      try origin.answer(request, reply)
    },
    Behaviour("interim responses without end", lines: ["timeout: 10s 20s"], outcomes: .all(.either(bad, .waits("cut"))))
    {
      _, reply in
      while true { try reply.head("103 Early Hints", ["X-Pad: \(String(repeating: "x", count: 4000))"]) }
    },
    Behaviour("101 Switching Protocols", outcomes: .all(.either(bad, .waits("cut")))) { _, reply in
      try reply.head("101 Switching Protocols", ["Upgrade: spool", "Connection: upgrade"])
      try reply.send(payload)
      try reply.finish()
    },
  ]
  + [
    ("no status line", "spool of thread\r\n\r\n"), ("status is a word", "HTTP/1.1 fine\r\n\r\n"),
    ("status of two digits", "HTTP/1.1 20 OK\r\n\r\n"), ("HTTP/0.9", ""), ("ICY", "ICY 200 OK\r\n\r\n"),
    ("HTTP/7.3", "HTTP/7.3 200 OK\r\n\r\n"), ("HTTP without version", "HTTP 200 OK\r\n\r\n"),
    ("TLS alert", "\u{15}\u{03}\u{03}\u{00}\u{02}\u{02}\u{46}"), ("FTP greeting", "220 ready\r\n"),
    ("NUL in a field", "HTTP/1.1 200 OK\r\nX: a\u{00}b\r\nContent-Length: \(n)\r\n\r\n"),
  ].map { name, head in
    Behaviour("no HTTP: \(name)", outcomes: .all(bad)) { _, reply in
      try reply.send(head)
      try reply.send(payload)
      try reply.finish()
    }
  }
  + [
    Behaviour("head of 300 KiB in many fields", outcomes: .all(bad)) { request, reply in
      let field = "X-Pad: \(String(repeating: "x", count: 1000))"
      try withFields(Array(repeating: field, count: 300)).answer(request, reply)
    },
    Behaviour("head of 300 KiB in one field", outcomes: .all(bad)) { request, reply in
      try withFields(["X-Pad: \(String(repeating: "x", count: 300 * 1024))"]).answer(request, reply)
    },
    Behaviour("head without end", lines: ["timeout: 10s 20s"], outcomes: .all(bad)) { _, reply in
      try reply.send("HTTP/1.1 200 OK\r\n")
      while true { try reply.send("X-Pad: \(String(repeating: "x", count: 4000))\r\n") }
    },
    Behaviour("head of 60 KiB", asks: resumesOnce) { request, reply in
      let field = "X-Pad: \(String(repeating: "x", count: 1000))"
      try withFields(Array(repeating: field, count: 60)).answer(request, reply)
    },
    Behaviour("LF without CR", facts: .nothing) { _, reply in
      try reply.send("HTTP/1.1 200 OK\nContent-Length: \(n)\nConnection: close\n\n")
      try reply.send(payload)
      try reply.finish()
    },
    Behaviour(
      "field names in capitals", asks: resumesOnce,
      script: origin.lyingIn206 { start in
        (["ETAG: \(v1)", "CONTENT-RANGE: \(origin.contentRange(start))"], Array(payload[start...]))
      }),
    Behaviour(
      "blanks around values", asks: resumesOnce,
      script: origin.lyingIn206 { start in
        (["ETag:\t \(v1) \t", "Content-Range:   \(origin.contentRange(start))  "], Array(payload[start...]))
      }),
    Behaviour(
      "no blanks before values", asks: resumesOnce,
      script: origin.lyingIn206 { start in
        (["ETag:\(v1)", "Content-Range:\(origin.contentRange(start))"], Array(payload[start...]))
      }),
    Behaviour("a field without a colon", outcomes: .all(.either(.done, bad))) {
      try withFields(["nonsense"]).answer($0, $1)
    },
    Behaviour("bytes beyond ASCII in fields", asks: resumesOnce) {
      try withFields(["X-Caf\u{E9}: \u{FF}\u{FE}", "Server: \u{1B}[31m"]).answer($0, $1)
    },
    Behaviour("Content-Range in a 200", asks: resumesOnce) { request, reply in
      let start = request.rangeStart ?? 0
      try reply.respond("200 OK", ["ETag: \(v2)", "Content-Range: bytes \(start)-\(n - 1)/\(n)"], body: payload)
    },
    Behaviour("transfer coding identity", asks: resumesOnce) {
      try withFields(["Transfer-Encoding: identity"]).answer($0, $1)
    },
    Behaviour("Content-Disposition names a file") {
      try withFields(["Content-Disposition: attachment; filename=\"../../evil\"; filename*=UTF-8''%2e%2e%2fevil"])
        .answer($0, $1)
    },
    Behaviour("sets cookies") { try withFields(["Set-Cookie: id=1; Path=/"]).answerAndCut($0, $1, after: 4000) },
    Behaviour("offers another protocol") {
      try withFields(["Alt-Svc: h3=\":1\"; ma=86400", "Upgrade: h2c", "Refresh: 0; url=file:///etc/passwd"]).answer(
        $0, $1)
    },
    Behaviour("reason with control bytes", asks: resumesOnce) { request, reply in
      guard let start = request.rangeStart, start < n else {
        try origin.answer(request, reply)
        return
      }
      try reply.respond(
        "206 \u{1B}[2J", origin.headFields + ["Content-Range: \(origin.contentRange(start))"], body: payload[start...])
    },
    Behaviour("no reason", facts: .nothing) { _, reply in try reply.respond("200", body: payload) },
  ]

private func withFields(_ fields: [String]) -> Origin {
  Origin(fields: fields)
}
