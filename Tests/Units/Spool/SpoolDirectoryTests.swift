import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// Making, opening and reading a spool, and dropping into it.
@Suite struct SpoolDirectoryTests {
  private let owner = WorkerID(host: "alpha", process: 42, tag: 1)

  @Test func creation() throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/s"
    try Spool.create(path)
    #expect(Set(names(in: path)) == Set(Directory.allCases.map(\.rawValue)))
    try writeFile("\(path)/new/a", Array("https://h/a\n".utf8))
    try Spool.create(path)
    #expect(names(in: "\(path)/new") == ["a"], "what is there stays")
    _ = try Spool(path, owner: owner, boot: "b")
  }

  @Test(arguments: [
    ("missing", Errno.noSuchFileOrDirectory), ("file", .notDirectory), ("empty", .noSuchFileOrDirectory),
    ("half", .notDirectory),
  ])
  func noSpool(kind: String, errno: Errno) throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/s"
    switch kind {
    case "file": try writeFile(path, [])
    case "empty": try #require(mkdir(path, 0o700) == 0)
    case "half":
      try Spool.create(path)
      try #require(rmdir("\(path)/hold") == 0)
      try writeFile("\(path)/hold", [])
    default: break
    }
    let error = #expect(throws: SpoolError.self) { try Spool(path, owner: owner, boot: "b") }
    #expect(error?.errno == errno)
  }

  /// By a command or a worker of this version, in a spool of an older one.
  @Test(arguments: [Directory.urgent, .standing, .workers])
  func `a directory that is made later is durable`(directory: Directory) throws {
    let probe = Probe()
    let fixture = try Fixture(hook: probe)
    _ = rmdir(fixture.files.path(directory.rawValue))
    let before = probe.calls.count
    try fixture.spool.provide(Path(directory))
    #expect(probe.calls.dropFirst(before).map(\.kind) == [.mkdir, .fsync])
    // Another one may have died between the two; once is enough.
    let other = try fixture.another(hook: probe)
    for _ in 0..<2 { try other.provide(Path(directory)) }
    #expect(probe.count(.fsync) == 2)
  }

  @Test func dotNamesAreIgnored() throws {
    let fixture = try Fixture()
    for name in [".hidden", "..x", "a"] { try fixture.write("new/\(name)", "") }
    #expect(try fixture.spool.list(.new).map(\.display) == ["a"])
    #expect(try fixture.spool.status(.new, FileName("b")) == nil)
  }

  @Test func defaults() throws {
    let fixture = try Fixture()
    #expect(try fixture.spool.defaults().attempts == nil, "there need be none")
    try fixture.write("defaults", "# all jobs\r\nattempts: 3\r\nheader: A: b\r\n")
    let defaults = try fixture.spool.defaults()
    #expect(defaults.attempts == 3 && defaults.headers(for: "h", isEncrypted: true) == ["A: b"])
  }

  @Test(
    arguments: [
      ("attempts: 0\n", 1), ("attempts: 3\nurl: https://h/a\n", 2), ("attempts: 3\nsecret: x\n", 2),
      ("attempts: 3", nil), ("attempts: 3\nfailed: x\n", 2), ("#" + String(repeating: "x", count: 70_000) + "\n", nil),
    ] as [(String, Int?)])
  func badDefaults(text: String, line: Int?) throws {
    let fixture = try Fixture()
    try fixture.write("defaults", text)
    let defect = #expect(throws: Defect.self) { try fixture.spool.defaults() }
    #expect(defect?.line == line)
  }

  @Test func defaultsThatAreNoFile() throws {
    let fixture = try Fixture()
    try #require(symlink("/etc/hostname", fixture.files.path("defaults")) == 0)
    #expect(throws: Defect.self) { try fixture.spool.defaults() }
    try #require(unlink(fixture.files.path("defaults")) == 0 && mkdir(fixture.files.path("defaults"), 0o700) == 0)
    #expect(throws: Defect.self) { try fixture.spool.defaults() }
  }

  @Test func theFileSystemsClock() throws {
    let fixture = try Fixture()
    let before = Timestamp.now()
    let time = try fixture.spool.fileSystemTime()
    // A file's time is the kernel's last tick, which may lie a little before the clock's.
    #expect(time.seconds >= before.seconds - 1 && time.seconds <= Timestamp.now().seconds)
    #expect(fixture.names("tmp") == [])
    #expect((fixture.spool.freeSpace() ?? 0) > 0)
  }

  @Test func thisWorker() {
    let (first, boot) = WorkerID.current()
    let (second, _) = WorkerID.current()
    #expect(first.text != second.text, "a tag for each")
    #expect(first.host == second.host && !first.host.contains("."))
    #expect(boot.count == 36 && boot != "unknown")
  }

  @Test func dropping() throws {
    let hook = Probe()
    let fixture = try Fixture(hook: hook)
    let job = try jobName("a")
    #expect(try Drops(fixture.spool).drop("https://h/a\n", as: job).name.display == "a")
    #expect(try Drops(fixture.spool).drop("https://h/b\n", as: job).name.display == "a~2")
    #expect(try fixture.text("new/a") == "https://h/a\n" && fixture.text("new/a~2") == "https://h/b\n")
    #expect(fixture.names("tmp") == [])
    // Durable before it shows, and its name after.
    let order = hook.calls.filter { $0.kind == .fsync || $0.kind == .rename }.map { "\($0.kind.rawValue) \($0.path)" }
    let temporary = try #require(order.first).dropFirst("fsync ".count)
    #expect(temporary.hasPrefix("tmp/a:alpha.42."))
    #expect(order.prefix(3) == ["fsync \(temporary)", "rename \(temporary) new/a", "fsync new"])
  }

  /// Who may only drop sees no directory, and tries one name after another.
  @Test(.enabled("needs root, to be several users") { try await Need.users.isMet() })
  func droppingOneOfManyIntoAnothersSpool() throws {
    let hook = Probe()
    let fixture = try Fixture(hook: hook)
    let tmp = fixture.files.path("tmp")
    try #require(chown(tmp, 61_001, 61_001) == 0 && chmod(tmp, 0o3733) == 0)
    for number in 1...1000 { try fixture.write(number == 1 ? "new/a" : "new/a~\(number)", "") }
    let (name, _) = try Drops(fixture.spool).drop("https://h/a\n", as: try jobName("a"))
    #expect(try fixture.text("new/\(name.display)") == "https://h/a\n")
    #expect(hook.count(.rename) < 200)
  }

  @Test(arguments: [Call.Kind.write, .fsync, .rename])
  func aFailedDropLeavesNothing(kind: Call.Kind) throws {
    let fixture = try Fixture(hook: Probe { $0.kind == kind ? .fail(.noSpace) : nil })
    let job = try jobName("a")
    #expect(throws: SpoolError.self) { try Drops(fixture.spool).drop("https://h/a\n", as: job) }
    #expect(fixture.names("tmp") == [] && fixture.names("new") == [])
  }

  @Test func failureClasses() {
    let temporary = [408, 425, 429, 500, 502, 503, 504, 599]
    for status in 400...599 {
      let failure = Failure(.http, "", status: status)
      #expect(failure.label == "http-\(status)")
      #expect((failure.failureClass == .temporary) == (temporary.contains(status) || status >= 500), "\(status)")
    }
    let permanent: Set<FailureCode> = [
      .malformed, .badOutput, .outputExists, .tooLarge, .expired, .redirect, .protocol, .encoded, .mismatch,
      .unresolvable, .privateAddress, .serverAway,
      .killsWorker, .unsigned, .unknownKey, .expiredKey, .revokedKey, .noPieces,
    ]
    for code in FailureCode.allCases where code != .http {
      #expect((code.failureClass == .permanent) == permanent.contains(code), "\(code)")
      #expect(code.burnsAttempt == ![.diskFull, .noOutput, .noNetwork, .proxy].contains(code), "\(code)")
    }
  }
}
