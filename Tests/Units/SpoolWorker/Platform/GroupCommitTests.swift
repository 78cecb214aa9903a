import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker

/// Flushes that jobs share.
@Suite struct GroupCommitTests {
  /// Records flushes, and fails those of the paths in `failing`.
  private final class Disk: CallHook {
    private let failing: Set<String>
    private let calls = Mutex<[String]>([])

    init(failing: Set<String> = []) { self.failing = failing }

    var flushes: [String] { calls.withLock { $0.sorted() } }

    func before(_ call: Call) -> Fault? {
      guard [.fsync, .fdatasync, .syncfs].contains(call.kind) else { return nil }
      let name = call.kind == .syncfs ? "all" : call.path
      calls.withLock { $0.append(name) }
      return failing.contains(name) ? .fail(.ioError) : nil
    }

    func after(_ call: Call) {}
  }

  private func round(_ disk: Disk, _ directories: [Directory]) throws -> (
    errors: [Flush.Target: SpoolError], fileSystemFailed: Bool
  ) {
    let fixture = try Fixture(hook: disk)
    return GroupCommit.round(
      directories.map { fixture.spool.flush($0) }, on: [try fixture.spool.fileSystem()].compactMap(\.self))
  }

  @Test func oneCallStandsForAll() throws {
    let disk = Disk()
    let outcome = try round(disk, [.cur, .done, .partial])
    #expect(disk.flushes == ["all"])
    #expect(outcome.errors.isEmpty && !outcome.fileSystemFailed)
  }

  /// Its error may be anybody's: each flush has to speak for itself.
  @Test func whenItFailsEachIsAsked() throws {
    let disk = Disk(failing: ["all", "done"])
    let outcome = try round(disk, [.cur, .done, .partial])
    #expect(disk.flushes == ["all", "cur", "done", "partial"])
    #expect(outcome.fileSystemFailed)
    #expect(Array(outcome.errors.keys) == [.directory(.done)])
    #expect(outcome.errors[.directory(.done)]?.errno == .ioError)
  }
}
