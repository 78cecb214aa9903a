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
    return try Spool(location, owner: owner, boot: boot, settings: [])
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
