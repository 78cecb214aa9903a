import Testing

@testable import Spool

/// Each key's values, and what a job inherits.
@Suite struct JobRequestTests {
  private func request(_ line: String) -> JobText { parsed("url: https://h/a\n\(line)\n") }

  /// The spellings of keys' values, some followed by `>` and the plainest one, and what is refused.
  private static let values = tableRows(
    """
    size | 0 ; 1 ; 007 > 7 ; 9223372036854775807 | 9223372036854775808 ; 18446744073709551616 ; -1 ; +1 ; 1k ; 1 0
    size | | 0x10 ; 1.0 ; ٣
    connections | 1 ; 32 ; 08 > 8 | 0 ; 33 ; -1 ; 4x ; 18446744073709551617
    crc32 | 00000000 ; DEADbeef > deadbeef | deadbee ; deadbeef0 ; 0xdeadbe ; +eadbeef ; deadbeeg
    crc32 | | dead beef ; ｄeadbee
    attempts | 1 ; 12 ; 1000 | 0 ; 1001 ; -1 ; many
    type | application/zip ; Image/* text/PLAIN > image/* text/plain ; a/vnd.a+xml\tx/y > a/vnd.a+xml x/y |
    type | | zip ; */* ; image/ ; /zip ; a/b/c ; a/b* ; a/b, c/d ; text/html;charset=utf-8 ; ä/b
    overwrite | yes ; no | Yes ; true ; 1
    timeout | 60 ; 60s 7d > 60 604800 ; 5m > 300 ; 1h\t2h > 3600 7200 ; 365d > 31536000 ; 1 1 | 0 ; 366d ; 60 0
    timeout | | 1 2 3 ; s ; 5x ; 99999999999999999999d ; 213503982334602d ; 1.5h ; -5
    limit-rate | 1024 ; 1k > 1024 ; 500K > 512000 ; 2M > 2097152 ; 1g > 1073741824 ; 1T > 1099511627776 | 1023 ; 0
    limit-rate | | 1P ; k ; -1k ; 1.5M ; 1kk ; 8388608T ; 99999999999999999999
    min-rate | 1k over 5m > 1024 over 300 ; 0 > 0 over 300 ; 0 over 1h > 0 over 3600 ; 2M > 2097152 |
    min-rate | 7\tover \t10 > 7 over 10 | 1k over ; 1k 5m ; 1k per 5m ; 1k over 0 ; 1k over 366d ; -1 ; k over 5m
    min-rate | | 1k over 5m 6m
    referer | https://h/page?a=b ; HTTP://h/ | h/page ; ftp://h/ ; http:// ; https://h/a b
    """, columns: 3)

  @Test(arguments: values)
  func spellings(row: [String]) {
    let empty = request("").request
    for value in row[1].split(separator: " ; ") {
      let read = value.split(separator: " > ").map { request("\(row[0]): \($0)") }
      let isOneValue = read.allSatisfy { $0.defect == nil && $0.request == read[0].request }
      #expect(isOneValue && read[0].request != empty, "\(value)")
    }
    for value in row[2].split(separator: " ; ") {
      let refused = request("\(row[0]): \(value)")
      #expect(refused.defect != nil && refused.request == empty, "\(value)")
    }
  }

  @Test(arguments: [
    ("image/png", true), ("image/svg+xml", true), ("text/plain", true), ("images/png", false), ("text/html", false),
    (nil, true),
  ])
  func allowedTypes(type: String?, isAllowed: Bool) {
    #expect(request("type: image/* text/plain").request.allows(type: type) == isAllowed)
    #expect(request("").request.allows(type: type))
  }

  @Test(arguments: [
    "A: b", "X-Token: a:b;c=d", "Accept: */*", "X_~!#$%&'*+-.^`|: v", "x:", "Cookie: ü",
  ])
  func header(_ value: String) {
    #expect(request("header: \(value)").defect == nil)
    #expect(request("header: \(value)").request.headers(for: "h", isEncrypted: true) == [value])
  }

  /// A header that names its host is for requests to that one alone.
  @Test func headersOfAHost() {
    let job = request("header@A.Example: X: a\nheader@b.example: X: b\nheader: Y: all\nheader@[::1]: X: s3cret")
    #expect(job.request.headers(for: "a.example", isEncrypted: true) == ["X: a", "Y: all"])
    #expect(job.request.headers(for: "b.example", isEncrypted: true) == ["X: b", "Y: all"])
    #expect(job.request.headers(for: "sub.a.example", isEncrypted: true) == ["Y: all"])
    #expect(job.defect?.line == 5 && job.defect?.reason.contains("s3cret") == false)
  }

  @Test(arguments: [
    "header@: X: s3cret", "header@a b: X: s3cret", "header@a@b: X: s3cret", "header@a:80: X: s3cret",
    "header@ä.example: X: s3cret", "header@a.example: s3cret", "header@a.example: Host: s3cret",
    "Header@a.example: X: s3cret", "url@a.example: https://h/s3cret", "size@a: 1",
  ])
  func badHeadersOfAHost(line: String) {
    let job = request(line)
    #expect(job.defect?.line == 2 && job.request.headers == [], "\(line)")
    #expect(job.defect?.reason.contains("s3cret") == false)
  }

  /// A job that grants a server ten minutes of silence does not expect bytes all the time.
  @Test(
    arguments: [
      ("", MinimumRate(bytesPerSecond: 1024, seconds: 300)),
      ("timeout: 10m", MinimumRate(bytesPerSecond: 1024, seconds: 600)),
      ("timeout: 10m\nmin-rate: 1k over 5m", MinimumRate(bytesPerSecond: 1024, seconds: 300)), ("min-rate: 0", nil),
    ] as [(String, MinimumRate?)])
  func minimumRateThatHolds(lines: String, expected: MinimumRate?) {
    #expect(request(lines).request.effectiveMinimumRate == expected)
  }

  @Test(arguments: [
    "no colon", ": value", "Two Words: s3cret", "Naïve: s3cret", "A(b): s3cret", "A : s3cret", "Range: s3cret",
    "if-RANGE: s3cret", "Accept-Encoding: s3cret", "Transfer-Encoding: s3cret", "content-length: s3cret",
    "HOST: s3cret", "Connection: s3cret", "Expect: s3cret", "TE: s3cret", "Trailer: s3cret", "Upgrade: s3cret",
    "A\tB: s3cret", "A: s3cret\u{1b}",
  ])
  func badHeader(_ value: String) {
    let job = request("header: \(value)")
    #expect(job.defect?.line == 2)
    #expect(job.request.headers == [])
    #expect(job.defect?.reason.contains("s3cret") == false, "a header's value is a secret")
  }

  @Test(arguments: [("https://h/a.sig", nil), ("a.sig", 2), ("inline", 2)] as [(String, Int?)])
  func signature(value: String, line: Int?) {
    let job = request("signature: \(value)")
    #expect((job.defect ?? job.request.jobDefect)?.line == line)
    #expect(request("signature: inline\nevery: 1h").request.orderDefect == nil)
  }

  /// A digest that can be forged vouches for nothing.
  @Test func whatIsSigned() {
    let list = "# signed by ABCD\nurl: https://h/a\n"
    for (digest, isSigned) in [("sha256: \(hex(64))", true), ("md5: \(hex(32))", false), ("crc32: 00000000", false)] {
      #expect(parsed(list + digest + "\n").request.isSigned == isSigned, "\(digest)")
    }
    #expect(!parsed("url: https://h/a\nsha256: \(hex(64))\n").request.isSigned)
    #expect(parsed("url: https://h/a\nsignature: https://h/b\n").request.isSigned)
  }

  @Test func onlyURLAndHeaderRepeat() {
    let lines = [
      "resolve: x", "output: a", "root: r", "mode: 644", "size: 1", "crc32: 00000000", "sha256: \(hex(64))",
      "sha512: \(hex(128))", "sha1: \(hex(40))", "md5: \(hex(32))", "blake2b: \(hex(128))", "sha3-256: \(hex(64))",
      "crc32c: 00000000", "crc64nvme: \(hex(16))", "type: a/b", "encoded: keep", "digests: md5",
      "signature: https://h/s", "pieces: md5 4k \(hex(64))", "overwrite: no", "attempts: 1", "patience: 1",
      "expires: 2026-01-01", "timeout: 1", "max-size: 1G", "limit-rate: 1M", "min-rate: 1k", "connections: 4",
      "user-agent: a b", "referer: https://h/", "priority: low",
    ]
    #expect(lines.count == JobKey.ofJobs.count { !$0.isRepeatable })
    for line in lines {
      #expect(request("\(line)\n\(line)").defect?.reason.contains("given twice") == true, "\(line)")
    }
    #expect(request("url: https://h/b\nheader: A: b\nheader: A: b").defect == nil)
  }

  @Test func ownKeysReplaceDefaults() throws {
    var defaults = JobRequest()
    defaults.headers = try ["A: default", "B: default"].map { try HeaderLine($0) }
    defaults.overwrite = true
    defaults.attempts = 3
    defaults.expires = Timestamp(seconds: 99)
    defaults.timeout = Timeout(idle: 10, total: 20)
    defaults.limitRate = RateRules(bytesPerSecond: 4096)
    defaults.priority = .low
    defaults.minRate = MinimumRate(bytesPerSecond: 1, seconds: 2)
    defaults.connections = 8

    let silent = request("").request.inheriting(defaults)
    #expect(silent.headers == defaults.headers && silent.overwrite == true && silent.attempts == 3)
    #expect(silent.expires == defaults.expires && silent.timeout == defaults.timeout)
    #expect(
      silent.limitRate == defaults.limitRate && silent.priority == .low && silent.minRate == defaults.minRate
        && silent.connections == 8)

    let own = request(
      "header: A: own\noverwrite: no\nattempts: 5\nexpires: 1970-01-01T00:00:01Z\ntimeout: 30\n"
        + "limit-rate: 1k\nconnections: 2\npriority: high\n"
    ).request.inheriting(defaults)
    #expect(own.headers(for: "h", isEncrypted: true) == ["B: default", "A: own"], "the one of its name")
    #expect(own.overwrite == false && own.attempts == 5 && own.expires?.seconds == 1)
    #expect(
      own.timeout == Timeout(idle: 30) && own.limitRate == RateRules(bytesPerSecond: 1024) && own.connections == 2)
    #expect(own.priority == .high)
    #expect(own.urls.count == 1)
  }

  /// A job's fields add to those of `defaults`, and replace those of the same name, as far as they are for the same
  /// host.
  @Test(
    arguments: [
      ("", ["A: d", "B: d"], ["A: d", "B: d", "C: d@h"]), ("header: D: j", ["A: d", "B: d", "D: j"], nil),
      ("header: a: j\nheader: A: k", ["B: d", "a: j", "A: k"], nil), ("header: B:", ["A: d", "B:"], nil),
      ("header: C:", ["A: d", "B: d", "C:"], ["A: d", "B: d", "C:"]),
      ("header@h: A: j", ["A: d", "B: d"], ["B: d", "C: d@h", "A: j"]),
      ("header@h: B:", ["A: d", "B: d"], ["A: d", "C: d@h", "B:"]),
      ("header@h: C: j", ["A: d", "B: d"], ["A: d", "B: d", "C: j"]),
      ("header@i: C: j", ["A: d", "B: d"], ["A: d", "B: d", "C: d@h"]),
    ] as [(String, [String], [String]?)])
  func headersAddToDefaults(lines: String, all: [String], ofHost: [String]?) {
    let inherited = defaults("header: A: d\nheader: B: d\nheader@h: C: d@h\n").request
    let job = request(lines).request.inheriting(inherited)
    #expect(job.headers(for: "other", isEncrypted: true) == all)
    if let ofHost { #expect(job.headers(for: "h", isEncrypted: true) == ofHost) }
    // What is written asks for the same: a list's options become part of its jobs.
    #expect(parsed(job.text).request.headers == job.headers)
  }

  /// One line of each key, in each spelling of its value, as the program writes it.
  @Test(arguments: [
    "url: https://h/a", "resolve: s3 b/k\" x", "output: a/ü b", "output: a/b/", "root: music", "mode: 640",
    "size: 4294967296", "crc32: 1C291CA3", "sha1: \(hex(40))", "type: image/* text/plain", "encoded: keep",
    "encoded: decode", "digests: sha256", "digests: crc32 sha256 sha512 sha1 md5", "pieces: sha512 3M \(hex(64))",
    "signature: https://h/a.sig", "header: A: b=c", "header: X:", "header@a.example: A: b",
    "user-agent: Mozilla/5.0 (a; b)", "referer: https://h/page?x=1", "overwrite: yes", "overwrite: no", "attempts: 12",
    "patience: 2d", "expires: 2026-12-01T00:00:00Z", "timeout: 1m", "timeout: 90s 7d", "timeout: 61m 5h",
    "max-size: 1025", "max-size: 1023k", "max-size: 3G", "limit-rate: 2M", "limit-rate: 500k low, 2M 08:00-23:00, none",
    "min-rate: 0 over 5m", "min-rate: 1k over 36h", "connections: 4", "priority: high", "priority: normal",
    "priority: low",
  ])
  func aRequestIsWrittenAsItIsRead(line: String) throws {
    let read = request(line).request
    #expect(read.text.split(separator: "\n").contains(line[...]), "\(read.text)")
    #expect(parsed(read.text).defect == nil && parsed(read.text).request.text == read.text)
  }

  @Test func everyKeyIsWritten() {
    let lines = [
      "url: https://h/a", "url: https://i/a", "resolve: x", "output: a", "root: r", "mode: 644", "size: 1",
      "crc32: 00000000", "sha256: \(hex(64))", "sha512: \(hex(128))", "sha1: \(hex(40))", "md5: \(hex(32))",
      "blake2b: \(hex(128))", "sha3-256: \(hex(64))", "crc32c: 00000000", "crc64nvme: \(hex(16))",
      "pieces: sha256 1M \(hex(64))", "type: a/b c/*", "encoded: decode", "digests: sha256 md5",
      "signature: https://h/s", "header: A: b", "header@h: C: d", "user-agent: a", "referer: http://h/",
      "overwrite: yes", "attempts: 3", "patience: 1d", "expires: 2026-12-01T00:00:00Z", "timeout: 30s 12h",
      "max-size: 1G", "limit-rate: 1M", "min-rate: 2k over 10m", "connections: 4", "priority: low",
    ]
    #expect(Set(lines.map { $0.prefix { $0 != ":" && $0 != "@" } }) == Set(JobKey.ofJobs.map { $0.name[...] }))
    let text = lines.map { $0 + "\n" }.joined()
    #expect(parsed(text).defect == nil)
    #expect(parsed(text).request.text == text, "in the order of the table")
    #expect(parsed(text).request == parsed(parsed(text).request.text).request)
  }

  @Test func keysOfOneJobAreNotInherited() {
    let full = parsed("url: https://h/b\noutput: b\nsize: 1\ncrc32: 00000000\nmd5: \(hex(32))\nmax-size: 1G\n").request
    let result = JobRequest().inheriting(full)
    #expect(result.urls.isEmpty && result.output == nil && result.expected == Expectation())
    #expect(result.maxSize == 1 << 30)
  }
}

/// The digits of a digest.
private func hex(_ count: Int) -> String { String(String(repeating: "0123456789abcdef", count: 8).prefix(count)) }
