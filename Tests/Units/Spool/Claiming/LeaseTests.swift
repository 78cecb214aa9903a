import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// The lease that all workers of a spool agree on.
@Suite struct LeaseTests {
  private func note(_ fixture: Fixture) -> String? { try? fixture.text("lease") }

  @Test func theFirstWorkerWritesItDown() throws {
    let fixture = try Fixture()
    #expect(Leases(fixture.spool).length == 60)
    try Leases(fixture.spool).agree(on: 7)
    #expect(Leases(fixture.spool).length == 7 && note(fixture) == "7\n" && fixture.names("tmp") == [])
    #expect(Leases(fixture.spool).heartbeatInterval == 3500)
    let other = try fixture.another(host: "beta")
    #expect(Leases(other).length == 7, "also for those who only look")
    try Leases(other).agree(on: nil)
    try Leases(other).agree(on: 7)
    #expect(throws: Defect.self) { try Leases(other).agree(on: 60) }
    #expect(note(fixture) == "7\n")
  }

  @Test func alsoTheStandardOneWhereHostsMayShare() throws {
    let local = try Fixture()
    try Leases(local.spool).agree(on: nil)
    #expect(note(local) == nil)
    let shared = try Fixture(kind: .fuse)
    try Leases(shared.spool).agree(on: nil)
    #expect(note(shared) == "60\n")
    #expect(throws: Defect.self) { try Leases(shared.another()).agree(on: 300) }
  }

  /// On a local disk the first worker writes nothing down if nobody has asked it to.
  @Test func `who wants another lease than those that run is refused`() throws {
    let fixture = try Fixture()
    let (owner, boot) = WorkerID.current()
    let first = try Spool(fixture.files.root, owner: owner, boot: boot)
    try Leases(first).agree(on: nil)
    let presence = try Presence(of: first, WorkerReport(started: .now()))
    let defect = #expect(throws: Defect.self) { try Leases(fixture.spool).agree(on: 7) }
    #expect(defect?.reason.contains("60 s") == true && note(fixture) == nil && Leases(fixture.spool).length == 60)
    try Leases(fixture.spool).agree(on: 60)
    try presence.end()
    try Leases(fixture.spool).agree(on: 7)
    #expect(note(fixture) == "7\n")
  }

  /// On SSHFS, link(2) says EPERM where another host has just made the name.
  @Test func anotherHostIsFirst() throws {
    let fixture = try Fixture()
    let worker = try fixture.another(
      hook: Probe {
        switch $0.kind {
        case .rename: return .fail(.invalidArgument)
        case .link:
          try? fixture.write("lease", "7\n")
          return .fail(.notPermitted)
        default: return nil
        }
      })
    try Leases(worker).agree(on: 7)
    #expect(Leases(worker).length == 7)
  }

  /// Two workers start at the same time, with different ideas.
  @Test func oneOfTwoIsRefused() throws {
    let fixture = try Fixture { files in
      Probe.meanwhile(.rename, "lease") { try writeFile(files.path("lease"), Array("9\n".utf8)) }
    }
    let defect = #expect(throws: Defect.self) { try Leases(fixture.spool).agree(on: 7) }
    #expect(defect?.reason.contains("9 s") == true)
    #expect(note(fixture) == "9\n" && fixture.names("tmp") == [])
  }

  @Test(arguments: ["", "60", "0\n", "4\n", "86401\n", "x\n", "-60\n", "60\n60\n", "60 \n"])
  func whatIsNoLease(text: String) throws {
    let fixture = try Fixture()
    try fixture.write("lease", text)
    #expect(throws: Defect.self) { try Leases(fixture.spool).agree(on: nil) }
    #expect(try Leases(fixture.another()).length == 60, "status goes on")
  }
}
