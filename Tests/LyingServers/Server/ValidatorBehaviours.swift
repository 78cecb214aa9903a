import TestSupport

/// Validators that change, are missing, weak or lied about: whether data may be continued at all.
let validatorBehaviours: [Behaviour] =
  [
    Behaviour("changed, If-Range honoured", holds: previous, asks: resumesOnce) { try changed.answer($0, $1) },
    Behaviour("changed, 206 all the same", holds: previous, asks: resumesThenRestarts) {
      try Origin(etag: v2, ifRange: .ignored).answer($0, $1)
    },
    Behaviour("changed to a shorter one", holds: previous, final: shorter, asks: resumesOnce) {
      try Origin(bytes: shorter, etag: v2).answer($0, $1)
    },
    Behaviour("changed to a shorter one, 206 all the same", holds: previous, final: shorter) {
      try Origin(bytes: shorter, etag: v2, ifRange: .ignored).answer($0, $1)
    },
    Behaviour("changed, etag kept, another total tells", holds: previous, final: shorter) {
      try Origin(bytes: shorter, etag: v1, ifRange: .ignored).answer($0, $1)
    },
    // Nothing, where thousands of bytes are already: believed when it comes again.
    Behaviour(
      "emptied", holds: previous, final: [],
      outcomes: Outcomes(
        empty: .done, middle: .either(.done, .waits("other-kind")), full: .done, over: .waits("other-kind"))
    ) { try Origin(bytes: [], etag: v2).answer($0, $1) },
    Behaviour(
      "changed, 206 without an etag", holds: previous, asks: resumesThenRestarts,
      script: changed.lyingIn206 { start in
        (["Content-Range: \(changed.contentRange(start))"], Array(payload[start...]))
      }),
    Behaviour(
      "changed, 206 with two etags", holds: previous,
      script: changed.lyingIn206 { start in
        (["ETag: \(v1)", "ETag: \(v2)", "Content-Range: \(changed.contentRange(start))"], Array(payload[start...]))
      }),
    Behaviour("changed, 206 with the etag now weak", holds: previous, asks: resumesThenRestarts) {
      try Origin(etag: "W/\(v1)", ifRange: .ignored).answer($0, $1)
    },
    Behaviour("changed, 206 with the etag in other case", holds: previous, asks: resumesThenRestarts) {
      try Origin(etag: "\"V1\"", ifRange: .ignored).answer($0, $1)
    },
    Behaviour("etag unchanged, date moved", asks: resumesOnce) {
      try Origin(fields: ["Last-Modified: \(longAgo)", "Date: \(httpDate(secondsFromNow: 0))"]).answer($0, $1)
    },
    Behaviour("another etag in each response") { request, reply in
      try Origin(etag: "\"\(request.connection)-\(request.nth)\"").answer(request, reply)
    },
    // Each start is from 0 and each ends early: no attempt may go on with that for ever.
    Behaviour("another etag in each response, each cut", outcomes: .all(.waits("short-body")), keepsData: false) {
      request, reply in
      try Origin(etag: "\"\(request.connection)-\(request.nth)\"").answerAndCut(request, reply, after: 5000)
    },
    Behaviour("200 to every If-Range, the rest honest") {
      try Origin(ifRange: .refused).answer($0, $1)
    },
    Behaviour("200 to every If-Range, each response cut") { request, reply in
      try Origin(ifRange: .refused).answerAndCut(request, reply, after: 3001)
    },
    Behaviour(
      "200 to every If-Range, known from the journal",
      facts: PartialFacts(
        size: n, etag: v1, isIfRangeIgnored: true), asks: { ["range \($0)"] }
    ) { try Origin(ifRange: .refused).answer($0, $1) },
    Behaviour(
      "changed, If-Range known to be ignored",
      facts: PartialFacts(
        size: n, etag: v1, isIfRangeIgnored: true), holds: previous, asks: { ["range \($0)", "plain"] }
    ) { try Origin(etag: v2, ifRange: .refused).answer($0, $1) },
    Behaviour("200 to every If-Range, cut, changes in between") { request, reply in
      // The first response is of another version, and short.
      guard request.nth > 1 else {
        try Origin(bytes: previous, etag: v2, ifRange: .refused).answerAndCut(request, reply, after: 3001)
        return
      }
      try Origin(ifRange: .refused).answerAndCut(request, reply, after: 3001)
    },
    Behaviour("changes after each cut, settles at the third") { request, reply in
      guard request.nth > 2 else {
        try Origin(bytes: previous, etag: "\"old\(request.nth)\"").answerAndCut(request, reply, after: 2000)
        return
      }
      try origin.answer(request, reply)
    },

    Behaviour("weak etag", facts: .weak, asks: restarts) { try Origin(etag: "W/\(v1)").answer($0, $1) },
    Behaviour("weak etag, changed", facts: .weak, holds: previous, asks: restarts) {
      try Origin(etag: "W/\(v2)", ifRange: .ignored).answer($0, $1)
    },
    Behaviour("weak etag, declared checksum", facts: .weak, declares: .checksum, asks: { ["range \($0)"] }) {
      try Origin(etag: "W/\(v1)").answer($0, $1)
    },
    Behaviour(
      "weak etag, declared checksum, changed", facts: .weak, holds: previous, declares: .checksum,
      outcomes: Outcomes(empty: .done, middle: .done, full: .either(.done, .waits("mismatch-crc32")), over: .done),
      asks: { ["range \($0)", "plain"] }
    ) { try Origin(etag: "W/\(v2)", ifRange: .ignored).answer($0, $1) },
    Behaviour(
      "weak etag beside a strong date", facts: PartialFacts(size: n, etag: "W/\(v1)", modified: longAgo),
      asks: restarts
    ) { try Origin(etag: "W/\(v1)", fields: ["Last-Modified: \(longAgo)"]).answer($0, $1) },
    Behaviour("no validator", facts: .nothing, asks: restarts) { try Origin(etag: nil).answer($0, $1) },
    Behaviour("no validator, declared size only", facts: .nothing, declares: .size, asks: restarts) {
      try Origin(etag: nil).answer($0, $1)
    },
    Behaviour("no validator, declared checksum", facts: .nothing, declares: .checksum, asks: { ["range \($0)"] }) {
      try Origin(etag: nil).answer($0, $1)
    },
    // The splice happens in .part, as nothing can tell; the checksum keeps it from files/.
    Behaviour(
      "no validator, changed, declared checksum", facts: .nothing, holds: previous, declares: .checksum,
      outcomes: Outcomes(
        empty: .done, middle: .waits("mismatch-crc32"), full: .either(.done, .waits("mismatch-crc32")), over: .done),
      keepsData: false
    ) { try Origin(etag: nil, ifRange: .ignored).answer($0, $1) },
    Behaviour("a validator where there was none, declared checksum", facts: .nothing, declares: .checksum) {
      try origin.answer($0, $1)
    },

    Behaviour("strong date", facts: .dated, asks: { ["range \($0) if \(longAgo)"] }) {
      try Origin(etag: nil, fields: dates(longAgo)).answer($0, $1)
    },
    Behaviour("strong date, changed", facts: .dated, holds: previous, asks: { ["range \($0) if \(longAgo)"] }) {
      try Origin(etag: nil, fields: dates(httpDate(secondsFromNow: -3600))).answer($0, $1)
    },
    Behaviour(
      "strong date, changed, 206 all the same", facts: .dated, holds: previous,
      asks: { ["range \($0) if \(longAgo)", "plain"] }
    ) {
      try Origin(etag: nil, fields: dates(httpDate(secondsFromNow: -3600)), ifRange: .ignored).answer($0, $1)
    },
    Behaviour("etag beside a strong date", facts: PartialFacts(size: n, etag: v1, modified: longAgo), asks: resumesOnce)
    {
      try Origin(fields: dates(longAgo)).answer($0, $1)
    },
  ]

private let origin = Origin()
private let changed = Origin(etag: v2)

private func dates(_ modified: String) -> [String] {
  ["Last-Modified: \(modified)", "Date: \(httpDate(secondsFromNow: 0))"]
}
