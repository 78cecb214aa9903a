import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// What is no job ends in `failed/` with a record: nothing dropped is deleted or ignored in silence.
@Suite struct NoJobTests {
  enum Junk: String, Sendable {
    case fifo, socket, directory, symlink, dangling, device

    /// What everybody may make.
    static let common: [Junk] = [.fifo, .socket, .directory, .symlink, .dangling]

    func make(_ path: String) throws {
      let result =
        switch self {
        case .fifo: mkfifo(path, 0o600)
        case .socket: mknod(path, S_IFSOCK | 0o600, 0)
        case .directory: mkdir(path, 0o700)
        case .symlink: Glibc.symlink("/etc/hostname", path)
        case .dangling: Glibc.symlink(nowhere, path)
        case .device: mknod(path, S_IFCHR | 0o600, makedev(1, 3))
        }
      guard result == 0 else { throw TestSupportError("mknod", path, errno: errno) }
    }
  }

  @Test(arguments: Junk.common) func noRegularFile(_ junk: Junk) throws { try expectRejection(junk) }

  @Test(.enabled("needs leave to make device files") { try await Need.devices.isMet() })
  func noDevice() throws {
    try expectRejection(.device)
    try expectRecordsNameTaken(by: .device)
  }

  /// What has the name of a job's record is not removed with the job, and does not keep it from being removed.
  @Test(arguments: [Junk.directory, .fifo, .dangling]) func aRecordsNameIsNoRecord(_ junk: Junk) throws {
    let fixture = try Fixture()
    try fixture.write("failed/x", "http://127.0.0.1:9/x\n")
    try junk.make(fixture.files.path("failed/x.record"))
    guard case .removed = try Steering(fixture.spool).perform(.cancel, FileName("x"), in: .failed) else {
      throw Unexpected("it is not removed")
    }
    #expect(fixture.names("failed") == ["x.record"])
  }

  private func expectRejection(_ junk: Junk) throws {
    let fixture = try Fixture()
    let path = fixture.files.path("new/x")
    try junk.make(path)
    let before = try #require(fileStatus(path))
    if junk == .directory { try writeFile("\(path)/inside", Array("kept".utf8)) }
    let outcome = try fixture.outcome("x")
    #expect(outcome.defect?.reason.contains("not a regular file") == true, "\(outcome.label)")
    #expect(fixture.names("new") == [] && fixture.names("cur") == [])
    #expect(fixture.names("failed") == ["x", "x.record"])
    let after = fixture.status("failed/x")
    #expect(after?.st_ino == before.st_ino && after?.st_mode == before.st_mode, "as it was")
    if junk == .directory { #expect(try fixture.text("failed/x/inside") == "kept") }
    let record = try fixture.files.lines("failed/x.record")
    #expect(record.count == 1 && record[0].key == "failed" && record[0]["code"] == "malformed")
    #expect(record[0]["class"] == "permanent" && record[0]["retry"] == nil)
  }

  private static let badNames: [[UInt8]] = [
    Array("a\nb".utf8), Array("a\u{1b}[2Jb".utf8), Array(repeating: 0x78, count: 181),
    Array(repeating: 0x78, count: 255),
    Array("a.part".utf8), [0xff, 0x01],
  ]

  @Test(arguments: badNames)
  func namesThatCannotBe(_ name: [UInt8]) throws {
    let fixture = try Fixture()
    let text = Array("https://host/a\n".utf8)
    try writeFile(fixture.files.path("tmp/x"), text)
    let target = Path(.new, FileName(name))
    try fixture.spool.system.rename(fixture.spool.root, Path("tmp/x"), target)
    let outcome = try Claims(fixture.spool).claim(FileName(name), from: .new, now: .now())
    #expect(outcome.defect?.reason.contains("its name") == true, "\(outcome.label)")
    let failed = try fixture.spool.list(.failed)
    #expect(failed.count == 2 && fixture.names("new") == [])
    let kept = try #require(outcome.rejectedName)
    #expect(try fixture.spool.contents(Path(.failed, kept), limit: 100) == text)
    let record = try #require(failed.first { $0 != kept })
    #expect(record.bytes.suffix(7).elementsEqual(".record".utf8) && record.bytes.count <= 255)
  }

  @Test func namesThatCanBe() throws {
    let fixture = try Fixture()
    let longest = Array(repeating: UInt8(0x78), count: 180)
    for name in [longest, [0xff, 0xfe], Array("a:b\u{202e}".utf8)] {
      try fixture.files.drop("plain", "https://host/a\n")
      try fixture.spool.system.rename(fixture.spool.root, Path("new/plain"), Path(.new, FileName(name)))
      let claim = try Claims(fixture.spool).claim(FileName(name), from: .new, now: .now()).claim()
      try claim.giveUp()
      #expect(try fixture.spool.status(.failed, FileName(name)) != nil)
    }
  }

  @Test func aGibibyte() throws {
    let fixture = try Fixture()
    let path = fixture.files.path("new/x")
    try writeFile(path, Array("https://host/a\n".utf8))
    try #require(truncate(path, 1 << 30) == 0)
    let reads = Probe()
    let spool = try fixture.another(hook: reads)
    let outcome = try spool.outcome("x", at: .now() + 3600)
    #expect(outcome.defect?.reason.contains("1073741824 bytes: a job has at most 64 KiB") == true, "\(outcome.label)")
    #expect(fixture.names("failed") == ["x"])
    #expect(reads.count(.read) <= 2, "not read as a whole")
    #expect(fixture.status("failed/x").map { $0.st_blocks < 100 } == true, "nor copied")
    let descriptor = open(fixture.files.path("failed/x"), O_RDONLY | O_CLOEXEC)
    defer { close(descriptor) }
    var tail = [UInt8](repeating: 0, count: 500)
    #expect(pread(descriptor, &tail, 500, 1 << 30) > 0)
    #expect(tail.starts(with: Array("\nfailed: ".utf8)))
  }

  /// Valid lines, but too many of them.
  @Test(arguments: [70_000, 300_000])
  func tooLong(bytes: Int) throws {
    let fixture = try Fixture()
    let line = "# a comment of forty-nine bytes, and a newline ..\n"
    try fixture.write("new/x", "https://host/a\n" + String(repeating: line, count: bytes / 50))
    let outcome = try fixture.outcome("x")
    #expect(outcome.defect?.reason.contains("64 KiB") == true, "\(outcome.label)")
    #expect(outcome.defect?.line == nil)
    #expect(fixture.names("failed") == ["x"])
    #expect(try fixture.files.lines("failed/x").last?["reason"]?.contains("64 KiB") == true)
    let text = try #require(try JobSearch(fixture.spool).job(.failed, FileName("x")))
    #expect(text.journal.attempts.lastFailure?["reason"]?.contains("64 KiB") == true, "`status` says it")
    // What was not read is no torn line.
    let size = try fixture.text("failed/x").utf8.count
    #expect(rename(fixture.files.path("failed/x"), fixture.files.path("partial/x")) == 0)
    #expect(try fixture.outcome("x", from: .partial, secondsLater: 100).defect != nil)
    #expect(try fixture.text("failed/x").utf8.count > size)
  }

  @Test(arguments: [
    ("\u{0}\u{1}\u{2}\n", "control bytes"), ("GIF89a\n", "neither a URL"), ("{\"url\": 1}\n", "unknown key"),
    ("https://h/a\nurls: x\n", "unknown key `urls`"),
  ])
  func whatCannotBeRead(text: String, reason: String) throws {
    let fixture = try Fixture()
    try fixture.files.drop("x", text)
    #expect(try fixture.outcome("x").defect?.reason.contains(reason) == true)
    let failed = try #require(try fixture.files.lines("failed/x").last)
    #expect(failed["code"] == "malformed" && failed["line"] == "\(text.split(separator: "\n").count)")
    #expect(try fixture.text("failed/x").hasPrefix(text))
  }

  @Test func nothingInFailedIsReplaced() throws {
    let fixture = try Fixture()
    // A job that failed bears the name that a record would get.
    try fixture.write("failed/x.record", "https://host/a\n")
    for expected in ["x~2", "x~3"] {
      try Junk.fifo.make(fixture.files.path("new/x"))
      _ = try fixture.outcome("x")
      #expect(fixture.names("failed").contains(expected))
      #expect(fixture.names("failed").contains("\(expected).record"))
    }
    #expect(try fixture.text("failed/x.record") == "https://host/a\n")
  }

  /// What is no job may bear the name of another's record.
  @Test(arguments: Junk.common) func aRecordsNameIsTaken(by junk: Junk) throws { try expectRecordsNameTaken(by: junk) }

  private func expectRecordsNameTaken(by junk: Junk) throws {
    let fixture = try Fixture()
    try junk.make(fixture.files.path("new/x.record"))
    #expect(try fixture.outcome("x.record").rejectedName?.display == "x.record")
    try Junk.fifo.make(fixture.files.path("new/x"))
    #expect(try fixture.outcome("x").rejectedName?.display == "x~2")
    #expect(try fixture.files.lines("failed/x~2.record").last?["code"] == "malformed")
  }

  /// Whoever drops the same thing over and over doesn't end the worker, but gets names with large numbers.
  @Test(arguments: ["x", String(repeating: "x", count: 255), "x.part"])
  func aThousandOfAName(name: String) throws {
    let hook = Probe()
    let fixture = try Fixture(hook: hook)
    for number in 1...1000 {
      let suffix = number == 1 ? "" : "~\(number)"
      try fixture.write("failed/\(name.prefix(255 - suffix.count))\(suffix)", "")
    }
    if name.hasSuffix(".part") { try fixture.write("failed/\(name)~1", "") }
    let before = Set(fixture.names("failed"))
    try Junk.fifo.make(fixture.files.path("new/\(name)"))
    let kept = try #require(try fixture.outcome(name).rejectedName)
    #expect(fixture.names("new") == [] && kept.bytes.count <= 255)
    #expect(hook.count(.stat) < 500)
    #expect(Set(fixture.names("failed")).subtracting(before) == [kept.display, kept.record.display])
  }

  /// `failed/NAME.part` is where a job's wrong data goes, and it is removed when the job is done: nobody's dropped file
  /// may stand there.
  @Test(arguments: [Junk.fifo, .directory]) func aDroppedPartIsOutOfTheWay(_ junk: Junk) throws {
    let fixture = try Fixture()
    try junk.make(fixture.files.path("new/x.part"))
    let name = try #require(try fixture.outcome("x.part").rejectedName)
    let job = try jobName("x")
    let part = try #require(try PartFile.open(job, in: fixture.spool))
    try part.append([1, 2, 3])
    try part.setAside(job)
    try JobData(fixture.spool).removeSetAside(of: job)
    #expect(try fixture.spool.status(.failed, name) != nil)
    #expect(fixture.names("failed").count == 2)
  }
}

/// makedev(3), a macro.
private func makedev(_ major: UInt64, _ minor: UInt64) -> dev_t { dev_t(major << 8 | minor) }
