import TestSupport
import Testing

@testable import Spool

/// Names of jobs, claims and workers.
@Suite struct NamesTests {
  @Test(arguments: [
    "a", "a.b", "a:b", "a b", "~", "-rf", "x.partial", "part", "a~2", String(repeating: "x", count: 180), "ü",
    "a\u{202e}b",
  ])
  func jobNames(_ name: String) {
    #expect(JobName(FileName(name)) != nil && JobName.defect(of: FileName(name)) == nil)
  }

  @Test(arguments: [
    ("", "empty"), ("a.part", ".part"), (".part", ".part"), (String(repeating: "x", count: 181), "181 bytes"),
    (String(repeating: "x", count: 255), "255 bytes"), ("a\nb", "control"), ("a\u{1b}[31mb", "control"),
    ("a\u{7f}", "control"), ("a/b", "slash"),
  ])
  func refusedNames(name: String, reason: String) {
    #expect(JobName(FileName(name)) == nil)
    #expect(JobName.defect(of: FileName(name))?.contains(reason) == true)
  }

  @Test func dotNamesAreIgnored() {
    for name in [".", "..", ".x", ".nfs000"] {
      #expect(JobName(FileName(name)) == nil)
      #expect(ClaimName(FileName("\(name):alpha.1.2")) == nil)
    }
  }

  @Test func bytesThatAreNoUTF8() throws {
    let job = try #require(JobName(FileName([0xff, 0xfe, 0x41])))
    #expect(job.display == "\\xff\\xfeA")
    #expect(job.part.bytes == [0xff, 0xfe, 0x41] + Array(".part".utf8))
  }

  @Test func numberedNames() throws {
    let job = try jobName("a")
    #expect(job.numbered(2).display == "a~2")
    for (name, third) in [("a~2", "a~3"), ("a~123456789", "a~3"), ("a~2~2", "a~2~3")] {
      #expect(try jobName(name).numbered(3).display == third)
    }
    // No numbers that this gives.
    for name in ["~2", "a~", "a~1", "a~02", "a~0", "a~x", "a~2x", "a~-2", "a~+2", "a~1234567890"] {
      #expect(try jobName(name).numbered(3).display == "\(name)~3")
    }
    let cut = try #require(JobName(FileName(String(repeating: "x", count: 178) + "~2")))
    #expect(cut.numbered(10).display == String(repeating: "x", count: 177) + "~10")
    let long = try #require(JobName(FileName(String(repeating: "x", count: 180))))
    #expect(long.numbered(10_000).fileName.bytes.count == 180)
    #expect(long.numbered(10_000).display.hasSuffix("xxx~10000"))
    #expect(long.numbered(999_999_999).fileName.bytes.count == 180)
    let euros = try #require(JobName(FileName(String(repeating: "€", count: 60))))
    #expect(euros.numbered(2).display == String(repeating: "€", count: 59) + "~2", "no part of a character")
    let strange = try #require(JobName(FileName([UInt8](repeating: 0x80, count: 180))))
    #expect(strange.numbered(2).fileName.bytes.count >= 176)
    let owner = WorkerID(host: String(repeating: "h", count: 300), process: .max, tag: .max)
    #expect(ClaimName.fileName(long, owner).bytes.count <= 255, "a claim fits a directory entry")
    #expect(long.part.bytes.count + 1 + owner.text.utf8.count <= 255, "and so does the copy of its data in tmp")
    let seated = WorkerID(host: owner.host, process: .max, tag: .max, namespace: "pid:[4026531836]")
      .seated(boot: "b", device: .max, isLocal: false)
    #expect(ClaimName.fileName(long, seated).bytes.count <= 255)
    #expect(
      seated.text.utf8.count == owner.text.utf8.count + 9 && seated.tagged(7).text.utf8.count == owner.text.utf8.count)
  }

  @Test(
    arguments: [
      ("a:alpha.1.2", "a", "alpha"), ("a:b:alpha.1.2", "a:b", "alpha"), ("a:alpha.1.2:beta.3.4", "a:alpha.1.2", "beta"),
      ("a", "a", nil), ("a:alpha", "a:alpha", nil), ("a:alpha.1", "a:alpha.1", nil),
      ("a:alpha.1.2.3", "a:alpha.1.2.3", nil),
      ("a:..", "a:..", nil), ("a:.1.2", "a:.1.2", nil), (":alpha.1.2", ":alpha.1.2", nil),
    ] as [(String, String, String?)])
  func claimNames(name: String, job: String, host: String?) throws {
    let claim = try #require(ClaimName(FileName(name)))
    #expect(claim.job.display == job && claim.owner?.host == host)
  }

  /// What a worker writes it reads back, whatever the job's name.
  @Test(arguments: ["a", "a:b", "a:x.1.2", ":", "::", "ends:", String(repeating: ":", count: 180)])
  func claimRoundTrip(_ name: String) throws {
    let job = try jobName(name)
    let owner = WorkerID(host: "host.example.org", process: 7, tag: 0xab)
    let claim = try #require(ClaimName(ClaimName.fileName(job, owner)))
    #expect(claim.job == job && claim.owner?.text == owner.text)
    #expect(owner.text == "host_example_org.7.000000ab")
  }

  @Test(arguments: [
    ("", "localhost"), ("a.b", "a_b"), ("a:b/c\n", "a_b_c_"), ("ü", "__"), ("A-Z9", "A-Z9"),
  ])
  func hostNames(host: String, clean: String) {
    #expect(WorkerID(host: host, process: 1, tag: 0).host == clean)
  }
}

/// Where a payload may go.
@Suite struct OutputPathTests {
  @Test(arguments: [
    ("a", [], "a"), ("a/b/c", ["a", "b"], "c"), ("...", [], "..."), ("a b/ü", ["a b"], "ü"), ("~/x", ["~"], "x"),
    ("a/\u{301}b", ["a"], "\u{301}b"), (String(repeating: "n", count: 255), [], String(repeating: "n", count: 255)),
    ("-rf", [], "-rf"), (String(repeating: "d/", count: 31) + "x", Array(repeating: "d", count: 31), "x"),
  ])
  func places(text: String, parents: [String], name: String) throws {
    let path = try #require(OutputPath(text))
    #expect(path.parents == parents && path.name == name && path.text == text)
  }

  @Test(arguments: [
    "", "/", "/etc/passwd", "..", "../x", "a/../b", "a/..", ".", "./a", "a/./b", "a//b", "a/", "a\nb", "a\u{0}b",
    "a\u{7f}",
    // A slash and a mark are one character to Swift, and two to the kernel.
    "../\u{301}x", "a/../\u{301}x", "a/\u{301}/..", "..%\u{301}/../\u{301}",
    ".spoolrun/new/x", "a/.spoolrun/x", ".spoolrun-1-2",
    "../../etc/x", String(repeating: "n", count: 256), String(repeating: "d/", count: 2000) + "x",
    String(repeating: "d/", count: 32) + "x",
  ])
  func refused(_ text: String) {
    #expect(OutputPath.defect(of: text) != nil)
    #expect(OutputPath(text) == nil)
  }
}

/// Names as they are shown.
@Suite struct EscapingTests {
  @Test(arguments: [
    ("plain ü 🎉", "plain ü 🎉"), ("a\\b", "a\\x5cb"), ("\u{1b}[31m", "\\x1b[31m"), ("a\nb\r\t", "a\\x0ab\\x0d\\x09"),
    ("\u{7f}", "\\x7f"), ("\u{85}\u{9b}", "\\xc2\\x85\\xc2\\x9b"), ("\u{202e}gpj.exe", "\\xe2\\x80\\xaegpj.exe"),
    ("\u{2066}x\u{2069}", "\\xe2\\x81\\xa6x\\xe2\\x81\\xa9"), ("\u{2028}\u{2029}", "\\xe2\\x80\\xa8\\xe2\\x80\\xa9"),
    ("", ""), ("\u{a0}", "\u{a0}"),
  ])
  func text(raw: String, shown: String) { #expect(escaped(raw) == shown) }

  @Test(
    arguments: [
      ([0xff], "\\xff"), ([0xc3], "\\xc3"), ([0xc3, 0x41], "\\xc3A"), ([0xe2, 0x80], "\\xe2\\x80"),
      ([0xed, 0xa0, 0x80], "\\xed\\xa0\\x80"), ([0xc0, 0xaf], "\\xc0\\xaf"),
      ([0xf4, 0x90, 0x80, 0x80], "\\xf4\\x90\\x80\\x80"), ([0x80, 0xc3, 0xa9], "\\x80é"),
    ] as [([UInt8], String)])
  func invalidUTF8(bytes: [UInt8], shown: String) { #expect(escaped(bytes) == shown) }

  /// No input steers a terminal, and different names are shown differently.
  @Test func anyBytes() {
    var generator = SeededGenerator(seed: 3)
    var seen: [String: [UInt8]] = [:]
    for _ in 0..<5000 {
      let bytes = (0..<Int.random(in: 0...8, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator)
      }
      let shown = escaped(bytes)
      #expect(!shown.unicodeScalars.contains { $0.value < 0x20 || (0x7f...0x9f).contains($0.value) })
      #expect(seen[shown, default: bytes] == bytes)
      seen[shown] = bytes
    }
  }
}
