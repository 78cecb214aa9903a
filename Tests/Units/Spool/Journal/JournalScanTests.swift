import Spool
import Testing

@Suite struct JournalScanTests {
  private func scan<Result>(_ text: String, _ body: (ScannedLine) -> Result) -> [Result] {
    var results: [Result] = []
    Array(text.utf8).withUnsafeBytes { bytes in JournalScan.lines(bytes) { results.append(body($0)) } }
    return results
  }

  @Test func `lines of the journal are found, and nothing else`() {
    let job = """
      https://h/failed: x
      # done: 2026-11-21T03:00:00Z
      started: 2026-11-21T03:00:00Z attempt=1 worker=a.1.2
      donee: 1
      failed: 2026-11-21T03:00:41Z attempt=1 code=cut
      done: torn
      """
    #expect(scan(job) { $0.key } == [.started, .failed])
    #expect(scan(job + "\n") { $0.key } == [.started, .failed, .done])
    // What a power cut left: neither that line nor those behind it.
    #expect(scan("failed: a\ndone: \0\ndone: b\n") { $0.key } == [.failed])
    #expect(scan("failed: a\n\0\0\ndone: b\n") { $0.key } == [.failed], "zeros alone")
    #expect(scan("https://h/a\n\0\0\ndone: b\n") { $0.key } == [], "the first line")
  }

  @Test(arguments: ["", "url: https://h/a\n"])
  func `no reader finds a journal in what is left without it`(request: String) {
    let lines = JournalKey.allCases.flatMap { key in
      ["\(key): x", "  \(key):x", "\t\(key): \u{1}", "\u{FEFF}\(key): x", "\(key):/x", "\(key):\r"]
    }
    for line in lines {
      for end in ["\n", ""] {
        let rest = Array("\(line)\n\(request)\(line)\(end)".utf8).withUnsafeBytes { JournalScan.request(in: $0) }
        #expect(rest == Array(request.utf8), "\(line)")
      }
    }
    let kept = Array("done://h/x\ndonee: x\n# done: x\nheader: done: x\n done".utf8)
    #expect(kept.withUnsafeBytes { JournalScan.request(in: $0) } == kept)
  }

  @Test func `fields are read as Fields reads them`() throws {
    let line = #"2026-11-21T03:00:41Z reason="a code=b \"x\" \x41" code=cut at=12 big=18446744073709551616 empty= x"#
    let fields = try #require(Fields(parsing: line))
    for name in ["reason", "code", "at", "big", "empty"] {
      let read = scan("failed: \(line)\n") { found in
        switch name {
        case "reason": found.text("reason")
        case "code": found.text("code")
        case "at": found.text("at")
        case "big": found.text("big")
        default: found.text("empty")
        }
      }
      #expect(read == [fields[name]], "\(name)")
    }
    let numbers = scan("failed: \(line)\n") {
      [$0.number("at"), $0.number("big"), $0.number("code"), $0.number("none")]
    }
    #expect(numbers == [[12, nil, nil, nil]])
    #expect(scan("failed: \(line)\n") { $0.has("retry") } == [false])
  }

  @Test(arguments: ["", "=", "\"", "a=\"", "a=\"\\", "a=\"\\\"", "   ", "a=b c=\"d", "==", "at"])
  func `malformed lines do no harm`(value: String) {
    #expect(scan("failed: \(value)\n") { $0.number("at") } == [nil])
  }

  @Test(
    arguments: [
      "1970-01-01T00:00:00Z", "2000-02-29T23:59:59Z", "2026-11-23T12:00:00Z", "0001-01-01T00:00:00Z",
      "9999-12-31T23:59:59Z", "2024-03-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-1x-01T00:00:00Z",
      "2026-11-23T24:00:00Z", "2026-11-23 12:00:00Z",
    ])
  func `times are read as Timestamp reads them`(text: String) {
    #expect(scan("done: \(text) attempts=1\n") { $0.time } == [Timestamp(text)])
  }
}
