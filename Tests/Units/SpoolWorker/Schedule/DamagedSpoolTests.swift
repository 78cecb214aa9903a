import Glibc
import SystemPackage
import TestSupport
import Testing
import Transfer

@testable import Spool
@testable import SpoolWorker

/// One file that cannot be read concerns one job; a directory that is gone concerns all.
@Suite struct DamagedSpoolTests {
  private let text = "http://127.0.0.1:9/x\n"

  private func failing(_ kind: Call.Kind, _ path: String, _ errno: Errno) throws -> Fixture {
    try Fixture(hook: Probe { $0.kind == kind && $0.path.hasPrefix(path) ? .fail(errno) : nil })
  }

  /// By a bad sector, or the checksum of btrfs(5).
  @Test(
    arguments: [
      (.read, "new/x", .ioError), (.open, "new/x", .ioError), (.stat, "new/x", .ioError),
      (.read, "partial/x", .ioError), (.stat, "partial/x.part", .ioError), (.read, "new/x", Errno(rawValue: EBADMSG)),
      (.open, "new/x", Errno(rawValue: EUCLEAN)), (.rename, "new/x cur/", .fileNameTooLong),
    ] as [(Call.Kind, String, Errno)])
  func `a damaged file is one job's trouble`(kind: Call.Kind, path: String, errno: Errno) throws {
    let fixture = try failing(kind, path, errno)
    let origin: Directory = path == "partial/x" ? .partial : .new
    try fixture.write("\(origin)/x", text)
    let now = Timestamp.now() + 100
    guard case .candidate(let candidate) = try SpoolReader(fixture.spool).look(origin, FileName("x"), at: now) else {
      throw Unexpected("it is not seen")
    }
    let outcome = try Claims(fixture.spool).claim(candidate.name, from: origin, now: now)
    #expect(outcome.label.hasPrefix("barred"), "\(outcome.label)")
    #expect(fixture.files.places(of: "x") == ["\(origin)/x"])
  }

  /// Else the claim would find other URLs, and ask the schedule to look again, without end.
  @Test func `the schedule has the URLs of a job whose data cannot be looked at`() throws {
    let text = text
    let urls = try WorkerLoop.alone { () async throws -> [String]? in
      let fixture = try Fixture(
        hook: Probe { $0.kind == .stat && $0.path == "partial/x.part" ? .fail(.ioError) : nil })
      try fixture.write("new/x", "\(text)size: 2000\n")
      var options = WorkerOptions()
      options.minFree = 1
      let environment = try JobEnvironment(fixture.spool, options) { _ in }
      let reader = PeekReader(fixture.spool, environment, ClaimReader(fixture.spool))
      return try reader.peek(at: Candidate(name: FileName("x"), origin: .new, modified: 0))?.urls.map(\.text)
    }
    #expect(urls == [String(text.dropLast())])
  }

  @Test(
    arguments: [(.open, "cur", .new), (.open, "new/x", .cur), (.write, "new/x", .new)]
      as [(Call.Kind, String, Directory)])
  func `a damaged directory is the spool's`(kind: Call.Kind, path: String, origin: Directory) throws {
    let isShared = origin == .cur
    let fixture = try Fixture(
      hook: Probe { $0.kind == kind && $0.path.hasPrefix(path) ? .fail(.ioError) : nil },
      kind: isShared ? FileSystemKind(name: "nfs", sharing: .network) : nil)
    try fixture.write("new/x", "\(text)requeued: 2026-11-21T12:00:00Z\n")
    try writeFile(fixture.files.path("partial/x.part"), [1])
    #expect(throws: SpoolError.self) { try fixture.outcome("x", secondsLater: 100) }
  }

  /// It is another user's, due in three days, and rejected only then.
  @Test func `an order that cannot be read`() throws {
    let fixture = try failing(.open, "standing/feed", .permissionDenied)
    try #require(mkdir(fixture.files.path("standing"), 0o700) == 0 || errno == EEXIST)
    try fixture.write("standing/feed", "\(text)every: 1h\n")
    try setModificationTime(fixture.files.path("standing/feed"), secondsFromNow: 3 * 86_400)
    func isDue(_ modified: Int64) throws -> Bool {
      try Claims(fixture.spool).isDue(FileName("feed"), modified: modified, in: .standing, at: Timestamp.now().seconds)
    }
    #expect(try !isDue(Timestamp.now().seconds + 3 * 86_400) && isDue(Timestamp.now().seconds))
    let outcome = try fixture.outcome("feed", from: .standing)
    #expect(outcome.rejectedName == FileName("feed"), "\(outcome.label)")
  }

  /// Not that another worker was faster.
  @Test(arguments: ["hold", "failed"])
  func `a directory that is gone is told of`(directory: String) throws {
    let fixture = try Fixture()
    try fixture.write("new/x", directory == "hold" ? text : "no job\n")
    try fixture.write("new/-x", text)
    try writeFile(fixture.files.path("partial/x.part"), [1])
    try #require(rmdir(fixture.files.path(directory)) == 0)
    let error = #expect(throws: SpoolError.self) { try fixture.outcome("x", secondsLater: 100) }
    #expect(error?.errno == .noSuchFileOrDirectory && error?.path.hasSuffix("/\(directory)") == true)
    try fixture.makeDirectory(directory)
    let origin: Directory = fixture.names("cur").isEmpty ? .new : .cur
    let name = fixture.names(origin.rawValue).first { $0.hasPrefix("x") } ?? ""
    let again = try fixture.outcome(name, from: origin, secondsLater: 100)
    #expect(again.label.hasPrefix(directory == "hold" ? "claimed" : "rejected"), "\(again.label)")
  }
}

/// What an attempt records that fails for a reason of this machine.
@Suite struct LostWritesTests {
  private func failure(_ network: NetworkOptions, _ kind: Call.Kind? = nil) throws -> (line: String, lostWrites: Bool) {
    try WorkerLoop.alone { () async throws -> (String, Bool) in
      let isReady = Switch()
      let fixture = try Fixture(
        hook: Probe { isReady.isOn && $0.kind == kind && $0.path == "partial/a.part" ? .fail(.ioError) : nil })
      try writeFile(fixture.files.path("partial/a.part"), Array(repeating: 7, count: 1000))
      let inode = try #require(try fixture.spool.status(.partial, FileName("a.part"))).inode
      let journal = """
        started: 2026-11-21T12:00:00Z attempt=1 worker=\(fixture.spool.owner.text) boot=boot-1 mirror=1
        response: mirror=1 at=0 part=\(inode) size=2000 etag="\\"x\\""

        """
      try fixture.write("partial/a", "http://127.0.0.1:9/a\n\(journal)")
      let claim = try fixture.claim("a", from: .partial, secondsLater: 100)
      var options = WorkerOptions()
      options.network = network
      let environment = try JobEnvironment(fixture.spool, options) { _ in }
      isReady.turnOn()
      let attempt = Attempt(claim, id: 1, environment, firstURL: nil, checkOrder: { _ in AttemptEnd(.waiting) }) { _ in
      }
      _ = await attempt.run()
      isReady.turnOff()
      let text = try fixture.text("partial/a")
      return (text.split(separator: "\n").last.map(String.init) ?? "", parsed(text).journal.data.lostWrites)
    }
  }

  /// The data is resumed where it ends, without a copy.
  @Test func `a file of the worker's that is away loses nothing`() throws {
    var network = NetworkOptions()
    network.netrc = "/nonexistent/netrc"
    let (line, lostWrites) = try failure(network)
    #expect(line.contains(" code=io ") && line.contains("cannot read /nonexistent/netrc"), "\(line)")
    #expect(!lostWrites)
  }

  /// As with an fsync that fails, nobody knows what else of it is lost.
  @Test(arguments: [Call.Kind.read, .write])
  func `a call for the data that fails does`(kind: Call.Kind) throws {
    let (line, lostWrites) = try failure(NetworkOptions(), kind)
    #expect(line.contains(" code=io ") && line.contains(" lost=yes "), "\(line)")
    #expect(lostWrites)
  }

  /// Whether the payload at the output was dropped from the page cache before it was first read.
  /// - Parameter isVerified: whether the job has published it; otherwise a digest tells that it is the job's.
  private func isReadFromDisk(isLost: Bool, isVerified: Bool) throws -> Bool {
    let probe = Probe()
    let places = try WorkerLoop.alone { () async throws -> [String] in
      let fixture = try Fixture(hook: probe)
      let bytes = [UInt8](repeating: 7, count: 1000)
      try writeFile(fixture.files.path("files/a"), bytes)
      let inode = try #require(fixture.status("files/a")).st_ino
      let (url, sum) = ("http://127.0.0.1:9/a", hex8(independentCRC32(bytes)))
      let start = "worker=\(fixture.spool.owner.text) boot=boot-1 mirror=1 url=\(url)"
      let text = """
        \(url)
        crc32: \(sum)
        started: 2026-11-21T12:00:00Z attempt=1 \(start)
        response: mirror=1 at=0 part=\(inode) size=1000
        \(isVerified ? "verified: 2026-11-21T12:00:01Z size=1000 crc32=\(sum) part=\(inode)" : "# none")
        failed: 2026-11-21T12:00:02Z attempt=1 code=io at=1000 crc32=\(sum) lost=\(isLost ? "yes" : "no")

        """
      try fixture.write("partial/a", text)
      let claim = try fixture.claim("a", from: .partial, secondsLater: 100)
      let environment = try JobEnvironment(fixture.spool, WorkerOptions()) { _ in }
      let attempt = Attempt(claim, id: 1, environment, firstURL: nil, checkOrder: { _ in AttemptEnd(.waiting) }) { _ in
      }
      _ = await attempt.run()
      return fixture.files.places(of: "a")
    }
    #expect(places == ["done/a"])
    let calls = probe.calls
    let firstRead = try #require(calls.firstIndex { $0.kind == .read && $0.path == "a" })
    return calls[..<firstRead].contains { $0.kind == .fadvise && $0.path == "a" }
  }

  /// The cache has its bytes all the same, and takes them for written.
  @Test(arguments: [true, false], [true, false])
  func `a payload is read from the disk if its fsync has failed`(isLost: Bool, isVerified: Bool) throws {
    #expect(try isReadFromDisk(isLost: isLost, isVerified: isVerified) == isLost)
  }
}
