import Glibc
import TestSupport
import Testing

/// A file that the kernel lets nobody move, chattr(1): it is told of and passed over, and all others run.
@Suite(.enabled("needs root, and a file system with chattr(1)'s flags") { try await Chattr.isAllowed() })
struct BarredTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws {
    server = try simpleServer()
    spool = try TemporarySpool()
  }

  private func put(_ path: String, flag: String) throws -> Chattr {
    let text = "url: \(server.url("/x"))\noutput: \(path)\n"
    try spool.write(path, text)
    try setModificationTime(spool.path(path), secondsFromNow: -1000)
    return try Chattr(flag, spool.path(path))
  }

  @Test(arguments: ["new/x", "partial/x", "cur/x:host.1.0000000a"], ["+i", "+a"])
  func `the others run, each time`(path: String, flag: String) async throws {
    let flagged = try put(path, flag: flag)
    for round in 1...2 {
      try spool.drop("other\(round)", "\(server.url("/other\(round)"))\n")
      let result = try await spoolrun("--once", spool.root).exits(1, saying: "barred")
      #expect(result.errors.split(separator: "\n").count == 1, "\(result)")
      #expect(spool.places(of: "other\(round)") == ["done/other\(round)"])
      #expect(spool.places(of: "x") == [path])
    }
    try flagged.remove()
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && spool.places(of: "x") == ["done/x"], "\(result)")
  }

  @Test func `a worker that stays tells of it once`() async throws {
    let flagged = try put("new/x", flag: "+i")
    let worker = try startSpoolrun([spool.root])
    for number in 1...3 {
      try spool.drop("other\(number)", "\(server.url("/other\(number)"))\n")
      try await waitUntil("it is done") { spool.places(of: "other\(number)") == ["done/other\(number)"] }
    }
    let result = try await worker.stop()
    #expect(result.errors.split(separator: "barred").count == 2, "\(result)")
    try flagged.remove()
  }

  /// Nobody can do it.
  @Test(arguments: ["new/x", "cur/x:host.1.0000000a"])
  func `a worker that ends when all is done does not wait for it`(path: String) async throws {
    let flagged = try put(path, flag: "+i")
    try spool.write("cur/stray", "")
    try await spoolrun("--until-done", spool.root).exits(1, saying: "barred")
    try flagged.remove()
  }

  /// That is one job's failure, with a record.
  @Test func `data that may not be written to fails its own job`() async throws {
    try spool.write("partial/x.part", [1])
    let flagged = try Chattr("+i", spool.path("partial/x.part"))
    try spool.write("partial/x", "\(server.url("/x"))\n")
    try spool.drop("other", "\(server.url("/other"))\n")
    try await spool.once(exits: 75)
    #expect(try spool.lastFailure("partial/x")["code"] == "io")
    #expect(spool.places(of: "other") == ["done/other"])
    try flagged.remove()
  }

  /// It has its receipt, and the hook has accepted it.
  @Test func `a payload that becomes immutable is done`() async throws {
    try spool.install("deliver", "chattr +i \"$SPOOLRUN_DIRECTORY/$SPOOLRUN_OUTPUT\"")
    try spool.drop("x", "\(server.url("/x"))\n")
    let result = try await spoolrun("--once", spool.root)
    try Chattr("+i", spool.path("files/x")).remove()
    #expect(result.status == .exited(0) && spool.places(of: "x") == ["done/x"], "\(result)")
  }

  /// In its hands: the journal can be written no more.
  @Test func `a claim that becomes immutable is one job's trouble`() async throws {
    let (spool, halfway, worker, gate) = try await startHalfway()
    defer { withExtendedLifetime(halfway) {} }
    let flagged = try Chattr("+i", spool.path(try spool.claim(of: "a")))
    // Before the worker can end.
    try spool.drop("b", "url: \(server.url("/b"))\n")
    gate.open()
    try await worker.result().exits(1, saying: "barred")
    #expect(spool.places(of: "b") == ["done/b"])
    try flagged.remove()
    try await spool.once(exits: 0)
    #expect(try spool.payload("a") == halfwayBody)
  }

  /// No job could be taken then.
  @Test(arguments: ["cur", "new"])
  func `an immutable directory is the spool's trouble`(_ directory: String) async throws {
    try spool.drop("x", "\(server.url("/x"))\n")
    let flagged = try Chattr("+i", spool.path(directory))
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(74) || result.status == .exited(73), "\(result)")
    #expect(spool.places(of: "x") == ["new/x"])
    try flagged.remove()
  }

  @Test func `gestures on all pass over it`() async throws {
    let flagged = try put("new/b", flag: "+i")
    for name in ["a", "c"] { try spool.drop(name, "\(server.url("/x"))\n") }
    for (gesture, place) in [("hold", "hold"), ("release", "new")] {
      try await spoolrun(gesture, "--all", "--spool", spool.root).exits(gesture == "hold" ? 1 : 0)
      for name in ["a", "c"] { #expect(spool.places(of: name) == ["\(place)/\(name)"]) }
    }
    let result = try await spoolrun("cancel", "--spool", spool.root, "a", "b", "c")
    #expect(result.status == .exited(1) && result.errors.split(separator: "\n").count == 1, "\(result)")
    #expect(spool.names("new") == ["b"])
    try flagged.remove()
  }

  @Test func `so does clean`() async throws {
    for name in ["a", "b", "c"] { try spool.write("partial/\(name).part", [1]) }
    let flagged = try Chattr("+i", spool.path("partial/b.part"))
    try await spoolrun("clean", spool.root).exits(74, saying: "partial/b.part is left alone")
    #expect(spool.names("partial") == ["b.part"])
    try flagged.remove()
  }
}

/// A flag of chattr(1) on a file, until it is removed.
private final class Chattr: Sendable {
  private let flag: String
  private let path: String

  init(_ flag: String, _ path: String) throws {
    (self.flag, self.path) = (flag, path)
    try Self.set(flag, path)
  }

  deinit { try? remove() }

  func remove() throws { try Self.set("-" + flag.dropFirst(), path) }

  /// FS_IOC_SETFLAGS (ioctl_iflags(2)), without waiting for a process.
  private static func set(_ flag: String, _ path: String) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    defer { close(descriptor) }
    var flags: Int32 = 0
    let get: UInt = 0x8008_6601
    let put: UInt = 0x4008_6602
    let bit: Int32 = flag.hasSuffix("i") ? 0x10 : 0x20
    guard ioctl(descriptor, get, &flags) == 0 else { throw TestSupportError("FS_IOC_GETFLAGS", path, errno: errno) }
    flags = flag.hasPrefix("+") ? flags | bit : flags & ~bit
    guard ioctl(descriptor, put, &flags) == 0 else { throw TestSupportError("FS_IOC_SETFLAGS", path, errno: errno) }
  }

  static func isAllowed() async throws -> Bool {
    guard geteuid() == 0 else { return false }
    let directory = try TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    try writeFile("\(directory.path)/x", [])
    do {
      try Chattr("+i", "\(directory.path)/x").remove()
      return true
    } catch {
      return false
    }
  }
}
