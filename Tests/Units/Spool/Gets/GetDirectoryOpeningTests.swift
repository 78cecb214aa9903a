import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// The directory of a `get` where file systems can do less, and where others put something in its place.
@Suite struct GetDirectoryOpeningTests {
  private let home: TemporaryDirectory
  private let parent: String

  init() throws {
    home = try TemporaryDirectory()
    parent = "\(home.path)/here"
    for path in [parent, "\(home.path)/x", "\(home.path)/x/new"] { try #require(mkdir(path, 0o700) == 0) }
    try writeFile("\(home.path)/x/new/job", [1])
  }

  private var location: String { "\(parent)/.spoolrun" }
  private var others: [String] { filesBelow("\(home.path)/x") }

  private func open(_ probe: Probe = Probe()) throws -> GetDirectory.Opening {
    try GetDirectory.open(in: parent, GetRecords("\(home.path)/state", system: System(hook: probe)))
  }

  private func opened(_ opening: GetDirectory.Opening) throws -> GetDirectory {
    guard case .opened(let directory) = opening else { throw Unexpected("\(opening)") }
    return directory
  }

  private func spool() throws -> Spool {
    let (owner, boot) = WorkerID.current()
    return try Spool(location, owner: owner, boot: boot, settings: [], isBesideFiles: true)
  }

  @Test func `without links there is none, and nothing is left`() throws {
    let opening = try open(Probe { $0.kind == .link ? .fail(.notPermitted) : nil })
    guard case .unusable(let reason) = opening else { throw Unexpected("\(opening)") }
    #expect(reason.contains("no symbolic links") && fileStatus(location) == nil)
  }

  /// As on SSHFS, which may refuse to read absolute links, and where locks say nothing.
  @Test(arguments: [false, true])
  func `where its link to the files cannot be read there is none`(hasLocks: Bool) throws {
    let probe = Probe { call in
      if call.kind == .lock, !hasLocks { return .fail(.noLocks) }
      return call.kind == .read && call.path == ".root" ? .fail(.notPermitted) : nil
    }
    guard case .unusable(let reason) = try open(probe) else { throw Unexpected("one was made") }
    #expect(reason.contains("no symbolic links to absolute paths"))
    #expect(names(in: parent, isHiddenToo: true) == [])
    // An older version did not try it.
    _ = try opened(try open())
    try writeFile("\(location)/new/job", [1])
    guard case .unusable = try open(probe) else { throw Unexpected("it is used") }
    #expect(names(in: "\(location)/new") == ["job"])
    _ = try opened(try open())
  }

  @Test func `without locks it stays, and nobody is said to be alone in it`() throws {
    let noLocks = Probe { $0.kind == .lock ? .fail(.noLocks) : nil }
    let directory = try opened(try open(noLocks))
    var isAlone: Bool?
    let isGone = try directory.removeIfDone(spool()) { isAlone = $0 }
    #expect(!isGone && isAlone == false && fileStatus(location) != nil)
    // With locks, the next command removes it.
    #expect(try opened(try open()).removeIfDone(spool()) && fileStatus(location) == nil)
  }

  @Test func `a command that comes at the same moment shares it`() throws {
    let (home, parent) = (home.path, parent)
    let directory = try opened(
      try open(
        Probe.once(.link, ".id") {
          _ = try? GetDirectory.open(in: parent, GetRecords("\(home)/state"))
          return nil
        }))
    let other = try opened(try open())
    #expect(try !directory.removeIfDone(spool()), "the other one has it")
    #expect(try other.removeIfDone(spool()) == false || fileStatus(location) == nil)
  }

  @Test func `a link in its place leads nowhere`() throws {
    let (location, target) = (location, "\(home.path)/x")
    let opening = try open(
      Probe.once(.open, ".spoolrun") {
        rmdir(location) == 0 && symlink(target, location) == 0 ? nil : .fail(.ioError)
      })
    guard case .unusable = opening else { throw Unexpected("\(opening)") }
    #expect(others == ["new/job"])
  }

  private var inode: UInt { fileStatus(location)?.st_ino ?? 0 }
  /// The only record.
  private var record: String { "\(home.path)/state/gets/\(names(in: "\(home.path)/state/gets").first ?? "")" }
  private func lines() throws -> Int { try readFile(record).count { $0 == 0x0A } }

  @Test(arguments: ["file", "link", "directory"])
  func `a stranger's thing of the name that it would get says nothing of it`(kind: String) throws {
    _ = try opened(try open())
    let former = "\(location).\(inode)"
    switch kind {
    case "file": try writeFile(former, [1])
    case "link": try #require(symlink("\(home.path)/x", former) == 0)
    default: try #require(mkdir(former, 0o755) == 0)
    }
    _ = try opened(try open())
    #expect(fileStatus(former) != nil && others == ["new/job"])
    _ = try opened(try open())
  }

  @Test func `a job that came when it was removed is not lost`() throws {
    _ = try opened(try open())
    let former = "\(location).\(inode)"
    try writeFile("\(location)/new/job", [1])
    // As a command leaves it that dies there.
    try #require(rename(location, former) == 0 && unlink("\(former)/.id") == 0 && rmdir("\(former)/urgent") == 0)
    let directory = try opened(try open())
    #expect(names(in: "\(location)/new") == ["job"] && fileStatus(former) == nil)
    #expect(try !directory.removeIfDone(spool()))
    try #require(unlink("\(location)/new/job") == 0)
    #expect(try directory.removeIfDone(spool()) && names(in: parent, isHiddenToo: true) == [])
    #expect(names(in: "\(home.path)/state/gets") == [])
  }

  /// As of `/tmp`, for which two hosts have one record.
  @Test func `one of the same path on another file system keeps its record`() throws {
    _ = try opened(try open())
    let text = String(decoding: try readFile(record), as: UTF8.self)
    let mount = try #require(text.firstMatch(of: /mount=[^ ]*/))
    try writeFile(record, Array(text.replacing(mount.output, with: "mount=other:1").utf8))
    try #require(rename(location, "\(home.path)/unmounted") == 0)
    _ = try opened(try open())
    #expect(try lines() == 2)
    try #require(rename(location, "\(home.path)/second") == 0 && rename("\(home.path)/unmounted", location) == 0)
    #expect(try opened(try open()).removeIfDone(spool()) && lines() == 1)
    try #require(rename("\(home.path)/second", location) == 0)
    #expect(try opened(try open()).removeIfDone(spool()) && names(in: "\(home.path)/state/gets") == [])
  }

  @Test func `of one that is gone no record stays`() throws {
    _ = try opened(try open())
    try #require(rename(location, "\(home.path)/gone") == 0)
    _ = try opened(try open())
    #expect(try lines() == 1)
  }

  /// The path is another directory's meanwhile.
  @Test func `one that was moved with its directory is known when that is back`() throws {
    _ = try opened(try open())
    try writeFile("\(location)/new/job", [1])
    try #require(rename(parent, "\(parent)-moved") == 0 && mkdir(parent, 0o700) == 0)
    #expect(try opened(try open()).removeIfDone(spool()))
    try #require(rmdir(parent) == 0 && rename("\(parent)-moved", parent) == 0)
    _ = try opened(try open())
    #expect(names(in: "\(location)/new") == ["job"])
  }

  /// Otherwise it would be a stranger's after a power cut.
  @Test func `its record is durable before it gets a job`() throws {
    let probe = Probe()
    _ = try opened(try open(probe))
    let calls = probe.calls
    let record = try #require(calls.lastIndex { $0.kind == .rename && $0.path.contains("/gets/") })
    #expect(calls[record...].contains { $0.kind == .fsync && $0.path.hasSuffix("/gets") })
  }

  @Test(arguments: [(Call.Kind.write, "/gets/", Errno.diskQuotaExceeded), (.mkdir, "partial", .noSpace)])
  func `one that cannot be completed leaves nothing`(kind: Call.Kind, part: String, errno: Errno) throws {
    #expect(throws: SpoolError.self) {
      try open(Probe { $0.kind == kind && $0.path.contains(part) ? .fail(errno) : nil })
    }
    #expect(names(in: parent, isHiddenToo: true) == [])
    #expect(names(in: "\(home.path)/state/gets").filter { !$0.hasSuffix("~") } == [])
  }

  /// By `retry` or `verify --refetch`, which have no lock.
  @Test func `a job that comes while it is removed gets its directory back`() throws {
    let location = location
    _ = try opened(try open())
    let former = "\(location).\(inode)"
    // At the last of its looks, by the name that it bears then.
    let coming = Probe { call in
      guard call.kind == .open, call.path.contains(".spoolrun."), fileStatus(former) != nil else { return nil }
      return (try? writeFile("\(former)/new/job", [1])) == nil ? .fail(.ioError) : nil
    }
    #expect(try !opened(try open(coming)).removeIfDone(spool()))
    #expect(names(in: "\(location)/new") == ["job"] && fileStatus(former) == nil)
    try #require(unlink("\(location)/new/job") == 0)
    #expect(try opened(try open()).removeIfDone(spool()) && names(in: "\(home.path)/state/gets") == [])
  }

  private static let receipt =
    "url: https://a.example/x\nverified: 2026-01-02T03:04:05Z size=1 crc32=d3d99e8b part=7\n"
    + "done: 2026-01-02T03:04:05Z attempts=1 output=x\n"

  private static func note(_ jobs: [String], in parent: String, _ state: String, _ probe: Probe = Probe()) throws {
    let fetched = try jobs.map { try #require(GetRecords.Fetched(FileName($0), parsed(receipt))) }
    try GetRecords(state, system: System(hook: probe)).note(fetched, in: parent)
  }

  @Test func `a large record grows at its end, and is written anew when it has doubled or is cut`() throws {
    let state = "\(home.path)/state"
    let jobs = (1000..<2000).map { "j\($0)" }
    try Self.note(jobs, in: parent, state)
    let record = "\(state)/got/\(names(in: "\(state)/got").first ?? "")"
    func note(_ jobs: [String]) throws -> Int {
      let probe = Probe()
      try Self.note(jobs, in: parent, state, probe)
      return probe.count(.rename)
    }
    let first = fileStatus(record)
    try #require((first?.st_size ?? 0) > 1 << 16)
    #expect(try note(["other"]) == 0)
    #expect(try note(["j1000"]) == 0)
    #expect(fileStatus(record)?.st_ino == first?.st_ino)
    #expect(try GetRecords(state).receipts(in: parent).count == 1001)
    #expect(try GetRecords(state).fetched(in: parent).count == 1001)
    #expect(try note(jobs) == 1)
    let lines = try readFile(record).count { $0 == 0x0A }
    #expect(lines == 1001)
    // As a power cut leaves it.
    try writeFile(record, readFile(record) + Array("- output=y size=1 job=cut".utf8))
    #expect(try GetRecords(state).receipts(in: parent).count == 1001)
    #expect(try note(["last"]) == 1)
    #expect(try GetRecords(state).receipts(in: parent).count == 1002)
  }

  /// As of two hosts that have one home.
  @Test func `receipts that two commands note at one moment are all kept`() async throws {
    let (state, parent, waits, ended) = ("\(home.path)/state", parent, Switch(), Switch())
    let other = Probe { call in
      if call.kind == .lock { waits.turnOn() }
      return nil
    }
    // Between reading and writing.
    let first = Probe.once(.write, "/got/") {
      let hasBegun = BlockingThread.begin {
        try? Self.note(["b"], in: parent, state, other)
        ended.turnOn()
      }
      guard hasBegun else { return .fail(.ioError) }
      while !waits.isOn, !ended.isOn { usleep(1000) }
      return nil
    }
    try Self.note(["a"], in: parent, state, first)
    try await waitUntil("the other one has ended") { ended.isOn }
    #expect(Set(try GetRecords(state).receipts(in: parent).keys) == [FileName("a"), FileName("b")])
  }

  @Test func `a command that holds the records of another for long is not waited for, and nothing is lost`() throws {
    let records = GetRecords("\(home.path)/state")
    let directory = try opened(GetDirectory.open(in: parent, records))
    let lock = Glibc.open("\(home.path)/state/gets/.lock", O_RDWR | O_CLOEXEC)
    try #require(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
    try writeFile("\(location)/done/job", Array(Self.receipt.utf8))
    #expect(try !directory.removeIfDone(spool()) && fileStatus("\(location)/done/job") != nil)
    close(lock)
    #expect(try directory.removeIfDone(spool()) && records.receipts(in: parent).count == 1)
  }

  @Test func `what only reads makes nothing`() throws {
    let records = GetRecords("\(home.path)/state")
    #expect(try records.receipts(in: parent).isEmpty && records.directories().isEmpty)
    #expect(fileStatus("\(home.path)/state") == nil)
  }

  @Test func `where nothing at all is, as without a mounted disk, nothing is forgotten`() throws {
    let state = "\(home.path)/state"
    try Self.note(["a"], in: parent, state)
    let records = GetRecords(state)
    #expect(try records.forgetMissing(in: parent, isDry: false) == nil && records.receipts(in: parent).count == 1)
    try writeFile("\(parent)/other", [1])
    #expect(try records.forgetMissing(in: parent, isDry: false) == ["x"] && names(in: "\(state)/got").isEmpty)
  }

  @Test func `none is made for a command that only removes`() throws {
    let opening = try GetDirectory.open(in: parent, GetRecords("\(home.path)/state"), makes: false)
    guard case .unusable = opening else { throw Unexpected("\(opening)") }
    #expect(fileStatus(location) == nil)
  }

  @Test func `what takes its place when it is removed is not removed`() throws {
    let (location, target) = (location, "\(home.path)/x")
    let directory = try opened(
      try open(
        Probe.once(.rename, ".spoolrun.") {
          rename(location, "\(location)-moved") == 0 && rename(target, location) == 0 ? nil : .fail(.ioError)
        }))
    _ = try directory.removeIfDone(spool())
    let moved = try #require(names(in: parent, isHiddenToo: true).first { $0.hasPrefix(".spoolrun.") })
    #expect(fileStatus("\(parent)/\(moved)/new/job") != nil)
  }
}
