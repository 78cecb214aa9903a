import Spool
import SpoolStatus
import Testing

@Suite struct AdviceTests {
  @Test(arguments: FailureCode.allCases.flatMap(\.labels) + ["http-404", "http-503", "http-302", "unknown", ""])
  func `there is advice for each code`(code: String) {
    let text = Advice(for: code).text
    #expect(text.hasSuffix(".") && text.count > 15 && text.count < 120, "\(text)")
  }

  @Test(arguments: FailureCode.allCases.flatMap(\.labels) + ["http-404", "http-503"])
  func `each code is explained`(code: String) throws {
    let lines = try #require(FailureExplanation(of: code)).lines
    #expect(lines.count == 3 && lines.allSatisfy { $0.hasSuffix(".") && $0.count < 220 }, "\(lines)")
    #expect(lines[1].hasPrefix("Permanent") == (FailureCode.row(of: code)?.failureClass == .permanent))
  }

  @Test(arguments: [
    ("mismatch-sha256", "third mismatch"), ("rejected", "third mismatch"), ("http-429", "from the fourth"),
    ("connect", "from the fourth"), ("disk-full", "No attempt is counted"), ("tls", "attempts are used up"),
  ])
  func `it is said which attempts count`(code: String, words: String) throws {
    #expect(try #require(FailureExplanation(of: code)).lines[1].contains(words))
  }

  @Test(arguments: ["", "http", "http-", "404", "mismatch-DIGEST", "Cut"])
  func `what is no code is not explained`(word: String) { #expect(FailureExplanation(of: word) == nil) }

  @Test func `a command is shown only as a shell would take it`() {
    func command(_ name: String, _ spool: String = "/srv/spool") -> String {
      Advice(for: "disk-full").command(for: FileName(name), of: spool)
    }
    #expect(command("a-1.iso") == "spoolrun retry --spool /srv/spool a-1.iso")
    #expect(command("-it's; rm") == #"spoolrun retry --spool /srv/spool -- '-it'\''s; rm'"#)
    #expect(command("a", "/my spool") == "spoolrun retry --spool '/my spool' a")
    #expect(command("it's\u{1}") == #"spoolrun retry --spool /srv/spool $'it\047s\001'"#)
    #expect(command("a\\b") == #"spoolrun retry --spool /srv/spool $'a\134b'"#)
    #expect(command("a\u{202E}b") == #"spoolrun retry --spool /srv/spool $'a\342\200\256b'"#)
    let bytes = Advice(for: "disk-full").command(for: FileName([0x61, 0xFF]), of: "s")
    #expect(bytes == #"spoolrun retry --spool s $'a\377'"#)
  }

  @Test func `a link that leads nowhere is replaced, all else is tried again`() {
    func command(_ code: String) -> String { Advice(for: code).command(for: FileName("a"), of: "s") }
    #expect(command("http-404") == "spoolrun url --spool s a URL")
    #expect(command("http-503") == "spoolrun retry --spool s a")
    #expect(command("malformed") == "spoolrun retry --spool s a")
  }

  @Test(arguments: [("connect", false), ("http-503", false), ("tls", true), ("disk-full", true), ("http-401", true)])
  func `while a job tries again, only what does not pass by itself is urgent`(code: String, isUrgent: Bool) {
    #expect(Advice(for: code).isUrgent == isUrgent)
  }
}
