import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

@Suite struct ArchiveFileTests {
  private func receipt(_ more: String = "") -> [UInt8] {
    Array(
      """
      url: https://me:s3cret@h/p/x?token=s3cret
      started: 2026-11-21T03:00:00Z attempt=1 worker=h.1.0 boot=b url=https://h/p/x
      verified: 2026-11-21T03:02:48Z size=7 crc32=D3D99E8B sha256=ab part=7
      done: 2026-11-21T03:02:49Z attempts=1 output="d/\\x1bx y" bytes-fetched=7 seconds=2
      \(more)
      """.utf8)
  }

  private func line(_ name: String, _ bytes: [UInt8], modified: Int64 = 1_795_000_000) -> (String, ArchiveMonth?) {
    var line: [UInt8] = []
    let month = bytes.withUnsafeBytes { ArchivedReceipt.append(FileName(name), $0, modified: modified, to: &line) }
    return (String(decoding: line, as: UTF8.self), month)
  }

  @Test func `a line has what people look for, and the whole receipt`() throws {
    let (text, month) = line("a\tb", receipt())
    let columns = text.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    #expect(columns.count == 8 && text.hasSuffix("\\n\n") && month?.fileName == FileName("2026-11.tsv.gz"))
    #expect(
      Array(columns.prefix(7)) == [
        "2026-11-21T03:02:49Z", "a\\x09b", "d/\\x1bx y", "7", "crc32=D3D99E8B sha256=ab", "https://h/p/x",
        "2026-11-18T11:06:40Z",
      ])
    let read = try Array(text.utf8.dropLast()).withUnsafeBytes { try ArchivedReceipt.read($0) }
    #expect(read?.bytes == receipt() && read?.name == FileName("a\tb") && read?.modified.seconds == 1_795_000_000)
    #expect(read?.request.urls.map(\.text) == ["https://me:s3cret@h/p/x?token=s3cret"])
  }

  @Test func `what is no receipt any more has no line`() {
    #expect(line("a", receipt("requeued: 2026-11-22T00:00:00Z\n")).1 == nil)
    #expect(line("a", receipt("started: 2026-11-22T00:00:00Z attempt=1\n")).0.isEmpty)
    #expect(line("a", Array("url: http://h/x\n".utf8)).1 == nil)
    // Neither size nor URL are known.
    let bare = line("a", Array("done: 2026-11-21T03:02:49Z output=x existing=yes\n".utf8)).0
    #expect(bare.hasPrefix("2026-11-21T03:02:49Z\ta\tx\t-\t-\t-\t"))
  }

  @Test func `times that no date has are the nearest one`() {
    #expect(line("a", receipt(), modified: 1 << 40).0.contains("\t9999-12-31T23:59:59Z\t"))
    #expect(line("a", receipt(), modified: -1 << 40).0.contains("\t1970-01-01T00:00:00Z\t"))
  }

  @Test func `a line of another kind is a defect, and a later version's column none`() throws {
    func read(_ text: String) throws -> ArchivedReceipt? {
      try Array(text.utf8).withUnsafeBytes { try ArchivedReceipt.read($0) }
    }
    let good = "2026-11-21T03:02:49Z\ta\tx\t-\t-\t-\t2026-11-21T03:02:49Z\ttext\\n"
    #expect(try read(good)?.bytes == Array("text\n".utf8) && read(good + "\tmore")?.name == FileName("a"))
    #expect(try read("#done\tname") == nil)
    for bad in [
      "", "x", good.replacing("\ta\t", with: "\ta/b\t"), good.replacing("\ta\t", with: "\t\t"),
      good.replacing("\ta\t", with: "\t\\x00\t"), good.replacing("49Z\ttext", with: "49\ttext"),
      good.replacing("\\n", with: "\\"), good.replacing("\\n", with: "\\x4"), good.replacing("\\n", with: "\\q"),
    ] {
      #expect(throws: Defect.self, "\(bad)") { try read(bad) }
    }
  }

  @Test func `members of any size are read as one text`() throws {
    let fixture = try Fixture()
    try Archive(spool: fixture.spool).provide()
    var all: [ArchivedReceipt] = []
    for count in [1, 3, 2000] {
      var lines: [UInt8] = []
      for number in 0..<count {
        let name = FileName("n\(all.count)")
        let bytes = receipt(String(repeating: "# \(number)\n", count: number == 1 ? 60_000 : 1))
        _ = bytes.withUnsafeBytes { ArchivedReceipt.append(name, $0, modified: Int64(all.count), to: &lines) }
        all.append(ArchivedReceipt(name: name, modified: Timestamp(seconds: Int64(all.count)), bytes: bytes))
      }
      var members: [UInt8] = []
      try Gzip.append(lines, to: &members)
      try Archive(spool: fixture.spool).add(members, of: ArchiveMonth(Timestamp(seconds: 0)))
    }
    var read: [ArchivedReceipt] = []
    let stream = try ArchiveStream(fixture.spool)
    while let receipt = try stream.next() { read.append(receipt) }
    #expect(read == all)
    let some = try ArchiveStream(fixture.spool, since: 2, named: [FileName("n1"), FileName("n3")])
    #expect(try some.next()?.name == FileName("n3") && some.next() == nil)
    #expect(try ArchiveStream(fixture.spool, since: Timestamp.now().seconds + 60).next() == nil, "an older file")
  }

  /// Where locks of other hosts are not seen, two may be at it.
  @Test func `of two that write one archive, the first one fails and nothing is lost`() throws {
    let fixture = try Fixture()
    try Archive(spool: fixture.spool).provide()
    let month = ArchiveMonth(Timestamp(seconds: 0))
    let other = try fixture.another(host: "beta")
    let probe = Probe.once(.fsync, "1970-01") {
      #expect(throws: Never.self) { try Archive(spool: other).add([2], of: month) }
      return nil
    }
    let slow = try fixture.another(host: "gamma", hook: probe)
    #expect(throws: SpoolError.self) { try Archive(spool: slow).add([1], of: month) }
    let files = names(in: fixture.files.path("done/archive"), isHiddenToo: true)
    #expect(files == ["1970-01.tsv.gz"])
    #expect(try readFile(fixture.files.path("done/archive/1970-01.tsv.gz")).last == 2)
  }
}
