import Testing

@testable import Transfer

@Suite struct FieldParserTests {
  @Test(
    arguments: [
      ("bytes 0-99/100", 0, 99, 100), ("BYTES 5-5/6", 5, 5, 6), ("bytes 0-0/*", 0, 0, nil),
      ("bytes */100", nil, nil, 100), ("bytes */0", nil, nil, 0), ("bytes 007-008/0100", 7, 8, 100),
      ("bytes 0-9223372036854775805/9223372036854775806", 0, UInt64(Int64.max) - 2, UInt64(Int64.max) - 1),
    ] as [(String, UInt64?, UInt64?, UInt64?)])
  func contentRange(text: String, first: UInt64?, last: UInt64?, total: UInt64?) {
    let range = ContentRange(text)
    #expect(range != nil)
    #expect(range?.first == first)
    #expect(range?.last == last)
    #expect(range?.total == total)
  }

  @Test(arguments: [
    "", "bytes", "bytes ", "bytes 0-99", "bytes 0-99/", "bytes /100", "bytes */*", "bytes -99/100", "bytes 0-/100",
    "bytes 9-8/100", "bytes 0-100/100", "bytes 0-99/99", "bytes 0-99/100/100", "bytes 0-9-99/100", "bytes=0-99/100",
    "bytes: 0-99/100", "byte 0-99/100", "items 0-99/100", "bytes  0-99/100", " bytes 0-99/100", "bytes 0-99/100 ",
    "bytes 0 - 99/100", "bytes +0-99/100", "bytes 0-99/-1", "bytes 0x0-0x9/100", "bytes ٠-٩/100", "bytes\t0-99/100",
    "bytes 0-9223372036854775807/*", "bytes 0-18446744073709551615/*", "bytes 0-18446744073709551616/*",
    "bytes 0-99/18446744073709551616", "bytes 0-99/1e3", "bytes 0-99/100,0-99/100",
    "bytes 0-99/**", "bytes 0-99/100\u{0}",
  ])
  func noContentRange(text: String) {
    #expect(ContentRange(text) == nil)
  }

  // 784111777 is the example of RFC 9110, 5.6.7.
  @Test(
    arguments: [
      ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
      ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Wed Nov 16 08:49:37 1994", 784_975_777),
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
      ("Sat, 21 Nov 2026 08:00:00 GMT", 1_795_248_000), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
      ("Fri, 31 Dec 9999 23:59:60 GMT", 253_402_300_800),
      // 50 years ahead of `now` at most, else the century before.
      ("Friday, 20-Nov-76 08:00:00 GMT", 3_373_084_800), ("Monday, 01-Jan-79 00:00:00 GMT", 283_996_800),
    ] as [(String, Int64)])
  func date(text: String, seconds: Int64) {
    #expect(HTTPDate.parse(text, now: 1_795_248_000) == seconds)
  }

  @Test(arguments: [
    "", "0", "1994", "tomorrow", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
    "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
    "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 29 Feb 2100 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
    "Sun, 06 Nov 1994  08:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 0000 08:49:37 GMT",
    "Sun, 06-Nov-94 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun Nov 6 08:49:37 94",
    "Sun, 06 Nov 1994 08:49:37 GMT ", " Sun, 06 Nov 1994 08:49:37 GMT", ", 06 Nov 1994 08:49:37 GMT",
    "Sun, +6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMTSun, 06 Nov 1994 08:49:37 GMT",
  ])
  func noDate(text: String) {
    #expect(HTTPDate.parse(text, now: 1_795_248_000) == nil)
  }

  @Test(
    arguments: [
      ("0", 0), ("120", 120), ("007", 7), ("99999999999999999999999", Int(Int32.max)),
      ("Sat, 21 Nov 2026 08:02:00 GMT", 120), ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
      ("Saturday, 21-Nov-26 08:00:01 GMT", 1), ("Fri, 31 Dec 9999 23:59:59 GMT", Int(Int32.max)),
      ("", nil), ("-1", nil), ("1.5", nil), ("120 s", nil), (" 120", nil), ("soon", nil), ("1, 2", nil),
    ] as [(String, Int?)])
  func retryAfter(text: String, seconds: Int?) {
    #expect(RetryAfter.seconds(text, now: 1_795_248_000) == seconds)
  }

  @Test(
    arguments: [
      (429, "RateLimit: \"default\";r=0;t=30", 30), (429, "RateLimit: limit=5, remaining=0, reset=7", 7),
      (429, "RateLimit-Reset: 9", 9), (429, "X-RateLimit-Reset: 1795248060", 60), (429, "X-RateLimit-Reset: soon", nil),
      (429, "X-RateLimit-Reset: 1795248060000", 60),
      (429, "Date: Wed, 31 Dec 1969 23:59:59 GMT\r\nX-RateLimit-Reset: 18446744073709551615", Int(Int32.max)),
      (429, "Date: Tue, 19 Jan 2038 04:00:00 GMT\r\nX-RateLimit-Reset: 2147486460", 60),
      (429, "Date: Sat, 21 Nov 2026 08:00:50 GMT\r\nX-RateLimit-Reset: 1795248060", 10),
      (403, "X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1795248060", 60),
      (403, "X-RateLimit-Remaining: 3\r\nX-RateLimit-Reset: 1795248060", nil), (200, "RateLimit-Reset: 9", nil),
    ] as [(Int, String, Int?)])
  func quotas(status: Int, fields: String, seconds: Int?) {
    let pairs = fields.split(separator: "\r\n").map { $0.split(separator: ":", maxSplits: 1).map(String.init) }
    let head = ResponseHead(status: status, fields: pairs.map { ($0[0].lowercased(), String($0[1].dropFirst())) })
    #expect(head.quotaReset(now: 1_795_248_000) == seconds)
  }

  @Test(
    arguments: [
      ("Authorization: Bearer x", nil), ("X-Empty:", nil), ("x:y", nil), ("X-Text: grüße\tdort", nil),
      ("", "header has no colon"), ("Authorization", "header has no colon"),
      (": x", "header name is not a valid token"),
      ("X Y: z", "header name is not a valid token"), ("X : z", "header name is not a valid token"),
      ("X: a\r\nRange: bytes=1-", "header value has a control character"),
      ("X: a\u{0}b", "header value has a control character"), ("X: \u{7f}", "header value has a control character"),
    ] as [(String, String?)])
  func requestField(line: String, problem: String?) {
    #expect(FetchRequest.problem(ofHeader: line) == problem)
  }

  @Test func printableEscapesWhatATerminalWouldObey() {
    #expect(printable("a\u{1b}[2Jb\u{7}\nü") == "a\\x1b[2Jb\\x07\\x0a\\xc3\\xbc")
  }
}
