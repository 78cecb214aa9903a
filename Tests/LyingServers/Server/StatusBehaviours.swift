import TestSupport

private let page = Array("<html><body>not what you asked for</body></html>".utf8)

/// Statuses other than 200, 206 and 416: none of them may touch the data.
let statusBehaviours: [Behaviour] =
  ["400 Bad Request", "401 Unauthorized", "403 Forbidden", "404 Not Found", "410 Gone"].map { status in
    Behaviour(status, outcomes: refusal("http-\(status.prefix(3))")) { _, reply in
      try reply.respond(status, ["ETag: \(v1)"], body: page)
    }
  }
  + ["405 Not Allowed", "451 Law"].map { status in
    Behaviour(status, outcomes: .all(.givenUp("http-\(status.prefix(3))"))) { _, reply in
      try reply.respond(status, ["ETag: \(v1)"], body: page)
    }
  }
  + [
    "408 Request Timeout", "425 Too Early", "429 Too Many Requests", "500 Internal Server Error",
    "501 Not Implemented", "502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout", "599 Odd",
    // Invalid, to be taken as 5xx (RFC 9110 section 15).
    "600 Odd", "999 Odd",
  ].map { status in
    Behaviour(status, outcomes: .all(.waits("http-\(status.prefix(3))"))) { _, reply in
      try reply.respond(status, ["ETag: \(v1)"], body: page)
    }
  }
  + [
    "201 Created", "203 Non-Authoritative Information", "226 IM Used", "299 Odd", "300 Multiple Choices",
    "301 Moved Permanently", "302 Found", "307 Temporary Redirect", "305 Use Proxy", "399 Odd",
  ].map { status in
    Behaviour("\(status), no Location", outcomes: .all(.waits("bad-response"))) { _, reply in
      try reply.respond(status, ["ETag: \(v1)"], body: page)
    }
  }
  // No body follows, whatever the Content-Length (RFC 9112 section 6.3).
  + ["204 No Content", "205 Reset Content", "304 Not Modified"].map { status in
    Behaviour(status, outcomes: .all(.waits("bad-response"))) { _, reply in
      try reply.head(status, ["ETag: \(v1)"] + (status.hasPrefix("205") ? ["Content-Length: 0"] : []))
    }
  }
  + [
    Behaviour("404 with the payload as its page", outcomes: refusal("http-404")) { _, reply in
      try reply.respond("404 Not Found", ["ETag: \(v1)"], body: payload)
    },
    Behaviour("404 with a Content-Range as asked", outcomes: refusal("http-404")) { request, reply in
      let start = request.rangeStart ?? 0
      try reply.respond(
        "404 Not Found", ["ETag: \(v1)", "Content-Range: bytes \(start)-\(n)/\(n + 1)"], body: page)
    },
    Behaviour("404 never ends", outcomes: refusal("http-404")) { _, reply in
      try reply.head("404 Not Found", ["Content-Length: 1000000000"])
      try reply.send(page)
      try reply.stall()
    },
    Behaviour("503 once, then right", outcomes: .all(.either(.waits("http-503"), .done))) { request, reply in
      if request.nth == 1 {
        try reply.respond("503 Service Unavailable", body: page)
      } else {
        try Origin().answer(request, reply)
      }
    },
    // What the job declares unmasks it; data that it may not even be compared with stays.
    Behaviour(
      "soft 404, declared size", declares: .size, outcomes: softOutcomes("mismatch-size"), keepsData: false,
      script: softPage),
    Behaviour(
      "soft 404, declared checksum", declares: .checksum, outcomes: softOutcomes("mismatch-crc32"), keepsData: false,
      script: softPage),
    Behaviour(
      "soft 404, both declared", declares: [.size, .checksum], outcomes: softOutcomes("mismatch-size"),
      keepsData: false, script: softPage),
    // A captive portal: with status 200, or where a redirect leads.
    Behaviour("a page without validators", outcomes: .resuming(.waits("other-kind"))) { request, reply in
      if request.rangeStart ?? 0 == 0 {
        try Origin().answer(request, reply)
      } else {
        try reply.respond("200 OK", ["Content-Type: text/html"], body: page)
      }
    },
    Behaviour("redirected to a page", outcomes: .resuming(.waits("other-kind"))) { request, reply in
      if request.target == "/portal" {
        try reply.respond("200 OK", ["Content-Type: text/html"], body: page)
      } else if request.rangeStart ?? 0 == 0 {
        try Origin().answer(request, reply)
      } else {
        try reply.respond("302 Found", ["Location: /portal"], body: [])
      }
    },
    Behaviour("511 Network Authentication Required", outcomes: .all(.waits("http-511"))) { _, reply in
      try reply.respond("511 Network Authentication Required", ["Content-Type: text/html"], body: page)
    },
  ]
  + retryAfterBehaviours

/// A job with bytes of the file asks again, later; one without is given up.
private func refusal(_ code: String) -> Outcomes {
  Outcomes(empty: .givenUp(code), middle: .waits(code), full: .done, over: .waits(code))
}

/// Much less than what is there is no next version.
private func softOutcomes(_ code: String) -> Outcomes {
  Outcomes(
    empty: .waits(code), middle: .either(.waits("other-kind"), .waits(code)), full: .done, over: .waits("other-kind"))
}

/// The page instead of the payload, with status 200 and an ETag of its own.
private let softPage: ScriptedServer.Script = { request, reply in
  try reply.respond("200 OK", ["Content-Type: text/html", "ETag: \"page\""], body: page)
}

/// When the next attempt is due.
private let retryAfterBehaviours: [Behaviour] = [
  retryAfter("in seconds", 600...780) { "600" },
  retryAfter("as a date", 590...780) { httpDate(secondsFromNow: 600) },
  retryAfter("as a date in RFC 850 form", 590...780) { rfc850Date(secondsFromNow: 600) },
  // At least: the delay that goes by itself stays.
  retryAfter("a minute ago", 47...73) { httpDate(secondsFromNow: -60) },
  retryAfter("of 0", 47...73) { "0" },
  retryAfter("of a second", 47...73) { "1" },
  retryAfter("of a year", 86_380...86_405) { "31536000" },
  retryAfter("in 2099", 86_380...86_405) { "Thu, 01 Jan 2099 00:00:00 GMT" },
  retryAfter("beyond all numbers", 47...86_405) { "99999999999999999999999" },
  retryAfter("negative", 47...73) { "-600" },
  retryAfter("with a fraction", 47...73) { "600.5" },
  retryAfter("with a unit", 47...73) { "600s" },
  retryAfter("of words", 47...73) { "soon" },
  retryAfter("empty", 47...73) { "" },
  retryAfter("of a file in the making", 7200...7205, "202 Accepted", "bad-response") { "7200" },
  retryAfter("of what is final otherwise", 7200...7205, "403 Forbidden", "http-403") { "7200" },
  retryAfter("of an unusable redirect", 7200...7205, "303 See Other", "bad-response") { "7200" },
]

private func retryAfter(
  _ name: String, _ retry: ClosedRange<Int>, _ status: String = "503 Service Unavailable", _ code: String = "http-503",
  _ value: @escaping @Sendable () -> String
) -> Behaviour {
  Behaviour("Retry-After \(name)", outcomes: .all(.waits(code)), retry: retry) { _, reply in
    try reply.respond(status, ["Retry-After: \(value())"], body: page)
  }
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`, the obsolete form that recipients must take (RFC 9110 section 5.6.7).
private func rfc850Date(secondsFromNow seconds: Int) -> String {
  let words = httpDate(secondsFromNow: seconds).split(separator: " ").map(String.init)
  let days = [
    "Mon,": "Monday,", "Tue,": "Tuesday,", "Wed,": "Wednesday,", "Thu,": "Thursday,", "Fri,": "Friday,",
    "Sat,": "Saturday,", "Sun,": "Sunday,",
  ]
  return "\(days[words[0]] ?? "") \(words[1])-\(words[2])-\(words[3].suffix(2)) \(words[4]) GMT"
}
