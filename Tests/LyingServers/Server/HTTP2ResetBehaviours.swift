import TestSupport

private let origin = Origin()

/// Codes with which servers reset streams; where a repetition is invited, libcurl makes it by itself.
private let resets: [HTTP2Stream.ErrorCode] = [
  .noError, .internalError, .cancel, .refusedStream, .enhanceYourCalm, .http11Required,
]

/// Streams that are reset before END_STREAM, with and without a length to tell. libcurl gives up the connection with
/// some of them.
let resetHTTP2Behaviours: [Behaviour] =
  resets.flatMap { code -> [Behaviour] in
    [
      http2("\(code) after each 3000 bytes") { request, stream in
        try origin.answerAndEnd(request, stream, after: 3000) { try $0.resetStream(code) }
      },
      http2("\(code) after each 3000 bytes, no content-length") { request, stream in
        try origin.answerAndEnd(request, stream, after: 3000, announcesLength: false) { try $0.resetStream(code) }
      },
      http2("\(code) after the head", outcomes: wholeAtFull(cutOverHTTP2)) { request, stream in
        try origin.answerAndEnd(request, stream, after: 0) { try $0.resetStream(code) }
      },
      http2("\(code) after the head, no content-length", outcomes: wholeAtFull(cutOverHTTP2)) {
        request, stream in
        try origin.answerAndEnd(request, stream, after: 0, announcesLength: false) { try $0.resetStream(code) }
      },
      http2("\(code) instead of an answer", outcomes: wholeAtFull(cutOverHTTP2)) { _, stream in
        try stream.resetStream(code)
      },
    ]
  } + [
    // To a client, that is an error of the protocol.
    http2("END_STREAM after each 3000 bytes, content-length") { request, stream in
      try origin.answerAndEnd(request, stream, after: 3000) { try $0.data([], end: true) }
    },
    // libcurl may ask again by itself: then another head comes where trailers do, and the body is that one's.
    secondAnswer("refused", .refusedStream),
    secondAnswer("HTTP/1.1 required", .http11Required),
    http2("a second head before the body", outcomes: wholeAtFull(brokenOverHTTP2)) { request, stream in
      let (status, fields, body) = origin.http2Response(to: request)
      try stream.head(status, fields)
      try stream.head("200", ["content-length: \(n)"])
      try stream.data(body, end: true)
    },
  ]

/// The stream is reset when the head has come, and the answer to the next request is an error page, over either
/// protocol.
private func secondAnswer(_ name: String, _ code: HTTP2Stream.ErrorCode) -> Behaviour {
  Behaviour(
    "HTTP/2, \(name) a moment after the head, then an error page",
    outcomes: wholeAtFull(.either(cutOverHTTP2, .waits("http-503")))
  ) { request, reply in
    guard let stream = HTTP2Stream(request, reply) else {
      return try reply.respond("503 Service Unavailable", body: previous)
    }
    guard request.nth == 1 else {
      try stream.head("503", ["content-length: \(n)"])
      return try stream.data(previous, end: true)
    }
    try origin.answerAndEnd(request, stream, after: 0) { stream in
      try reply.pause(milliseconds: 100)
      try stream.resetStream(code)
    }
  }
}
