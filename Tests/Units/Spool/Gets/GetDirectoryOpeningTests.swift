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
    guard case .opened(let directory) = opening else { throw Unexpected(description: "\(opening)") }
    return directory
  }

  private func spool() throws -> Spool {
    let (owner, boot) = WorkerID.current()
    return try Spool(location, owner: owner, boot: boot, settings: [], isBesideFiles: true)
  }

  @Test func `without links there is none, and nothing is left`() throws {
    let opening = try open(Probe { $0.kind == .link ? .fail(.notPermitted) : nil })
    guard case .unusable(let reason) = opening else { throw Unexpected(description: "\(opening)") }
    #expect(reason.contains("no symbolic links") && fileStatus(location) == nil)
  }

  @Test func `without locks it stays`() throws {
    let noLocks = Probe { $0.kind == .lock ? .fail(.noLocks) : nil }
    let directory = try opened(try open(noLocks))
    #expect(try !directory.removeIfDone(spool()) && fileStatus(location) != nil)
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
    guard case .unusable = opening else { throw Unexpected(description: "\(opening)") }
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

  @Test func `none is made for a command that only removes`() throws {
    let opening = try GetDirectory.open(in: parent, GetRecords("\(home.path)/state"), makes: false)
    guard case .unusable = opening else { throw Unexpected(description: "\(opening)") }
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
