import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// What a file system can do, and what that means for workers.
@Suite struct FileSystemTraitsTests {
  private func names(_ fixture: Fixture) -> [String] {
    TestSupport.names(in: fixture.files.path("tmp"), isHiddenToo: true)
  }

  @Test func aLocalOneIsFit() throws {
    let fixture = try Fixture()
    let traits = try FileSystemTrial(fixture.spool).run()
    #expect(traits.obstacles == [] && traits.limits == [])
    #expect(traits.kind.isLocal && traits.showsWriters && traits.locks == .exclude)
    #expect(traits.renamesWithoutReplacing && traits.links && traits.takesColons)
    #expect(traits.clockOffset == 0 && traits.touchOffset == 0)
    #expect(names(fixture) == [], "nothing is left")
  }

  struct Lacking: Sendable, CustomTestStringConvertible {
    let call: Call.Kind
    /// The first such call that fails, from 1, and the errno of it.
    let number: Int
    let errno: Errno
    let found: @Sendable (FileSystemTraits) -> Bool
    var testDescription: String { "\(call) \(number): \(errno)" }
  }

  @Test(arguments: [
    Lacking(call: .create, number: 1, errno: .invalidArgument) { !$0.takesColons && !$0.obstacles.isEmpty },
    Lacking(call: .lock, number: 1, errno: .noLocks) { $0.locks == .missing(.noLocks) && !$0.obstacles.isEmpty },
    Lacking(call: .lock, number: 2, errno: .badFileDescriptor) {
      $0.locks == .excludeWriters && $0.obstacles.isEmpty && $0.limits.isEmpty
    },
    Lacking(call: .lease, number: 1, errno: .invalidArgument) { $0.leases == .missing && $0.limits.count == 1 },
    Lacking(call: .rename, number: 1, errno: .invalidArgument) {
      !$0.renamesWithoutReplacing && $0.obstacles.isEmpty
    },
    Lacking(call: .rename, number: 4, errno: .invalidArgument) { !$0.exchangesNames && $0.obstacles.isEmpty },
    Lacking(call: .link, number: 1, errno: .notPermitted) { !$0.links && $0.obstacles.isEmpty },
  ])
  func whatItLacksIsFound(lacking: Lacking) throws {
    let armed = Switch()
    let seen = Counter()
    let fixture = try Fixture(
      hook: Probe { call in
        armed.isOn && call.kind == lacking.call && seen.next() == lacking.number ? .fail(lacking.errno) : nil
      })
    armed.turnOn()
    let traits = try FileSystemTrial(fixture.spool).run()
    #expect(lacking.found(traits), "\(traits)")
    #expect(names(fixture) == [])
  }

  @Test func withoutAnyMoveThatReplacesNothing() throws {
    let fixture = try Fixture(hook: Probe { [.rename, .link].contains($0.kind) ? .fail(.invalidArgument) : nil })
    #expect(try FileSystemTrial(fixture.spool).run().obstacles.first?.contains("without replacing") == true)
  }

  /// Such a call costs three round trips on a network file system, and each job makes one.
  @Test func whatTheFileSystemLacksIsNotAskedAgain() throws {
    // The first one is without replacing. Those that replace work.
    let first = Counter()
    let hook = Probe { $0.kind == .rename && first.next() == 1 ? .fail(.invalidArgument) : nil }
    let fixture = try Fixture(hook: hook)
    for name in ["a", "b"] {
      try fixture.files.drop(name, "https://host/\(name)\n")
      let path = Path(.new, FileName(name))
      try fixture.spool.moveNoReplace(path, Path(.hold, FileName(name)))
      #expect(throws: SpoolError.self) { try fixture.spool.moveNoReplace(path, path) }
    }
    #expect(fixture.names("hold") == ["a", "b"] && fixture.names("new") == [])
    #expect(hook.count(.rename) == 3, "and one for each job's former name")
  }

  /// A full disk says nothing about what the file system can do.
  @Test func whatCannotBeTriedIsNotUnfit() throws {
    let fixture = try Fixture(hook: Probe { $0.kind == .create ? .fail(.noSpace) : nil })
    #expect(throws: SpoolError.self) { try FileSystemTrial(fixture.spool).run() }
  }

  @Test(arguments: [
    (UInt32(0xEF53), true, FileSystemKind.LeaseAnswers.both), (0x0102_1994, true, .both), (0x6969, false, .granted),
    (0x6573_5546, false, .refused), (0xFF53_4D42, false, .refused), (0x1234_5678, false, .refused),
  ])
  func whichTypesAreBelieved(type: UInt32, isLocal: Bool, leases: FileSystemKind.LeaseAnswers) {
    let kind = FileSystemKind(type: type)
    #expect(kind.isLocal == isLocal && kind.leases == leases)
  }

  @Test func whatClocksMean() {
    var traits = FileSystemTraits(kind: .fuse, type: "fuse.sshfs")
    traits.clockOffset = -600
    traits.touchOffset = 600
    #expect(traits.obstacles == [])
    #expect(traits.limits.filter { $0.contains("600 s") }.count == 2 && traits.limits.count == 4)
    let before = Timestamp(seconds: 100)
    let after = Timestamp(seconds: 103)
    for (found, offset) in [(99, 0), (101, 0), (104, 0), (98, -2), (105, 2), (700, 597)] as [(Int64, Int64)] {
      #expect(Timestamp(seconds: found).offset(from: before, to: after) == offset, "\(found)")
    }
  }

  @Test func theTypeThatIsMounted() {
    let table = """
      22 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw
      147 22 0:41 / /mnt/a\\040b rw,nosuid shared:7 - fuse.sshfs me@host:/x\u{1B} rw,user_id=0
      148 22 0:42 / /mnt/m rw,nosuid - fuse mfs\\04310.0.0.1:9421 rw,user_id=0
      149 22 0:43 / /mnt/f rw,nosuid - fuse bindfs rw,user_id=0

      """
    #expect(FileSystemKind.mountedType(id: Array("147".utf8), in: Array(table.utf8)) == "fuse.sshfs")
    for (id, isMooseFS) in [("148", true), ("149", false)] {
      let type = FileSystemKind.mountedType(id: Array(id.utf8), in: Array(table.utf8))
      #expect(FileSystemKind.fuse.mounted(as: type ?? "").isMooseFS == isMooseFS, "\(type ?? "-")")
    }
    #expect(FileSystemKind.mountedType(id: Array("22".utf8), in: Array(table.utf8)) == "ext4")
    #expect(FileSystemKind.mountedType(id: Array("14".utf8), in: Array(table.utf8)) == nil)
    #expect(FileSystemKind.mountedType(id: Array("1".utf8), in: Array("1 2 3 -".utf8)) == nil)
  }
}
